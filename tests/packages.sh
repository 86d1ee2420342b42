#!/bin/sh
# Programs some tests need, from Debian packages: installed as root on Debian, else named.
# Never fails: the tests that need a missing program skip and say so (with CI set, they fail).
# A word is a program and its package of the same name, or program:package. Words as arguments take the place of those
# below; NEEDED_BY then says who asks.
needed_by=${NEEDED_BY:-the tests}
[ $# -gt 0 ] || set -- tmux strace faketime systemd-analyze:systemd zsh fish dot:graphviz parallel chromium promtool:prometheus

missing=""
for word in "$@"; do
    command -v "${word%%:*}" >/dev/null 2>&1 || missing="$missing ${word##*:}"
done
[ -n "$missing" ] || exit 0

if [ "$(id -u)" = 0 ] && [ -e /etc/debian_version ]; then
    echo "installing Debian packages for $needed_by:$missing"
    export DEBIAN_FRONTEND=noninteractive
    # shellcheck disable=SC2086
    apt-get update -qq && apt-get install -y -qq --no-install-recommends $missing >/dev/null && exit 0
    echo "that failed; what needs them cannot run" >&2
    exit 0
fi
echo "$needed_by need:$missing; on Debian: sudo apt-get install$missing" >&2
