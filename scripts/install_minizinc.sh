#!/bin/sh
# Install MiniZinc from the system's packages if it is missing and that is possible.
# Where it is not, say why and go on: the tests that need it skip. Under CI=true that is a failure.
set -u
. "$(dirname "$0")/as_root.sh"

command -v minizinc >/dev/null && exit 0

give_up() {
    echo "MiniZinc is not installed: $1; its tests will skip" >&2
    case "${CI:-}" in true | 1) exit 1 ;; esac
    exit 0
}

command -v apt-get >/dev/null || give_up "no apt-get on this system, see minizinc.org"
can_be_root || give_up "it takes root (apt-get install minizinc)"
echo "installing MiniZinc"
as_root apt-get update -qq || give_up "apt-get update failed"
as_root apt-get install -y -qq --no-install-recommends minizinc >/dev/null ||
    give_up "apt-get install minizinc failed"
command -v minizinc >/dev/null || give_up "apt-get installed no minizinc command"
