"""Batches of pages for training, made by worker processes in shared memory.

A batch has one kind of view, one page size and one number of text tokens, so that everything in it has one shape:
  kind      views of a page                              pages a batch (mini)
  small     one of 768 px                                192
  whole     one of 1024 px                               96
  tiles     2, 4 or 6 of 768 px and one of 1024 px       48
The vision towers work through the views in chunks, 96 of 768 px or 48 of 1024 px, so that they see one shape alone.
Which kinds and how long the texts are follows the progress of training, 0..1: see `curriculum`.
"""
import mmap
import multiprocessing
import os
import random
import sys

import numpy as np

import tokenizer as T
from glyphs import SIZES
from pages import Generator
from render import choose_grid, fitted

LENGTHS = {"short": 160, "medium": 448, "long": 896, "longest": 1344}
PAGES = {"small": 192, "whole": 96, "tiles": 48}
SHAPES = {2: [(1, 2), (2, 1)], 4: [(2, 2), (2, 2), (2, 2), (4, 1)], 6: [(2, 3), (2, 3), (2, 3), (3, 2), (6, 1)]}
MAX_GLYPHS, MAX_RULES, MAX_INVERSE = 280_000, 60_000, 2000
HEADER = 16  # numbers about a batch, see `Batch`


def image_tokens(kind, tiles):
    return {"small": 145, "whole": 257}.get(kind, 257 + 144 * tiles)


def text_length(kind, tiles, length):
    """Tokens of text after BOS, so that the whole sequence is a multiple of 32."""
    n = 1 + image_tokens(kind, tiles) + LENGTHS[length]
    return LENGTHS[length] - n % 32


def pages_per_batch(kind, scale):
    return max(1, PAGES[kind] // scale)


def ramp(p, points):
    """Piecewise linear weight over the progress."""
    return float(np.interp(p, *zip(*points)))


def curriculum(p, r):
    """-> kind, tiles, length"""
    small, whole, tiles = (ramp(p, w) for w in (
        [(0, .8), (.10, .7), (.25, .2), (.5, .08), (1, .05)],
        [(0, .2), (.10, .25), (.25, .3), (1, .22)],
        [(0, 0), (.06, 0), (.12, .1), (.25, .5), (.5, .7), (1, .73)]))
    kind = r.choices(["small", "whole", "tiles"], [small, whole, tiles])[0]
    short, medium, long, longest = (ramp(p, w) for w in (
        [(0, 1), (.04, .8), (.12, .35), (.3, .12), (1, .08)],
        [(0, 0), (.04, .2), (.12, .6), (.3, .45), (1, .3)],
        [(0, 0), (.10, 0), (.2, .15), (.4, .4), (1, .45)],
        [(0, 0), (.3, 0), (.5, .08), (1, .17)]))
    n = r.choices([2, 4, 6], [.17, .33, .5])[0] if kind == "tiles" else 0
    if kind == "small":
        long, longest = 0, 0
    if kind == "whole" or n < 4:
        longest = 0
    length = r.choices(list(LENGTHS), [short, medium, long, longest])[0]
    return kind, n, length


def is_strip(size):
    """Room for a line or two, no more."""
    return size[1] < .2 * size[0]


def page_size(kind, tiles, r):
    """A page size in pixels and its grid of tiles."""
    while True:
        if kind == "tiles":
            columns, rows = r.choice(SHAPES[tiles])
            if columns >= 4 and rows == 1:  # a strip
                width = r.randint(800, 1600)
                height = int(width / (columns * r.uniform(.95, 1.05 if columns < 6 else 4)))
            else:
                height = r.choice([r.randint(800, 2200), r.randint(900, 1400), 1024])
                width = int(height * columns / rows * r.uniform(.85, 1.18))
        else:
            longest = r.randint(400, 1000) if kind == "small" else r.choice([r.randint(500, 1700), r.randint(700, 1100), 1024])
            aspect = r.choice([1, 1, .707, .773, r.uniform(.5, 2)])
            width, height = (longest, int(longest / aspect)) if aspect > 1 else (int(longest * aspect), longest)
            if kind == "whole" and r.random() < .12:
                width, height = r.randint(500, 1400), 0
                height = int(width * r.uniform(.03, .16))
        if not 20 <= height <= 2400 or not 200 <= width <= 2400 or width * height > 3_600_000:
            continue
        if kind != "tiles" or choose_grid(width, height) == (columns, rows):
            return (width, height), (columns, rows) if kind == "tiles" else None


def type_range(kind, size, grid):
    """Smallest and largest type in pixels of the page, from what the views can show."""
    if kind == "small":
        scale = fitted(size, 768)[0] / size[0]
        low, high = 14 / scale, 40 / scale
    elif kind == "whole":
        scale = fitted(size, 1024)[0] / size[0]
        low, high = 15.5 / scale, 44 / scale
    else:
        scale = min(grid[0] * 768 / size[0], grid[1] * 768 / size[1])
        low, high = max(10.5, 15 / scale), 60 / scale
    low = max(low, SIZES[0])
    return low, min(max(high, low + 1), 64)


class Maker:
    """Makes the pages of a batch."""

    def __init__(self, seed, tok, fonts, held=False):
        self.r = random.Random(seed)
        self.tok = tok
        self.pages = Generator(seed, tok, fonts, held=held)
        self.prompts = {}

    def prompt_ids(self, prompt):
        if prompt not in self.prompts:
            if len(self.prompts) > 5000:
                self.prompts.clear()
            self.prompts[prompt] = self.tok.encode(prompt)
        return self.prompts[prompt]

    def page(self, kind, size, grid, room, progress, skew):
        """A page whose prompt and answer have at most room tokens."""
        r, g = self.r, self.pages
        low, high = type_range(kind, size, grid)
        ground = r.random() < ramp(progress, [(0, 0), (.1, 0), (.2, .3), (1, .33)])
        shrink = 1.0
        for _ in range(12):
            chars = int(room * 2.6 * shrink)
            if is_strip(size):
                p = g.line(size, skew)
            elif room < 200 and r.random() < .6:
                p = g.few(size, (low, max(low, min(high, 48))), ground, skew)
            else:
                filling = (size[0] * size[1] * .8 / (.72 * max(60, chars))) ** .5  # type that fills the page
                em = filling * r.uniform(.75, 1.05) if r.random() < .6 else r.uniform(low, low + (high - low) * r.random())
                em = min(max(em, low), high)
                page_kind = r.choices(["para", "full", "tables"], [.25, .65, .1])[0]
                p = g.page(size, em, int(chars * r.uniform(.5, 1)), ground, page_kind, skew)
                if r.random() < (.1 if room < 200 else .02):
                    p = g.locate(p) or p
            if len(self.prompt_ids(p["prompt"])) + len(p["ids"]) <= room:
                return p
            shrink *= .75
        return g.few(size, (low, low), False, 0)


class Batch:
    """One slot of shared memory as arrays."""

    FIELDS = [("header", (HEADER,), np.int64), ("ids", (192, 1344), np.int16), ("labels", (192, 1344), np.int16), ("places", (192, 1344, 2), np.float16),
              ("affine", (192, 2, 3), np.float32), ("glyphs", (MAX_GLYPHS, 4), np.int32), ("rules", (MAX_RULES, 5), np.int16),
              ("inverse", (MAX_INVERSE, 5), np.int16), ("chars", (MAX_GLYPHS, 4), np.float32)]
    KINDS = ["small", "whole", "tiles"]

    def __init__(self):
        size = sum(int(np.prod(s)) * np.dtype(t).itemsize for _, s, t in self.FIELDS)
        memory, at = mmap.mmap(-1, size), 0
        for name, shape, dtype in self.FIELDS:
            n = int(np.prod(shape)) * np.dtype(dtype).itemsize
            setattr(self, name, np.frombuffer(memory, dtype, int(np.prod(shape)), at).reshape(shape))
            at += n

    def fill(self, maker, kind, tiles, length, progress, areas, scale):
        r = maker.r
        size, grid = page_size(kind, tiles, r)
        if is_strip(size):
            length = "short"
        room = text_length(kind, tiles, length)
        n = pages_per_batch(kind, scale)
        skew = r.choice([0, 0, 2.0])
        counts = dict(glyphs=0, rules=0, inverse=0, chars=0)
        area = 0
        ids = np.full((n, room), maker.tok.pad, np.int16)
        labels = np.full((n, room), -100, np.int16)
        places = np.full((n, room, 2), -1, np.float16)
        i = 0
        w, h, x0, y0 = fitted(size, 1024)
        while i < n:
            p = maker.page(kind, size, grid, room, progress, skew)
            rows = {k: len(p[k]) for k in counts}
            if any(counts[k] + rows[k] > len(getattr(self, k)) for k in counts):
                if i == 0:
                    continue
                break
            for k in counts:
                at = getattr(self, k)[counts[k]:counts[k] + rows[k]]
                at[:, 0] = i
                at[:, 1:] = p[k]
                counts[k] += rows[k]
            area += int(areas[p["glyphs"][:, 0]].sum()) + int((p["rules"][:, 2].astype(np.int64) * p["rules"][:, 3]).sum())
            q = maker.prompt_ids(p["prompt"])
            a = p["ids"]
            ids[i, :len(q)], ids[i, len(q):len(q) + len(a)] = q, a
            labels[i, len(q):len(q) + len(a)] = a
            bins = np.where(p["places"] < 0, -1, np.clip((p["places"] * [w / size[0], h / size[1]] + [x0, y0]) / 16, 0, 63.5))
            places[i, len(q):len(q) + len(a)] = bins
            self.affine[i] = p["affine"]
            i += 1
        while i < n:  # the slot was full: earlier pages again would need their glyphs, so they stay blank and unlabelled
            self.affine[i] = [[1, 0, 0], [0, 1, 0]]
            i += 1
        self.ids[:n, :room], self.labels[:n, :room], self.places[:n, :room] = ids, labels, places
        self.header[:] = [self.KINDS.index(kind), tiles, size[0], size[1], grid[0] if grid else 0, grid[1] if grid else 0, n, room, area,
                          counts["glyphs"], counts["rules"], counts["inverse"], counts["chars"], int(skew > 0), 0, 0]

    def arrays(self):
        """What a training step needs: numpy views into the slot, and the header as a dict."""
        h = self.header.tolist()
        info = dict(kind=self.KINDS[h[0]], tiles=h[1], size=(h[2], h[3]), grid=(h[4], h[5]), pages=h[6], room=h[7], area=h[8], skewed=bool(h[13]))
        n, room = info["pages"], info["room"]
        return info, dict(ids=self.ids[:n, :room], labels=self.labels[:n, :room], places=self.places[:n, :room], affine=self.affine[:n],
                          glyphs=self.glyphs[:h[9]], rules=self.rules[:h[10]], chars=self.chars[:h[12]]), self.inverse[:h[11]].tolist()


class Loader:
    """Workers that fill slots. take() gives a slot; give it back with release()."""

    def __init__(self, tok_path, fonts, workers, slots, seed, scale=1, progress=0.0):
        context = multiprocessing.get_context("fork")
        self.progress = context.Value("d", progress, lock=False)
        self.slots = [Batch() for _ in range(slots)]
        self.free, self.ready = context.SimpleQueue(), context.SimpleQueue()
        for i in range(slots):
            self.free.put(i)
        self.workers = [context.Process(target=self.work, args=(tok_path, fonts, seed + 7919 * i, scale), daemon=True) for i in range(workers)]
        for w in self.workers:
            w.start()

    def work(self, tok_path, fonts, seed, scale):
        os.nice(5)
        areas = (fonts.metrics[..., 0].astype(np.int64) * fonts.metrics[..., 1]).reshape(-1)
        maker = Maker(seed, T.Tokenizer(tok_path), fonts)
        while True:
            s = self.free.get()
            done = False
            while not done:
                try:
                    p = self.progress.value
                    self.slots[s].fill(maker, *curriculum(p, maker.r), p, areas, scale)
                    done = True
                except Exception as e:  # a page that cannot be laid out is no reason to stop
                    sys.stderr.write("worker: %r\n" % e)
            self.ready.put(s)

    def take(self):
        return self.ready.get()

    def release(self, s):
        self.free.put(s)

    def close(self):
        for w in self.workers:
            w.kill()
