"""The characters that the model learns to read, and how formulas name some of them."""

ASCII = [chr(c) for c in range(33, 127)]
TYPOGRAPHY = list("•–—‘’“”…▪£€©®°§×±÷½")
ACCENTED = list("éèêàâçäöüßñíóáÉÜÖÄ")
# Symbols that occur in formulas alone, with their LaTeX names.
SYMBOLS = {
    "α": r"\alpha", "β": r"\beta", "γ": r"\gamma", "δ": r"\delta", "ε": r"\epsilon", "θ": r"\theta",
    "λ": r"\lambda", "μ": r"\mu", "π": r"\pi", "ρ": r"\rho", "σ": r"\sigma", "τ": r"\tau", "φ": r"\phi",
    "ω": r"\omega", "Γ": r"\Gamma", "Δ": r"\Delta", "Σ": r"\Sigma", "Ω": r"\Omega", "∑": r"\sum",
    "∫": r"\int", "√": r"\sqrt", "≤": r"\leq", "≥": r"\geq", "≠": r"\neq", "≈": r"\approx",
    "∞": r"\infty", "∂": r"\partial", "→": r"\to", "·": r"\cdot",
}
LIGATURES = {"fi": "ﬁ", "fl": "ﬂ"}

CHARS = ASCII + TYPOGRAPHY + ACCENTED + list(SYMBOLS)
DRAWN = CHARS + list(LIGATURES.values())  # every glyph that an atlas may hold
N_CLASSES = len(CHARS) + 1                # 0 stands for "no character"
CLASS = {c: i + 1 for i, c in enumerate(CHARS)}
CLASS.update({"ﬁ": CLASS["f"], "ﬂ": CLASS["f"]})
