#!/usr/bin/env bash
# A program that was built with or without the GPU's kernels works on a machine without a GPU or its driver: by default and
# with --device auto it reads on the processor, and --device cuda says in one line what is missing.
# shellcheck source=tests/cli/common.sh
source "$(dirname "$0")/common.sh"

if [ -e /dev/nvidiactl ]; then
    echo 'there is a GPU here'
    exit 77
fi
run 0 --max-tokens 20 "$page"
cp "$tmp/out" "$tmp/cpu"
run 0 --max-tokens 20 --device auto "$page"
cmp "$tmp/out" "$tmp/cpu"
has "$tmp/err" 'reading on the processor: .*(CUDA|GPU)'
[ "$(grep -c 'reading on the processor' "$tmp/err")" -eq 1 ] || fail 'said more than once'

for device in cuda cuda:3; do
    run 1 --device "$device" "$page"
    empty "$tmp/out"
    one_line 'there is no CUDA|the GPU back end is not installed'
done
run 1 --device tpu "$page"
one_line "'tpu' is not a device: cpu, cuda, cuda:N or auto"
run 1 --device cuda:x "$page"
one_line "'cuda:x' is not a device"
