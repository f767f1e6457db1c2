#!/bin/sh
# Make a virtual environment: make_venv.sh FOLDER [PYTHON]
# Without PYTHON, the newest interpreter found that topoplace supports.
set -eu
folder=$1
wanted=${2:-}

# where an interpreter is, if it is new enough; what is on the path may be a shim
place_of() {
    "$1" -c 'import sys; sys.exit(1) if sys.version_info < (3, 11) else print(sys.executable)' \
        2>/dev/null
}

if [ -n "$wanted" ]; then
    if ! python=$(place_of "$wanted"); then
        echo "PYTHON=$wanted is not a Python of at least 3.11" >&2
        exit 2
    fi
else
    python=
    for candidate in python3.13 python3.12 python3.11 python3; do
        if python=$(place_of "$candidate"); then
            break
        fi
    done
    if [ -z "$python" ]; then
        echo "no Python of at least 3.11 found; name one: make ... PYTHON=/path/to/python3" >&2
        exit 2
    fi
fi

say() { echo "making $folder with $("$python" --version)"; }

# Below the environment, but no part of it.
get_uv() {
    "$1" -m pip install --quiet --no-compile --disable-pip-version-check \
        --root-user-action ignore --target "$folder/uv" uv
}

# Installing takes uv a third of the time that it takes pip (see install.sh).
if "$python" -c 'import pip' 2>/dev/null; then
    say
    "$python" -m venv --clear --without-pip "$folder"
    get_uv "$python" || true
    exit 0
fi

# Debian keeps ensurepip, without which a virtual environment has no pip, in a package of its own.
if ! "$python" -c 'import ensurepip' 2>/dev/null; then
    version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
    . "$(dirname "$0")/as_root.sh"
    if ! command -v apt-get >/dev/null || ! can_be_root; then
        echo "$python cannot make virtual environments: install python$version-venv" >&2
        exit 2
    fi
    echo "installing python$version-venv"
    as_root apt-get update -qq
    as_root apt-get install -y -qq "python$version-venv" >/dev/null
fi
say
"$python" -m venv --clear "$folder"
get_uv "$folder/bin/python" || true
