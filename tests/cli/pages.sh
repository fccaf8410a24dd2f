#!/usr/bin/env bash
# Documents of many pages: a job that is killed within one goes on within it; pages are chosen; one broken page harms no
# other; a password is taken from where it may come.
# usage: pages.sh PROGRAM SCRATCH HELPER
# shellcheck source=tests/cli/tiny.sh
source "$(dirname "$0")/tiny.sh"
FATHOM_HELPER=$(realpath "$3")
export FATHOM_HELPER
few=(--max-tokens 8 --quiet)
formats=md,json,html,txt,hocr,alto,pdf
job=$tmp/x.job

document() { printf '\xff\xd8\xff%s' "$1" >"$2"; }
document 'pages 60' "$tmp/long.jpg"
document 'broken 4' "$tmp/broken.jpg"
document 'locked 2' "$tmp/locked.jpg"
document 'pages 12' "$tmp/short.jpg"

begun() { until [ -n "$(find "$1" -name '.long.md.*' 2>/dev/null)" ]; do sleep 0.02; done; } # long.jpg is being read into a folder
numbers() { sed -n 's/.*"page":\([0-9]*\),.*/\1/p' "$tmp/out" | tr '\n' ' '; }

# A choice of pages.
run 0 "${few[@]}" --format json --pages 2-3,7,11- "$tmp/short.jpg"
[ "$(numbers)" = '2 3 7 11 12 ' ] || fail "other pages: $(numbers)"
run 1 "${few[@]}" --pages 13- "$tmp/short.jpg"
one_line "'$tmp/short.jpg'.*page"

# One broken page among good ones.
run 1 "${few[@]}" --format json "$tmp/broken.jpg" "$tmp/short.jpg"
[ "$(wc -l <"$tmp/out")" -eq 16 ] || fail "a page vanished"
has "$tmp/out" '"page":2,"n_pages":4,"status":"failed","error":".*it is broken"'
has "$tmp/err" "'$tmp/broken.jpg': page 2: .*it is broken"

# Killed within a document at any moment, in formats with and without pixels.
for formats in "$formats" md,json; do
    rm -rf "$tmp/whole" "$tmp/killed" "$job" "$tmp/whole.job"
    arguments=("${few[@]}" --format "$formats" --job "$job" -o "$tmp/killed" "$tmp"/{long,broken,short}.jpg)
    run 1 "${few[@]}" --format "$formats" --job "$tmp/whole.job" -o "$tmp/whole" "$tmp"/{long,broken,short}.jpg
    killed_ten_times 6 "${arguments[@]}"
    find "$tmp/killed" -name '.*' -type f -delete 2>/dev/null || true # what was being written when it was killed
    run 1 "${arguments[@]}"
    same "$tmp/whole" "$tmp/killed"
done

# Ctrl-C within a document: its pages so far are kept, and nothing is read twice.
rm -rf "$job" "$tmp/killed"
set -m
"$fathom" --max-tokens 8 --job "$job" -o "$tmp/killed" --format md,json "$tmp/long.jpg" >"$tmp/out" 2>"$tmp/err" &
pid=$!
begun "$tmp/killed"
kill -INT "$pid"
status=0
wait "$pid" || status=$?
[ "$status" -eq 130 ] || fail "status $status after Ctrl-C"
[ ! -e "$tmp/killed/long.md" ] || fail "a document that is not complete has an output"
read_before=$(sed -n 's/.*; \([0-9]*\) read in .*/\1/p' "$tmp/err")
run 0 --max-tokens 8 --job "$job" -o "$tmp/killed" --format md,json "$tmp/long.jpg"
has "$tmp/err" "60 pages: .* $((60 - read_before)) read in "
cmp "$tmp/killed/long.md" "$tmp/whole/long.md"
set +m

# Pages that failed are read again when that is asked for.
run 1 --max-tokens 8 --job "$tmp/f.job" -o "$tmp/f/" --format md,json "$tmp/broken.jpg"
run 1 --max-tokens 8 --job "$tmp/f.job" -o "$tmp/f/" --format md,json "$tmp/broken.jpg"
has "$tmp/err" ' 0 read in '
run 1 --max-tokens 8 --job "$tmp/f.job" -o "$tmp/f/" --format md,json --retry-failed "$tmp/broken.jpg"
has "$tmp/err" ' 1 read in '

# A file that changes while it is read is a failure, and read anew.
"$fathom" "${few[@]}" --job "$tmp/c.job" -o "$tmp/c/" --format md "$tmp/long.jpg" >"$tmp/out" 2>"$tmp/err" &
pid=$!
begun "$tmp/c"
document 'pages 60 ' "$tmp/long.jpg"
status=0
wait "$pid" || status=$?
[ "$status" -eq 1 ] || fail "status $status for a file that changes"
has "$tmp/err" "'$tmp/long.jpg': it changed while it was read"
run 0 --max-tokens 8 --job "$tmp/c.job" -o "$tmp/c/" --format md "$tmp/long.jpg"
has "$tmp/err" ' 60 read in '

# Passwords.
run 1 "${few[@]}" "$tmp/locked.jpg" </dev/null
one_line "'$tmp/locked.jpg'.*a password is needed"
run 1 "${few[@]}" --password wrong "$tmp/locked.jpg"
one_line "the password is wrong"
run 0 "${few[@]}" --password sesame "$tmp/locked.jpg"
printf 'sesame\nmore\n' >"$tmp/password"
run 0 "${few[@]}" --password-file "$tmp/password" "$tmp/locked.jpg"
FATHOM_PASSWORD=sesame run 0 "${few[@]}" "$tmp/locked.jpg"
run 1 "${few[@]}" --password-file "$tmp/none" "$tmp/locked.jpg"
FATHOM_PASSWORD=sesame run 0 "${few[@]}" --format json -o "$tmp/locked.json" "$tmp/locked.jpg"
lacks "$tmp/locked.json" sesame
if command -v script >/dev/null; then
    (sleep 1 && echo wrong && sleep 1 && echo sesame) |
        script -qec "'$fathom' ${few[*]} --format json '$tmp/locked.jpg'" /dev/null >"$tmp/out" || fail "no password taken"
    [ "$(grep -c "Password for '$tmp/locked.jpg'" "$tmp/out")" -eq 2 ] || fail "not asked twice"
    has "$tmp/out" '"page":2'
fi
