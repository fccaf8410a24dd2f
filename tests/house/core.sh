#!/usr/bin/env bash
# Without the front-end libraries the engine and the program need libc, libm, pthread and dl alone.
set -euo pipefail
build=$2

cmake --preset core -B "$build" >/dev/null
cmake --build "$build" -- --quiet
needed=$(readelf --dynamic "$build/lib/libfathom.so" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
echo "libfathom.so needs: ${needed//$'\n'/ }"
if grep -vE '^(libc|libm|libpthread|libdl|ld-linux.*)\.so\.' <<<"$needed"; then
    echo "the core must not need this library" >&2
    exit 1
fi
