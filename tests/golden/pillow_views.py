"""Writes pillow_views.txt: what Pillow makes of pages of odd sizes in DeepSeek-OCR's modes.

Needs Pillow (9.4 to 12.1 agree). Use: python3 tests/golden/pillow_views.py > tests/golden/pillow_views.txt

One line a page and view:
    W H pad SIDE   LEFT TOP RIGHT BOTTOM  CRC    ImageOps.pad: where the page lies on the square
    W H stretch S  0 0 S S                CRC
    W H tiles S    LEFT TOP RIGHT BOTTOM  CRC    the last tile's crop of the resized page; CRC of all tiles in turn
CRC-32 of the bytes [side, side, 3]. The page's byte at (x, y, channel) is (7 x + 13 y + 50 c + x y % 251) % 256.
"""

import zlib

from PIL import Image, ImageOps

SIZES = [
    (1, 1), (2, 3), (641, 640), (1025, 511), (333, 1021), (1021, 1018), (1027, 1023), (612, 793), (1241, 1755), (2047, 99),
]
TILED = {(641, 640): 640, (612, 793): 768, (1025, 511): 640, (333, 1021): 768}


def page(w, h):
    rgb = bytearray()
    for y in range(h):
        for x in range(w):
            v = 7 * x + 13 * y + x * y % 251
            rgb += bytes((v % 256, (v + 50) % 256, (v + 100) % 256))
    return Image.frombytes("RGB", (w, h), bytes(rgb))


def grid(w, h, side, most):
    best, chosen = float("inf"), (1, 1)
    for n in range(2, most + 1):
        for i in range(1, n + 1):
            if n % i == 0:
                d = abs(w / h - i / (n // i))
                if d < best or (d == best and w * h > 0.5 * side * side * n):
                    best, chosen = d, (i, n // i)
    return chosen


def line(size, kind, side, box, *pictures):
    crc = 0
    for picture in pictures:
        crc = zlib.crc32(picture.tobytes(), crc)
    print(*size, kind, side, *box, crc)


for size in SIZES:
    rgb = page(*size)
    for side in (1024, 1280):
        mark = ImageOps.pad(Image.new("L", size, 255), (side, side), color=0)
        line(size, "pad", side, mark.getbbox(), ImageOps.pad(rgb, (side, side), color=(127, 127, 127)))
    for side in (512, 640) if size[0] < size[1] else ():
        line(size, "stretch", side, (0, 0, side, side), rgb.resize((side, side)))
    if size in TILED:
        side = TILED[size]
        across, down = grid(*size, side, 9 if side == 640 else 6)
        whole, tiles = rgb.resize((side * across, side * down)), []
        for t in range(across * down):
            box = (t % across * side, t // across * side, t % across * side + side, t // across * side + side)
            tiles.append(whole.crop(box))
        line(size, "tiles", side, box, *tiles)
