#!/usr/bin/env bash
# generate and chat with a tiny DeepSeek-V4.
# shellcheck source=tests/cli/common.sh
source "$(dirname "$0")/common.sh"
synth=$(dirname "$fathom")/fathom-synth
[ -x "$synth" ] || exit 77
"$synth" v4 tests/golden/v4_tiny_config.json "$tmp/v4"
cp tests/golden/v4_tiny_tokenizer.json "$tmp/v4/tokenizer.json"
export FATHOM_MODEL=$tmp/v4

# A prompt by option and by standard input; greedy words are the same every time, sampled ones by seed.
run 0 generate -p hello --max-tokens 24 --temperature 0
cp "$tmp/out" "$tmp/greedy"
filled "$tmp/greedy"
empty "$tmp/err"
echo hello | "$fathom" generate --max-tokens 24 --temperature 0 >"$tmp/piped"
cmp "$tmp/piped" "$tmp/greedy"
run 0 generate -p hello --max-tokens 24 --temperature 0 --indexer always --stats --isa ref --threads 1
cmp "$tmp/out" "$tmp/greedy"
has "$tmp/err" '"unindexed_queries":0,'
is_json "$tmp/err"
run 0 generate -p hello --max-tokens 24 --seed 7
cp "$tmp/out" "$tmp/seven"
run 0 generate -p hello --max-tokens 24 --seed 7
cmp "$tmp/out" "$tmp/seven"
run 0 generate -p hello --max-tokens 24 --seed 8
! cmp -s "$tmp/out" "$tmp/seven" || fail "another seed, the same words"

# Thoughts are not the answer.
run 0 generate -p hello --thinking --max-tokens 9 --temperature 0
filled "$tmp/err"

# A turn a line; the second knows of the first.
printf 'hello\n\nhello\n' | "$fathom" chat --max-tokens 24 --temperature 0 --stats >"$tmp/out" 2>"$tmp/err"
head -c "$(wc -c <"$tmp/greedy")" "$tmp/out" | cmp - "$tmp/greedy"
[ "$(wc -l <"$tmp/err")" -eq 2 ] || fail "not two replies"
[ "$(wc -c <"$tmp/out")" -gt "$(wc -c <"$tmp/greedy")" ] || fail "no second reply"

# What cannot be.
run 1 generate -p "$(head -c 100 /dev/zero | tr '\0' a)" --context 50
one_line 'the prompt has 104 tokens, the context room for 50'
run 1 generate -p a --context 1048577
one_line "a context of 1048577 tokens is longer than the model's 1048576"
run 1 generate -p a --effort max
one_line 'maximum effort is for thinking only'
run 1 generate -p a -m models/mini
one_line 'this model reads pages'
run 1 ocr "$page"
one_line 'DeepSeek-V4 reads no pages'
run 2 generate words
run 2 chat words
run 2 generate -p a --stop ''
run 0 inspect
has "$tmp/out" '^DeepSeek-V4'
has "$tmp/out" 'bytes a token'
run 0 inspect --json
is_json "$tmp/out"
