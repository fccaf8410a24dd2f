#!/bin/bash
# eval.sh ASSETS OUT [MODEL] [PAGES]: draws the held-out sets, reads them with fathom and prints the figures. What was read before is kept.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
assets=$1 out=$2 model=${3:-$here/../models/mini} pages=${4:-200}
fathom=${FATHOM:-$here/../build/bin/fathom}
[ -e "$out/table000.txt" ] || python3 "$here/evaluate.py" pages --assets "$assets" --out "$out" --pages "$pages"
for page in "$out"/*.png; do
    base=${page%.png} task=text
    case $(basename "$base") in ground*) task=markdown ;; esac
    [ -e "$base.out" ] || "$fathom" -q -m "$model" --task "$task" --raw "$page" > "$base.out"
done
python3 "$here/evaluate.py" score --out "$out"
