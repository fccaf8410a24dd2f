#!/usr/bin/env bash
# Builds and runs the tests of the given presets, all of them by default; closes with "N passed, N failed" and keeps
# that line in build/tests.txt. A preset that does not build, or that runs no test, counts as one failure.
#   scripts/test.sh [release|asan|tsan|fuzz]...
set -euo pipefail
cd "$(dirname "$0")/.."

[ $# -gt 0 ] || set -- release asan tsan fuzz
passed=0
failed=0
mkdir -p build
rm -f build/tests.txt

# ThreadSanitizer's fixed map of the address space does not bear much randomisation.
without_aslr() { if setarch -R true 2>/dev/null; then setarch -R "$@"; else "$@"; fi; }

configure() {
    cmake --preset "$1" >"build/configure-$1.log" 2>&1 || { cat "build/configure-$1.log" && false; }
}
build() { cmake --build --preset "$1" -- --quiet; }
run() { without_aslr ctest --preset "$1" --parallel "$(nproc)" --output-junit "$2"; }

for preset; do
    report=$PWD/build/tests-$preset.xml
    rm -f "$report"
    echo "== $preset"
    SECONDS=0
    { configure "$preset" && build "$preset" && run "$preset" "$report"; } || true
    if [ -s "$report" ] && grep -q '<testcase ' "$report"; then
        n=$(grep -c '<testcase ' "$report")
        ok=$(grep -c '<testcase .*status="run"' "$report" || true)
    else
        n=1
        ok=0
    fi
    echo "== $preset: $ok of $n in $SECONDS s"
    passed=$((passed + ok))
    failed=$((failed + n - ok))
done

echo "$passed passed, $failed failed" | tee build/tests.txt
[ "$failed" -eq 0 ]
