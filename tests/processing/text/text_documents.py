"""Small documents made by hand for the tests of text extraction: zips of XML, PDFs, OLE containers.

Each function answers the bytes of one valid file; tests damage them as they need.
"""

from __future__ import annotations

import hashlib
import io
import struct
import zipfile
from collections.abc import Mapping

W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
A = 'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"'
P = 'xmlns:p="http://schemas.openxmlformats.org/presentationml/2006/main"'
R = 'xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"'
_ROLE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/"
_ODF = (
    'xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0"'
    ' xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0"'
    ' xmlns:table="urn:oasis:names:tc:opendocument:xmlns:table:1.0"'
    ' xmlns:draw="urn:oasis:names:tc:opendocument:xmlns:drawing:1.0"'
)


def zipped(parts: Mapping[str, str | bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    """A zip of these parts, in order."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return out.getvalue()


def relations(**links: tuple[str, str]) -> str:
    """A relationships part: id = (role, target)."""
    rows = "".join(
        f'<Relationship Id="{key}" Type="{_ROLE}{role}" Target="{to}"/>' for key, (role, to) in links.items()
    )
    return f'<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">{rows}</Relationships>'


def core(title: str) -> str:
    """The properties part with a title."""
    return f'<cp:coreProperties xmlns:cp="c" xmlns:dc="d"><dc:title>{title}</dc:title></cp:coreProperties>'


def docx(
    body: str, extra: Mapping[str, str | bytes] | None = None, links: Mapping[str, tuple[str, str]] | None = None
) -> bytes:
    """A Word document with this body."""
    return zipped(
        {
            "[Content_Types].xml": "<Types/>",
            "_rels/.rels": relations(m=("officeDocument", "word/document.xml")),
            "word/document.xml": f"<w:document {W} {A} {R}><w:body>{body}</w:body></w:document>",
            "word/_rels/document.xml.rels": relations(**dict(links or {})),
            **(extra or {}),
        }
    )


def word_line(text: str) -> str:
    """One paragraph of a Word document."""
    return f"<w:p><w:r><w:t>{text}</w:t></w:r></w:p>"


def pptx(slides: list[str], order: list[int], notes: Mapping[int, str] | None = None) -> bytes:
    """A presentation of slides stored as slide1, slide2 … and shown in `order` (counted from 1)."""
    parts: dict[str, str | bytes] = {
        "[Content_Types].xml": "<Types/>",
        "_rels/.rels": relations(m=("officeDocument", "/ppt/presentation.xml")),
        "ppt/presentation.xml": f"<p:presentation {P} {R}><p:sldIdLst>"
        + "".join(f'<p:sldId id="{255 + number}" r:id="r{number}"/>' for number in order)
        + "</p:sldIdLst></p:presentation>",
        "ppt/_rels/presentation.xml.rels": relations(
            **{f"r{number}": ("slide", f"slides/slide{number}.xml") for number in range(1, len(slides) + 1)}
        ),
    }
    for number, text in enumerate(slides, 1):
        parts[f"ppt/slides/slide{number}.xml"] = _slide(text)
        if notes and number in notes:
            parts[f"ppt/notesSlides/notesSlide{number}.xml"] = _slide(notes[number])
            link = {"n": ("notesSlide", f"../notesSlides/notesSlide{number}.xml")}
            parts[f"ppt/slides/_rels/slide{number}.xml.rels"] = relations(**link)
    return zipped(parts)


def _slide(text: str) -> str:
    return f"<p:sld {P} {A}><p:txBody><a:p><a:r><a:t>{text}</a:t></a:r></a:p></p:txBody></p:sld>"


def xlsx(rows: str, strings: list[str]) -> bytes:
    """A workbook of one sheet "Log" with these rows."""
    main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    types = (
        '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
        '<Override PartName="/xl/workbook.xml" ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml'
        '.sheet.main+xml"/></Types>'
    )
    return zipped(
        {
            "[Content_Types].xml": types,
            "_rels/.rels": relations(m=("officeDocument", "xl/workbook.xml")),
            "xl/workbook.xml": f'<workbook xmlns="{main}" {R}>'
            '<sheets><sheet name="Log" sheetId="1" r:id="s1"/></sheets></workbook>',
            "xl/_rels/workbook.xml.rels": relations(
                s1=("worksheet", "worksheets/sheet1.xml"), st=("sharedStrings", "sharedStrings.xml")
            ),
            "xl/sharedStrings.xml": f'<sst xmlns="{main}">'
            + "".join(f"<si><t>{s}</t></si>" for s in strings)
            + "</sst>",
            "xl/worksheets/sheet1.xml": f'<worksheet xmlns="{main}"><sheetData>{rows}</sheetData></worksheet>',
            "xl/comments1.xml": f'<comments xmlns="{main}"><comment><text><r><t>checked twice</t></r></text>'
            "</comment></comments>",
        }
    )


def odf(kind: str, body: str, manifest: str = "<manifest/>", styles: str = "") -> bytes:
    """An OpenDocument file of `kind` (text, presentation, spreadsheet)."""
    parts = {
        "mimetype": f"application/vnd.oasis.opendocument.{kind}",
        "content.xml": f"<office:document-content {_ODF}><office:body><office:{kind}>{body}"
        f"</office:{kind}></office:body></office:document-content>",
        "meta.xml": f'<office:document-meta {_ODF} xmlns:dc="d"><dc:title>Tides</dc:title></office:document-meta>',
        "META-INF/manifest.xml": manifest,
    }
    return zipped(
        parts | ({"styles.xml": f"<office:document-styles {_ODF}>{styles}</office:document-styles>"} if styles else {})
    )


def epub(chapters: list[str], order: list[int], extra: Mapping[str, str] | None = None) -> bytes:
    """A book of chapters stored as c1, c2 … and read in `order` (counted from 1)."""
    items = "".join(
        f'<item id="c{n}" href="text/c%20{n}.xhtml" media-type="application/xhtml+xml"/>'
        for n in range(1, len(chapters) + 1)
    )
    spine = "".join(f'<itemref idref="c{n}"/>' for n in order)
    parts: dict[str, str | bytes] = {
        "mimetype": "application/epub+zip",
        "META-INF/container.xml": '<container><rootfiles><rootfile full-path="OPS/book.opf"/></rootfiles></container>',
        "OPS/book.opf": f'<package xmlns:dc="d"><metadata><dc:title>The Gate</dc:title></metadata>'
        f"<manifest>{items}</manifest><spine>{spine}</spine></package>",
    }
    for number, text in enumerate(chapters, 1):
        parts[f"OPS/text/c {number}.xhtml"] = f"<html><body><p>{text}</p></body></html>"
    return zipped(parts | dict(extra or {}))


# --- PDF -------------------------------------------------------------------------------------------------------------

_PAD = bytes.fromhex("28BF4E5E4E758A4164004E56FFFA01082E2E00B6D0683E802F0CA9FE6453697A")


def pdf(pages: list[str], title: str = "", passwords: tuple[str, str] | None = None) -> bytes:
    """A PDF with a line of text on each page; `passwords` are the user's and the owner's (RC4, 40 bits)."""
    objects = {1: b"<</Type/Catalog/Pages 2 0 R>>", 3: b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>"}
    streams: dict[int, bytes] = {}
    numbers = range(10, 10 + 2 * len(pages), 2)
    for number, text in zip(numbers, pages, strict=True):
        objects[number] = _page(number + 1)
        streams[number + 1] = b"BT /F1 12 Tf 50 700 Td (" + text.encode("latin-1") + b") Tj ET" if text else b""
    return _assemble(objects, streams, list(numbers), title, passwords)


def pdf_with_map(codes: bytes, characters: str) -> bytes:
    """A PDF whose font numbers its glyphs freely and says by a ToUnicode map which characters they are."""
    pairs = "".join(f"<{code:02X}> <{ord(to):04X}>\n" for code, to in zip(codes, characters, strict=True))
    unicode_map = (
        "/CIDInit /ProcSet findresource begin 12 dict begin begincmap /CMapName /M def /CMapType 2 def\n"
        f"1 begincodespacerange <00> <FF> endcodespacerange\n{len(codes)} beginbfchar\n{pairs}endbfchar\n"
        "endcmap end end"
    )
    font = (
        b"<</Type/Font/Subtype/TrueType/BaseFont/Gate/FirstChar 0/LastChar 255/Widths["
        + b"600 " * 256
        + b"]/ToUnicode 4 0 R>>"
    )
    objects = {1: b"<</Type/Catalog/Pages 2 0 R>>", 3: font, 10: _page(11)}
    streams = {4: unicode_map.encode(), 11: b"BT /F1 12 Tf 50 700 Td <" + codes.hex().encode() + b"> Tj ET"}
    return _assemble(objects, streams, [10], "", None)


def _page(content: int) -> bytes:
    return (
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 600 800]/Resources<</Font<</F1 3 0 R>>>>/Contents %d 0 R>>" % content
    )


def _assemble(
    objects: dict[int, bytes],
    streams: dict[int, bytes],
    pages: list[int],
    title: str,
    passwords: tuple[str, str] | None,
) -> bytes:
    kids = b" ".join(b"%d 0 R" % number for number in pages)
    objects[2] = b"<</Type/Pages/Kids[" + kids + b"]/Count %d>>" % len(pages)
    trailer = b"/Root 1 0 R/ID[<00112233445566778899aabbccddeeff><00112233445566778899aabbccddeeff>]"
    key = b""
    if title:
        objects[5] = b"<</Title(" + title.encode("latin-1") + b")>>"
        trailer += b"/Info 5 0 R"
    if passwords:
        key, objects[6] = _encryption(*passwords)
        trailer += b"/Encrypt 6 0 R"
    for number, content in streams.items():
        content = (
            rc4(hashlib.md5(key + struct.pack("<I", number)[:3] + b"\0\0").digest()[:10], content) if key else content
        )
        objects[number] = b"<</Length %d>>stream\n" % len(content) + content + b"\nendstream"
    out, places = bytearray(b"%PDF-1.4\n"), {}
    for number in sorted(objects):
        places[number] = len(out)
        out += b"%d 0 obj\n" % number + objects[number] + b"\nendobj\n"
    start = len(out)
    out += b"xref\n0 1\n0000000000 65535 f \n"
    for number, place in places.items():
        out += b"%d 1\n%010d 00000 n \n" % (number, place)
    return bytes(out + b"trailer\n<</Size 100" + trailer + b">>\nstartxref\n%d\n%%%%EOF\n" % start)


def _encryption(user: str, owner: str) -> tuple[bytes, bytes]:
    padded_user, padded_owner = (user.encode() + _PAD)[:32], (owner.encode() + _PAD)[:32]
    owner_entry = rc4(hashlib.md5(padded_owner).digest()[:5], padded_user)
    permissions = struct.pack("<i", -4)
    identity = bytes.fromhex("00112233445566778899aabbccddeeff")
    key = hashlib.md5(padded_user + owner_entry + permissions + identity).digest()[:5]
    entry = (
        b"<</Filter/Standard/V 1/R 2/P -4/O<"
        + owner_entry.hex().encode()
        + b">/U<"
        + rc4(key, _PAD).hex().encode()
        + b">>>"
    )
    return key, entry


def rc4(key: bytes, data: bytes) -> bytes:
    """RC4, which old PDFs are encrypted with."""
    state, j = list(range(256)), 0
    for i in range(256):
        j = (j + state[i] + key[i % len(key)]) & 255
        state[i], state[j] = state[j], state[i]
    out, i, j = bytearray(), 0, 0
    for byte in data:
        i = (i + 1) & 255
        j = (j + state[i]) & 255
        state[i], state[j] = state[j], state[i]
        out.append(byte ^ state[(state[i] + state[j]) & 255])
    return bytes(out)


# --- OLE -------------------------------------------------------------------------------------------------------------

_SECTOR, _FREE, _END, _FAT = 512, 0xFFFFFFFF, 0xFFFFFFFE, 0xFFFFFFFD


def ole(streams: Mapping[str, bytes]) -> bytes:
    """An OLE container; names may hold one "/" for a storage. Every stream is padded with NUL to 4,096 bytes."""
    names: list[str] = sorted({part for name in streams for part in (name, name.partition("/")[0])})
    entries, sectors, chains = ["", *names], bytearray(), []
    places: dict[str, tuple[int, int]] = {}
    for name, content in streams.items():
        content = content.ljust(4096, b"\0")
        content += b"\0" * (-len(content) % _SECTOR)
        first = len(sectors) // _SECTOR
        places[name] = (first, len(content))
        sectors += content
        chains.append((first, len(content) // _SECTOR))
    directory = b"".join(_entry(number, entries, places) for number in range(len(entries)))
    directory += b"\0" * (-len(directory) % _SECTOR)
    directory_at = len(sectors) // _SECTOR
    chains.append((directory_at, len(directory) // _SECTOR))
    sectors += directory
    total = len(sectors) // _SECTOR
    fat_count = next(count for count in range(1, 100) if count * 128 >= total + count)
    table = [_FREE] * (fat_count * 128)
    for first, count in chains:
        table[first : first + count] = [*range(first + 1, first + count), _END]
    table[total : total + fat_count] = [_FAT] * fat_count
    header = struct.pack(
        "<8s16sHHHHH6xIIIIIIIIII", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", b"", 0x3E, 3, 0xFFFE, 9, 6, 0, fat_count,
        directory_at, 0, 4096, _END, 0, _END, 0, total,
    )  # fmt: skip
    rest = [*range(total + 1, total + fat_count), *([_FREE] * 109)][:108]
    return header + struct.pack("<108I", *rest) + bytes(sectors) + struct.pack(f"<{len(table)}I", *table)


def _entry(number: int, entries: list[str], places: Mapping[str, tuple[int, int]]) -> bytes:
    name = entries[number]
    siblings = [n for n in range(1, len(entries)) if entries[n].rpartition("/")[0] == name.rpartition("/")[0]]
    children = [n for n in range(1, len(entries)) if entries[n].rpartition("/")[0] == name]
    if not name:
        kind, children, after = 5, [n for n in range(1, len(entries)) if "/" not in entries[n]], []
    else:
        kind, after = (2 if name in places else 1), [n for n in siblings if n > number]
        children = [] if name in places else children
    first, size = places.get(name, (_END if kind == 5 else 0, 0))
    text = (name.rpartition("/")[2] if name else "Root Entry").encode("utf-16-le")
    return struct.pack(
        "<64sHBBIII16sI8s8sIQ", text, len(text) + 2, kind, 1, _FREE, after[0] if after else _FREE,
        children[0] if children else _FREE, b"", 0, b"", b"", first, size,
    )  # fmt: skip
