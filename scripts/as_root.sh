# Sourced: run a command as root without asking for a password.

can_be_root() {
    [ "$(id -u)" = 0 ] || { command -v sudo >/dev/null && sudo -n true 2>/dev/null; }
}

as_root() {
    if [ "$(id -u)" = 0 ]; then
        DEBIAN_FRONTEND=noninteractive "$@"
    else
        sudo -n DEBIAN_FRONTEND=noninteractive "$@"
    fi
}
