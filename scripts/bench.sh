#!/usr/bin/env bash
# Runs the stages of the program and then every benchmark, each with the machine's own limits beside its figures.
set -euo pipefail
cd "$(dirname "$0")/.."

build/bin/fathom bench "$@"
for program in build/bin/bench_*; do
    echo "== ${program##*/}"
    "$program"
done
