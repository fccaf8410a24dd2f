"""Fonts as glyph atlases: every character of every face in every size as a grey bitmap, with its metrics.

A page is a list of (glyph number, x, y); glyph g has width[g] x height[g] bytes from ink[offset[g]] on. The first INK_RULE
bytes of the ink are black, so that rules are glyphs too. Needs Pillow only to build an atlas.
"""
import json
import multiprocessing
import os

import numpy as np

from charset import CLASS, DRAWN

SIZES = list(range(9, 41)) + [44, 48, 54, 60, 68, 76, 88]  # pixels an em
INK_RULE = 1 << 16
CODE = {c: i + 1 for i, c in enumerate(DRAWN)}  # 0 is the blank
N_CODES = len(DRAWN) + 1
TABLE = np.zeros(0x10000, np.int32)
for _c, _i in CODE.items():
    TABLE[ord(_c)] = _i
CLASS_OF_CODE = np.zeros(N_CODES, np.int32)
for _c, _i in CODE.items():
    CLASS_OF_CODE[_i] = CLASS[_c]
EM = 1000


def codes(text):
    """Text as glyph codes; what is not in the charset becomes a blank."""
    return TABLE[np.frombuffer(text.encode("utf-16-le"), np.uint16)]


def raster_face(path):
    """-> advances [codes] in ems, present [codes], and for every size and code (width, height, left, top), and the ink."""
    from PIL import ImageFont
    big = ImageFont.truetype(path, EM, layout_engine=ImageFont.Layout.BASIC)
    missing = big.getmask("￾").getbbox(), big.getlength("￾")
    advance = np.zeros(N_CODES, np.float32)
    present = np.zeros(N_CODES, bool)
    advance[0] = big.getlength(" ") / EM
    for c, i in CODE.items():
        mask = big.getmask(c)
        present[i] = mask.getbbox() is not None and (mask.getbbox(), big.getlength(c)) != missing
        advance[i] = big.getlength(c) / EM
    metrics = np.zeros((len(SIZES), N_CODES, 4), np.int32)
    ink = []
    for s, size in enumerate(SIZES):
        font = ImageFont.truetype(path, size, layout_engine=ImageFont.Layout.BASIC)
        for c, i in CODE.items():
            if not present[i]:
                continue
            mask, (left, top) = font.getmask2(c, mode="L", anchor="ls")
            w, h = mask.size
            metrics[s, i] = w, h, left, top
            ink.append(np.frombuffer(bytes(mask), np.uint8)[:w * h])
    return advance, present, metrics, np.concatenate(ink)


class Fonts:
    """Families of faces. rasters=False leaves the bitmaps out: enough to lay pages out, not to draw them."""

    def __init__(self, assets, held=False, rasters=True, cache=None, workers=1, most=None):
        with open(assets + "/fonts.json") as f:
            listed = [d for d in json.load(f) if d["held"] == held][:most]
        self.assets = assets
        self.families, self.weights, self.names, paths = [], [], [], []
        for d in listed:
            self.families.append(list(range(len(paths), len(paths) + len(d["faces"]))))
            self.weights.append(d["weight"])
            self.names.append(d["family"])
            paths += [os.path.join(assets, "fonts", n) for n in d["faces"]]
        if cache and os.path.exists(cache):
            with np.load(cache) as z:
                self.advance, self.present, self.metrics, self.offset, self.ink = (
                    z[k] for k in ("advance", "present", "metrics", "offset", "ink"))
            return
        if workers > 1:
            with multiprocessing.get_context("fork").Pool(workers) as pool:
                faces = pool.map(raster_face, paths, chunksize=1)
        else:
            faces = [raster_face(p) for p in paths]
        self.advance = np.stack([f[0] for f in faces])     # [faces, codes]
        self.present = np.stack([f[1] for f in faces])
        self.metrics = np.stack([f[2] for f in faces])     # [faces, sizes, codes, 4]
        sizes = self.metrics[..., 0].astype(np.int64) * self.metrics[..., 1]
        self.offset = (np.cumsum(sizes.reshape(-1)) - sizes.reshape(-1)).reshape(sizes.shape) + INK_RULE
        self.ink = np.concatenate([np.full(INK_RULE, 255, np.uint8)] + [f[3] for f in faces]) if rasters else None
        if cache:
            np.savez(cache, advance=self.advance, present=self.present, metrics=self.metrics, offset=self.offset, ink=self.ink)

    def math_faces(self):
        """Faces with all symbols of formulas."""
        wanted = [CODE[c] for c in "αβπσΣ∑∫√≤≈∞∂·–"]
        return [f for f in range(len(self.present)) if self.present[f][wanted].all()]

    def covers(self, face, text):
        c = codes(text)
        return bool((self.present[face][c] | (c == 0)).all())


def nearest_size(size):
    return int(np.argmin(np.abs(np.array(SIZES) - size)))
