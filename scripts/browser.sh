#!/usr/bin/env bash
# Sees to a browser for the tests of the report: Chromium and its driver from Debian's packages, where they can be had.
# Without them those tests are skipped, so that this is no failure.
set -euo pipefail

has() { command -v "$1" >/dev/null 2>&1; }
go_without() {
    echo "No browser for the tests of the report, which are skipped: $1"
    exit 0
}

if has chromium && has chromedriver; then exit 0; fi
has apt-get || go_without "there is no apt-get to install chromium and chromium-driver with."

as_root=()
if [ "$(id -u)" -ne 0 ]; then
    has sudo && sudo -n true 2>/dev/null || go_without "installing chromium and chromium-driver needs root."
    as_root=(sudo -n)
fi

echo "Installing chromium and chromium-driver for the tests of the report."
log=$(mktemp)
install() {
    # Without recommendations: a browser brings enough with it.
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
        apt-get install --quiet --yes --no-install-recommends chromium chromium-driver
}
if ! { install || { "${as_root[@]}" apt-get update --quiet && install; }; } >"$log" 2>&1; then
    go_without "apt-get could not install chromium and chromium-driver; its words are in $log."
fi
rm -f "$log"
