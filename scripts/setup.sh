#!/bin/sh
# Makes .venv ready:  scripts/setup.sh requirements.txt  (or requirements-dev.txt, which includes it)
# Returns at once when nothing changed. PYTHON names the interpreter, TORCH_INDEX an index that torch may come from.
set -eu
cd "$(dirname "$0")/.."
wanted=$1
python=.venv/bin/python

die() {
    printf 'gptviz: %s\n' "$*" >&2
    exit 1
}

# The pinned torch has builds for these Pythons, and none for Intel Macs.
supported() {
    "$1" -c '
import platform, sys
old_or_new = not (3, 11) <= sys.version_info[:2] <= (3, 14)
sys.exit(old_or_new or (sys.platform, platform.machine()) == ("darwin", "x86_64"))' 2>/dev/null
}

up_to_date() {
    supported $python || return 1
    cmp -s requirements.txt .venv/installed/requirements.txt && cmp -s "$wanted" ".venv/installed/$wanted"
}

on_debian_as_root() {
    [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null
}

debian_install() {
    apt-get update || true # a broken source need not matter
    DEBIAN_FRONTEND=noninteractive apt-get install -y "$@"
}

find_python() {
    if [ -n "${PYTHON:-}" ]; then
        set -- "$PYTHON"
    else
        set -- python3 python3.14 python3.13 python3.12 python3.11
    fi
    for base in "$@"; do
        if supported "$base"; then return; fi
    done
    found=$("$1" -c 'import platform; print(platform.python_version(), platform.machine())' 2>/dev/null) || found='not there'
    die "needs Python 3.11 to 3.14 (on a Mac, one built for Apple silicon), and '$1' is $found." \
        "Install one (Debian 12 or later: apt-get install python3 python3-venv; macOS: brew install python@3.13)," \
        "or name one you have: PYTHON=/path/to/python3 make ..."
}

# Debian splits venv off into a package of its own.
need_venv() {
    if "$base" -c 'import ensurepip, venv' 2>/dev/null; then return; fi
    package=$("$base" -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])')
    if on_debian_as_root; then debian_install "$package" || true; fi
    "$base" -c 'import ensurepip, venv' 2>/dev/null ||
        die "'$base' cannot make virtual environments: install its venv module (Debian: sudo apt-get install $package) and run this again."
}

make_venv() {
    if [ -z "${PYTHON:-}" ] && ! command -v python3 >/dev/null && on_debian_as_root; then
        debian_install python3 python3-venv
    fi
    find_python
    need_venv
    "$base" -m venv --clear .venv
}

if up_to_date; then exit; fi
supported $python && $python -m pip --version >/dev/null 2>&1 || make_venv
$python -m pip install --disable-pip-version-check ${TORCH_INDEX:+--extra-index-url "$TORCH_INDEX"} -r "$wanted"
mkdir -p .venv/installed
cp requirements.txt .venv/installed/
cp "$wanted" .venv/installed/
