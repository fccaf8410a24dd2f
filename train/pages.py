"""Lays out pages: what is printed where, what it says, and where each token of the answer stands.

A page is a dict:
  size      (width, height) in pixels
  glyphs    int32 [n, 3]: glyph number (glyphs.py), left, top
  rules     int32 [n, 4]: left, top, width, height of what is plain black
  inverse   int32 [n, 4]: rectangles in which ink and paper change places, after everything is drawn
  affine    float32 [2, 3]: how the sheet lies on the scanner, from drawn to seen coordinates
  chars     float32 [n, 3]: centre (seen) and class of every printed character
  prompt, text, ids, places    question and answer; ids ends in EOS; places [len(ids), 2] is where a token begins (seen), or -1
"""
import math
import random

import numpy as np

import tokenizer as T
from glyphs import CLASS_OF_CODE, CODE, N_CODES, SIZES, codes, nearest_size
from texts import Texts, latex

ASCENT = .8        # of the em: from the top of a line's cell to its baseline
MIDDLE = .26       # from the baseline up to the middle of a character
BULLETS = "•••-–*▪"


class Draft:
    """Ink, characters and text of a block that may still be dropped."""

    def __init__(self):
        self.glyphs, self.rules, self.inverse = [], [], []
        self.x, self.y, self.kind = [], [], []
        self.text, self.places = [], []
        self.n = 0

    def put(self, s, places=None):
        """Appends to the answer; places [len(s), 2], or None for what stands nowhere."""
        self.text.append(s)
        self.places.append(np.full((len(s), 2), -1, np.float32) if places is None else places)
        self.n += len(s)

    def add(self, other):
        for name in ("glyphs", "rules", "inverse", "x", "y", "kind", "text", "places"):
            getattr(self, name).extend(getattr(other, name))
        self.n += other.n


class Block:
    def __init__(self, label, draft, box):
        self.label, self.draft, self.box = label, draft, box


class Generator:
    def __init__(self, seed, tok, fonts, assets=None, held=False):
        self.r = random.Random(seed)
        self.tok = tok
        self.fonts = fonts
        self.text = Texts(self.r, assets or fonts.assets, held)
        self.mathematical = set(fonts.math_faces())

    # ---- type

    def style(self):
        """Body and heading face of a page."""
        r, f = self.r, self.fonts
        family = r.choices(f.families, f.weights)[0]
        body = family[0]
        x = r.random()
        if x < .08 and len(family) > 1:
            body = family[1]
        elif x < .18 and len(family) > 2:
            body = family[2]
        other = family if r.random() < .6 else r.choices(f.families, f.weights)[0]
        self.body = body
        self.head = other[1] if len(other) > 1 and r.random() < .8 else other[0]
        self.ligatures = r.random() < .3
        self.tracking = r.choice([0, 0, 0, 0, r.uniform(-.02, .06)])

    def draw(self, d, x, base, s, face, size, justify=0.0):
        """One line of text from x on; -> places of its characters, width."""
        f = self.fonts
        index = nearest_size(size)
        c = codes(s)
        advance = f.advance[face][c] * size + self.tracking * size
        drawn = c
        if self.ligatures and ("fi" in s or "fl" in s):
            drawn, advance = self.ligate(s, c, advance, face, size)
        if justify:
            advance = advance + (c == 0) * justify
        ends = np.cumsum(advance)
        starts = x + ends - advance
        ink = (drawn > 0) & f.present[face][drawn]
        g = drawn[ink]
        m = f.metrics[face, index][g]
        number = ((face * len(SIZES) + index) * N_CODES + g).astype(np.int32)
        left = np.rint(starts[ink]).astype(np.int32) + m[:, 2]
        d.glyphs.append(np.stack([number, left, int(round(base)) + m[:, 3]], 1))
        middle = starts + advance / 2
        printed = c > 0
        d.x.append(middle[printed])
        d.y.append(np.full(int(printed.sum()), base - MIDDLE * size, np.float32))
        d.kind.append(CLASS_OF_CODE[c[printed]])
        return np.stack([middle, np.full(len(s), base - MIDDLE * size)], 1).astype(np.float32), float(ends[-1]) if len(s) else 0.0

    def ligate(self, s, c, advance, face, size):
        drawn, advance = c.copy(), advance.copy()
        for pair, code in (("fi", CODE["ﬁ"]), ("fl", CODE["ﬂ"])):
            if not self.fonts.present[face][code]:
                continue
            i = s.find(pair)
            while i >= 0:
                drawn[i], drawn[i + 1] = code, 0
                advance[i] = advance[i + 1] = self.fonts.advance[face][code] * size / 2
                i = s.find(pair, i + 2)
        return drawn, advance

    def wrap(self, s, face, size, width, first):
        """Lines that fit width; first is the indent of the first one. -> [(text, width)]"""
        advance = self.fonts.advance[face][codes(s)] * size + self.tracking * size
        ends = np.concatenate([[0], np.cumsum(advance)])
        breaks = np.array([i for i, ch in enumerate(s) if ch == " "] + [len(s)])
        at = ends[breaks]
        lines, start, k, room = [], 0, 0, width - first
        while start < len(s):
            j = int(np.searchsorted(at, ends[start] + room, side="right")) - 1
            j = max(j, k)
            end = int(breaks[j])
            lines.append((s[start:end], float(ends[end] - ends[start])))
            start, k, room = end + 1, j + 1, width
        return lines

    def flow(self, d, s, face, size, x0, x1, y, pitch, bottom, align="l", justify=False, indent=0.0):
        """Wrapped text between x0 and x1, as many lines as fit above bottom. -> (y below, box) or None."""
        box = None
        lines = self.wrap(s, face, size, x1 - x0, indent)
        for i, (t, w) in enumerate(lines):
            x = x0 + (indent if i == 0 else 0)
            if w > x1 - x + 1 or y + pitch > bottom:
                break
            gap = 0.0
            if align == "c":
                x += (x1 - x - w) / 2
            elif align == "r":
                x = x1 - w
            elif justify and i + 1 < len(lines) and " " in t:
                gap = (x1 - x - w) / t.count(" ")
                gap = gap if gap < size else 0.0
            base = y + ASCENT * size
            places, width = self.draw(d, x, base, t, face, size, gap)
            if box:
                d.put(" ")
            d.put(t, places)
            line = (x, base - .75 * size, x + width, base + .22 * size)
            box = line if box is None else union(box, line)
            y += pitch
        return None if box is None else (y, box)

    # ---- blocks: each draws into d from y on and gives (y below, box), or None if there is no room

    def heading(self, d, label, size, x0, x1, y, bottom):
        r = self.r
        big = min(size * (r.uniform(1.4, 2.2) if label == "title" else r.uniform(1.1, 1.45)), 84)
        d.put("# " if label == "title" else "## ")
        return self.flow(d, self.text.heading(), self.head, big, x0, x1, y, big * r.uniform(1.1, 1.35), bottom,
                         r.choice("llc") if label == "title" else "l")

    def fields(self, d, size, x0, x1, y, pitch, bottom):
        out = None
        for i in range(self.r.randint(1, 5)):
            part = Draft()
            if i:
                part.put("\n")
            o = self.flow(part, self.text.field(), self.body, size, x0, x1, y, pitch, bottom)
            if o is None:
                break
            d.add(part)
            y = o[0]
            out = o if out is None else (y, union(out[1], o[1]))
        return out

    def list(self, d, size, x0, x1, y, pitch, bottom):
        r = self.r
        numbered, first = r.random() < .35, r.choice([1, 1, 1, r.randint(1, 20)])
        bullet = r.choice(BULLETS)
        if not self.fonts.covers(self.body, bullet):
            bullet = "-"
        inset, offset = size * r.choice([0, .5, 1, 1.5]), size * r.uniform(1.0, 1.8)
        gap, out = size * r.choice([0, 0, .3]), None
        for i in range(r.randint(2, 7)):
            part = Draft()
            mark = "%d." % (first + i) if numbered else bullet
            if i:
                part.put("\n")
            places, width = self.draw(part, x0 + inset, y + ASCENT * size, mark, self.body, size)
            part.put(mark if numbered else "-", places)
            part.put(" ")
            o = self.flow(part, self.text.paragraph(r.choice([20, 40, 60, 90, 140])), self.body, size,
                          x0 + inset + max(offset, width + .35 * size), x1, y, pitch, bottom)
            if o is None:
                break
            d.add(part)
            box = union(o[1], (x0 + inset, o[1][1], x0 + inset, o[1][1]))
            y = o[0] + gap
            out = (y, box if out is None else union(out[1], box))
        return out

    def table(self, d, size, x0, x1, y, pitch, bottom):
        r = self.r
        columns, rows = r.randint(2, 4 if (x1 - x0) / size < 34 else 6), r.randint(2, 9)
        height = pitch * r.uniform(1.0, 1.5)
        rows = min(rows, int((bottom - y) / height))
        if rows < 2:
            return None
        shares = np.array([r.uniform(.7, 1.4) for _ in range(columns)])
        width = (x1 - x0) * r.choice([1, 1, .8, .6])
        edges = x0 + np.concatenate([[0], np.cumsum(shares / shares.sum() * width)])
        kinds = [r.choice(["word", "number", "number"]) for _ in range(columns)]
        aligned = [r.choice("lr") if k == "number" else r.choice("llc") for k in kinds]
        pad, head = .3 * size, self.head if r.random() < .5 else self.body
        d.put("<table>")
        for i in range(rows):
            d.put("<tr>")
            for j in range(columns):
                d.put("<td>")
                face = head if i == 0 else self.body
                s, w = self.cell(face, size, edges[j + 1] - edges[j] - 2 * pad, "word" if i == 0 else kinds[j])
                if s:
                    room = edges[j + 1] - edges[j] - 2 * pad - w
                    x = edges[j] + pad + room * {"l": 0, "c": .5, "r": 1}[aligned[j]]
                    d.put(s, self.draw(d, x, y + i * height + (height - size) / 2 + .82 * size, s, face, size)[0])
                d.put("</td>")
            d.put("</tr>")
        d.put("</table>")
        self.table_rules(d, edges, y, height, rows, max(1, round(size / 24 * r.choice([1, 1, 2]))))
        return y + rows * height + 2, (float(edges[0]), y, float(edges[-1]), y + rows * height)

    def cell(self, face, size, room, kind):
        for _ in range(5):
            s = self.text.phrase(2) if kind == "word" else self.text.number()
            w = float((self.fonts.advance[face][codes(s)] + self.tracking).sum()) * size
            if w <= room:
                return s, w
        return "", 0.0

    def table_rules(self, d, edges, y, height, rows, thick):
        style = self.r.choice(["grid", "grid", "lines", "rows", "none"])
        left, right = int(edges[0]), int(edges[-1])
        levels = {"grid": range(rows + 1), "rows": range(rows + 1), "lines": (0, 1, rows), "none": ()}[style]
        for i in levels:
            d.rules.append((left, int(y + i * height), right - left + thick, thick))
        if style == "grid":
            for e in edges:
                d.rules.append((int(e), int(y), thick, int(rows * height) + thick))

    def figure(self, d, size, x0, x1, y, bottom):
        """A framed bar chart without words: only its place is asked for."""
        r = self.r
        width, height = (x1 - x0) * r.uniform(.4, 1), size * r.uniform(4, 12)
        if y + height > bottom:
            return None
        left = x0 + (x1 - x0 - width) * r.choice([0, .5])
        thick = max(1, round(size / 20))
        frame = [int(v) for v in (left, y, width, height)]
        d.rules += [(frame[0], frame[1], frame[2], thick), (frame[0], frame[1] + frame[3], frame[2], thick),
                    (frame[0], frame[1], thick, frame[3]), (frame[0] + frame[2], frame[1], thick, frame[3] + thick)]
        bars = r.randint(3, 14)
        for i in range(bars):
            h = int(height * r.uniform(.05, .9))
            w = max(2, int(width / bars * r.uniform(.2, .8)))
            d.rules.append((int(left + (i + .1) * width / bars), int(y + height - h), w, h))
        return y + height + 2, (left, y, left + width, y + height)

    def equation(self, d, size, x0, x1, y, bottom):
        tree = self.text.formula()
        face = self.body if self.body in self.mathematical else self.r.choice(sorted(self.mathematical))
        w, up, down, items, bars, _ = self.formula_box(tree, face, size)
        if w > x1 - x0 or y + up + down > bottom:
            return None
        x, base = x0 + (x1 - x0 - w) / 2, y + up
        d.put(r"\[ ")
        self.formula_text(d, tree, iter(self.place_formula(d, items, bars, face, x, base)))
        d.put(r" \]")
        return y + up + down, (x, y, x + w, y + up + down)

    def formula_box(self, tree, face, size):
        """-> width, height above and below the base line, atoms (x, y, text, size), bars (x, y, w), size"""
        kind = tree[0]
        size = max(size, SIZES[0])
        if kind == "atom":
            w = float(self.fonts.advance[face][codes(tree[2])].sum()) * size
            return w, .75 * size, .22 * size, [(0.0, 0.0, tree[2], size)], [], size
        if kind == "row":
            x = up = down = 0.0
            items, bars = [], []
            for t in tree[1]:
                w, u, v, it, ba, _ = self.formula_box(t, face, size)
                space = .22 * size if t[0] == "atom" and not t[2].isalnum() and t[2] not in "()" else 0
                x += space
                items += [(x + a, b, s, z) for a, b, s, z in it]
                bars += [(x + a, b, c) for a, b, c in ba]
                x, up, down = x + w + space + .04 * size, max(up, u), max(down, v)
            return x, up, down, items, bars, size
        if kind == "sqrt":
            w, u, v, it, ba, _ = self.formula_box(tree[1], face, size)
            s = float(self.fonts.advance[face][CODE["√"]]) * size
            return (s + w + .1 * size, u + .2 * size, v, [(0.0, 0.0, "√", size)] + [(a + s, b, t, z) for a, b, t, z in it],
                    [(a + s, b, c) for a, b, c in ba] + [(s, -u - .08 * size, w)], size)
        if kind in ("sup", "sub"):
            w, u, v, it, ba, _ = self.formula_box(tree[1], face, size)
            w2, u2, v2, it2, ba2, _ = self.formula_box(tree[2], face, size * .7)
            dy = -.42 * size if kind == "sup" else .22 * size
            return (w + w2 + .03 * size, max(u, u2 - dy), max(v, v2 + dy), it + [(w + a, b + dy, t, z) for a, b, t, z in it2],
                    ba + [(w + a, b + dy, c) for a, b, c in ba2], size)
        w1, u1, v1, it1, ba1, _ = self.formula_box(tree[1], face, size * .85)
        w2, u2, v2, it2, ba2, _ = self.formula_box(tree[2], face, size * .85)
        w, axis = max(w1, w2) + .2 * size, -.28 * size
        a1, b1, a2, b2 = (w - w1) / 2, axis - .12 * size - v1, (w - w2) / 2, axis + .12 * size + u2
        return (w, u1 - b1, b2 + v2, [(a + a1, b + b1, t, z) for a, b, t, z in it1] + [(a + a2, b + b2, t, z) for a, b, t, z in it2],
                [(a + a1, b + b1, c) for a, b, c in ba1] + [(a + a2, b + b2, c) for a, b, c in ba2] + [(.05 * size, axis, w - .1 * size)], size)

    def place_formula(self, d, items, bars, face, x, base):
        """Draws; gives the places of the atoms in the order of the tree."""
        tracking, self.tracking = self.tracking, 0
        ligatures, self.ligatures = self.ligatures, False
        places = [self.draw(d, x + a, base + b, s, face, size)[0] for a, b, s, size in items]
        self.tracking, self.ligatures = tracking, ligatures
        for a, b, w in bars:
            d.rules.append((int(x + a), int(base + b), max(1, int(w)), max(1, round(items[0][3] / 22))))
        return places

    def formula_text(self, d, tree, places):
        """Writes the LaTeX of a tree; must say what texts.latex says."""
        kind = tree[0]
        if kind == "atom":
            p = next(places)
            d.put(tree[1], np.repeat(p[:1], len(tree[1]), 0) if tree[1] != tree[2] else p)
        elif kind == "row":
            for i, t in enumerate(tree[1]):
                if i:
                    d.put(" ")
                self.formula_text(d, t, places)
        elif kind == "sqrt":
            d.put(r"\sqrt{", np.repeat(next(places)[:1], 6, 0))
            self.formula_text(d, tree[1], places)
            d.put("}")
        elif kind == "frac":
            d.put(r"\frac{")
            self.formula_text(d, tree[1], places)
            d.put("}{")
            self.formula_text(d, tree[2], places)
            d.put("}")
        else:
            self.formula_text(d, tree[1], places)
            short = len(latex(tree[2])) == 1
            d.put("^" if kind == "sup" else "_")
            d.put("" if short else "{")
            self.formula_text(d, tree[2], places)
            d.put("" if short else "}")

    # ---- pages

    def page(self, size, em, budget, ground=False, kind="full", skew=0.0):
        """A page of about budget characters in type of em pixels. kind: 'para' has paragraphs alone."""
        r = self.r
        self.text.choose_style()
        width, height = size
        self.style()
        columns = 2 if kind == "full" and width > 34 * em and r.random() < .3 else 1
        margin, gutter = r.uniform(.02, .11) * width, em * r.uniform(1.2, 2.5)
        wide = (width - 2 * margin - (columns - 1) * gutter) / columns
        frames = [(margin + i * (wide + gutter), margin + i * (wide + gutter) + wide) for i in range(columns)]
        self.measure = dict(pitch=em * r.uniform(1.12, 1.65), justify=r.random() < .4, indent=em * r.choice([0, 0, 0, 1, 2]),
                            gap=em * r.uniform(.4, 1.5))
        top = y = r.uniform(.012, .08) * height
        bottom = height - r.uniform(.01, .05) * height
        blocks, last = [], None
        if kind == "full" and r.random() < .15:
            y = top = self.running_head(blocks, em, margin, width - margin, y, bottom)
        if kind == "full" and r.random() < .25:
            last = self.page_number(em, margin, width - margin, bottom)
            bottom = last.box[1] - .6 * em
        fails, frame, done = 0, 0, 0
        while done < budget and fails < 4 and len(blocks) < 60:
            x0, x1 = frames[frame]
            label = self.next_label(kind, not blocks)
            if label == "title" and frame == 0 and y == top:
                x0, x1 = frames[0][0], frames[-1][1]
            elif label == "title":
                label = "sub_title"
            made = self.block(label, em, x0, x1, y, bottom, max(20, budget - done))
            if made is None:
                fails += 1
            else:
                blocks += made[1]
                y = made[0] + self.measure["gap"]
                done += sum(b.draft.n for b in made[1])
                if label == "title":
                    top = y
            if y + self.measure["pitch"] > bottom or (made is None and fails >= 2):
                if frame + 1 == columns:
                    break
                frame, y, fails = frame + 1, top, 0
        if last:
            blocks.append(last)
        if not any(b.draft.n for b in blocks):
            return self.page(size, em, budget, ground, kind, skew)
        return self.finish(size, blocks, ground, skew)

    def next_label(self, kind, first):
        r = self.r
        if kind == "para":
            return "text"
        if kind == "tables":
            return "table" if r.random() < .7 else "text"
        if first and r.random() < .6:
            return "title"
        return r.choices(["text", "sub_title", "list", "table", "fields", "equation", "figure"],
                         [50, 14, 13, 9, 6, 5, 3])[0]

    def block(self, label, em, x0, x1, y, bottom, room):
        """-> (y below, blocks made) or None"""
        r, m, d = self.r, self.measure, Draft()
        if label in ("table", "figure") and r.random() < .35:
            return self.captioned(label, em, x0, x1, y, bottom)
        start = y + (m["gap"] * .5 if label == "sub_title" else 0)
        if label in ("title", "sub_title"):
            out = self.heading(d, label, em, x0, x1, start, bottom)
        elif label == "text":
            s = self.text.paragraph(min(room, r.choice([80, 200, 400, 700])))
            out = self.flow(d, s, self.body, em, x0, x1, y, m["pitch"], bottom, "l", m["justify"], m["indent"])
        elif label == "fields":
            out = self.fields(d, em, x0, x1, y, m["pitch"], bottom)
        elif label == "list":
            out = self.list(d, em, x0, x1, y, m["pitch"], bottom)
        elif label == "table":
            out = self.table(d, em, x0, x1, y, m["pitch"], bottom)
        elif label == "equation":
            out = self.equation(d, em, x0, x1, y, bottom)
        else:
            out = self.figure(d, em, x0, x1, y, bottom)
        if out is None:
            return None
        if label in ("title", "sub_title", "text") and r.random() < .03:
            x, t, u, v = out[1]
            d.inverse.append((int(x - .4 * em), int(t - .3 * em), int(u - x + .8 * em), int(v - t + .6 * em)))
        name = {"fields": "text", "figure": "image"}.get(label, label)
        return out[0], [Block(name, d, out[1])]

    def captioned(self, label, em, x0, x1, y, bottom):
        r, m = self.r, self.measure
        name = "Table" if label == "table" else r.choice(["Figure", "Fig."])
        s = "%s %d%s%s" % (name, r.randint(1, 30), r.choice([": ", ". "]), self.text.paragraph(r.choice([30, 60, 100])))
        c = Draft()
        small = max(em * r.uniform(.8, 1), SIZES[0])
        above = label == "table" and r.random() < .7
        caption = lambda at: self.flow(c, s, self.body, small, x0, x1, at, m["pitch"] * small / em, bottom, r.choice("lc"))
        out = caption(y) if above else None
        if above and out is None:
            return None
        d = Draft()
        draw = self.table if label == "table" else self.figure
        args = (em, x0, x1, out[0] + .3 * em if above else y)
        body = draw(d, *args, m["pitch"], bottom) if label == "table" else draw(d, *args, bottom)
        if body is None:
            return None
        main = Block("table" if label == "table" else "image", d, body[1])
        if above:
            return body[0], [Block("table_caption", c, out[1]), main]
        out = caption(body[0] + .3 * em)
        if out is None:
            return body[0], [main]
        return out[0], [main, Block("table_caption" if label == "table" else "image_caption", c, out[1])]

    def running_head(self, blocks, em, x0, x1, y, bottom):
        d = Draft()
        small = max(em * self.r.uniform(.75, 1), SIZES[0])
        out = self.flow(d, self.text.phrase(5), self.body, small, x0, x1, y, 1.3 * small, bottom, self.r.choice("lcr"))
        if out is None:
            return y
        if self.r.random() < .4:
            d.rules.append((int(x0), int(out[0]), int(x1 - x0), max(1, round(em / 24))))
        blocks.append(Block("header", d, out[1]))
        return out[0] + em

    def page_number(self, em, x0, x1, bottom):
        r, d = self.r, Draft()
        n = r.randint(1, 900)
        s = r.choice(["%d" % n, "%d" % n, "Page %d" % n, "– %d –" % n, "%d of %d" % (n, n + r.randint(0, 90))])
        small = max(em * r.uniform(.8, 1), SIZES[0])
        _, box = self.flow(d, s, self.body, small, x0, x1, bottom - 1.2 * small, 1.2 * small, bottom + 1, r.choice("ccr"))
        return Block("page_number", d, box)

    def few(self, size, ems, ground=False, skew=0.0):
        """A sheet with a few short pieces of text in sizes between the two ems."""
        r = self.r
        self.text.choose_style()
        width, height = size
        self.style()
        blocks, y = [], r.uniform(0, .2) * height
        for _ in range(r.randint(1, 6)):
            em, d = r.uniform(*ems), Draft()
            s = self.text.phrase(6) if r.random() < .7 else self.text.soup(r.randint(1, 4))
            x0 = r.uniform(.01, .5) * width
            out = self.flow(d, s, self.head if r.random() < .3 else self.body, em, x0, width - 5, y, em * r.uniform(1.1, 1.5), height - 2)
            if out:
                blocks.append(Block("text", d, out[1]))
                y = out[0] + r.uniform(.2, 4) * em
        return self.finish(size, blocks, ground, skew) if blocks else self.few(size, ems, ground, skew)

    def line(self, size, skew=0.0):
        """A strip with one line of text, or two."""
        r = self.r
        self.text.choose_style()
        self.style()
        width, height = size
        n = 1 if r.random() < .7 else 2
        em = min(height / n * r.uniform(.5, .8), SIZES[-1])
        d = Draft()
        pitch = min(em * r.uniform(1.1, 1.4), (height - 2) / n)
        most = int(n * width / em * 2.6)
        out = self.flow(d, self.text.paragraph(r.randint(min(8, most), max(10, most))), self.body, em, r.uniform(.1, 1.5) * em, width - 3,
                        max(0, (height - n * pitch) * r.uniform(.2, .8)), pitch, height + 1)
        return self.finish(size, [Block("text", d, out[1])], False, skew) if out else self.line(size, skew)

    # ---- the answer

    def affine(self, size, skew):
        r = self.r
        if skew <= 0 or r.random() < .5:
            return np.array([[1, 0, 0], [0, 1, 0]], np.float32)
        a = math.radians(max(-skew, min(skew, r.gauss(0, skew / 2))))
        s = r.uniform(.95, 1.0)
        c, t = s * math.cos(a), s * math.sin(a)
        m = np.array([[c, -t], [t, c]])
        centre = np.array(size) / 2
        shift = centre - m @ centre + np.array([r.uniform(-.01, .01) * size[0], r.uniform(-.01, .01) * size[1]])
        return np.concatenate([m, shift[:, None]], 1).astype(np.float32)

    def det(self, box, affine, size):
        """The box of a block as it is seen, in thousandths."""
        x0, y0, x1, y1 = box
        p = np.array([[x0, y0], [x1, y0], [x0, y1], [x1, y1]]) @ affine[:, :2].T + affine[:, 2]
        lo, hi = p.min(0) / size * 999, p.max(0) / size * 999
        return "[[%d, %d, %d, %d]]" % tuple(min(999, max(0, round(float(v)))) for v in (lo[0], lo[1], hi[0], hi[1]))

    def finish(self, size, blocks, ground, skew):
        affine = self.affine(size, skew)
        answer = Draft()
        ink = Draft()
        first = True
        for b in blocks:
            for name in ("glyphs", "rules", "inverse", "x", "y", "kind"):
                getattr(ink, name).extend(getattr(b.draft, name))
            if not ground and b.draft.n == 0:
                continue
            if not first:
                answer.put("\n\n")
            first = False
            if ground:
                answer.put("<|ref|>%s<|/ref|><|det|>%s<|/det|>%s" % (b.label, self.det(b.box, affine, size), "\n" if b.draft.n else ""))
            answer.text += b.draft.text
            answer.places += b.draft.places
        if self.r.random() < .02:
            ink.inverse.append((0, 0, size[0], size[1]))
        page = dict(size=size, affine=affine, prompt=T.PROMPT_GROUND if ground else T.PROMPT_FREE,
                    text="".join(answer.text), blocks=blocks)
        page["glyphs"] = np.concatenate(ink.glyphs) if ink.glyphs else np.zeros((0, 3), np.int32)
        page["rules"] = np.array(ink.rules, np.int32).reshape(-1, 4)
        page["inverse"] = np.array(ink.inverse, np.int32).reshape(-1, 4)
        seen = lambda p: p @ affine[:, :2].T + affine[:, 2]
        if ink.x:
            page["chars"] = np.concatenate([seen(np.stack([np.concatenate(ink.x), np.concatenate(ink.y)], 1)),
                                            np.concatenate(ink.kind)[:, None]], 1).astype(np.float32)
        else:
            page["chars"] = np.zeros((0, 3), np.float32)
        places = np.concatenate(answer.places) if answer.places else np.zeros((0, 2), np.float32)
        places = np.where(places[:, :1] < 0, places, seen(places))
        self.tokenize(page, places)
        return page

    def tokenize(self, page, places):
        """ids, and the place of each token's first character that stands somewhere."""
        if self.tok is None:
            return
        text = page["text"]
        ids, starts = self.tok.encode_spans(text)
        n = len(text)
        placed = (places[:, 0] >= 0) & np.array([not c.isspace() for c in text], bool) if n else np.zeros(0, bool)
        following = np.minimum.accumulate(np.where(placed, np.arange(n), n)[::-1])[::-1] if n else np.zeros(0, int)
        starts = np.array(starts, np.int64)
        ends = np.append(starts[1:], n)
        first = following[starts] if len(starts) else starts
        inside = first < ends
        at = np.full((len(ids) + 1, 2), -1, np.float32)
        at[:-1][inside] = places[first[inside]]
        page["ids"], page["places"] = list(ids) + [self.tok.eos], at

    def locate(self, page):
        """Turns a page into the question where one of its words or headings stands; None if nothing is unique."""
        r = self.r
        blocks = [b for b in page["blocks"] if b.label in ("text", "title", "sub_title", "list", "header") and b.draft.n > 3]
        r.shuffle(blocks)
        flat = page["text"]
        for b in blocks:
            pieces = [(t, p) for t, p in zip(b.draft.text, b.draft.places) if len(t) > 2 and p[0, 0] >= 0]
            if not pieces:
                continue
            t, p = r.choice(pieces)
            words = t.split(" ")
            i = r.randrange(len(words))
            k = r.randint(1, min(4, len(words) - i))
            wanted = " ".join(words[i:i + k]).strip()
            if len(wanted) < 3 or flat.count(wanted) != 1 or "<" in wanted or "|" in wanted:
                continue
            a = len(" ".join(words[:i])) + (1 if i else 0)
            q = p[a:a + len(wanted)]
            half = .5 * float(np.diff(q[:, 0]).mean()) if len(q) > 1 else 5.0
            em = float(b.box[3] - b.box[1]) if len(b.draft.places) < 3 else self.em_of(b)
            box = (q[0, 0] - half, q[0, 1] - .49 * em, q[-1, 0] + half, q[0, 1] + .48 * em)
            page = dict(page, prompt=T.PROMPT_LOCATE % wanted,
                        text="<|ref|>%s<|/ref|><|det|>%s<|/det|>" % (wanted, self.det(box, page["affine"], page["size"])))
            places = np.full((len(page["text"]), 2), -1, np.float32)
            seen = q[:1] @ page["affine"][:, :2].T + page["affine"][:, 2]
            places[page["text"].index("[[")] = seen[0]
            self.tokenize(page, places)
            return page
        return None

    def em_of(self, block):
        """Type size of a block: the glyphs know it."""
        g = block.draft.glyphs[-1][:, 0]
        return float(SIZES[int(g[0]) // N_CODES % len(SIZES)]) if len(g) else 20.0


def union(a, b):
    return min(a[0], b[0]), min(a[1], b[1]), max(a[2], b[2]), max(a[3], b[3])
