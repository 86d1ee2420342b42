#!/bin/sh
# Debian packages some tests need, each named like the program it brings: installed as root on Debian, else named.
# Never fails: the tests that need a missing program skip and say so (with CI set, they fail).
packages="tmux"

missing=""
for package in $packages; do
    command -v "$package" >/dev/null 2>&1 || missing="$missing $package"
done
[ -n "$missing" ] || exit 0

if [ "$(id -u)" = 0 ] && [ -e /etc/debian_version ]; then
    echo "installing Debian packages for the tests:$missing"
    export DEBIAN_FRONTEND=noninteractive
    # shellcheck disable=SC2086
    apt-get update -qq && apt-get install -y -qq --no-install-recommends $missing >/dev/null && exit 0
    echo "that failed; the tests that need them cannot run" >&2
    exit 0
fi
echo "some tests need:$missing; on Debian: sudo apt-get install$missing" >&2
