#!/bin/sh
# Install packages into a virtual environment: install.sh FOLDER PACKAGE...
# With uv; where that fails, as it does not read pip's files of settings, with pip.
set -eu
folder=$1
shift
if [ -n "${PIP_INDEX_URL:-}" ]; then
    UV_DEFAULT_INDEX=${UV_DEFAULT_INDEX:-$PIP_INDEX_URL}
    export UV_DEFAULT_INDEX
fi
if [ -x "$folder/uv/bin/uv" ]; then
    "$folder/uv/bin/uv" pip install --quiet --python "$folder/bin/python" "$@" && exit 0
    echo "uv failed; trying pip" >&2
fi
"$folder/bin/python" -m pip --version >/dev/null 2>&1 || "$folder/bin/python" -m ensurepip >/dev/null
"$folder/bin/python" -m pip install --quiet --no-compile --disable-pip-version-check "$@"
