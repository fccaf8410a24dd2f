#!/usr/bin/env bash
# Which model is opened, and what a bad folder gets: one line that names it, status 1.
# shellcheck source=tests/cli/common.sh
source "$(dirname "$0")/common.sh"

refused() { # refused PATTERN FOLDER
    local pattern=$1 command
    shift
    for command in "inspect $*" "-m $* $page"; do
        # shellcheck disable=SC2086
        run 1 $command
        empty "$tmp/out"
        one_line "$pattern"
    done
}

# A folder of links to the built-in model, of which one file can be replaced.
copy() {
    rm -rf "$tmp/model"
    mkdir "$tmp/model"
    ln -s "$(realpath "$model")"/* "$tmp/model/"
    rm -f "$tmp/model/$1"
}
weights=model.safetensors
header=$(od -An -tu8 -N8 "$model/$weights")
size=$(wc -c <"$model/$weights")

refused "'/nonexistent" /nonexistent
refused "'$page" "$page"
mkdir "$tmp/empty"
refused "'$tmp/empty" "$tmp/empty"
copy config.json && refused 'config\.json' "$tmp/model"
copy config.json && echo '{"a": ' >"$tmp/model/config.json" && refused 'config\.json' "$tmp/model"
copy config.json && printf '[%.0s' {1..100000} >"$tmp/model/config.json" && refused 'config\.json' "$tmp/model"
copy tokenizer.json && refused 'tokenizer\.json' "$tmp/model"
copy tokenizer.json && printf '{"model": "\xff"}' >"$tmp/model/tokenizer.json" && refused 'tokenizer\.json' "$tmp/model"
copy "$weights" && refused 'safetensors' "$tmp/model"
copy "$weights" && : >"$tmp/model/$weights" && refused "$weights" "$tmp/model"
copy "$weights" && printf '\0\0\0\0\0\0\0\x80{}' >"$tmp/model/$weights" && refused "$weights" "$tmp/model"
copy "$weights" && head -c $((size - 1000)) "$model/$weights" >"$tmp/model/$weights" && refused "$weights" "$tmp/model"
copy "$weights" && printf '\2\0\0\0\0\0\0\0{}' >"$tmp/model/$weights" && refused "$tmp/model" "$tmp/model"

# Weights of nothing but NaN: the folder is well formed, the page says why it has no text.
copy "$weights"
{ head -c $((header + 8)) "$model/$weights" && head -c $((size - header - 8)) /dev/zero | tr '\0' '\377'; } \
    >"$tmp/model/$weights"
run 1 -m "$tmp/model" "$page"
empty "$tmp/out"
one_line "'$page': .*tensor .*finite"

# -m goes before FATHOM_MODEL, and that before the built-in model.
FATHOM_MODEL=/nonexistent run 0 -m "$model" --max-tokens 2 "$page"
FATHOM_MODEL=/nonexistent run 1 "$page"
one_line "^fathom: model of FATHOM_MODEL: .*'/nonexistent"
run 1 -m /nonexistent "$page"
one_line "^fathom: model: .*'/nonexistent"
FATHOM_MODEL='' run 2 inspect -m ''
mkdir -p "$tmp/prefix/bin" "$tmp/prefix/share/fathom/models"
cp "$fathom" "$tmp/prefix/bin/fathom"
ln -s "$(realpath "$model")" "$tmp/prefix/share/fathom/models/mini"
libraries=$(cd "$(dirname "$fathom")/../lib" && pwd)
FATHOM_MODEL='' LD_LIBRARY_PATH=$libraries "$tmp/prefix/bin/fathom" inspect >"$tmp/out" || fail "no built-in model"
filled "$tmp/out"

# The weights shrink while they are in use: one line, not a signal.
copy "$weights"
cp "$model/$weights" "$tmp/model/$weights"
rm -f "$tmp/out"
"$fathom" -m "$tmp/model" "$page" "$page" "$page" >"$tmp/out" 2>"$tmp/err" &
pid=$!
until [ -s "$tmp/out" ]; do sleep 0.02; done
: >"$tmp/model/$weights"
status=0
wait "$pid" || status=$?
[ "$status" -eq 1 ] || fail "status $status when the weights shrink"
one_line '^fathom: a model file changed or could not be read while in use$'
