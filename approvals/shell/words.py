"""What bash makes of quoted and braced words, as far as rules that deny look at them. Pure text."""

import re

BRACES = 64
_ESCAPE = re.compile(
    r"\\(?:x([0-9A-Fa-f]{1,2})|u([0-9A-Fa-f]{1,4})|U([0-9A-Fa-f]{1,8})|([0-7]{1,3})|c(.)|(.))", re.DOTALL
)
_SIGNS = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "v": "\v"}
_GROUP = re.compile("\ue000([^\ue000\ue002]*\ue001[^\ue000\ue002]*)\ue002")
_BACK = str.maketrans("\ue000\ue001\ue002", "{,}")


def in_ansi(inside: str) -> str:
    """Of `$'…'`."""
    return _ESCAPE.sub(_sign, inside)


def _sign(found: re.Match[str]) -> str:
    hexadecimal = found[1] or found[2] or found[3]
    if hexadecimal or found[4]:
        number = int(hexadecimal, 16) if hexadecimal else int(found[4], 8) & 0xFF
        return chr(number) if number < 0x110000 else ""
    if found[5]:
        return chr(ord(found[5]) & 0x1F)
    return _SIGNS.get(found[6], found[6])


def in_double(token: str) -> str:
    if token == "\\\n":
        return ""
    return token[1] if len(token) == 2 and token[0] == "\\" and token[1] in '$`"\\' else token


def braces(word: str) -> list[str]:
    """`{a,b}c` is two words. Marks of the private area stand for braces and commas without quotes."""
    words, at = [word], 0
    while at < len(words) and len(words) <= BRACES:
        if "\ue000" in words[at] and (found := _GROUP.search(words[at])):
            head, tail = words[at][: found.start()], words[at][found.end() :]
            words[at : at + 1] = [head + each + tail for each in found[1].split("\ue001")]
        else:
            at += 1
    return [each.translate(_BACK) for each in words]
