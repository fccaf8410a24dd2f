#!/usr/bin/env bash
# Tries the two promised commands where nothing is installed yet: makes a Debian 12 chroot with make and
# ca-certificates in DIR, puts a clone of HEAD there and runs `make run` and `make test` (or the given targets) inside.
# Needs root, debootstrap and the network; takes its mirror from MIRROR or from this machine's own apt sources.
#   scripts/chroot-test.sh DIR [TARGET...]
set -euo pipefail
cd "$(dirname "$0")/.."

dir=${1:?usage: chroot-test.sh DIR [TARGET...]}
shift
[ $# -gt 0 ] || set -- run test
mirror=${MIRROR:-$(apt-get indextargets --format '$(REPO_URI)' 'Codename: bookworm' | sed -n 1p)}

[ -e "$dir/etc/debian_version" ] ||
    debootstrap --variant=minbase --include=make,ca-certificates bookworm "$dir" ${mirror:+"$mirror"}
cp /etc/resolv.conf "$dir/etc/resolv.conf"
apt-config dump Acquire | grep -i proxy >"$dir/etc/apt/apt.conf.d/90host" || true
rm -rf "$dir/src/fathom"
git clone --quiet --no-hardlinks . "$dir/src/fathom"

# In a mount namespace of its own, so that nothing stays mounted.
unshare --mount bash -euc '
    mount -t proc proc "$1/proc"
    mount --rbind /dev "$1/dev"
    dir=$1
    shift
    for target; do
        time env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 \
            chroot "$dir" make -C /src/fathom "$target" </dev/null
    done' chroot-test "$(realpath "$dir")" "$@"
