#!/usr/bin/env bash
# The Debian package holds the program, its helper, the library, the header, the pkg-config file, the model and the documents, and
# what it unpacks to runs.
set -euo pipefail
build=$2

cmake --preset package -B "$build" >/dev/null
cmake --build "$build" -- --quiet
(cd "$build" && rm -f ./*.deb && cpack >/dev/null)
deb=$(echo "$build"/*.deb)
dpkg-deb --info "$deb"
files=$(dpkg-deb --fsys-tarfile "$deb" | tar -t)
for file in bin/fathom libexec/fathom/fathom-helper include/fathom.h 'lib/.*/libfathom\.so' 'lib/.*/libfathom\.so\.[0-9]+' 'lib/.*/pkgconfig/fathom\.pc' \
    share/fathom/models/mini/config.json share/doc/fathom/copyright share/doc/fathom/install.md; do
    grep -qE "^\./usr/$file\$" <<<"$files" || { echo "the package lacks usr/$file" >&2 && exit 1; }
done
rm -rf "$build/unpacked"
dpkg-deb --extract "$deb" "$build/unpacked"
"$build/unpacked/usr/bin/fathom" --version
