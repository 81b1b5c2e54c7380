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
_TICKED, _UNTICKED = "☒", "☐"
_WINGDINGS = {
    **dict.fromkeys((0x6F, 0x70, 0x71, 0x72, 0xA8), _UNTICKED),
    **dict.fromkeys((0x78, 0xFD, 0xFE), _TICKED),
    **dict(zip((0x6C, 0x6E, 0x9F, 0xA7, 0xD8, 0xE0, 0xFB, 0xFC), "●■•▪➢→✗✓", strict=True)),
}
_WINGDINGS_2 = {
    **dict.fromkeys((0x2A, 0x2B, 0xA3), _UNTICKED),
    **dict.fromkeys((0x51, 0x52, 0x53, 0x54), _TICKED),
    **dict(zip((0x4F, 0x50, 0x97), "✗✓●", strict=True)),
}
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
