#!/usr/bin/env bash
# Sourced like common.sh by scripts about many pages: a network of a thousandth of the size reads them, in a tenth of a
# second each. What it writes is random, and the same every time.
# shellcheck source=tests/cli/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

"$(dirname "$fathom")/fathom-synth" ocr2 tests/cli/tiny_config.json "$tmp/tiny" >/dev/null || exit 77
cp models/mini/tokenizer.json models/mini/preprocessor_config.json "$tmp/tiny/"
export FATHOM_MODEL=$tmp/tiny

# tiny_page FILE [NUMBER]: a picture, another one for each number.
tiny_page() {
    { printf 'P5\n64 64\n255\n' && printf "\\$(printf %o "${2:-200}")%.0s" {1..2048} && head -c 2048 /dev/zero; } >"$1"
}

# killed_ten_times N ARGUMENT...: starts the program and kills it, each time after another while of less than N tenths of a
# second.
killed_ten_times() {
    local tenths=$1 pid
    shift
    for _ in {1..10}; do
        "$fathom" "$@" >"$tmp/out" 2>"$tmp/err" &
        pid=$!
        sleep "0.$((RANDOM % tenths))$((RANDOM % 10))"
        kill -9 "$pid" 2>/dev/null || true
        wait "$pid" 2>/dev/null || true
    done
}

# same FOLDER FOLDER: files of the same names with the same bytes, and nothing unfinished.
same() {
    diff -r "$1" "$2" >"$tmp/out" || fail "outputs differ"
    [ -z "$(find "$1" -name '.*' -type f)" ] || fail "temporary files are left"
}
