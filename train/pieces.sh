#!/bin/bash
# Training in pieces, on a machine that is lent for minutes at a time. RUN (default /tmp/run) is the folder there.
#   pieces.sh start SECONDS ASSETS [ARGUMENTS OF train.py]   starts in the background and goes on from RUN's checkpoint if it breaks
#   pieces.sh wait SECONDS                                   until it is done, at once if nothing runs
#   pieces.sh collect NAME OUT                               checkpoint NAME.pt in parts of 16 MB, with log and evaluation
#   pieces.sh join NAME PARTS...                             parts to RUN/NAME.pt
set -eu
here=$(cd "$(dirname "$0")" && pwd) run=${RUN:-/tmp/run} what=$1
shift
mkdir -p "$run"
case $what in
start)
    seconds=$1 assets=$2
    shift 2
    end=$(($(date +%s) + seconds + 130))
    export PYTHONUNBUFFERED=1
    # $! is the session's leader; train.py gets less time and smaller batches at every further try
    setsid bash -c '
        here=$1 run=$2 end=$3 seconds=$4 assets=$5; shift 5
        for scale in 1 2 4; do
            resume=
            if [ $scale -gt 1 ] && [ -f "$run/last.pt" ]; then resume="--resume $run/last.pt"; fi
            python3 "$here/train.py" --assets "$assets" --out "$run" --time $seconds --scale $scale "$@" $resume && break
            seconds=$((end - $(date +%s) - 110))
            [ $seconds -gt 60 ] || break
        done' pieces "$here" "$run" "$end" "$seconds" "$assets" "$@" > "$run/out.txt" 2>&1 < /dev/null &
    echo $! > "$run/pid"
    ;;
wait)
    stop=$(($(date +%s) + $1))
    while [ "$(date +%s)" -lt $stop ] && [ ! -e "$run/DONE" ] && kill -0 "$(cat "$run/pid" 2>/dev/null || echo x)" 2>/dev/null; do sleep 3; done
    [ -e "$run/out.txt" ] && tail -5 "$run/out.txt" || echo "nothing was started here"
    ;;
collect)
    mkdir -p "$2"
    split -b 16600000 -d "$run/$1.pt" "$2/$1.pt."
    cp "$run/log.txt" "$2/"
    if [ -e "$run/evaluation.json" ]; then cp "$run/evaluation.json" "$2/"; fi
    ;;
join)
    name=$1
    shift
    cat "$@" > "$run/$name.pt"
    ;;
esac
