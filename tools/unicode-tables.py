#!/usr/bin/env python3
"""Prints src/text/unicode_tables.c. Needs a Python whose unicodedata is version 14.0.0 (3.11)."""
import sys
import unicodedata

assert unicodedata.unidata_version == "14.0.0", unicodedata.unidata_version

WHITE_SPACE = {*range(0x09, 0x0E), 0x20, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x2028, 0x2029, 0x202F, 0x205F, 0x3000}
CLASSES = "OLMNPSW"  # in the order of enum char_class


def char_class(code):
    if code in WHITE_SPACE:
        return "W"
    category = unicodedata.category(chr(code))[0]
    return category if category in "LMNPS" else "O"


boundaries, last = [], None
for code in range(0x110000):
    now = char_class(code)
    if now != last:
        boundaries.append(f"0x{code << 3 | CLASSES.index(now):x}")
        last = now

out = sys.stdout
out.write("/* Made by tools/unicode-tables.py from the Unicode 14.0.0 character database. */\n")
out.write('#include "text/unicode.h"\n\n')
out.write("/* clang-format off */\n")
out.write(f"const uint32_t unicode_boundaries[UNICODE_N_BOUNDARIES] = {{\n")
line = "   "
for boundary in boundaries:
    if len(line) + len(boundary) + 2 > 120:
        out.write(line + "\n")
        line = "   "
    line += f" {boundary},"
out.write(line + "\n};\n")
sys.stderr.write(f"{len(boundaries)} boundaries\n")
