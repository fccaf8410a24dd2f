#!/usr/bin/env bash
# A bad file costs one line that names it, and exit status 1; the other files are read all the same.
# shellcheck source=tests/cli/common.sh
source "$(dirname "$0")/common.sh"
few=(--max-tokens 4)

bytes() { printf '%b' "$@"; }

mkdir "$tmp/directory"
: >"$tmp/zero.png"
head -c 1000 "$page" >"$tmp/truncated.png"
head -c 20 "$page" >"$tmp/header.png"
{ head -c 2000 "$page" && head -c 2000 /dev/zero && tail -c +4001 "$page"; } >"$tmp/corrupt.png"
echo 'not a picture' >"$tmp/text.png"
bytes 'P6\n4 4\n255\nabc' >"$tmp/truncated.ppm"
bytes 'P6\n999999999 999999999\n255\n' >"$tmp/huge.ppm"
# SOI, SOF0 of 65500 x 65500 with three components, SOS, and nothing behind it
bytes '\xff\xd8\xff\xc0\x00\x11\x08\xff\xdc\xff\xdc\x03\x01\x22\x00\x02\x11\x01\x03\x11\x01' \
    '\xff\xda\x00\x0c\x03\x01\x00\x02\x11\x03\x11\x00\x3f\x00' >"$tmp/bomb.jpg"
cp "$page" "$tmp/unreadable.png"
chmod 0 "$tmp/unreadable.png"
mkfifo "$tmp/fifo.png"

bad=("$tmp"/{missing,zero,truncated,header,corrupt,text,fifo}.png "$tmp"/{truncated,huge}.ppm "$tmp/bomb.jpg"
    "$tmp/directory" -)
[ -r "$tmp/unreadable.png" ] || bad+=("$tmp/unreadable.png") # root reads it

# All of them in one run, a page in the middle.
middle=$((${#bad[@]} / 2))
run 1 "${few[@]}" "${bad[@]:0:middle}" "$page" "${bad[@]:middle}"
[ "$(grep -c '^fathom: ' "$tmp/err")" -eq $((${#bad[@]} + 1)) ] || fail "not one line for each bad file"
[ "$(wc -l <"$tmp/err")" -eq $((${#bad[@]} + 1)) ] || fail "more than a line for a bad file"
for file in "${bad[@]}"; do
    [ "$(grep -cF "'$file'" "$tmp/err")" -eq 1 ] || fail "'$file' is not named once"
done
has "$tmp/err" "'$page': page 1 is truncated: the limit of 4 tokens came first"
has "$tmp/err" "missing.png.*No such file"
filled "$tmp/out"
[ "$(grep -c '^<!-- ' "$tmp/out")" -eq 1 ] || fail "a file without text has a header"

# The same in JSON: a line for every file, in their order.
run 1 "${few[@]}" --format json "$tmp/zero.png" "$page" "$tmp/missing.png"
is_json "$tmp/out"
[ "$(sed -n 's/.*"status":"\([a-z]*\)".*/\1/p' "$tmp/out" | tr '\n' ' ')" = 'failed truncated failed ' ] ||
    fail "wrong statuses"
has "$tmp/out" '"page":null,"status":"failed","error":"[^"]*missing.png'

# Odd, but pages: one pixel, and a line of 20000 x 30.
bytes 'P6\n1 1\n255\n\xff\xff\xff' >"$tmp/pixel.ppm"
{ printf 'P5\n20000 30\n255\n' && head -c 600000 /dev/zero | tr '\0' '\377'; } >"$tmp/long.pgm"
status=0
"$fathom" "${few[@]}" "$tmp/pixel.ppm" "$tmp/long.pgm" >"$tmp/out" 2>"$tmp/err" || status=$?
[ "$status" -eq 0 ] || fail "a tiny or a long page failed"
