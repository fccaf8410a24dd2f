#!/usr/bin/env bash
# Jobs: one that is killed goes on without redoing or losing a page; what stops one is said, and nothing finished is hurt.
# shellcheck source=tests/cli/tiny.sh
source "$(dirname "$0")/tiny.sh"
few=(--max-tokens 8 --quiet)
job=$tmp/x.job

in=$tmp/in
mkdir "$in"
for i in {10..69}; do tiny_page "$in/$i.pgm" "$i"; done
echo broken >"$in/99.png"

formats=md,json,html,txt,hocr,alto,pdf

# What an undisturbed run gives, with lines on its way and a summary.
run 1 --max-tokens 8 --format "$formats" --overlay --job "$tmp/whole.job" -o "$tmp/whole" "$in"
[ "$(find "$tmp/whole" -type f | wc -l)" -eq 480 ] || fail "not eight files for each page"
has "$tmp/err" '10\.pgm: 1 page; 1 of 61 files'
has "$tmp/err" '^61 of 61 files, 1 of them failed; 60 pages: .* 60 read in '
[ "$(tail -n 1 "$tmp/err" | grep -c '99\.png')" -eq 1 ] || fail "the summary lacks what failed"

# Killed ten times at any moment, then to the end.
arguments=("${few[@]}" --format "$formats" --overlay --job "$job" -o "$tmp/killed" "$in")
killed_ten_times 5 "${arguments[@]}"
find "$tmp/killed" -name '.*' -type f -delete # what was being written when it was killed
run 1 "${arguments[@]}"
same "$tmp/whole" "$tmp/killed"

# The same job again reads nothing but what failed, and writes what is missing.
loud=("${arguments[@]/--quiet/--max-tokens=8}")
run 1 "${loud[@]}"
has "$tmp/err" '60 pages: .* 0 read in '
rm "$tmp/killed/20.md"
run 1 "${arguments[@]}"
same "$tmp/whole" "$tmp/killed"

# Other formats cost nothing, also where they need the pages' pixels; other settings are refused, and so is what is no job.
run 1 "${loud[@]}" --format jsonl -o "$tmp/lines"
has "$tmp/err" '60 pages: .* 0 read in '
run 1 "${few[@]}" --format md --job "$tmp/md.job" -o "$tmp/later" "$in"
run 1 --max-tokens 8 --format "$formats" --overlay --job "$tmp/md.job" -o "$tmp/later" "$in"
has "$tmp/err" '60 pages: .* 0 read in '
same "$tmp/whole" "$tmp/later"
rm -r "$tmp/later"/*.boxes
run 1 --max-tokens 8 --format "$formats" --overlay --job "$tmp/md.job" -o "$tmp/later" "$in"
same "$tmp/whole" "$tmp/later"
[ "$(cat "$tmp/lines"/*.jsonl | wc -l)" -eq 60 ] || fail "not a line a page"
run 1 --quiet --max-tokens 9 --job "$job" -o "$tmp/killed" "$in"
one_line "'$job': the job was begun with --max-tokens '8', not '9'"
run 1 "${few[@]}" --job "$in/10.pgm" -o "$tmp/killed" "$in"
one_line "'$in/10.pgm': not a job file"
run 1 "${few[@]}" --job /nonexistent/x.job -o "$tmp/killed" "$in"
one_line "'/nonexistent/x.job': unable to open"

# A file that is another one since is read anew, and it alone.
tiny_page "$in/30.pgm" 99
run 1 "${loud[@]}"
has "$tmp/err" '60 pages: .* 1 read in '
tiny_page "$in/30.pgm" 30
touch -d 2001-01-01 "$in/30.pgm"
run 1 "${arguments[@]}"
same "$tmp/whole" "$tmp/killed"

# Two at once: the second is refused and does no harm.
rm -r "$job" "$tmp/killed"
"$fathom" "${arguments[@]}" >"$tmp/out1" 2>"$tmp/err1" &
pid=$!
until [ -s "$tmp/killed/10.md" ]; do sleep 0.02; done
run 1 "${arguments[@]}"
one_line "'$job': another process works on this job"
wait "$pid" || true
same "$tmp/whole" "$tmp/killed"

# Ctrl-C: the page that was cut counts as unread, the rest is there.
set -m
rm -r "$job" "$tmp/killed"
"$fathom" "${arguments[@]}" >"$tmp/out" 2>"$tmp/err" &
pid=$!
until [ -s "$tmp/killed/15.md" ]; do sleep 0.02; done
kill -INT "$pid"
status=0
wait "$pid" || status=$?
[ "$status" -eq 130 ] || fail "status $status after Ctrl-C"
has "$tmp/err" "the same command goes on with '$job'"
[ -z "$(find "$tmp/killed" -name '.*' -type f)" ] || fail "temporary files are left"
run 1 "${arguments[@]}"
same "$tmp/whole" "$tmp/killed"

# Shards with a job file each give the same outputs, also where they share the folder.
rm -r "$tmp/killed"
for i in 1 2 3; do
    "$fathom" "${few[@]}" --shard "$i/3" --format "$formats" --overlay --job "$tmp/$i.job" -o "$tmp/killed" "$in" \
        2>"$tmp/err$i" || true
done
same "$tmp/whole" "$tmp/killed"

# The folder fills up: one line says so, finished files stay whole.
rm -r "$tmp/killed"
status=0
(ulimit -f 0 && "$fathom" "${few[@]}" -o "$tmp/killed/" "$in" 2>&1) | cat >"$tmp/err" || status=${PIPESTATUS[0]}
[ "$status" -eq 1 ] || fail "status $status when nothing can be written"
[ "$(grep -c 'File too large' "$tmp/err")" -eq 1 ] || fail "not one line about the write that failed"
has "$tmp/err" "'$tmp/killed/10.md': cannot write: File too large"
[ -z "$(find "$tmp/killed" -type f)" ] || fail "a file of nothing"
status=0
(ulimit -f 0 && "$fathom" "${few[@]}" --job "$tmp/full.job" -o "$tmp/killed" "$in" 2>&1) | cat >"$tmp/err" ||
    status=${PIPESTATUS[0]}
[ "$status" -eq 1 ] || fail "status $status when the job file cannot grow"
has "$tmp/err" "'$tmp/full.job': "
