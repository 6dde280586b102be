"""Finds the characters that bytes stand for, and tells text from binary data.

The order is: byte order mark, strict UTF-8, UTF-16 by its shape, UTF-8 with a few broken bytes, chardet on the lines
that hold more than ASCII, and a look at short Chinese text that chardet takes for a Western code page. Whatever is
decoded must look like text: bytes that would come out as mojibake are answered with None.
"""

from __future__ import annotations

import codecs
import re

_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_WIDER = {  # what writers mean by a name: the superset that their programs really use
    "gb2312": "gb18030", "gbk": "gb18030", "x-gbk": "gb18030", "gb_2312-80": "gb18030", "cp936": "gb18030",
    "x-sjis": "cp932", "shift_jis": "cp932", "shift-jis": "cp932", "sjis": "cp932", "windows-31j": "cp932",
    "euc-kr": "cp949", "ks_c_5601-1987": "cp949", "ksc5601": "cp949", "iso-8859-1": "cp1252", "latin1": "cp1252",
    "latin-1": "cp1252", "us-ascii": "cp1252", "ascii": "cp1252", "iso-8859-9": "cp1254", "iso-8859-11": "cp874",
    "big5": "big5hkscs", "big5-hkscs": "big5hkscs", "cp950": "big5hkscs", "x-x-big5": "big5hkscs",
    "euc-jp": "euc_jis_2004", "x-euc-jp": "euc_jis_2004", "iso-8859-8-i": "iso-8859-8", "cp1361": "johab",
    "unicode": "utf-16", "macintosh": "mac-roman", "x-mac-roman": "mac-roman", "x-mac-cyrillic": "mac-cyrillic",
    "tis-620": "cp874", "iso-2022-jp": "iso2022_jp_ext",
}  # fmt: skip
_NOT_FOR_TEXT = frozenset({"idna", "punycode", "unicode_escape", "raw_unicode_escape", "undefined", "utf_7", "mbcs"})

_CONTROLS = bytes(sorted(set(range(32)) - {8, 9, 10, 12, 13, 27})) + b"\x7f"
_HIGH_RUNS = re.compile(rb"[\x80-\xff]+")
_COMMON_HANZI = re.compile(rb"(?:[\xb0-\xd7][\xa1-\xfe]|[\xa1\xa3][\xa1-\xfe])+")  # GB2312 level 1 and its punctuation
_BAD_CHARACTERS = re.compile("[\x00-\x07\x0e-\x1a\x1c-\x1f\x7f-\x84\x86-\x9f\ufffd\ue000-\uf8ff\U000f0000-\U0010ffff]")
_SHIFTED = (b"\x1b$B", b"\x1b$@", b"\x1b(J", b"\x1b$)C", b"~{")  # Japanese, Korean, Chinese for seven bits
_NUL_STRETCH = re.compile(rb"\0+")
_SINGLE_BYTE = ("cp125", "iso8859", "mac", "koi8", "cp4", "cp7", "cp8", "kz1048", "hp-roman", "ptcp")
_LIKE_CHINESE = ("iso8859-5", "iso8859-7")  # their letters lie where the common characters of GB2312 do
_WESTERN = "éèêëàâäáåæçîïíôöóøñüúùûßÉÈÀÄÖÜÑÇ°±’“”–—…€£§©®™·«»".encode("cp1252")
_SAMPLE_BYTES = 64_000
_UTF16_SAMPLE = 8_000


def decode(data: bytes, *, is_whole: bool = True) -> str | None:
    """The text that `data` is, or None where it is not text. A character cut at the end is dropped."""
    for mark, encoding in _BOMS:
        if data.startswith(mark):
            return _decode_marked(data[len(mark) :], encoding)
    if b"\0" in data:
        return _decode_with_nuls(data)
    if any(mark in data for mark in _SHIFTED):
        return _decode_shifted(data)
    share = _control_share(data)
    text = _decode_utf8(data, is_whole) if share <= 0.05 else None
    if text is not None or share > 0.01:
        return text
    return _decode_guessed(data)


def decode_as(data: bytes, label: str) -> str | None:
    """`data` in the encoding that a document names itself; None where there is no such encoding of text."""
    encoding = known_encoding(label)
    if encoding is None:
        return None
    try:
        return data.decode(encoding)
    except UnicodeDecodeError:
        if encoding != "utf-8":
            text = _decode_utf8(data, is_whole=False)
            if text is not None:
                return text
        return data.decode(encoding, "replace")
    except (UnicodeError, ValueError):
        return None


def decode_markup(data: bytes, label: str) -> str:
    """The text of a markup document whose own head names `label` (empty for none); never fails.

    A byte order mark wins; then UTF-8, where the bytes are that beyond doubt; then the name; then a guess.
    """
    for mark, encoding in _BOMS:
        if data.startswith(mark):
            return data[len(mark) :].decode(encoding, "replace")
    if label and not label.lower().startswith(("utf-16", "utf-32", "unicode")):
        if data.isascii() and not label.lower().startswith(("iso-2022", "hz")):
            return data.decode("ascii")
        named = known_encoding(label)
        text = _decode_utf8(data, is_whole=True)
        if text is not None and (named in ("utf-8", "cp1252") or _is_utf8_beyond_doubt(data)):
            return text
        # Pages that call themselves UTF-8 and are not are as common as those that name another encoding wrongly.
        text = decode_as(data, label) if named != "utf-8" else None
        if text is not None:
            return text
    text = decode(data)
    return text if text is not None else data.decode("utf-8", "replace")


def known_encoding(label: str) -> str | None:
    """The codec for an encoding's name as documents write it; None where it is not one of text."""
    name = label.strip().strip("\"'").lower()
    name = _WIDER.get(name, name)
    if not name.isascii() or len(name) > 40:
        return None
    try:
        found = codecs.lookup(name).name
    except (LookupError, ValueError):
        return None
    if found.replace("-", "_") in _NOT_FOR_TEXT:
        return None
    try:
        b"".decode(found)
    except (LookupError, UnicodeError, ValueError):
        return None
    return found


def is_binary(data: bytes) -> bool:
    """Whether the bytes hold more control characters than any text does; cheap, for a first look."""
    return b"\0" in data or _control_share(data) > 0.01


def _decode_marked(data: bytes, encoding: str) -> str | None:
    if encoding == "utf-8":
        text = data.decode("utf-8", "replace")
        return None if text.count("\ufffd") * 10 > len(text) + 10 else text
    width = 4 if "32" in encoding else 2
    text = data[: len(data) // width * width].decode(encoding, "replace")
    return text if _looks_like_text(text) else None


def _decode_utf8(data: bytes, is_whole: bool) -> str | None:
    try:
        text, used = codecs.utf_8_decode(data, "strict", False)
    except UnicodeDecodeError:
        return None
    # A last byte that begins a character is taken for a cut only where others prove that this is UTF-8.
    return text if used == len(data) or not is_whole or not text.isascii() else None


def _decode_with_nuls(data: bytes) -> str | None:
    text = _decode_utf16(data)
    if text is not None:
        return text
    if _control_share(data[:_SAMPLE_BYTES].replace(b"\0", b"")) > 0.01:
        return None
    kept = data.replace(b"\0", b"")
    # A text with stretches of NUL is what a crash leaves of a log, or a disk image's padding of one.
    stretches = sum(1 for _ in _NUL_STRETCH.finditer(data))
    if stretches > 2 + len(kept) // 2_000 or _control_share(kept) > 0.001:
        return None
    return _decode_utf8(kept, is_whole=False)


def _decode_utf16(data: bytes) -> str | None:
    sample = data[: _UTF16_SAMPLE // 2 * 2]
    if sample.count(0) * 10 > len(sample) * 6:
        return _decode_utf32(data)
    even, odd = sample[0::2], sample[1::2]
    for encoding, high, low in (("utf-16-le", odd, even), ("utf-16-be", even, odd)):
        if low.count(0) * 50 > len(low) or not high:
            continue
        try:
            start = sample[: len(sample) // 2 * 2].decode(encoding, "strict")
        except UnicodeDecodeError as error:
            if error.end < len(sample) - 1:
                continue
            start = sample[: error.start].decode(encoding)
        if _is_usual_unicode(start):
            return data[: len(data) // 2 * 2].decode(encoding, "replace")
    return None


def _decode_shifted(data: bytes) -> str | None:
    if data.startswith(b"\x1b$)C"):
        return data.decode("iso2022_kr", "replace")
    text = _decode_utf8(data, is_whole=False)
    if text is not None and not text.isascii():
        return text
    return _decode_guessed(data) if _control_share(data) <= 0.01 else None


def _decode_utf32(data: bytes) -> str | None:
    for encoding in ("utf-32-le", "utf-32-be"):
        start = data[: min(len(data), _UTF16_SAMPLE) // 4 * 4].decode(encoding, "replace")
        if start and _looks_like_text(start):
            return data[: len(data) // 4 * 4].decode(encoding, "replace")
    return None


def _is_usual_unicode(text: str) -> bool:
    # Random pairs of bytes fall all over the plane; a text keeps to ASCII, a few scripts and Chinese.
    blocks = {ord(character) >> 8 for character in text}
    usual = sum(_is_usual(character) for character in text)
    kept_to = len(blocks) <= 8 or usual * 100 >= len(text) * 90
    return bool(text) and kept_to and usual * 100 >= len(text) * 80 and _looks_like_text(text)


def _is_usual(character: str) -> bool:
    code = ord(character)
    if code < 0x80:
        return code >= 32 or code in (9, 10, 12, 13)
    return (
        0xA0 <= code < 0x700
        or 0xE00 <= code < 0xE80
        or 0x2000 <= code < 0x2300
        or 0x3000 <= code < 0x3100
        or 0x4E00 <= code < 0xA000
        or 0xAC00 <= code < 0xD7A4
        or 0xFF00 <= code < 0xFFF0
    )


def _is_utf8_beyond_doubt(data: bytes) -> bool:
    return sum(map(len, _HIGH_RUNS.findall(data[:_SAMPLE_BYTES]))) >= 8


def _decode_guessed(data: bytes) -> str | None:
    text = data.decode("utf-8", "replace")
    broken = text.count("\ufffd")
    if broken and broken * 20 < sum(map(len, re.findall("[\x80-\ufffc]+", text[:1_000_000]))):
        return text
    encoding = _guess(data)
    text = data.decode(encoding, "replace")
    return text if _looks_like_text(text) else None


def _guess(data: bytes) -> str:
    sample = _sample(data)
    import chardet

    # Its own widening takes ISO-8859-5 for windows-1251, which shares no letter with it: _WIDER does that here.
    found = chardet.detect(sample, prefer_superset=False)["encoding"] or "cp1252"
    encoding = known_encoding(found) or "cp1252"
    if not encoding.startswith(_SINGLE_BYTE):
        return encoding
    if _is_plain_western(sample):
        return "cp1252"
    is_chinese = encoding not in _LIKE_CHINESE and _is_plain_chinese(sample, 4 if encoding.startswith("cp125") else 8)
    return "gb18030" if is_chinese else encoding


def _sample(data: bytes) -> bytes:
    # ASCII says nothing about the encoding, and a long English head would hide what follows.
    if not any(byte in data for byte in (b"\x1b$", b"~{")) and len(data) > 2_000:
        lines, size = [], 0
        for line in data.splitlines():
            if line.isascii():
                continue
            lines.append(line[:_SAMPLE_BYTES])
            size += len(lines[-1])
            if size >= _SAMPLE_BYTES:
                break
        return b"\n".join(lines)
    return data[:_SAMPLE_BYTES]


def _is_plain_western(sample: bytes) -> bool:
    # So few marks that chardet decides by chance: the letters of Western Europe are the likeliest.
    marks = b"".join(_HIGH_RUNS.findall(sample))
    return len(marks) <= 12 and 3 * len(marks) <= len(sample) and not marks.strip(_WESTERN)


def _is_plain_chinese(sample: bytes, least: int) -> bool:
    runs = _HIGH_RUNS.findall(sample)
    size = sum(map(len, runs))
    return size >= least and size >= 3 * len(runs) and all(_COMMON_HANZI.fullmatch(run) for run in runs)


def _control_share(data: bytes) -> float:
    if not data:
        return 0.0
    sample = data if len(data) <= 1_000_000 else data[:500_000] + data[-500_000:]
    return (len(sample) - len(sample.translate(None, _CONTROLS))) / len(sample)


def _looks_like_text(text: str) -> bool:
    sample = text[:200_000]
    return len(_BAD_CHARACTERS.findall(sample)) * 50 <= len(sample)
