#!/usr/bin/env bash
# Formats our C sources with clang-format 14 (other versions disagree with it); --check only tells.
set -euo pipefail
cd "$(dirname "$0")/.."

mode=-i
[ "${1-}" != --check ] || mode=--dry-run
find bench cli helper include src tests tools -name '*.[ch]' -print0 |
    xargs -0 clang-format-14 "$mode" -Werror
