#!/usr/bin/env bash
# What is written: several files, a file of its own, a closed pipe, a full disk.
# shellcheck source=tests/cli/common.sh
source "$(dirname "$0")/common.sh"
few=(--max-tokens 40)

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

run 0 "${few[@]}" -o - "$page"
cmp "$tmp/out" "$tmp/page.md"
[ ! -e - ] || fail "-o - made a file"

# The old file keeps its permissions and the link to it; when nothing could be read, or written, all of it.
echo old >"$tmp/old"
chmod 640 "$tmp/old"
ln -s old "$tmp/link"
run 1 -o "$tmp/link" /nonexistent.png
[ "$(cat "$tmp/old")" = old ] || fail "an old file was emptied for nothing"
(ulimit -f 0 && "$fathom" "${few[@]}" -o "$tmp/link" "$page" 2>&1) | cat >/dev/null || true
[ "$(cat "$tmp/old")" = old ] || fail "an old file was emptied by a failed write"
run 0 "${few[@]}" -o "$tmp/link" "$page"
[ -L "$tmp/link" ] || fail "the link was replaced"
cmp "$tmp/old" "$tmp/page.md"
[ "$(stat -c %a "$tmp/old")" = 640 ] || fail "the permissions changed"
[ -z "$(find "$tmp" -name '.old.*')" ] || fail "a temporary file is left"

# A limit on the size of files is an error of the write, not the program's end.
status=0
(ulimit -f 0 && "$fathom" "${few[@]}" -o "$tmp/limited" "$page" 2>&1) | cat >"$tmp/err" || status=${PIPESTATUS[0]}
[ "$status" -eq 1 ] || fail "status $status with a limit on the size of files"
has "$tmp/err" "'$tmp/limited': cannot write: File too large"
[ ! -e "$tmp/limited" ] || fail "a file of nothing"

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

# The reader goes away: before the second page, and, when text is handed on as it comes, before the end of the first.
status=0
"$fathom" "${few[@]}" "$page" "$page" 2>"$tmp/err" | head -c 1 >"$tmp/out" || status=${PIPESTATUS[0]}
[ "$status" -eq 1 ] || fail "status $status after a closed pipe between pages"
status=0
"$fathom" --no-retry "$page" 2>"$tmp/err" | head -c 1 >"$tmp/out" || status=${PIPESTATUS[0]}
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

# Names on a terminal or in a message: nothing in them is obeyed, and the file is named once.
odd=$(printf 'a\033b\342\200\256\302\205\377.png')
: >"$tmp/$odd"
run 1 "$tmp/$odd"
one_line "^fathom: '$tmp/a[?]b[?][?][?]\\.png': an empty file"
run 1 "$tmp/x$odd"
one_line "^fathom: '$tmp/xa[?]b[?][?][?]\\.png': cannot open: No such file"
cp "$page" "$tmp/$odd"
if command -v script >/dev/null; then
    TERM=dumb script -qec "'$fathom' ${few[*]} '$tmp/$odd' '$page' 2>/dev/null" /dev/null </dev/null >"$tmp/out"
    has "$tmp/out" "^<!-- $tmp/a[?]b[?][?][?]\\.png -->"
fi
