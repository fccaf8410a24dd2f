"""The tokenizer: byte-level BPE in the file format of the big model's, trained on our texts.

python3 tokenizer.py ASSETS tokenizer.json
"""
import json
import random
import re
import sys

BOS, EOS, PAD = "<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>", "<｜▁pad▁｜>"
SPECIAL = [BOS, EOS, PAD, "<image>", "<|ref|>", "<|/ref|>", "<|det|>", "<|/det|>", "<|grounding|>",
           "<td>", "</td>", "<tr>", "</tr>"]
VOCAB_SIZE = 2048
# The three splits of the big model's tokenizer: digits, Chinese and Japanese, then words, punctuation and blanks.
SPLITS = [r"\p{N}{1,3}", "[一-龥぀-ゟ゠-ヿ]+",
          r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"
          r"| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"]

PROMPT_FREE = "\nFree OCR."
PROMPT_GROUND = "\n<|grounding|>Convert the document to markdown."
PROMPT_LOCATE = "\nLocate <|ref|>%s<|/ref|> in the image."


class Tokenizer:
    """Text to ids and back. Ids of the special tokens are attributes."""

    def __init__(self, path):
        from tokenizers import Tokenizer as Backend
        self.backend = Backend.from_file(path)
        self.n = self.backend.get_vocab_size()
        self.bos, self.eos, self.pad, self.image = (self.backend.token_to_id(t) for t in (BOS, EOS, PAD, "<image>"))

    def encode(self, text):
        return self.backend.encode(text, add_special_tokens=False).ids

    def encode_spans(self, text):
        """Ids, and for each the offset of its first character."""
        e = self.backend.encode(text, add_special_tokens=False)
        return e.ids, [a for a, _ in e.offsets]

    def decode(self, ids):
        return self.backend.decode(ids, skip_special_tokens=False)


def train(texts, path):
    """Digits stay single tokens: the trainer never sees two side by side."""
    from tokenizers import Regex, Tokenizer as Backend, decoders, models, normalizers, pre_tokenizers, processors, trainers
    t = Backend(models.BPE())
    t.normalizer = normalizers.Sequence([])
    t.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex(s), "isolated") for s in SPLITS]
        + [pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    t.decoder = decoders.ByteLevel()
    t.post_processor = processors.ByteLevel(trim_offsets=False)
    markup = re.compile("|".join(re.escape(s) for s in SPECIAL))
    pieces = [p for text in texts for p in markup.split(re.sub(r"(?<=\d)(?=\d)", "\n\n\n", text)) if p]
    t.train_from_iterator(pieces, trainers.BpeTrainer(
        vocab_size=VOCAB_SIZE, min_frequency=2, special_tokens=SPECIAL, show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    t.save(path)


def main():
    from pages import Generator
    from glyphs import Fonts
    generator = Generator(5, None, Fonts(sys.argv[1], rasters=False))
    rnd = random.Random(3)
    texts = [generator.text.paragraph(700) for _ in range(12000)]
    texts += [generator.text.soup(40) for _ in range(1500)]
    for _ in range(3000):
        texts.append(generator.page((900, 1200), 26, 2500, ground=rnd.random() < .3)["text"])
    train(texts, sys.argv[2])
    tok = Tokenizer(sys.argv[2])
    held = [generator.text.paragraph(700) for _ in range(300)]
    print(tok.n, "tokens,", sum(map(len, held)) / sum(len(tok.encode(h)) for h in held), "characters a token of text,",
          sum(map(len, texts[-200:])) / sum(len(tok.encode(h)) for h in texts[-200:]), "of pages")
    assert all(tok.decode(tok.encode(h)) == h for h in held)
    with open(sys.argv[2], encoding="utf-8") as f:
        assert json.load(f)["model"]["type"] == "BPE"


if __name__ == "__main__":
    main()
