#!/usr/bin/env bash
# What is written: several files, a file of its own, a closed pipe, a full disk.
# shellcheck source=tests/cli/common.sh
source "$(dirname "$0")/common.sh"
few=(--max-tokens 6)

# One file: its text and nothing else.
run 0 --raw "$page"
has "$tmp/out" '<\|ref\|>.*<\|/det\|>'
empty "$tmp/err"
run 0 "${few[@]}" "$page"
cp "$tmp/out" "$tmp/page.md"
[ "$(tail -c 1 "$tmp/out")" = "" ] || fail "the last line does not end"
run 0 "${few[@]}" -o "$tmp/page.out" "$page"
empty "$tmp/out"
cmp "$tmp/page.out" "$tmp/page.md"

# Several: a comment names each, an empty line stands between.
cp "$page" "$tmp/a>b.png"
run 0 "${few[@]}" "$page" "$tmp/a>b.png"
[ "$(grep -c '^<!-- .* -->$' "$tmp/out")" -eq 2 ] || fail "not two headers"
has "$tmp/out" 'a&gt;b\.png -->'
run 0 --no-header "${few[@]}" "$page" "$page"
lacks "$tmp/out" '<!--'

# An input is never overwritten.
cp "$page" "$tmp/copy.png"
run 1 -o "$tmp/copy.png" "$tmp/copy.png"
one_line "'$tmp/copy.png': .*input"
cmp "$page" "$tmp/copy.png"
run 1 -o "$tmp/no/such/folder" "$page"
one_line "no/such/folder': cannot create: No such file"

# The reader goes away.
status=0
"$fathom" "$page" 2>"$tmp/err" | head -c 1 >"$tmp/out" || status=${PIPESTATUS[0]}
[ "$status" -eq 1 ] || fail "status $status after a closed pipe"
one_line 'standard output: cannot write: Broken pipe'

# The disk is full.
if [ -w /dev/full ]; then
    for arguments in "${few[*]} $page" 'inspect' '--help' 'ocr --help' '--version' 'help'; do
        status=0
        # shellcheck disable=SC2086
        "$fathom" $arguments >/dev/full 2>"$tmp/err" || status=$?
        [ "$status" -eq 1 ] || fail "fathom $arguments: status $status on a full disk"
        one_line 'standard output: cannot write: No space left'
    done
    run 1 -o /dev/full "${few[@]}" "$page"
    one_line "'/dev/full': cannot write: No space left"
fi
