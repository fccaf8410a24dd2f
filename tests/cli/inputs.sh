#!/usr/bin/env bash
# Which files are read: folders, patterns, lists, shards; and what their outputs are called.
# shellcheck source=tests/cli/tiny.sh
source "$(dirname "$0")/tiny.sh"
few=(--max-tokens 4 --quiet)

# read_files ARGUMENT...: the files that are read, in their order, on one line.
read_files() {
    "$fathom" "${few[@]}" --format json "$@" >"$tmp/out" 2>"$tmp/err" || true
    sed -n 's/.*"file":"\([^"]*\)".*/\1/p' "$tmp/out" | tr '\n' ' '
}
is() { [ "$1" = "$2" ] || fail "'$1' instead of '$2'"; }

in=$tmp/in
mkdir -p "$in/b/c" "$in/.hidden" "$in/empty"
for name in 2.pgm 10.PGM b/1.pgm b/c/1.pnm .hidden/1.pgm .secret.pgm 'b/a [1].pgm'; do tiny_page "$in/$name"; done
echo text >"$in/notes.txt"
ln -s .. "$in/b/loop"
is "$(read_files "$in")" "$in/10.PGM $in/2.pgm $in/b/1.pgm $in/b/a [1].pgm $in/b/c/1.pnm "
is "$(read_files "$in/" "$in/b/c")" "$in/10.PGM $in/2.pgm $in/b/1.pgm $in/b/a [1].pgm $in/b/c/1.pnm $in/b/c/1.pnm "

# A pattern in quotes; a file of that very name goes before it.
is "$(read_files "$in/*.pgm")" "$in/2.pgm "
is "$(read_files "$in/b/a [1].pgm")" "$in/b/a [1].pgm "
run 1 "${few[@]}" "$in/*.nothing"
one_line "'$in/\*.nothing'.*No such file"

# Lists, of lines or with NULs, from a file or standard input.
printf '%s\n\n%s' "$in/2.pgm" "$in/b/c" >"$tmp/list"
is "$(read_files --files-from "$tmp/list")" "$in/2.pgm $in/b/c/1.pnm "
find "$in/b" -name '*.pgm' -print0 | sort -z >"$tmp/list"
is "$(read_files --files-from - <"$tmp/list")" "$in/b/1.pgm $in/b/a [1].pgm "
run 1 --files-from "$tmp/none" "$in/2.pgm"
has "$tmp/err" "'$tmp/none': cannot read the list: No such file"
run 1 --files-from "$in" "$in/2.pgm"
has "$tmp/err" "cannot read the list: Is a directory"

# Folders with nothing to read.
run 1 "$in/empty"
one_line "'$in/empty': no picture or document in this folder"
run 1 "$in/empty" "$in/2.pgm" "${few[@]}"
filled "$tmp/out"

# Shards: each file once.
all=
for i in 1 2 3; do all+=$(read_files --shard "$i/3" "$in"); done
is "$(echo "$all" | tr ' ' '\n' | grep -c "^$in/.*[mM]$")" 4
is "$(read_files --shard 6/6 "$in")" ""

# Outputs: the folder's tree; names that are taken get a number; the output folder itself is not read.
out=$in/out
run 0 "${few[@]}" --format md,txt -o "$out" "$in" "$in/2.pgm" "$in/b/1.pgm"
for name in 2 10 b/1 'b/a [1]' b/c/1 2-2 1; do
    [ -f "$out/$name.md" ] && [ -f "$out/$name.txt" ] || fail "no '$name' in the output folder"
done
is "$(find "$out" -type f | wc -l)" 14
tiny_page "$out/x.pgm"
is "$(read_files "$in" -o "$tmp/lines.json"; ls "$tmp/lines.json")" "$tmp/lines.json"
run 0 "${few[@]}" -o "$out" "$in"
[ ! -e "$out/out/x.md" ] || fail "the output folder was read"

# Names of any bytes. The longest name a file system takes leaves no room for an ending.
odd=$(printf 'a b\n\377\033.pgm')
long=$(printf '%0250d' 7).pgm
tiny_page "$tmp/$odd"
tiny_page "$tmp/$long"
run 0 "${few[@]}" -o "$tmp/odd/" "$tmp/$odd" "$tmp/$long"
[ -f "$tmp/odd/${odd%.pgm}.md" ] || fail "an odd name was changed"
[ -f "$tmp/odd/$(printf '%0200d' 0).md" ] || fail "a long name was not cut"

# An input is never overwritten, whatever it is called.
tiny_page "$tmp/same.pgm"
ln "$tmp/same.pgm" "$tmp/same.md"
run 1 "${few[@]}" -o "$tmp" "$tmp/same.pgm" --format md
has "$tmp/err" "'$tmp/same.md': is an input file too"
cmp "$tmp/same.md" "$tmp/same.pgm"
