#!/usr/bin/env bash
# The sources are formatted as .clang-format says.
exec scripts/format.sh --check
