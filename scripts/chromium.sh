#!/bin/sh
# Prints which Chromium the browser tests start: the one GPTVIZ_CHROMIUM names, else the system's, else Debian's
# package (installed here when root). Prints nothing when Playwright's own is to be used, which is then fetched.
# Messages go to stderr.
set -eu
cd "$(dirname "$0")/.."

die() {
    printf 'gptviz: %s\n' "$*" >&2
    exit 1
}

# Some systems have a /usr/bin/chromium-browser that only says how to install one: it has to run.
system_chromium() {
    for browser in chromium chromium-browser google-chrome /usr/bin/chromium \
        "/Applications/Chromium.app/Contents/MacOS/Chromium" \
        "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome"; do
        browser=$(command -v "$browser") || continue
        if "$browser" --version >/dev/null 2>&1; then
            printf '%s\n' "$browser"
            return
        fi
    done
    return 1
}

debian_chromium() {
    [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || return 1
    apt-get update || true # a broken source need not matter
    DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends chromium
} >&2

playwright_chromium() {
    .venv/bin/python -m playwright install chromium ||
        die "the browser tests need a Chromium, and Playwright could not fetch its own. Install one" \
            "(Debian: sudo apt-get install chromium) or name one: GPTVIZ_CHROMIUM=/path/to/chromium make test"
} >&2

if [ -n "${GPTVIZ_CHROMIUM:-}" ]; then
    "$GPTVIZ_CHROMIUM" --version >/dev/null 2>&1 || die "GPTVIZ_CHROMIUM names '$GPTVIZ_CHROMIUM', which does not run."
    command -v "$GPTVIZ_CHROMIUM"
    exit
fi
system_chromium && exit
if debian_chromium; then system_chromium && exit; fi
playwright_chromium
