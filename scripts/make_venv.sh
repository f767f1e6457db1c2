#!/bin/sh
# Make a virtual environment: make_venv.sh FOLDER [PYTHON]
# Without PYTHON, the newest interpreter found that topoplace supports.
set -eu
folder=$1
wanted=${2:-}

new_enough() {
    "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null
}

if [ -n "$wanted" ]; then
    if ! new_enough "$wanted"; then
        echo "PYTHON=$wanted is not a Python of at least 3.11" >&2
        exit 2
    fi
    python=$wanted
else
    python=
    for candidate in python3.13 python3.12 python3.11 python3; do
        if new_enough "$candidate"; then
            python=$candidate
            break
        fi
    done
    if [ -z "$python" ]; then
        echo "no Python of at least 3.11 found; name one: make ... PYTHON=/path/to/python3" >&2
        exit 2
    fi
fi

say() { echo "making $folder with $("$python" --version)"; }

# Installing takes uv a third of the time that it takes pip (see install.sh).
if "$python" -m pip --version >/dev/null 2>&1; then
    say
    "$python" -m venv --clear --without-pip "$folder"
    "$python" -m pip --python "$folder/bin/python" install --quiet --no-compile uv || true
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
"$folder/bin/python" -m pip install --quiet --no-compile uv || true
