#!/usr/bin/env bash
# An installation under any prefix works: the program finds its library and its model, a C program builds against the
# library through pkg-config, and the library shows the public functions only.
set -euo pipefail
build=$1
prefix=$2/prefix

rm -rf "$2"
mkdir -p "$2"
cmake --install "$build" --prefix "$prefix" >/dev/null

"$prefix/bin/fathom" --version
(cd / && "$prefix/bin/fathom" "$OLDPWD/examples/page.png") >"$2/page.md"
[ -s "$2/page.md" ]

cat >"$2/client.c" <<'END'
#include <fathom.h>
#include <stdio.h>

int main(void)
{
    struct fathom_model *model = NULL;
    struct fathom_err err;
    if (fathom_model_open("/nowhere", &model, &err) != FATHOM_EIO || model)
        return 1;
    printf("%s: %s\n", fathom_version(), err.message);
    return 0;
}
END
pc=$(find "$prefix" -name fathom.pc)
export PKG_CONFIG_PATH=${pc%/*}
# shellcheck disable=SC2046
cc -Wall -Werror -o "$2/client" "$2/client.c" $(pkg-config --cflags --libs fathom)
LD_LIBRARY_PATH=$(pkg-config --variable=libdir fathom) "$2/client"
[ "$(pkg-config --modversion fathom)" = "$(sed -n 's/^project(fathom VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)" ]

shown=$(nm --dynamic --defined-only "$build/lib/libfathom.so" | awk '{ print $3 }')
if grep -v '^fathom_' <<<"$shown"; then
    echo "libfathom.so shows a private symbol" >&2
    exit 1
fi
for function in $(grep -oE '^FATHOM_API .*\(' include/fathom.h | grep -oE 'fathom_[a-z_]+\(' | tr -d '('); do
    grep -qx "$function" <<<"$shown" || { echo "libfathom.so lacks $function" >&2 && exit 1; }
done
