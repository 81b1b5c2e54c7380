"""Characters of Word's symbol fonts, which have codes of their own."""

# ruff: noqa: RUF001  Greek letters and mathematical signs that look like others

from __future__ import annotations

_SYMBOL = dict(
    zip(
        [*range(0x41, 0x5B), *range(0x61, 0x7B), *range(0xA1, 0xF0), 0xF2],
        "ΑΒΧΔΕΦΓΗΙϑΚΛΜΝΟΠΘΡΣΤΥςΩΞΨΖαβχδεφγηιϕκλμνοπθρστυϖωξψζ"
        "ϒ′≤⁄∞ƒ♣♦♥♠↔←↑→↓°±″≥×∝∂•÷≠≡≈…⏐⎯↵ℵℑℜ℘⊗⊕∅∩∪⊃⊇⊄⊂⊆∈∉∠∇®©™∏√⋅¬∧∨⇔⇐⇑⇒⇓◊〈®©™∑⎛⎜⎝⎡⎢⎣⎧⎨⎩⎪∫",
        strict=False,
    )
)
_WINGDINGS = dict(zip(b"opqr\xa8x\xfd\xfeln\x9f\xa7\xd8\xe0\xfb\xfc", "☐☐☐☐☐☒☒☒●■•▪➢→✗✓", strict=True))
_WINGDINGS_2 = dict(zip(b"*+\xa3QRSTOP\x97", "☐☐☐☒☒☒☒✗✓●", strict=True))
_FONTS = {"symbol": _SYMBOL, "wingdings": _WINGDINGS, "wingdings 2": _WINGDINGS_2}
_PRIVATE_CODES = range(0xF000, 0xF100)
"""Private-use codes under which Word stores the characters of a symbol font."""


def decode_symbols(text: str, font: str) -> str:
    r"""Return a text with the characters of a symbol font as Unicode; a text in another font is unchanged.

    >>> decode_symbols("\uf0b1", "Symbol"), decode_symbols("\uf0fe", "Wingdings"), decode_symbols("a", "Arial")
    ('±', '☒', 'a')
    """
    symbols = _FONTS.get(font.lower())
    if symbols is None:
        return text
    return "".join(
        symbols.get(code - _PRIVATE_CODES.start if code in _PRIVATE_CODES else code, chr(code))
        for code in map(ord, text)
    )


def decode_symbol(code: str, font: str) -> str:
    """Return the character with a hexadecimal code in a symbol font; an empty string for an invalid code.

    >>> decode_symbol("F0A3", "Symbol"), decode_symbol("ZZZZ", "Symbol")
    ('≤', '')
    """
    try:
        return decode_symbols(chr(int(code, 16)), font)
    except (ValueError, OverflowError):
        return ""
