"""Colours of what a sandbox printed: SGR sequences read into marks, and taken out of the text that is drawn.

Only weight and colour are taken out; a colour that the sheet has no ink for is plain. What could hide text (conceal,
inverse, a cursor that moves) stays in the text, where it is drawn as what it is, and has no effect.
"""

import re
from dataclasses import dataclass

from .marks import Mark, joined

_SEQUENCE = re.compile(r"\x1b\[([0-9;]{0,40})m")
_INKS = {
    **{30 + n: f"a3{n}" if 1 <= n <= 6 else "" for n in (0, 1, 2, 3, 4, 5, 6, 7, 9)},
    **{90 + n: f"a3{n}" if 1 <= n <= 6 else "" for n in range(1, 8)},
    90: "a90",
}
_GROUNDS = {start + n: f"a4{n}" if 1 <= n <= 4 else "" for start in (40, 100) for n in range(8)} | {49: ""}
_PLAIN = {2, 3, 4, 22, 23, 24}  # faint, italic, underlined, and their ends


@dataclass
class _Pen:
    bold: bool = False
    ink: str = ""
    ground: str = ""

    def classes(self) -> str:
        # A ground is drawn under the terminal's own ink alone: every other pair could be hard to read.
        return " ".join(filter(None, ("a1" if self.bold else "", self.ink or self.ground)))

    def take(self, sequence: str) -> bool:
        """False, and no change, unless all of the sequence is weight and colour."""
        codes = [int(code or 0) for code in sequence.split(";")]
        new = _Pen(self.bold, self.ink, self.ground)
        while codes:
            if not new._take_one(codes):
                return False
        self.bold, self.ink, self.ground = new.bold, new.ink, new.ground
        return True

    def _take_one(self, codes: list[int]) -> bool:
        code = codes.pop(0)
        if code in (38, 48):
            self.ink, self.ground = ("", self.ground) if code == 38 else (self.ink, "")
            return _take_colour(codes)
        if code == 0:
            self.bold, self.ink, self.ground = False, "", ""
        elif code in (1, 22):
            self.bold = code == 1
        elif code in _INKS:
            self.ink = _INKS[code]
        elif code in _GROUNDS:
            self.ground = _GROUNDS[code]
        else:
            return code in _PLAIN
        return True


def _take_colour(codes: list[int]) -> bool:
    """The rest of `38;5;n` or `38;2;r;g;b`."""
    length = {5: 1, 2: 3}.get(codes.pop(0), 0) if codes else 0
    values = codes[:length]
    del codes[:length]
    return bool(length) and len(values) == length and all(value < 256 for value in values)


def read(text: str) -> tuple[str, list[Mark]]:
    """The text without the sequences that are drawn as marks, and those marks."""
    pen, parts, marks, length, at = _Pen(), [], [], 0, 0
    for found in _SEQUENCE.finditer(text):
        classes = pen.classes()
        if not pen.take(found[1]):
            continue
        part, at = text[at : found.start()], found.end()
        parts.append(part)
        marks.append(Mark(length, length := length + len(part), classes))
    parts.append(text[at:])
    marks.append(Mark(length, length + len(parts[-1]), pen.classes()))
    return "".join(parts), joined(marks)
