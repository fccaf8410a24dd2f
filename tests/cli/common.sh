#!/usr/bin/env bash
# Sourced by every script here: common.sh PROGRAM SCRATCH. Leaves an empty scratch folder in $tmp, and $page and $model
# to read with; both can be set from outside.
# shellcheck disable=SC2034 # used by those who source it
set -euo pipefail

fathom=$1
tmp=$2
page=${PAGE:-examples/page.png}
export FATHOM_MODEL=${MODEL:-models/mini}
model=$FATHOM_MODEL
export LC_ALL=C
unset NO_COLOR

# What a sanitizer finds must not pass for an ordinary failure.
export ASAN_OPTIONS=exitcode=99 UBSAN_OPTIONS=exitcode=99 TSAN_OPTIONS=exitcode=99

chmod -R u+rwx "$tmp" 2>/dev/null || true
rm -rf "$tmp"
mkdir -p "$tmp"

fail() {
    echo "FAILED: $*" >&2
    for f in "$tmp/out" "$tmp/err"; do
        if [ -s "$f" ]; then
            echo "--- $f" >&2
            head -c 2000 "$f" >&2
        fi
    done
    exit 1
}

# run STATUS ARGUMENT...: runs the program, its output in $tmp/out and $tmp/err, and demands the exit status.
run() {
    local wanted=$1 status=0
    shift
    "$fathom" "$@" >"$tmp/out" 2>"$tmp/err" || status=$?
    [ "$status" -eq "$wanted" ] || fail "fathom $*: status $status instead of $wanted"
}

# one_line PATTERN: standard error is one line, and matches.
one_line() {
    [ "$(wc -l <"$tmp/err")" -eq 1 ] || fail "not one line on standard error"
    grep -qE -- "$1" "$tmp/err" || fail "standard error lacks '$1'"
}

has() { grep -qE -- "$2" "$1" || fail "$1 lacks '$2'"; }
lacks() { ! grep -qE -- "$2" "$1" || fail "$1 has '$2'"; }
empty() { [ ! -s "$1" ] || fail "$1 is not empty"; }
filled() { [ -s "$1" ] || fail "$1 is empty"; }

# is_json FILE: every line of it is one JSON value, as far as this machine has the means to tell.
is_json() {
    filled "$1"
    if command -v python3 >/dev/null; then
        python3 -c 'import json, sys; [json.loads(line) for line in open(sys.argv[1], encoding="utf-8")]' "$1" ||
            fail "$1 is not JSON"
    else
        lacks "$1" '^[^{]|[^}]$'
    fi
}
