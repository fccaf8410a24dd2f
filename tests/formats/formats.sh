#!/usr/bin/env bash
# Every format before its judges: qpdf, pdftotext, xmllint, tidy, html5lib and jsonschema, each where it is installed.
# formats.sh PROGRAM FOLDER: the program writes pages.FORMAT into the folder.
set -euo pipefail
program=$1
out=$2
python=/usr/bin/python3

fail() {
    echo "$*" >&2
    exit 1
}
have() { command -v "$1" >/dev/null || { echo "$1 is not here: left out" && false; }; }
knows() { [ -x "$python" ] && "$python" -c "import $1" 2>/dev/null || { echo "$1 is not here: left out" && false; }; }

rm -rf "$out"
mkdir -p "$out"
"$program" "$out"

if have qpdf; then qpdf --check "$out/pages.pdf"; fi
if have pdftotext; then
    pdftotext "$out/pages.pdf" "$out/pdf.txt"
    # Words and characters come back, those right-to-left too, without the marks that tell their direction.
    sed -i 's/[\xe2]\x80[\xaa-\xae]//g' "$out/pdf.txt"
    for words in 'Report & <Review>' 'The quick brown fox' 'jumps over' '\[ E = mc^2 \]' 'Head Wide' '中文文本识别测试' \
        '日本語のテキストと漢字かな交じ' 'مرحبا بالعالم هذا نص عربي' 'שלום עולם' 'Emoji 😀 🚀 and' '∑∫√ ßäöü Ελληνικά Кириллица' \
        'हिन्दी' 'ไทย' '한국어' 'Two columns hold' 'in the end\.' 'Only text,'; do
        grep -qF -- "${words/\\./.}" "$out/pdf.txt" || fail "the PDF's text lacks '$words'"
    done
    [ "$(tr -cd '\f' <"$out/pdf.txt" | wc -c)" -eq 6 ] || fail "not six pages"
fi
if have xmllint; then
    xmllint --noout --schema tests/formats/alto.xsd "$out/pages.alto"
    xmllint --noout "$out/pages.hocr" 2>&1 | tee "$out/hocr.err"
    [ ! -s "$out/hocr.err" ]
    for attribute in ocr-system ocr-capabilities; do
        xmllint --xpath "//*[local-name() = 'meta' and @name = '$attribute']/@content" "$out/pages.hocr" 2>/dev/null
    done
    [ "$(xmllint --xpath 'count(//*[@class = "ocr_page"])' "$out/pages.hocr")" -eq 6 ] || fail "not six pages in hOCR"
fi
if have tidy; then
    tidy -errors -quiet "$out/pages.html" || fail "tidy finds errors or warnings"
fi
if grep -nE '<(script|iframe|object|embed|link|form|a|svg)\b|[^a-z]on[a-z]+=|javascript:' "$out/pages.html"; then
    fail "HTML holds what could load or run something"
fi
if knows html5lib; then
    "$python" -c '
import html5lib, sys
html5lib.HTMLParser(strict=True).parse(open(sys.argv[1], "rb").read())' "$out/pages.html"
fi
if knows jsonschema; then
    "$python" -c '
import json, jsonschema, sys
schema = json.load(open("docs/page.schema.json"))
jsonschema.validate(json.load(open(sys.argv[1] + "/pages.json")), schema)
for line in open(sys.argv[1] + "/pages.jsonl", newline="\n"):
    jsonschema.validate(json.loads(line), schema)
try:
    jsonschema.validate({"schema": 2, "fathom": "", "file": "", "page": 1, "status": "ok"}, schema)
    sys.exit("the schema takes anything")
except jsonschema.ValidationError:
    pass' "$out"
fi
