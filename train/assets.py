"""Collects the fonts and the texts from Debian packages:  python3 assets.py OUT [UNPACKED]

UNPACKED is a folder with the packages below already unpacked; without it they are fetched with apt-get and unpacked
under OUT/packages. Fonts are cut down to the characters of charset.py. TEXTS.md lists sources and licences.
OUT gets fonts/*, fonts.json, corpus.txt, corpus_held.txt and words.txt.
"""
import gzip
import json
import os
import random
import re
import subprocess
import sys

from charset import DRAWN

TEXT_PACKAGES = ["sqlite3-doc", "postgresql-doc-15", "dict-devil", "bible-kjv", "bible-kjv-text", "wamerican"]
FONT_PACKAGES = """fonts-dejavu-core fonts-dejavu-extra fonts-liberation2 fonts-roboto-unhinted fonts-lato fonts-noto-core
fonts-cantarell fonts-linuxlibertine fonts-ebgaramond fonts-texgyre fonts-cmu fonts-sil-charis fonts-sil-gentiumplus
fonts-sil-andika fonts-hack fonts-inconsolata fonts-courier-prime fonts-jetbrains-mono fonts-inter fonts-open-sans
fonts-crosextra-carlito fonts-crosextra-caladea fonts-go fonts-cabin fonts-quattrocento fonts-oldstandard fonts-stix
fonts-comic-neue fonts-karla fonts-b612 fonts-clear-sans fonts-goudybookletter fonts-vollkorn fonts-gfs-didot
fonts-lindenhill fonts-fanwood""".split()

# family: regular, bold, italic (those that exist); weight is how often the family is drawn
FAMILIES = {
    "DejaVuSans": ("DejaVuSans.ttf DejaVuSans-Bold.ttf DejaVuSans-Oblique.ttf", 2),
    "DejaVuSerif": ("DejaVuSerif.ttf DejaVuSerif-Bold.ttf DejaVuSerif-Italic.ttf", 2),
    "DejaVuSansMono": ("DejaVuSansMono.ttf DejaVuSansMono-Bold.ttf", 1),
    "LiberationSans": ("LiberationSans-Regular.ttf LiberationSans-Bold.ttf LiberationSans-Italic.ttf", 4),
    "LiberationSerif": ("LiberationSerif-Regular.ttf LiberationSerif-Bold.ttf LiberationSerif-Italic.ttf", 4),
    "LiberationMono": ("LiberationMono-Regular.ttf LiberationMono-Bold.ttf", 2),
    "Roboto": ("Roboto-Regular.ttf Roboto-Bold.ttf Roboto-Italic.ttf", 2),
    "RobotoLight": ("Roboto-Light.ttf Roboto-Medium.ttf", 1),
    "RobotoCondensed": ("RobotoCondensed-Regular.ttf RobotoCondensed-Bold.ttf", 1),
    "Lato": ("Lato-Regular.ttf Lato-Bold.ttf Lato-Italic.ttf", 2),
    "NotoSans": ("NotoSans-Regular.ttf NotoSans-Bold.ttf NotoSans-Italic.ttf", 2),
    "NotoSerif": ("NotoSerif-Regular.ttf NotoSerif-Bold.ttf NotoSerif-Italic.ttf", 2),
    "Cantarell": ("Cantarell-Regular.otf Cantarell-Bold.otf", 1),
    "Libertine": ("LinLibertine_R.otf LinLibertine_RB.otf LinLibertine_RI.otf", 2),
    "Biolinum": ("LinBiolinum_R.otf LinBiolinum_RB.otf LinBiolinum_RI.otf", 1),
    "EBGaramond": ("EBGaramond12-Regular.otf EBGaramond12-Bold.otf EBGaramond12-Italic.otf", 2),
    "Termes": ("texgyretermes-regular.otf texgyretermes-bold.otf texgyretermes-italic.otf", 3),
    "Pagella": ("texgyrepagella-regular.otf texgyrepagella-bold.otf texgyrepagella-italic.otf", 2),
    "Schola": ("texgyreschola-regular.otf texgyreschola-bold.otf texgyreschola-italic.otf", 2),
    "Bonum": ("texgyrebonum-regular.otf texgyrebonum-bold.otf texgyrebonum-italic.otf", 1),
    "Cursor": ("texgyrecursor-regular.otf texgyrecursor-bold.otf", 1),
    "Adventor": ("texgyreadventor-regular.otf texgyreadventor-bold.otf", 1),
    "CMU": ("cmunrm.ttf cmunbx.ttf cmunti.ttf", 3),
    "CMUSans": ("cmunss.ttf cmunsx.ttf cmunsi.ttf", 1),
    "CMUTypewriter": ("cmuntt.ttf cmuntb.ttf", 1),
    "Charis": ("CharisSIL-Regular.ttf CharisSIL-Bold.ttf CharisSIL-Italic.ttf", 2),
    "Andika": ("Andika-Regular.ttf Andika-Bold.ttf", 1),
    "Hack": ("Hack-Regular.ttf Hack-Bold.ttf", 1),
    "Inconsolata": ("Inconsolata.otf", 1),
    "CourierPrime": ("Courier Prime.otf|Courier Prime Bold.otf|Courier Prime Italic.otf", 2),
    "JetBrainsMono": ("JetBrainsMono-Regular.ttf JetBrainsMono-Bold.ttf", 1),
    "Inter": ("Inter-Regular.otf Inter-Bold.otf Inter-Italic.otf", 2),
    "Go": ("Go-Regular.ttf Go-Bold.ttf Go-Italic.ttf", 1),
    "Cabin": ("Cabin-Regular.otf Cabin-Bold.otf Cabin-Italic.otf", 1),
    "Quattrocento": ("Quattrocento-Regular.otf", 1),
    "OldStandard": ("OldStandard-Regular.ttf OldStandard-Bold.ttf OldStandard-Italic.ttf", 2),
    "STIX": ("STIX-Regular.otf STIX-Bold.otf STIX-Italic.otf", 2),
    "ComicNeue": ("ComicNeue-Regular.otf ComicNeue-Bold.otf", 1),
    "Karla": ("Karla-Regular.otf Karla-Bold.otf Karla-Italic.otf", 1),
    "B612": ("B612-Regular.otf B612-Bold.otf", 1),
    "ClearSans": ("ClearSans-Regular.ttf ClearSans-Bold.ttf ClearSans-Italic.ttf", 1),
    "Goudy": ("GoudyBookletter1911.otf", 1),
    "Didot": ("GFSDidot.otf GFSDidotBold.otf GFSDidotItalic.otf", 1),
    "LindenHill": ("LindenHill.otf LindenHill-Italic.otf", 1),
    "Fanwood": ("FanwoodText.otf FanwoodText-Italic.otf", 1),
}
HELD_FAMILIES = {
    "OpenSans": ("OpenSans-Regular.ttf OpenSans-Bold.ttf OpenSans-Italic.ttf", 1),
    "Carlito": ("Carlito-Regular.ttf Carlito-Bold.ttf Carlito-Italic.ttf", 1),
    "Caladea": ("Caladea-Regular.ttf Caladea-Bold.ttf Caladea-Italic.ttf", 1),
    "Gentium": ("GentiumPlus-Regular.ttf GentiumPlus-Bold.ttf GentiumPlus-Italic.ttf", 1),
    "Heros": ("texgyreheros-regular.otf texgyreheros-bold.otf texgyreheros-italic.otf", 1),
    "HerosCondensed": ("texgyreheroscn-regular.otf texgyreheroscn-bold.otf", 1),
    "Vollkorn": ("Vollkorn-Regular.ttf Vollkorn-Bold.ttf Vollkorn-Italic.ttf", 1),
}
HELD_PARAGRAPHS = 700
PARAGRAPHS_PER_SOURCE = 7000


def fetch(folder):
    os.makedirs(folder, exist_ok=True)
    subprocess.run(["apt-get", "download", "-qq", *TEXT_PACKAGES, *FONT_PACKAGES], cwd=folder, check=True)
    for name in sorted(os.listdir(folder)):
        if name.endswith(".deb"):
            subprocess.run(["dpkg", "-x", name, "."], cwd=folder, check=True)


def collect_fonts(unpacked, out):
    files = {}
    for root, _, names in os.walk(unpacked):
        for name in names:
            if name.endswith((".ttf", ".otf")):
                files.setdefault(name, os.path.join(root, name))
    os.makedirs(out + "/fonts", exist_ok=True)
    listed = []
    for held, families in ((False, FAMILIES), (True, HELD_FAMILIES)):
        for family, (names, weight) in families.items():
            faces = []
            for name in names.split("|") if "|" in names else names.split():
                target = name.replace(" ", "")
                subprocess.run([sys.executable, "-m", "fontTools.subset", files[name], "--text=" + "".join(DRAWN) + " ",
                                "--output-file=%s/fonts/%s" % (out, target), "--layout-features=", "--notdef-outline",
                                "--drop-tables+=GSUB,GPOS,GDEF,MATH,kern,FFTM,DSIG", "--no-hinting", "--desubroutinize"],
                               check=True, stderr=subprocess.DEVNULL)
                faces.append(target)
            listed.append({"family": family, "faces": faces, "weight": weight, "held": held})
    with open(out + "/fonts.json", "w") as f:
        json.dump(listed, f, indent=1)


PLAIN = {"‘": "'", "’": "'", "“": '"', "”": '"', "–": "-", "—": "--", "…": "...", "\xa0": " ", "−": "-", "‐": "-"}


def plain(text):
    for a, b in PLAIN.items():
        text = text.replace(a, b)
    return " ".join(text.split())


def readable(text):
    """Prose of a useful length: mostly letters, nothing that looks like code."""
    if not 50 <= len(text) <= 1200 or not text.isascii() or re.search(r"[<>|{}\\`]|__|\.\.\.\.|----|\*\*\*", text):
        return False
    return sum(c.isalpha() or c == " " for c in text) > 0.85 * len(text)


def html_paragraphs(paths):
    from bs4 import BeautifulSoup
    for path in paths:
        with open(path, encoding="utf-8", errors="replace") as f:
            page = BeautifulSoup(f.read(), "lxml")
        for node in page.find_all(["p", "li", "dd"]):
            if not node.find("p"):
                yield node.get_text()


def walk(folder, ending):
    return sorted(os.path.join(r, n) for r, _, names in os.walk(folder) for n in names if n.endswith(ending))


def sources(unpacked):
    share = unpacked + "/usr/share/"
    yield "sqlite", html_paragraphs(walk(share + "doc/sqlite3", ".html"))
    yield "postgresql", html_paragraphs(walk(share + "doc/postgresql-doc-15/html", ".html"))
    with gzip.open(share + "dictd/devil.dict.dz", "rt", encoding="latin-1") as f:
        yield "devil", re.split(r"\n\s*\n", f.read())
    text = subprocess.run([unpacked + "/usr/bin/bible", "-l10000", "-p", unpacked + "/usr/lib", "gen1:1-rev22:21"],
                          stdout=subprocess.PIPE, check=False).stdout.decode("ascii", "replace")
    yield "bible", [re.sub(r"^\s*(\S+ )?\d+(:\d+)?\s+", "", v) for v in text.split("\n")]


def collect_texts(unpacked, out):
    rnd = random.Random(1)
    corpus = []
    for name, paragraphs in sources(unpacked):
        kept = sorted({p for p in map(plain, paragraphs) if readable(p)})
        rnd.shuffle(kept)
        kept = kept[:PARAGRAPHS_PER_SOURCE]
        print(name, len(kept), "paragraphs,", sum(map(len, kept)), "characters")
        corpus += kept
    rnd.shuffle(corpus)
    for name, part in (("corpus_held", corpus[:HELD_PARAGRAPHS]), ("corpus", corpus[HELD_PARAGRAPHS:])):
        with open("%s/%s.txt" % (out, name), "w") as f:
            f.write("\n".join(part) + "\n")
    with open(unpacked + "/usr/share/dict/american-english", encoding="utf-8") as f:
        words = [w for w in map(str.strip, f) if len(w) > 1 and w.isascii() and not w.endswith("'s")]
    with open(out + "/words.txt", "w") as f:
        f.write("\n".join(words) + "\n")
    print(len(words), "words")


def main():
    out = sys.argv[1]
    unpacked = sys.argv[2] if len(sys.argv) > 2 else out + "/packages"
    os.makedirs(out, exist_ok=True)
    if len(sys.argv) <= 2:
        fetch(unpacked)
    collect_texts(unpacked, out)
    collect_fonts(unpacked, out)


if __name__ == "__main__":
    main()
