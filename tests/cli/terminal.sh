#!/usr/bin/env bash
# Progress and colours are for terminals only, and NO_COLOR takes the colours away.
# shellcheck source=tests/cli/common.sh
source "$(dirname "$0")/common.sh"
command -v script >/dev/null || exit 77
few=(--max-tokens 6)
escape=$'\033'

# on_terminal SHELL_COMMAND: what a person would see.
on_terminal() { TERM=xterm script -qec "$1" /dev/null </dev/null >"$tmp/out" 2>&1; }

run 0 "$page"
lacks "$tmp/out" "$escape"
empty "$tmp/err"

on_terminal "'$fathom' ${few[*]} '$page' >/dev/null" || fail "fails on a terminal"
has "$tmp/out" 'vision'
has "$tmp/out" 'tokens/s'
has "$tmp/out" "$escape\[2m"

NO_COLOR=1 on_terminal "'$fathom' ${few[*]} '$page' >/dev/null"
has "$tmp/out" 'vision'
lacks "$tmp/out" "$escape\[[0-9;]*m"

on_terminal "TERM=dumb '$fathom' ${few[*]} '$page' >/dev/null"
has "$tmp/out" 'tokens/s'
lacks "$tmp/out" "$escape"

on_terminal "'$fathom' --quiet ${few[*]} '$page' >/dev/null"
lacks "$tmp/out" 'tokens/s|vision'
has "$tmp/out" 'truncated'
