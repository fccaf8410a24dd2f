#!/usr/bin/env bash
# Installs what a task needs and this machine lacks: deps.sh build|test|bench|package...
# Asks the machine for each thing itself, not for a package, so tools from elsewhere count; only what is missing goes to
# apt, with sudo when we are not root. With nothing missing it is silent and touches nothing.
set -euo pipefail

missing=()
need() { # need PACKAGE COMMAND...: the package is missing when the command fails
    local package=$1
    shift
    "$@" >/dev/null 2>&1 || missing+=("$package")
}
fuzzes() {
    echo 'int LLVMFuzzerTestOneInput(void) { return 0; }' |
        clang -x c -fsanitize=fuzzer,address,undefined -o /dev/null -
}
debian_python() { /usr/bin/python3 -c "import $1"; }
has_header() { echo "#include <$1>" | cc -E -; }

for task in "$@"; do
    case $task in
    build)
        need gcc command -v cc
        need libc6-dev has_header stdio.h
        need cmake command -v cmake
        need ninja-build command -v ninja
        need libpng-dev has_header png.h
        need libjpeg62-turbo-dev has_header jpeglib.h
        need libsqlite3-dev has_header sqlite3.h
        need pkg-config command -v pkg-config
        need libseccomp-dev has_header seccomp.h
        need libwebp-dev has_header webp/demux.h
        need libtiff-dev has_header tiffio.h
        need liblcms2-dev has_header lcms2.h
        need libpoppler-glib-dev pkg-config --exists poppler-glib
        need libcairo2-dev pkg-config --exists cairo
        need zlib1g-dev has_header zlib.h
        ;;
    test)
        need g++ command -v g++
        need libcmocka-dev has_header cmocka.h
        need libpcre2-dev has_header pcre2posix.h
        need clang command -v clang
        need libclang-rt-14-dev fuzzes
        need qpdf command -v qpdf
        need poppler-utils command -v pdftotext
        need libxml2-utils command -v xmllint
        need tidy command -v tidy
        need python3-html5lib debian_python html5lib
        need python3-jsonschema debian_python jsonschema
        need clang-format-14 command -v clang-format-14
        ;;
    bench) need libopenblas-dev has_header cblas.h ;;
    package)
        need dpkg-dev command -v dpkg-shlibdeps
        need file command -v file
        ;;
    *)
        echo "deps.sh: unknown task '$task'" >&2
        exit 2
        ;;
    esac
done
[ ${#missing[@]} -gt 0 ] || exit 0

as_root=(env)
[ "$(id -u)" -eq 0 ] || as_root=(sudo)
if ! command -v apt-get >/dev/null || ! command -v "${as_root[0]}" >/dev/null; then
    echo "missing here: ${missing[*]} (so they are called in Debian 12); please install them" >&2
    exit 1
fi
apt=("${as_root[@]}" DEBIAN_FRONTEND=noninteractive apt-get --quiet=2 --option Acquire::Retries=3
    --option Dpkg::Use-Pty=0)
echo "fathom needs these packages and installs them through apt: ${missing[*]}" >&2
"${apt[@]}" update </dev/null
"${apt[@]}" install --yes --no-install-recommends "${missing[@]}" </dev/null >/dev/null
