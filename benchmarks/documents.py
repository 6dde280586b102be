"""Makes office documents from a fixed seed: docx, xlsx, html, txt, pdf and md, in Chinese, English or both.

The same numbers give the same bytes. Every document holds PROBE, so that a search for it tells how many were really
read. No two have the same content. Standard library only.
"""

from __future__ import annotations

import html
import io
import itertools
import os
import random
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import measure

PROBE: Final = "zurbelprobe"
WORDS: Final = 20_000
PER_FOLDER: Final = 100
FIRST_S: Final = 1_700_000_000
SPAN_S: Final = 30_000_000
_SHARES: Final = {"docx": 30, "xlsx": 15, "html": 15, "txt": 15, "pdf": 15, "md": 10}
_STARTS: Final = (
    "b", "br", "c", "d", "dr", "f", "g", "gr", "h", "l", "m", "n", "p", "pr", "r", "s", "st", "t", "tr", "w",
)  # fmt: skip
_MIDDLES: Final = ("a", "e", "i", "o", "u", "ea", "ou", "ai")
_ENDS: Final = ("", "n", "r", "t", "l", "s", "ck", "nd", "st", "ment", "ing", "er")
_CHARACTERS: Final = "".join(map(chr, range(0x4E00, 0x4E00 + 2400)))


class Writer:
    """Text with the frequencies of a language: a few words often, most seldom."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        chance = random.Random(1)
        syllables = ["".join(parts) for parts in itertools.product(_STARTS, _MIDDLES, _ENDS)]
        words = {chance.choice(syllables) + chance.choice(syllables) for _ in range(WORDS * 2)}
        pairs = {"".join(chance.choices(_CHARACTERS, k=chance.choice((1, 2, 2, 2, 3)))) for _ in range(WORDS * 2)}
        self.english, self.chinese = sorted(words)[:WORDS], sorted(pairs)[:WORDS]
        chance.shuffle(self.english)
        chance.shuffle(self.chinese)
        self._weights = list(itertools.accumulate(1 / (rank + 10) for rank in range(WORDS)))

    def sentence(self, language: str) -> str:
        """Some words and a full stop."""
        words = self.english if language == "en" else self.chinese
        chosen = self.chance.choices(words, cum_weights=self._weights, k=self.chance.randrange(6, 18))
        return " ".join(chosen).capitalize() + "." if language == "en" else "".join(chosen) + "。"

    def paragraphs(self, number: int) -> list[str]:
        """The text of a document: a title first, then three to thirty paragraphs."""
        language = self.chance.choice(("en", "zh", "both"))
        languages = ("en", "zh") if language == "both" else (language,)
        text = [f"Report {number}: {self.sentence(languages[0])}", f"{PROBE} number {number}"]
        for _ in range(min(30, 3 + int(self.chance.expovariate(0.15)))):
            one = self.chance.choice(languages)
            text.append(" ".join(self.sentence(one) for _ in range(self.chance.randrange(2, 7))))
        return text


@dataclass(frozen=True)
class Made:
    """What was made."""

    files: int
    size: int


def make(root: Path, files: int, seed: int = 7) -> Made:
    """That many documents below `root`, a hundred to a folder; what is there already stays."""
    if not root.exists():
        part = measure.fresh(root.with_name(f"{root.name}.part"))
        _make(part, files, seed)
        part.rename(root)
    sizes = [path.stat().st_size for path in root.rglob("*") if path.is_file()]
    return Made(len(sizes), sum(sizes))


def _make(root: Path, files: int, seed: int) -> None:
    writer = Writer(seed)
    kinds, shares = list(_SHARES), list(_SHARES.values())
    for number in range(files):
        kind = writer.chance.choices(kinds, shares)[0]
        folder = root / f"{2019 + number // PER_FOLDER % 7}" / f"部门{number // PER_FOLDER:04d}"
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{'合同' if number % 3 else 'Report'}-{number:06d}.{kind}"
        path.write_bytes(MAKERS[kind](writer.paragraphs(number)))
        moment = (FIRST_S + writer.chance.randrange(SPAN_S)) * 10**9
        os.utime(path, ns=(moment, moment))


def _txt(text: list[str]) -> bytes:
    return "\n\n".join(text).encode()


def _md(text: list[str]) -> bytes:
    title, *rest = text
    lines = (f"- {line}" if index % 5 == 4 else line for index, line in enumerate(rest))
    return "\n\n".join((f"# {title}", *lines)).encode()


def _html(text: list[str]) -> bytes:
    title, *rest = map(html.escape, text)
    body = "\n".join(f'<p class="c{index % 4}">{line}</p>' for index, line in enumerate(rest))
    head = f'<meta charset="utf-8"><title>{title}</title><style>p {{ margin: 1em }}</style>'
    return f"<!DOCTYPE html>\n<html><head>{head}</head>\n<body><h1>{title}</h1>\n{body}\n</body></html>".encode()


def _zipped(parts: dict[str, str]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            head = '<?xml version="1.0" encoding="UTF-8"?>\n'
            archive.writestr(zipfile.ZipInfo(name), head + content, zipfile.ZIP_DEFLATED)
    return stream.getvalue()


_PACKAGE: Final = "http://schemas.openxmlformats.org/package/2006"
_OFFICE: Final = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"


def _types(*parts: tuple[str, str]) -> str:
    names = "".join(
        f'<Override PartName="{name}" ContentType="application/vnd.openxmlformats-officedocument.{kind}+xml"/>'
        for name, kind in parts
    )
    rels = "application/vnd.openxmlformats-package.relationships+xml"
    return (
        f'<Types xmlns="{_PACKAGE}/content-types"><Default Extension="rels" ContentType="{rels}"/>'
        f'<Default Extension="xml" ContentType="application/xml"/>{names}</Types>'
    )


def _relations(*targets: tuple[str, str]) -> str:
    inner = "".join(
        f'<Relationship Id="rId{number}" Type="{_OFFICE}/{kind}" Target="{target}"/>'
        for number, (kind, target) in enumerate(targets, 1)
    )
    return f'<Relationships xmlns="{_PACKAGE}/relationships">{inner}</Relationships>'


def _docx(text: list[str]) -> bytes:
    lines = "".join(
        f'<w:p><w:pPr><w:spacing w:after="120"/></w:pPr><w:r><w:rPr><w:sz w:val="22"/></w:rPr>'
        f'<w:t xml:space="preserve">{html.escape(line)}</w:t></w:r></w:p>'
        for line in text
    )
    space = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
    return _zipped({
        "[Content_Types].xml": _types(("/word/document.xml", "wordprocessingml.document.main")),
        "_rels/.rels": _relations(("officeDocument", "word/document.xml")),
        "word/document.xml": f"<w:document {space}><w:body>{lines}<w:sectPr/></w:body></w:document>",
    })  # fmt: skip


def _xlsx(text: list[str]) -> bytes:
    space = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
    shared = "".join(f"<si><t>{html.escape(line)}</t></si>" for line in text)
    rows = "".join(
        f'<row r="{row}"><c r="A{row}" t="s"><v>{row - 1}</v></c><c r="B{row}"><v>{row * 37.5}</v></c></row>'
        for row in range(1, len(text) + 1)
    )
    parts = (
        ("/xl/workbook.xml", "spreadsheetml.sheet.main"),
        ("/xl/worksheets/sheet1.xml", "spreadsheetml.worksheet"),
        ("/xl/sharedStrings.xml", "spreadsheetml.sharedStrings"),
    )
    sheets = f'<sheets><sheet xmlns:r="{_OFFICE}" name="Sheet1" sheetId="1" r:id="rId1"/></sheets>'
    return _zipped({
        "[Content_Types].xml": _types(*parts),
        "_rels/.rels": _relations(("officeDocument", "xl/workbook.xml")),
        "xl/workbook.xml": f"<workbook {space}>{sheets}</workbook>",
        "xl/_rels/workbook.xml.rels": _relations(
            ("worksheet", "worksheets/sheet1.xml"), ("sharedStrings", "sharedStrings.xml")
        ),
        "xl/worksheets/sheet1.xml": f"<worksheet {space}><sheetData>{rows}</sheetData></worksheet>",
        "xl/sharedStrings.xml": f'<sst {space} count="{len(text)}" uniqueCount="{len(text)}">{shared}</sst>',
    })  # fmt: skip


def _pdf(text: list[str]) -> bytes:
    """Pages of forty lines in a font whose codes are UTF-16, as a ToUnicode map tells readers."""
    lines = [line[at : at + 60] for line in text for at in range(0, len(line), 60)]
    pages = [lines[at : at + 40] for at in range(0, len(lines), 40)]
    used = [f"<{ord(one):04X}> <{ord(one):04X}>" for one in sorted(set("".join(lines)))]
    ranges = "\n".join(
        f"{len(some)} beginbfchar\n" + "\n".join(some) + "\nendbfchar"
        for some in (used[at : at + 100] for at in range(0, len(used), 100))
    )
    unicode_map = (
        "/CIDInit /ProcSet findresource begin\n12 dict begin\nbegincmap\n/CMapName /U def\n/CMapType 2 def\n"
        f"1 begincodespacerange\n<0000> <FFFF>\nendcodespacerange\n{ranges}\nendcmap\nend\nend"
    )
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Count %d /Kids [%s] >>"
        % (len(pages), b" ".join(b"%d 0 R" % (7 + 2 * number) for number in range(len(pages)))),
        b"<< /Type /Font /Subtype /Type0 /BaseFont /STSong-Light /Encoding /Identity-H /DescendantFonts [4 0 R]"
        b" /ToUnicode 6 0 R >>",
        b"<< /Type /Font /Subtype /CIDFontType0 /BaseFont /STSong-Light /DW 1000 /W [32 126 500] /FontDescriptor 5 0 R"
        b" /CIDSystemInfo << /Registry (Adobe) /Ordering (Identity) /Supplement 0 >> >>",
        b"<< /Type /FontDescriptor /FontName /STSong-Light /Flags 4 /FontBBox [0 -200 1000 900] /ItalicAngle 0"
        b" /Ascent 880 /Descent -120 /CapHeight 880 /StemV 80 >>",
        _stream(unicode_map.encode()),
    ]
    for number, page in enumerate(pages):
        objects.append(
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Resources << /Font << /F1 3 0 R >> >>"
            b" /Contents %d 0 R >>" % (8 + 2 * number)
        )
        shown = "\n".join(f"<{line.encode('utf-16-be').hex()}> Tj T*" for line in page)
        objects.append(_stream(f"BT /F1 9 Tf 14 TL 40 800 Td\n{shown}\nET".encode()))
    return _laid_out(objects)


def _stream(data: bytes) -> bytes:
    packed = zlib.compress(data)
    return b"<< /Length %d /Filter /FlateDecode >>\nstream\n%s\nendstream" % (len(packed), packed)


def _laid_out(objects: list[bytes]) -> bytes:
    out, places = bytearray(b"%PDF-1.5\n%\xe2\xe3\xcf\xd3\n"), []
    for number, content in enumerate(objects, 1):
        places.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, content)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    size, start = len(objects) + 1, len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n%s" % (size, table)
    return bytes(out + b"trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (size, start))


MAKERS: Final[dict[str, Callable[[list[str]], bytes]]] = {
    "docx": _docx,
    "xlsx": _xlsx,
    "html": _html,
    "txt": _txt,
    "pdf": _pdf,
    "md": _md,
}
