"""Words to print: paragraphs from free texts, sentences from a small grammar, word soup, numbers, fields, formulas.

Nothing here knows about pages. All choices come from the random generator that is given, so a seed repeats a text.
"""
import string

from charset import SYMBOLS

FIELD_NAMES = """Invoice No.|Date|Total|Subtotal|Order|Customer|Phone|Ref|Page|Amount due|Email|Address|Account|Version|
Chapter|Name|Tax|Item|Quantity|Section|Due date|Delivery|Unit price|Balance|Room|Flight|Weight|Serial|Contact|Status"""
FIELD_NAMES = FIELD_NAMES.replace("\n", "").split("|")
MONTHS = "January February March April May June July August September October November December".split()
OPENERS = ["The", "A", "This", "Every", "No", "Our", "Their", "Another", "One", "Some"]
LINKS = ["of", "in", "with", "for", "under", "near", "from", "without", "between", "after", "on", "against"]
VERBS = """shows keeps finds makes needs brings follows leaves holds meets moves opens turns takes gives becomes carries
reads serves joins covers reaches counts allows returns replaces describes requires""".split()
NAMED = list(SYMBOLS.items())
GREEK = [n for s, n in NAMED if s.isalpha()]
RELATIONS = ["=", "=", "=", "<", ">", r"\leq", r"\geq", r"\neq", r"\approx"]


class Texts:
    def __init__(self, rnd, assets, held=False):
        self.r = rnd
        with open("%s/corpus%s.txt" % (assets, "_held" if held else "")) as f:
            self.corpus = f.read().split("\n")[:-1]
        with open(assets + "/words.txt") as f:
            self.words = f.read().split("\n")[:-1]
        self.narrow = None

    def choose_style(self):
        """Now and then a page lives on few words, so that the same phrases come back on it again and again: place, not
        wording, must say what is read next."""
        r = self.r
        self.narrow = [r.choice(self.words) for _ in range(r.randint(4, 30))] if r.random() < .12 else None

    # ---- words and numbers

    def word(self):
        r = self.r
        w = r.choice(self.narrow or self.words)
        x = r.random()
        return w.capitalize() if x < .12 else w.upper() if x < .17 else w

    def number(self):
        r = self.r
        x = r.random()
        if x < .3:
            return str(r.randint(0, 10 ** r.randint(1, 6)))
        if x < .45:
            return "%.*f" % (r.randint(1, 3), r.random() * 10 ** r.randint(0, 4))
        if x < .58:
            return r.choice("$$$£€") + format(r.randint(1, 10 ** r.randint(2, 6)), ",") + r.choice(["", ".%02d" % r.randint(0, 99)])
        if x < .66:
            return r.choice(["", "", "-", "+", "±"]) + "%d%%" % r.randint(0, 100)
        if x < .74:
            return "%02d/%02d/%d" % (r.randint(1, 12), r.randint(1, 28), r.randint(1950, 2030))
        if x < .80:
            return "%d-%02d-%02d" % (r.randint(1950, 2030), r.randint(1, 12), r.randint(1, 28))
        if x < .84:
            return "%d %s %d" % (r.randint(1, 28), r.choice(MONTHS), r.randint(1850, 2030))
        if x < .89:
            return "%d:%02d" % (r.randint(0, 23), r.randint(0, 59))
        if x < .92:
            return "%d%s" % (r.randint(0, 400), r.choice(["°", "°C", " kg", " mm", " km", " %", "th", "k"]))
        return "".join(r.choice(string.ascii_uppercase + string.digits) for _ in range(r.randint(3, 9)))

    def soup(self, n):
        r = self.r
        out = []
        for _ in range(n):
            w = self.word() if r.random() < .8 else self.number()
            x = r.random()
            if x < .10:
                w += ","
            elif x < .14:
                w += "."
            elif x < .16:
                w = "(" + w + ")"
            elif x < .18:
                w = '"' + w + '"'
            elif x < .22:
                w += r.choice(";:?!")
            elif x < .23:
                w = "[" + w + "]"
            elif x < .245:
                w += r.choice("@/&#*+=_~^<>{}|\\`§©®×÷½" + "éèêàâçäöüßñíóá") + self.word()
            elif x < .255:
                w += "-" + r.choice(self.words).lower()
            out.append(w)
        return " ".join(out)

    def sentence(self):
        r = self.r
        noun = lambda: r.choice(self.narrow or self.words).lower()
        s = "%s %s %s %s %s" % (r.choice(OPENERS), noun(), r.choice(VERBS), r.choice(["the", "a", "its", "no", "every"]), noun())
        while r.random() < .5 and len(s) < 140:
            s += " %s the %s" % (r.choice(LINKS), noun())
        if r.random() < .3:
            s += ", %s %s %s" % (r.choice(["and it", "but it", "so it", "which"]), r.choice(VERBS), noun())
        return s + r.choice("....?!")

    def address(self):
        r = self.r
        return "%d %s %s" % (r.randint(1, 999), r.choice(self.words).capitalize(), r.choice(["Street", "Road", "Avenue", "Lane"]))

    def field(self):
        r = self.r
        k = r.choice(FIELD_NAMES)
        if k == "Email":
            v = "%s%s%s@%s" % (r.choice(self.words).lower(), r.choice(["", ".", "_"]), r.choice(self.words).lower(),
                               r.choice(["example.com", "mail.org", "test.net"]))
        elif k in ("Phone", "Contact"):
            v = "+%d %03d %03d-%04d" % (r.randint(1, 99), r.randint(0, 999), r.randint(0, 999), r.randint(0, 9999))
        elif k in ("Customer", "Name"):
            v = r.choice(self.words).capitalize() + " " + r.choice(self.words).capitalize()
        elif k in ("Address", "Delivery"):
            v = self.address()
        else:
            v = self.number()
        return k + r.choice([": ", " ", ": "]) + v

    # ---- longer pieces

    def paragraph(self, limit):
        """At most limit characters, cut at a word."""
        r = self.r
        x = r.random()
        if x < .62:
            s = r.choice(self.corpus)
            while len(s) < limit * .6 and r.random() < .6:
                s += " " + r.choice(self.corpus)
            if r.random() < .25:
                s = s[r.randint(0, len(s) // 2):].lstrip()
        elif x < .75:
            s = " ".join(self.sentence() for _ in range(max(1, limit // 60)))
        elif x < .92:
            s = self.soup(r.randint(4, max(5, limit // 7)))
        else:
            s = ". ".join(self.field() for _ in range(r.randint(1, max(1, limit // 40)))) + "."
        if len(s) > limit:
            cut = s.rfind(" ", limit // 2, limit)
            s = s[:cut if cut > 0 else limit]
        if r.random() < .35:
            s = curly(s)
        return " ".join(s.split()) or "Empty"

    def phrase(self, most):
        r = self.r
        if self.narrow is None and r.random() < .55:
            w = r.choice(self.corpus).split()
            i = r.randint(0, max(0, len(w) - 3))
            return " ".join(w[i:i + r.randint(1, most)])
        return " ".join(self.word() for _ in range(r.randint(1, most)))

    def heading(self):
        r = self.r
        s = self.phrase(7).strip('.,;:"()-') or "Heading"
        x = r.random()
        if x < .35:
            s = " ".join(w[:1].upper() + w[1:] for w in s.split())
        elif x < .45:
            s = s.upper()
        elif x < .8:
            s = s[:1].upper() + s[1:]
        if r.random() < .25:
            s = r.choice(["%d. " % r.randint(1, 20), "%d.%d " % (r.randint(1, 12), r.randint(1, 9)),
                          "Chapter %d: " % r.randint(1, 30), "%d " % r.randint(1, 15)]) + s
        return s

    # ---- formulas: a tree of ("atom", text, drawn), ("sup", a, b), ("sub", a, b), ("frac", a, b), ("sqrt", a), ("row", ...)

    def atom(self):
        r = self.r
        x = r.random()
        if x < .5:
            c = r.choice("abcdefghkmnpqrstuvwxyzABCDEFGHKLMNPQRSTXYZ")
            return ("atom", c, c, True)
        if x < .75:
            n = str(r.randint(0, 10 ** r.randint(1, 2)))
            return ("atom", n, n, False)
        drawn, name = r.choice([p for p in NAMED if p[0].isalpha()])
        return ("atom", name, drawn, True)

    def term(self, depth):
        r = self.r
        x = r.random()
        if depth <= 0 or x < .45:
            return self.atom()
        if x < .62:
            return ("sup", self.atom(), self.term(depth - 2))
        if x < .75:
            return ("sub", self.atom(), self.term(depth - 2))
        if x < .88:
            return ("frac", self.expression(depth - 2), self.expression(depth - 2))
        if x < .94:
            return ("sqrt", self.expression(depth - 2))
        return ("row", [("atom", "(", "(", False), self.expression(depth - 1), ("atom", ")", ")", False)])

    def expression(self, depth):
        r = self.r
        row = [self.term(depth)]
        for _ in range(r.choice([0, 0, 1, 1, 2] if depth > 0 else [0, 0, 1])):
            op = r.choice(["+", "+", "-", "-", r"\cdot"])
            row += [("atom", op, {"-": "–", r"\cdot": "·"}.get(op, op), False), self.term(depth - 1)]
        return ("row", row)

    def formula(self):
        r = self.r
        rel = r.choice(RELATIONS)
        drawn = {v: k for k, v in SYMBOLS.items()}.get(rel, rel)
        return ("row", [self.expression(3), ("atom", rel, drawn, False), self.expression(2)])


def latex(tree):
    """A formula tree as LaTeX, blanks between the parts of a row."""
    kind = tree[0]
    if kind == "atom":
        return tree[1]
    if kind == "row":
        return " ".join(latex(t) for t in tree[1])
    if kind == "sqrt":
        return r"\sqrt{%s}" % latex(tree[1])
    a, b = latex(tree[1]), latex(tree[2])
    if kind == "frac":
        return r"\frac{%s}{%s}" % (a, b)
    mark = "^" if kind == "sup" else "_"
    return "%s%s%s" % (a, mark, b if len(b) == 1 else "{%s}" % b)


def curly(s):
    """Typewriter quotes and dashes to printed ones."""
    out = []
    for i, c in enumerate(s):
        opening = i == 0 or s[i - 1] in " ("
        out.append({'"': "“" if opening else "”", "'": "‘" if opening else "’"}.get(c, c))
    return "".join(out).replace(" -- ", " – ").replace("--", "—").replace("...", "…")
