"""The recipe in small: a few pages, a few steps of the tiny model on a processor, the export.  python3 test_recipe.py

Needs PyTorch, Pillow, tokenizers, safetensors and a DejaVu font; without them it is skipped. Takes about half a minute.
"""
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
FONT = "/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf"
try:
    import numpy as np
    import torch
    import PIL  # noqa: F401
    import safetensors.torch
    import tokenizers  # noqa: F401
    MISSING = None if os.path.exists(FONT) else "no DejaVu font"
except ImportError as e:
    MISSING = str(e)


def make_assets(folder):
    os.makedirs(folder + "/fonts")
    shutil.copy(FONT, folder + "/fonts")
    with open(folder + "/fonts.json", "w") as f:
        json.dump([dict(family="DejaVuSans", faces=["DejaVuSans.ttf"], weight=1, held=h) for h in (False, True)], f)
    r = random.Random(1)
    words = ["".join(r.choice("abcdefghilmnoprstu") for _ in range(r.randint(2, 9))) for _ in range(200)]
    sentences = [" ".join(r.choice(words) for _ in range(20)).capitalize() + "." for _ in range(60)]
    for name, lines in (("words", words), ("corpus", sentences), ("corpus_held", sentences)):
        with open("%s/%s.txt" % (folder, name), "w") as f:
            f.write("\n".join(lines) + "\n")


@unittest.skipIf(MISSING, MISSING)
class Recipe(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp()
        make_assets(cls.folder + "/assets")
        from glyphs import Fonts
        cls.fonts = Fonts(cls.folder + "/assets")
        from tokenizer import Tokenizer
        cls.tok = Tokenizer(HERE + "/tokenizer.json")

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    def test_pages_say_what_they_show(self):
        from charset import CHARS
        from pages import Generator
        g = Generator(7, self.tok, self.fonts)
        for i in range(30):
            p = g.page((900, 1200), 22, 1500, ground=i % 2 == 0, skew=2.0)
            self.assertEqual(self.tok.decode(p["ids"][:-1]), p["text"])
            self.assertEqual(len(p["places"]), len(p["ids"]))
            self.assertTrue((p["chars"][:, 2] >= 1).all() and (p["chars"][:, 2] <= len(CHARS)).all())
            self.assertGreater(len(p["glyphs"]), 0)

    def test_formula_text(self):
        from pages import Draft, Generator
        from texts import latex
        g = Generator(3, None, self.fonts)
        g.style()
        for _ in range(50):
            tree, d = g.text.formula(), Draft()
            _, up, _, items, bars, _ = g.formula_box(tree, 0, 24)
            g.formula_text(d, tree, iter(g.place_formula(d, items, bars, 0, 10, 10 + up)))
            self.assertEqual("".join(d.text), latex(tree))
            self.assertTrue(all(len(t) == len(p) for t, p in zip(d.text, d.places)))

    def test_characters_lie_on_their_ink(self):
        import evaluate
        import render
        from pages import Generator
        atlas = render.Atlas(self.fonts, "cpu")
        g = Generator(4, None, self.fonts)
        for skew in (0, 2.0, 2.0):
            p = g.page((900, 1273), 22, 1500, skew=skew)
            p = dict(p, inverse=p["inverse"][:0])
            chars = torch.from_numpy(np.concatenate([np.zeros((len(p["chars"]), 1), np.float32), p["chars"]], 1))
            views = render.tile_views(evaluate.draw(atlas, p, "cpu"), (2, 3))
            ink = ((1 - views) / 2).view(6, 48, 16, 48, 4, 4).permute(0, 1, 3, 4, 2, 5).reshape(6, -1, 64).mean(2)
            there = render.tile_characters(chars, p["size"], 1, (2, 3))[0].reshape(6, -1) > 0
            self.assertGreater(ink[there].mean(), 2 * ink[~there].mean())

    def test_relative_tables_are_what_attention_adds(self):
        from model import SamAttention
        torch.manual_seed(1)
        a = SamAttention(32, 2, 4, [0, 1 / 3, 2 / 3, 1.0]).eval()
        x = torch.randn(2, 16, 32)
        rows, columns = a.tables()
        q, k, v = a.qkv(x).view(2, 16, 3, 2, 16).permute(2, 0, 3, 1, 4)
        at = torch.arange(16)
        dy = at[:, None] // 4 - at[None] // 4 + 3
        dx = at[:, None] % 4 - at[None] % 4 + 3
        bias = torch.einsum("bhqd,qkd->bhqk", q, rows[dy]) + torch.einsum("bhqd,qkd->bhqk", q, columns[dx])
        w = (q @ k.transpose(-1, -2) / 4 + bias).softmax(-1)
        wanted = a.proj((w @ v).transpose(1, 2).reshape(2, 16, 32))
        self.assertLess((a(x, a.keys4) - wanted).abs().max().item(), 1e-5)

    def test_tiles_follow_the_big_models_rule(self):
        from render import choose_grid
        for size, grid in (((1240, 1754), (2, 3)), ((1000, 1000), (2, 2)), ((1920, 1080), (2, 1)), ((800, 600), (3, 2)), ((700, 700), None)):
            self.assertEqual(choose_grid(*size), grid)

    def test_training_and_export(self):
        out = self.folder + "/run"
        subprocess.run([sys.executable, HERE + "/train.py", "--assets", self.folder + "/assets", "--out", out, "--time", "1", "--size", "tiny",
                        "--device", "cpu", "--workers", "1", "--slots", "2", "--scale", "96", "--steps-before-clock", "2", "--from", "0.2"],
                       check=True, timeout=300, stdout=subprocess.DEVNULL)
        subprocess.run([sys.executable, HERE + "/export.py", out + "/last.pt", self.folder + "/model", "--size", "tiny"], check=True)
        tensors = safetensors.torch.load_file(self.folder + "/model/model.safetensors")
        self.assertEqual(tuple(tensors["model.sam_model.blocks.1.attn.rel_pos_h"].shape), (127, 16))
        self.assertEqual(tuple(tensors["model.qwen2_model.query_768.weight"].shape), (144, 64))
        self.assertTrue(all(torch.isfinite(t.float()).all() for t in tensors.values()))
        with open(self.folder + "/model/config.json") as f:
            self.assertEqual(json.load(f)["text_config"]["vocab_size"], 2048)


if __name__ == "__main__":
    sys.path.insert(0, HERE)
    unittest.main()
