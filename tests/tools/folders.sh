#!/usr/bin/env bash
# fathom-synth and fathom-quantize: the folders that they make, and what they say when they cannot.
# usage: folders.sh FATHOM_SYNTH FATHOM_QUANTIZE SCRATCH
set -u
synth=$1 quantize=$2 tmp=$3
rm -rf "$tmp"
mkdir -p "$tmp"

fail() {
    echo "folders.sh: $*" >&2
    cat "$tmp/err" >&2
    exit 1
}

expect() { # expect STATUS PATTERN COMMAND...: the status, and one line on stderr that matches (none for an empty pattern)
    local status=$1 pattern=$2 got=0
    shift 2
    "$@" >"$tmp/out" 2>"$tmp/err" || got=$?
    [[ $got == "$status" ]] || fail "status $got instead of $status: $*"
    if [[ -z $pattern ]]; then
        [[ ! -s $tmp/err ]] || fail "not silent: $*"
    else
        [[ $(wc -l <"$tmp/err") == 1 ]] || fail "not one line: $*"
        grep -Eq "$pattern" "$tmp/err" || fail "does not say '$pattern': $*"
    fi
}

expect 2 '^usage: fathom-synth' "$synth"
expect 2 '^usage: fathom-synth' "$synth" ocr9 "$tmp/x"
expect 2 '^usage: fathom-quantize' "$quantize" models/mini
expect 0 '' "$synth" --help

# Synthetic weights at the built-in model's sizes: the same bytes every time, and the config as it was given.
expect 0 '' "$synth" ocr2 models/mini/config.json "$tmp/synth"
expect 0 '' "$synth" ocr2 models/mini/config.json "$tmp/again"
cmp "$tmp/synth/model.safetensors" "$tmp/again/model.safetensors" || fail "weights differ from run to run"
cmp "$tmp/synth/config.json" models/mini/config.json || fail "config.json was changed"
[[ $(find "$tmp/synth" -type f | wc -l) == 2 ]] || fail "fathom-synth leaves other files"

# Quantised: about 34/64 of the size, other files copied; quantised again, nothing changes.
cp models/mini/tokenizer.json models/mini/preprocessor_config.json "$tmp/synth/"
expect 0 '' "$quantize" "$tmp/synth" "$tmp/q8"
for file in config.json tokenizer.json preprocessor_config.json; do
    cmp "$tmp/synth/$file" "$tmp/q8/$file" || fail "$file is not copied"
done
before=$(wc -c <"$tmp/synth/model.safetensors") after=$(wc -c <"$tmp/q8/model.safetensors")
((after * 100 > before * 53 && after * 100 < before * 60)) || fail "$before bytes became $after"
expect 0 '' "$quantize" "$tmp/q8" "$tmp/twice"
cmp "$tmp/q8/model.safetensors" "$tmp/twice/model.safetensors" || fail "quantising twice changes the weights"

# DeepSeek-V4, with a config only.
expect 0 '' "$synth" v4 tests/golden/v4_tiny_config.json "$tmp/v4"
expect 0 '' "$synth" v4 tests/golden/v4_tiny_config.json "$tmp/v4_again"
cmp "$tmp/v4/model.safetensors" "$tmp/v4_again/model.safetensors" || fail "weights differ from run to run"
cmp "$tmp/v4/config.json" tests/golden/v4_tiny_config.json || fail "config.json was changed"
expect 2 '^usage: fathom-synth' "$synth" v4 "$tmp/x"
expect 1 "config.json': neither architectures nor model_type is DeepSeek-V4's" "$synth" v4 models/mini/config.json "$tmp/x"
echo '{"model_type": "deepseek_v4", "quantization_config": {"fmt": "e4m3"}, "moe_intermediate_size": 33}' >"$tmp/bad.json"
expect 1 "bad.json': experts of 33 x 4096 weights cannot be cut into FP4" "$synth" v4 "$tmp/bad.json" "$tmp/x"
# Quantised: FP8 and FP4 are about a third of the bytes, scales included.
sed '1a "quantization_config": {"fmt": "e4m3"},' tests/golden/v4_tiny_config.json >"$tmp/native.json"
expect 0 '' "$synth" v4 "$tmp/native.json" "$tmp/v4_native"
before=$(wc -c <"$tmp/v4/model.safetensors") after=$(wc -c <"$tmp/v4_native/model.safetensors")
((after < before)) || fail "$before bytes became $after"
grep -aq F8_E8M0 "$tmp/v4_native/model.safetensors" || fail "no scales"

# What cannot work leaves nothing behind.
expect 1 "^fathom-synth: cannot open '$tmp/none.json': No such file" "$synth" ocr2 "$tmp/none.json" "$tmp/x"
echo '{"architectures": ["DeepseekOCR2ForCausalLM"], "num_attention_heads": 7}' >"$tmp/bad.json"
expect 1 "bad.json': decoder: width 1280 cannot be divided into 7 heads" "$synth" ocr2 "$tmp/bad.json" "$tmp/x"
expect 1 "^fathom-synth: cannot create '$tmp/no/folder': No such file" "$synth" ocr2 models/mini/config.json "$tmp/no/folder"
expect 1 "^fathom-quantize: cannot open '$tmp/none': No such file" "$quantize" "$tmp/none" "$tmp/x"
[[ ! -e $tmp/x ]] || fail "a failed run made its folder"
too_large() { # in a shell whose files may grow to 1 MiB, as on a full disk
    (
        trap '' XFSZ
        ulimit -f 1024
        exec "$@"
    )
}
expect 1 "^fathom-synth: cannot write '$tmp/x/model.safetensors': File too large" \
    too_large "$synth" ocr2 models/mini/config.json "$tmp/x"
[[ -z $(ls -A "$tmp/x") ]] || fail "a half-written file is left"
expect 1 "^fathom-quantize: cannot write '$tmp/y/model.safetensors': File too large" \
    too_large "$quantize" "$tmp/synth" "$tmp/y"
[[ -z $(ls -A "$tmp/y") ]] || fail "a half-written file is left"
rm -rf "$tmp"
