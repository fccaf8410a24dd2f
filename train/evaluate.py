"""How well a model reads pages in fonts and texts that it never saw.

report() measures the training model during training. The program measures the shipped one with fathom:
  python3 evaluate.py pages --assets DIR --out DIR [--pages 200]   draws the sets: PNG files and what they say
  python3 evaluate.py score --out DIR                              compares DIR/*.txt with the readings DIR/*.out
"""
import argparse
import json
import os
import random
import re

import numpy as np
import torch

import render
import tokenizer as T
from generate import generate
from glyphs import Fonts
from pages import Generator

# name: views of a page (kind, page size, grid), what is on it
SETS = [("line", "whole", (1024, 64), None), ("para", "whole", (1024, 1024), None), ("full", "whole", (1024, 1024), None),
        ("ground", "whole", (1024, 1024), None), ("para", "tiles", (1000, 1414), (2, 3)), ("full", "tiles", (1000, 1414), (2, 3)),
        ("ground", "tiles", (1000, 1414), (2, 3)), ("table", "tiles", (1000, 1414), (2, 3))]
BOX = re.compile(r"\[\[(\d+), (\d+), (\d+), (\d+)\]\]")
TAGS = re.compile(r"<\|ref\|>.*?<\|/det\|>\n?")


def edits(a, b):
    """Levenshtein distance of two strings."""
    if not a or not b:
        return max(len(a), len(b))
    x, y = (np.frombuffer(s.encode("utf-32-le"), np.uint32) for s in (a, b))
    steps = np.arange(len(y) + 1)
    row = steps.copy()
    for i, c in enumerate(x):
        t = np.empty_like(row)
        t[0] = i + 1
        np.minimum(row[1:] + 1, row[:-1] + (y != c), out=t[1:])
        row = np.minimum.accumulate(t - steps) + steps
    return int(row[-1])


def make_page(generator, name, size, kind):
    r = generator.r
    if name == "line":
        return generator.line(size)
    em = r.uniform(16, 30) if kind == "whole" else r.uniform(14, 30)
    budget = r.choice([600, 1000, 1000, 1600, 2200])
    return generator.page(size, em, budget, name == "ground", {"para": "para", "table": "tables"}.get(name, "full"))


def draw(atlas, page, device, rnd=None):
    """Grey picture [1, height, width] of a page; rnd adds the scanner's dirt."""
    one = lambda a: torch.from_numpy(np.concatenate([np.zeros((len(a), 1), a.dtype), a], 1)).to(device)
    batch = dict(glyphs=one(page["glyphs"]), rules=one(page["rules"]), ids=torch.zeros(1, 1), inverse_list=[(0, *r) for r in page["inverse"].tolist()])
    number = batch["glyphs"][:, 1].long()
    area = int((atlas.width[number].long() * atlas.height[number]).sum() + (batch["rules"][:, 3].long() * batch["rules"][:, 4]).sum())
    ink = render.lay(render.rasterise(atlas, batch, page["size"], area), torch.from_numpy(page["affine"])[None].to(device))
    return render.dirty(ink, rnd) if rnd else 1 - ink


def cells(text):
    return re.findall(r"<td>(.*?)</td>", text, re.S)


def figures(pairs):
    """Figures of a set of (said, read)."""
    plain = [(TAGS.sub("", a), TAGS.sub("", b)) for a, b in pairs]
    d = [edits(a, b) for a, b in plain]
    rates = sorted(e / max(1, len(a)) for e, (a, _) in zip(d, plain))
    out = dict(pages=len(pairs), chars=sum(len(a) for a, _ in plain), cer=sum(d) / max(1, sum(len(a) for a, _ in plain)),
               mean=sum(rates) / len(rates), median=rates[len(rates) // 2],
               exact=sum(a == b for a, b in plain) / len(pairs), runaway=sum(len(b) > 1.5 * len(a) + 20 for a, b in plain) / len(pairs))
    if any("<|det|>" in a for a, _ in pairs):
        boxes = [([tuple(map(int, m)) for m in BOX.findall(a)], [tuple(map(int, m)) for m in BOX.findall(b)]) for a, b in pairs]
        same = [(a, b) for a, b in boxes if len(a) == len(b)]
        off = [abs(u - v) for a, b in same for p, q in zip(a, b) for u, v in zip(p, q)]
        out.update(boxes_right=len(same) / len(boxes), box_error=sum(off) / max(1, len(off)))
    told = [(cells(a), cells(b)) for a, b in pairs if "<td>" in a]
    if told:
        right = sum(sum(x == y for x, y in zip(a, b)) if len(a) == len(b) else 0 for a, b in told)
        out.update(cells=right / max(1, sum(len(a) for a, _ in told)))
    return out


@torch.no_grad()
def report(model, tok, fonts, n, device, out, log, most=1100):
    """Reads n pages a set with the training model, without an n-gram guard."""
    dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
    atlas = render.Atlas(fonts, device)
    model = model.to(dtype).eval()
    results, samples = {}, []
    for k, (name, kind, size, grid) in enumerate(SETS):
        g = Generator(500 + k, tok, fonts, held=True)
        pages = [make_page(g, name, size, kind) for _ in range(n)]
        tokens = []
        for i in range(0, n, 16):
            grey = torch.cat([draw(atlas, p, device, random.Random(i) if j % 2 else None) for j, p in enumerate(pages[i:i + 16])])
            whole = model.view(render.whole_view(grey, 1024).to(dtype))[1]
            tiles = None
            if grid:
                t = render.tile_views(grey, grid).to(dtype)
                tiles = torch.cat([model.view(t[j:j + 32])[1] for j in range(0, len(t), 32)])
            tokens.append(model.page_tokens(whole, tiles))
        prompt = tok.encode(T.PROMPT_GROUND if name == "ground" else T.PROMPT_FREE)
        read = [tok.decode(ids) for ids in generate(model, torch.cat(tokens), prompt, tok.eos, 120 if name == "line" else most)]
        pairs = [(p["text"], r) for p, r in zip(pages, read)]
        results["%s_%s" % (name, kind)] = f = figures(pairs)
        log("EVAL", name, kind, json.dumps({a: round(b, 4) for a, b in f.items()}))
        samples += [dict(set=name, kind=kind, said=a, read=b) for a, b in pairs[:6]]
        with open(out + "/evaluation.json", "w") as f:
            json.dump(dict(results=results, samples=samples), f, indent=1, ensure_ascii=False)
    return results


DRAWN_SETS = ["line", "para", "full", "ground", "table"]


def draw_sets(args):
    from PIL import Image
    fonts = Fonts(args.assets, held=True, workers=os.cpu_count())
    atlas, device = render.Atlas(fonts, "cpu"), torch.device("cpu")
    os.makedirs(args.out, exist_ok=True)
    for k, name in enumerate(DRAWN_SETS):
        g = Generator(9000 + k, None, fonts, held=True)
        for i in range(args.pages):
            r = g.r
            if name == "line":
                size = (1024, r.randint(40, 110))
            else:
                size = r.choice([(1000, 1414), (1240, 1754), (850, 1100), (1024, 1024), (1400, 1050), (760, 760)])
            torch.manual_seed(1000 * k + i)
            page = make_page(g, name, size, "whole" if max(size) <= 768 else "tiles")
            grey = draw(atlas, page, device, random.Random(i) if i % 2 else None)
            path = "%s/%s%03d" % (args.out, name, i)
            Image.fromarray((grey[0] * 255).round().byte().numpy()).save(path + ".png")
            with open(path + ".txt", "w") as f:
                f.write(page["text"])


def score(args):
    pairs = {}
    for f in sorted(os.listdir(args.out)):
        base, ending = os.path.splitext(f)
        path = os.path.join(args.out, base)
        if ending == ".txt" and os.path.exists(path + ".out"):
            with open(path + ".txt") as a, open(path + ".out", errors="replace") as b:
                pairs.setdefault(re.sub(r"\d+$", "", base), []).append((a.read().strip(), b.read().strip()))
    for name, p in pairs.items():
        print(name, json.dumps({a: round(b, 4) for a, b in figures(p).items()}))


def main():
    a = argparse.ArgumentParser()
    a.add_argument("what", choices=["pages", "score"])
    a.add_argument("--assets")
    a.add_argument("--out", required=True)
    a.add_argument("--pages", type=int, default=200)
    args = a.parse_args()
    (draw_sets if args.what == "pages" else score)(args)


if __name__ == "__main__":
    main()
