#!/bin/sh
# Programs that the benchmarks measure beside queuectl, from Debian packages: as tests/packages.sh does it.
# Never fails: a peer that is not there is reported as missing.
NEEDED_BY="the benchmarks" exec sh "$(dirname "$0")/../tests/packages.sh" \
    parallel tsp:task-spooler nq redis-server
