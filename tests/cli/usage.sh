#!/usr/bin/env bash
# A wrong command line says what is wrong with it and ends with status 2, before any model or file is touched.
# shellcheck source=tests/cli/common.sh
source "$(dirname "$0")/common.sh"
export FATHOM_MODEL=/nonexistent

wrong() { # wrong PATTERN ARGUMENT...
    local pattern=$1
    shift
    run 2 "$@"
    empty "$tmp/out"
    [ "$(wc -l <"$tmp/err")" -le 2 ] || fail "more than a line and a hint"
    has "$tmp/err" "$pattern"
}

wrong 'no FILE'
wrong 'no FILE' ocr
wrong 'no FILE' --raw
wrong "unrecognized option '--bogus'" --bogus x.png
wrong "unrecognized option '--bogus'" ocr x.png --bogus
wrong "requires an argument" x.png --task

number='must be a whole number from'
for value in 3x -1 '' ' 3' +3 0x10 1e3 99999999999999999999; do
    wrong "--threads $number" "--threads=$value" x.png
    wrong "--max-tokens $number" "--max-tokens=$value" x.png
done
wrong "--threads $number 0 to 1024, not '1025'" -t 1025 x.png
wrong "--seed $number" --seed=18446744073709551616 x.png
wrong "--seed $number" --seed=-1 x.png
for value in nan inf -1 0x1p3 1.5.2 '' ' 1' 1e9; do
    wrong '--temperature must be a number from 0 to 100' "--temperature=$value" x.png
    wrong '--top-p must be a number from 0 to 1' "--top-p=$value" x.png
done

wrong '--no-repeat-ngram' --no-repeat-ngram= x.png
wrong '--no-repeat-ngram' --no-repeat-ngram=0 x.png
wrong '--no-repeat-ngram' --no-repeat-ngram=20: x.png
wrong '--no-repeat-ngram' --no-repeat-ngram=20:90:1 x.png
wrong '--no-repeat-ngram' --no-repeat-ngram=111111111111111111111111111111 x.png
wrong 'a window of 5 cannot hold 20' --no-repeat-ngram=20:5 x.png

for value in xml '' md, ,md 'md json'; do wrong 'must be some of md, json' "--format=$value" x.png; done
wrong 'several formats need a folder' --format=md,json x.png
wrong 'overlay needs a folder' --overlay x.png
wrong 'several files in this format need a folder' --format=html x.png y.png
wrong 'needs -o' --job x.job x.png
wrong 'needs --job' --retry-failed x.png
for value in 0 3-1 1,,2 '' , a 1-2-3 99999999999999999999 1,; do
    wrong '--pages must be like' "--pages=$value" x.png
done
wrong '--shard must be I/N' --shard 1 x.png
wrong "--shard's I must be .* from 1 to 3" --shard 4/3 x.png
wrong "--shard's N must be" --shard 1/ x.png
wrong 'must be on or off' --icc=maybe x.png
wrong 'must be tiny, small, base, large or gundam' --mode=default x.png
wrong '--dpi must be a number from 1 to 2400' --dpi=0 x.png
wrong '--max-pixels must be' --max-pixels=-1 x.png
wrong 'goes with --format md' --raw --format txt x.png
wrong 'standard input' --job x.job -o x.md -
wrong 'must be f32 or bf16' --dtype=f16 x.png
wrong 'must be ref, avx2 or avx512' --isa=sse2 x.png
wrong '--device needs the name of a device' --device= x.png
wrong 'must be white or drop' --alpha=black x.png
wrong '--task must be' --task=translate x.png
wrong 'needs a TEXT' --task=locate: x.png
wrong 'needs a TEXT' '--task=locate:<|/ref|>' x.png
wrong 'needs a TEXT' '--task=locate:<image>' x.png
wrong 'exclude each other' --task=text --prompt=hello x.png
wrong 'once only' '--prompt=<image><image>' x.png

wrong '--output needs the name of a file' -o '' x.png
wrong '--model needs the name of a folder' --model= x.png
wrong "did you mean 'fathom inspect'" inspec
wrong "did you mean 'fathom bench'" bnech --runs 1
run 1 xyz
wrong "one command, not 'x' as well" help ocr x

wrong 'Too many arguments' bench x.png
wrong '--runs must be' bench --runs 0
wrong '--page must be WIDTHxHEIGHT' bench --page 100
wrong "--page's height must be" bench --page 100x
wrong "--page's width must be" bench --page 63x100
wrong 'one MODEL at a time' inspect a b
