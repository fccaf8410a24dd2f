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
has "$tmp/err" "^fathom: stopped by Ctrl-C: [0-9]+ files left unread$"
[ "$(grep -c '^<!-- ' "$tmp/out")" -le $((40 - $(sed -n 's/.*: \([0-9]*\) files.*/\1/p' "$tmp/err"))) ] ||
    fail "a header without text"
interrupt TERM 143 "${pages[@]}"
has "$tmp/err" "stopped by a termination signal"
interrupt INT 130 --format json "${pages[@]}"
is_json "$tmp/out"
[ $(($(wc -l <"$tmp/out") + $(sed -n 's/.*: \([0-9]*\) files.*/\1/p' "$tmp/err"))) -eq 40 ] ||
    fail "a file has neither a line nor is it counted as unread"

# A page that is cut before its first token: said, a line in JSON, no header in Markdown.
early() { # early ARGUMENT...: interrupts as soon as the program listens
    local status=0 pid
    "$fathom" "$@" >"$tmp/out" 2>"$tmp/err" &
    pid=$!
    until grep -q '^SigCgt:.*[2367abef]$' "/proc/$pid/status"; do sleep 0.005; done
    kill -s INT "$pid"
    wait "$pid" || status=$?
    [ "$status" -eq 130 ] || fail "status $status after an early Ctrl-C"
}
early "$page" "$page"
empty "$tmp/out"
early --format json "${pages[@]}"
if [ -s "$tmp/out" ]; then
    is_json "$tmp/out"
    has "$tmp/out" '"status":"truncated"'
    has "$tmp/err" "'$page': page 1 of 1 was cut by Ctrl-C"
fi

# -o FILE: the text so far takes the place of the old file; without any the old one stays.
echo old >"$tmp/text.md"
early -o "$tmp/text.md" "$page" "$page"
[ "$(cat "$tmp/text.md")" = old ] || fail "an interrupt before the first text emptied the old file"
has "$tmp/err" "'$tmp/text.md' is left alone"
"$fathom" -o "$tmp/text.md" "${pages[@]}" 2>"$tmp/err" &
pid=$!
until [ -n "$(find "$tmp" -name '.text.md.*' -size +0)" ]; do sleep 0.02; done
[ "$(cat "$tmp/text.md")" = old ] || fail "the old file went before the new one was there"
kill -s INT "$pid"
wait "$pid" || true
has "$tmp/err" "'$tmp/text.md' holds the text so far"
has "$tmp/text.md" '^# '
[ -z "$(find "$tmp" -name '.text.md.*')" ] || fail "a temporary file is left"

# A named pipe that nobody reads does not hold the program.
mkfifo "$tmp/pipe"
early -o "$tmp/pipe" "$page"
cat "$tmp/pipe" >"$tmp/piped" &
run 0 --max-tokens 40 -o "$tmp/pipe" "$page"
wait $!
filled "$tmp/piped"
