"""Which characters a person can tell apart by eye. Tables over Unicode properties; knows no markup and no product.

Fails towards distrust: what these tables do not name as readable counts as hidden. `str.isprintable` is not enough,
it lets fillers, variation selectors, blank braille and more through.
"""

import re
import unicodedata
from functools import lru_cache

# Letters, digits, punctuation and symbols have a shape of their own. Marks do not: they change their neighbour.
READABLE_CATEGORIES = frozenset(
    ["Lu", "Ll", "Lt", "Lm", "Lo", "Nd", "Nl", "No", "Pc", "Pd", "Ps", "Pe", "Pi", "Pf", "Po", "Sm", "Sc", "Sk", "So"]
)
# Default_Ignorable_Code_Point, and what renderers draw as nothing though its category says letter or symbol.
INVISIBLE_RANGES = (
    (0x00AD, 0x00AD), (0x034F, 0x034F), (0x061C, 0x061C), (0x115F, 0x1160), (0x17B4, 0x17B5), (0x180B, 0x180F),
    (0x200B, 0x200F), (0x202A, 0x202E), (0x2060, 0x206F), (0x2800, 0x2800), (0x3164, 0x3164), (0xFE00, 0xFE0F),
    (0xFEFF, 0xFEFF), (0xFFA0, 0xFFA0), (0xFFF0, 0xFFFC), (0x16FE4, 0x16FE4), (0x1BCA0, 0x1BCA3),
    (0x1D159, 0x1D159), (0x1D173, 0x1D17A), (0xE0000, 0xE0FFF),
)  # fmt: skip
# ASCII, and what passes for it. NFKC adds the rest: fullwidth, mathematical, enclosed and so on. Escapes, so that
# a reader of this file sees which is which.
_LETTERS = {
    ".": "\u0660\u06f0",
    "3": "\u0417",
    "A": "\u0391\u0410\u13aa\u1d00",
    "B": "\u0299\u0392\u0412\u13f4\ua4d0",
    "C": "\u03f9\u0421\u13df\u2ca4\ua4da",
    "D": "\u13a0\u1d05\ua4d3",
    "E": "\u0395\u0415\u13ac\u1d07\ua4f0",
    "F": "\ua4dd",
    "G": "\u13c0\ua4d6",
    "H": "\u029c\u0397\u041d\u13bb\ua4e7",
    "I": "\u026a\u0399\u0406\ua4f2",
    "J": "\u0408\u13ab\u1d0a\ua4d9",
    "K": "\u039a\u041a\u13e6\u1d0b\ua4d7",
    "L": "\u029f\u053c\u13de\ua4e1",
    "M": "\u039c\u041c\u13b7\u1d0d\ua4df",
    "N": "\u0274\u039d\ua4e0",
    "O": "\u039f\u041e\u0555\u2c9e\ua4f3",
    "P": "\u03a1\u0420\u13e2\u1d18\ua4d1",
    "Q": "\u051a",
    "R": "\u0280\u13d2\ua4e3",
    "S": "\u0405\u054f\u13da\ua4e2\ua731",
    "T": "\u03a4\u0422\u13a2\u1d1b\u2ca6\ua4d4",
    "U": "\u054d\ua4f4",
    "V": "\u0474\u13d9\ua4e6",
    "W": "\u051c\u13b3\ua4ea",
    "X": "\u03a7\u0425\u2cac\ua4eb",
    "Y": "\u03a5\u0423\u2cae\ua4ec",
    "Z": "\u0396\u13c3\ua4dc",
    "a": "\u0251\u03b1\u0430",
    "c": "\u03f2\u0441\u1d04\u2ca5",
    "d": "\u0501",
    "e": "\u0435",
    "g": "\u0261\u0581",
    "h": "\u04bb\u0570",
    "i": "\u0131\u0269\u03b9\u0456\u13a5",
    "j": "\u03f3\u0458\u0575",
    "l": "\u0196\u04c0\u04cf\u07ca\u16c1\u2d4f",
    "n": "\u0578",
    "o": "\u03bf\u043e\u0585\u0966\u09e6\u0a66\u0ae6\u0be6\u0c66\u0ce6\u0d66\u1d0f\u2c9f\u3007",
    "p": "\u03c1\u0440\u0584\u2ca3",
    "q": "\u051b\u0566",
    "s": "\u0455",
    "u": "\u03c5\u057d\u1d1c",
    "v": "\u03bd\u0475\u1d20",
    "w": "\u0461\u051d\u1d21",
    "x": "\u0445",
    "y": "\u03b3\u0443",
    "z": "\u1d22",
    "|": "\u01c0",
}
_MARKS = {
    "!": "\u01c3\u203c\uff01",
    '"': "\u02ba\u201c\u201d\u201e\u201f\u2033\uff02",
    "#": "\ufe5f\uff03",
    "$": "\ufe69",
    "%": "\u066a\u2052\ufe6a",
    "&": "\u214b\ufe60\uff06",
    "'": "\u00b4\u02b9\u02bc\u02c8\u2018\u2019\u201b\u2032",
    "(": "\u2768\u27ee",
    ")": "\u2769\u27ef",
    "*": "\u204e\u2217\u2731\ufe61",
    ",": "\u066b\u201a\u3001\ufe50\uff0c",
    "-": "\u00af\u2010\u2011\u2012\u2013\u2014\u2015\u2043\u2212\u30fc\ufe63",
    ".": "\u00b7\u2024\u2025\u2026\u2027\u2219\u22c5\u2e31\u30fb",
    "/": "\u2044\u2215\u2571\u27cb\u29f8",
    ":": "\u02d0\u0589\u05c3\u2236\ua789",
    ";": "\u037e\u061b\ufe54",
    "<": "\u02c2\u1438\u2039\u276e\u27e8\u3008\uff1c",
    "=": "\u02ed\u208c\u2550\ufe66\uff1d",
    ">": "\u02c3\u1433\u203a\u276f\u27e9\u3009\uff1e",
    "?": "\u2047\uff1f",
    "[": "\u2772",
    "\\": "\u2216\u2572\u27cd\u29f5\u29f9",
    "]": "\u2773",
    "^": "\u02c6",
    "_": "\u02cd\uff3f",
    "`": "\u02cb\u1fef\u2035\uff40",
    "{": "\u2774",
    "|": "\u2223\u2502\u2503\u2758\uffe8",
    "}": "\u2775",
    "~": "\u02dc\u223c\u223d\u301c",
}
_LETTERS_TAKEN_FOR = {char: plain for plain, chars in _LETTERS.items() for char in chars}
_MARKS_TAKEN_FOR = {char: plain for plain, chars in _MARKS.items() for char in chars}
_WORD = re.compile(r"[^\W_]+")


@lru_cache(maxsize=8192)
def is_readable(char: str) -> bool:
    """Whether a person sees this character and sees it as itself, in one cell or two, moving nothing around it."""
    code = ord(char)
    if code < 0x80:
        return 0x20 <= code < 0x7F
    invisible = any(low <= code <= high for low, high in INVISIBLE_RANGES)
    return not invisible and unicodedata.category(char) in READABLE_CATEGORIES


@lru_cache(maxsize=8192)
def taken_for(char: str) -> str | None:
    """The printable ASCII that this character passes for; None when it passes for none."""
    if ord(char) < 0x80:
        return None
    if found := _LETTERS_TAKEN_FOR.get(char) or _MARKS_TAKEN_FOR.get(char):
        return found
    plain = unicodedata.normalize("NFKC", char)
    return plain if plain.isascii() and plain.strip() and plain.isprintable() else None


def look_alikes(line: str) -> set[int]:
    """Where in `line` a character passes for another: marks always, letters where the word does not explain them.

    A word explains its letters when it has no ASCII in it and at least one letter that passes for nothing: so does
    each real word of another alphabet, nearly always, and no forged name does.
    """
    if line.isascii():
        return set()
    found = {at for at, char in enumerate(line) if char in _MARKS_TAKEN_FOR}
    for word in _WORD.finditer(line):
        if not word[0].isascii() and not _explains_itself(word[0]):
            found.update(at for at in range(*word.span()) if taken_for(line[at]))
    return found


def _explains_itself(word: str) -> bool:
    return not any(char.isascii() for char in word) and not all(taken_for(char) for char in word)


def name(char: str) -> str:
    """`U+202E right-to-left override`; controls and unassigned ones have a number only."""
    return f"U+{ord(char):04X} {unicodedata.name(char, '').lower()}".rstrip()
