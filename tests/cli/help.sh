#!/usr/bin/env bash
# Help and versions go to standard output, cost no model, and name every option.
# shellcheck source=tests/cli/common.sh
source "$(dirname "$0")/common.sh"
export FATHOM_MODEL=/nonexistent

run 0 help
has "$tmp/out" '^  fathom page.png'
has "$tmp/out" 'fathom inspect'
empty "$tmp/err"
cp "$tmp/out" "$tmp/overview"
run 0 --help
cmp "$tmp/out" "$tmp/overview"
run 0 -h
cmp "$tmp/out" "$tmp/overview"

run 0 --version
has "$tmp/out" '^fathom [0-9]+\.[0-9]+\.[0-9]+$'
cp "$tmp/out" "$tmp/version"
run 0 ocr --version
cmp "$tmp/out" "$tmp/version"

run 0 ocr --help
empty "$tmp/err"
cp "$tmp/out" "$tmp/ocr"
sed 's/\\-/-/g' cli/fathom.1 >"$tmp/manual"
for option in pages files-from task prompt password password-file mode max-tiles max-pixels dpi alpha icc format raw \
    output overlay with-text-layer job retry-failed shard no-retry no-header stats quiet max-tokens no-repeat-ngram temperature top-p seed \
    model threads dtype isa device exact; do
    has "$tmp/out" "--$option"
    has "$tmp/manual" "--$option"
done
has "$tmp/out" '143 after'
for default in 'default: markdown' 'default: md' 'default: white' 'default: 20:90' 'default: f32' 'built-in'; do
    has "$tmp/out" "$default"
done
run 0 help ocr
cmp "$tmp/out" "$tmp/ocr"

run 0 help bench
for option in runs tokens page format threads isa; do has "$tmp/out" "--$option"; done
run 0 help inspect
has "$tmp/out" '--json'

run 0 help help
cmp "$tmp/out" "$tmp/overview"
run 2 help nothing
one_line "'nothing' is not a command"
