"""Tells a page's real text from the numbers of glyphs in a font that came without a map to characters.

Two signs: characters that no text has (controls, private use, replacement), and Latin text shifted by a constant, which
reads as English once it is shifted back. It judges, it repairs nothing; a short text is always taken for real.
"""

from __future__ import annotations

import re
from collections import Counter

_STRANGE = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x9f\ufffd\ue000-\uf8ff\U000f0000-\U0010ffff]")
_LINE_MARKS = re.compile("[\x02\ufffe]\r?\n")
_PRINTABLE = re.compile("[!-~]")
_SHORTEST = 16
_SAMPLE = 4_000
_SHIFTS = (29, 30, 31, 28, 3, -29)
_FREQUENT = dict(zip("etaoinshrdlucmfwypvbgkjqxz", range(26, 0, -1), strict=True))


def is_garbage(text: str) -> bool:
    """Whether the text of a page is glyph numbers rather than characters."""
    sample = _LINE_MARKS.sub("", text[:_SAMPLE])
    dense = "".join(sample.split())
    if len(dense) < _SHORTEST:
        return False
    if len(_STRANGE.findall(dense)) * 5 > len(dense):
        return True
    return _is_shifted("".join(_PRINTABLE.findall(dense)), len(dense))


def _is_shifted(latin: str, length: int) -> bool:
    if len(latin) * 10 < length * 8 or len(latin) < 2 * _SHORTEST:
        return False
    counts = Counter(latin)  # some hundred characters at the most, however long the page
    here = _likeness(counts, 0)
    if _likeness(Counter(latin.lower()), 0) > 13:
        return False  # capitals
    return here < 8 and any(_likeness(counts, shift) > max(2 * here, 14) for shift in _SHIFTS)


def _likeness(counts: Counter[str], shift: int) -> float:
    """How much the shifted text looks like Western words: about 17 for English prose, under 6 for glyph numbers."""
    shifted = ((_FREQUENT.get(chr(max(0, ord(character) + shift)), 0), count) for character, count in counts.items())
    return sum(frequency * count for frequency, count in shifted) / counts.total()
