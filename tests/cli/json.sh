#!/usr/bin/env bash
# The JSON of pages, of --stats, of inspect and of bench.
# shellcheck source=tests/cli/common.sh
source "$(dirname "$0")/common.sh"

odd=$tmp/$'odd "name"\\\n\xff.png'
cp "$page" "$odd"
run 0 --format json --stats "$odd"
is_json "$tmp/out"
is_json "$tmp/err"
[ "$(wc -l <"$tmp/out")" -eq 1 ] || fail "not a line a page"
has "$tmp/out" '^\{"schema":2,"fathom":"[0-9.]+","file":".*","page":1,("n_pages":1,)?"status":"ok","width":[0-9]+,"height":[0-9]+,'
has "$tmp/out" '"boxes":\[\[[0-9]+,[0-9]+,[0-9]+,[0-9]+\]'
has "$tmp/out" 'odd \\"name\\"\\\\\\n\\ufffd\.png'
for key in vision_ms prefill_ms decode_ms ttft_ms tok_s prompt_tokens output_tokens arena_peak_bytes vision_peak_bytes \
    kv_bytes packed_bytes mapped_bytes max_rss_bytes; do
    has "$tmp/err" "\"$key\":[0-9.]+"
    has "$tmp/out" "\"$key\":[0-9.]+"
done

# The text that is streamed is the text that the JSON tells.
if command -v python3 >/dev/null; then
    python3 -c 'import json, sys; print(json.loads(next(sys.stdin))["text"])' <"$tmp/out" >"$tmp/told"
    run 0 "$page"
    lacks "$tmp/out" '<!--|<\|ref\|>'
    cmp "$tmp/out" "$tmp/told" || fail "the streamed text differs from the page's"
fi

run 0 inspect --json
is_json "$tmp/out"
run 0 inspect
has "$tmp/out" 'DeepSeek-OCR-2'

run 0 bench --runs 1 --tokens 4 --page 200x100 --format json
is_json "$tmp/out"
has "$tmp/out" '"fma_flop_s":\{"median":[0-9.]+'
for stage in vision prefill decode; do has "$tmp/out" "\"$stage\":\{\"ms\":.*\"share\":"; done
run 0 bench --runs 1 --tokens 4 --page 200x100
for stage in vision prefill decode; do has "$tmp/out" "^$stage .* % of "; done

# The published schema says what is written.
if python3=$(PATH=/usr/bin:$PATH command -v python3) && "$python3" -c 'import jsonschema' 2>/dev/null; then
    run 0 --format json --max-tokens 40 "$page"
    "$python3" -c '
import json, jsonschema, sys
schema = json.load(open("docs/page.schema.json"))
jsonschema.Draft7Validator.check_schema(schema)
for line in sys.stdin:
    jsonschema.validate(json.loads(line), schema)' <"$tmp/out" || fail "not as the schema says"
fi
