#!/usr/bin/env bash
# The sources keep the house rules that a compiler does not know: data flows one way, so includes point up the list of
# folders only; programs see fathom.h alone; nothing unfinished and no path of one machine is left in a file.
set -euo pipefail

status=0
complain() { # complain WHAT: each line of standard input is a breach
    local lines
    lines=$(cat)
    [ -z "$lines" ] && return
    printf '%s:\n%s\n' "$1" "$lines"
    status=1
}
sources() { find "$@" -name '*.[ch]'; }

# Plain structs that every layer may name: they pull in no code.
shared='kernel/tensor\.h|weights/config\.h'
layers=(base image text weights kernel nn vision models document engine)
for ((i = 0; i < ${#layers[@]}; i++)); do
    below=$(IFS='|' && echo "${layers[*]:i+1}")
    [ -n "$below" ] && [ -d "src/${layers[i]}" ] || continue
    { sources "src/${layers[i]}" | xargs -r grep -nE "^#include \"($below)/" | grep -vE "\"($shared)\"" || true; } |
        complain "src/${layers[i]} may not include what comes after it in the way of the data"
done

inside=$(IFS='|' && echo "${layers[*]}")
{ sources cli | xargs -r grep -nE "^#include \"($inside)/" || true; } | complain "programs include nothing from src/"

{ sources bench cli helper include src tests tools | xargs grep -nE 'TO''DO|FIX''ME|#if 0' || true; } | complain "unfinished"
{ grep -rnIE '(^|[^A-Za-z0-9_.$}/-])/(home|root|work)/' --include='*.[chmt]*' --include='*.sh' --include=Makefile \
    bench cli docs helper include packaging scripts src tests tools README.md Makefile || true; } |
    complain "a path of one machine"

exit "$status"
