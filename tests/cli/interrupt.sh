#!/usr/bin/env bash
# Ctrl-C: the text so far is kept, the status tells; in JSON the page's line is whole.
# shellcheck source=tests/cli/common.sh
source "$(dirname "$0")/common.sh"
set -m # background jobs of a shell without job control ignore Ctrl-C

interrupt() { # interrupt SIGNAL STATUS ARGUMENT...: sends it when the first text is there
    local signal=$1 wanted=$2 status=0 pid tries=0
    shift 2
    rm -f "$tmp/out"
    "$fathom" "$@" >"$tmp/out" 2>"$tmp/err" &
    pid=$!
    until [ -s "$tmp/out" ]; do
        sleep 0.02
        tries=$((tries + 1))
        [ $tries -lt 5000 ] || fail "no text"
    done
    kill -s "$signal" "$pid"
    wait "$pid" || status=$?
    [ "$status" -eq "$wanted" ] || fail "status $status after SIG$signal"
    filled "$tmp/out"
    [ "$(tail -c 1 "$tmp/out")" = "" ] || fail "the last line does not end"
}

pages=()
for _ in {1..40}; do pages+=("$page"); done
interrupt INT 130 "${pages[@]}"
empty "$tmp/err"
interrupt TERM 143 "${pages[@]}"
interrupt INT 130 --format json "${pages[@]}"
is_json "$tmp/out"
