"""Writes the files in `samples/` anew, byte for byte the same each time: python examples/make_samples.py [FOLDER]

Standard library only. Each file is small enough to be read here in full; the formats are written by hand so that
nothing but these lines decides what is in them.
"""

from __future__ import annotations

import base64
import io
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path

CONTENT_TYPES = "http://schemas.openxmlformats.org/package/2006/content-types"
LINKS = "http://schemas.openxmlformats.org/package/2006/relationships"
ROLES = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
SHEET = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"

MEETING = """Harbour meeting, 3 March

Present: Ines, Tomas, Wei.
1. The north gate closes two hours before high water.
2. The contract for dredging is signed; the budget follows in April.
3. Footage of the lock is kept for 180 days.
"""

READ_ME = """港口资料说明

本文件夹保存采购合同、发票和会议记录。
合同原件存放在档案室,扫描件每月归档一次。
"""

HANDBOOK = """# Handbook of the tide gate

## Opening
The gate opens when the **water levels** on both sides agree within five centimetres.

## Closing
Close the gate before a storm surge. 闸门关闭前请确认航道内没有船只。
"""

TABLE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Tide table</title>
<style>td { padding: 2px }</style><script>document.title = "not text"</script></head>
<body><h1>Tide table</h1>
<table><tr><th>Day</th><th>High water</th></tr><tr><td>Monday</td><td>04:12</td></tr>
<tr><td>Tuesday</td><td>05:01</td></tr></table>
<p>Times are for the harbour mouth. 潮汐时间以港口入口为准。</p></body></html>
"""

CONTRACT = (
    "采购合同",
    "合同编号:TG-2024-017",
    "甲方向乙方采购闸门控制柜两台,交货期为三十天。",
    "Delivery within 30 days.",
)
INVOICE = ("发票 TG-2024-018", "合同编号 TG-2024-017", "Harbour pump, two pieces, 1,250.00", "合计:壹仟贰佰伍拾元整")
ACCOUNTS = (("Item", "Cost"), ("Dredging", "8200"), ("Pump repair 水泵修复", "1250"), ("Gate survey", "640"))
MAIL = (
    "Delivery of the control cabinets 控制柜交货",
    "Dear Wei,\n\nthe cabinets of contract TG-2024-017 arrive on Friday.\n合同附件另行寄出。\n",
)


def zipped(parts: Mapping[str, str]) -> bytes:
    """A zip of these parts with fixed times."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(zipfile.ZipInfo(name, (2024, 3, 1, 0, 0, 0)), content)
    return out.getvalue()


def links(target: str, role: str) -> str:
    """A relationships part with one entry."""
    link = f'<Relationship Id="r1" Type="{ROLES}/{role}" Target="{target}"/>'
    return f'<Relationships xmlns="{LINKS}">{link}</Relationships>'


def types(part: str, kind: str) -> str:
    """The content types of a package with one main part."""
    known = "application/vnd.openxmlformats-package.relationships+xml"
    return (
        f'<Types xmlns="{CONTENT_TYPES}"><Default Extension="rels" ContentType="{known}"/>'
        f'<Default Extension="xml" ContentType="application/xml"/><Override PartName="{part}" ContentType="'
        f'application/vnd.openxmlformats-officedocument.{kind}.main+xml"/></Types>'
    )


def docx(lines: tuple[str, ...]) -> bytes:
    """A Word document, one paragraph a line."""
    body = "".join(f"<w:p><w:r><w:t>{line}</w:t></w:r></w:p>" for line in lines)
    return zipped(
        {
            "[Content_Types].xml": types("/word/document.xml", "wordprocessingml.document"),
            "_rels/.rels": links("word/document.xml", "officeDocument"),
            "word/document.xml": f'<w:document xmlns:w="{WORD}"><w:body>{body}</w:body></w:document>',
        }
    )


def xlsx(rows: tuple[tuple[str, str], ...]) -> bytes:
    """A workbook of one sheet; the second column holds numbers below its head."""
    cells = "".join(
        f"<row>{_text(name)}{_text(cost) if cost == 'Cost' else f'<c><v>{cost}</v></c>'}</row>" for name, cost in rows
    )
    sheets = '<sheets><sheet name="Accounts" sheetId="1" r:id="r1"/></sheets>'
    return zipped(
        {
            "[Content_Types].xml": types("/xl/workbook.xml", "spreadsheetml.sheet"),
            "_rels/.rels": links("xl/workbook.xml", "officeDocument"),
            "xl/workbook.xml": f'<workbook xmlns="{SHEET}" xmlns:r="{ROLES}">{sheets}</workbook>',
            "xl/_rels/workbook.xml.rels": links("worksheets/sheet1.xml", "worksheet"),
            "xl/worksheets/sheet1.xml": f'<worksheet xmlns="{SHEET}"><sheetData>{cells}</sheetData></worksheet>',
        }
    )


def _text(cell: str) -> str:
    return f'<c t="inlineStr"><is><t>{cell}</t></is></c>'


def pdf(lines: tuple[str, ...]) -> bytes:
    """A PDF of one page in a Chinese font that is not embedded."""
    shown = " T* ".join(f"<{line.encode('utf-16-be').hex()}> Tj" for line in lines)
    content = f"BT /F1 14 Tf 20 TL 60 760 Td {shown} ET".encode()
    objects = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 595 842]/Resources<</Font<</F1 5 0 R>>>>/Contents 4 0 R>>",
        b"<</Length %d>>stream\n%b\nendstream" % (len(content), content),
        b"<</Type/Font/Subtype/Type0/BaseFont/STSong-Light/Encoding/UniGB-UCS2-H/DescendantFonts[6 0 R]>>",
        b"<</Type/Font/Subtype/CIDFontType0/BaseFont/STSong-Light/DW 1000/FontDescriptor 7 0 R"
        b"/CIDSystemInfo<</Registry(Adobe)/Ordering(GB1)/Supplement 2>>>>",
        b"<</Type/FontDescriptor/FontName/STSong-Light/Flags 6/FontBBox[-25 -254 1000 880]/ItalicAngle 0"
        b"/Ascent 880/Descent -120/CapHeight 880/StemV 93>>",
    ]
    out, places = bytearray(b"%PDF-1.4\n%\xe2\xe3\xcf\xd3\n"), []
    for number, content in enumerate(objects, 1):
        places.append(len(out))
        out += b"%d 0 obj\n%b\nendobj\n" % (number, content)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    size = len(objects) + 1
    end = b"xref\n0 %d\n0000000000 65535 f \n%btrailer\n<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF\n"
    return bytes(out) + end % (size, table, size, len(out))


def eml(subject: str, body: str) -> bytes:
    """A message with an encoded subject and body."""
    encoded = base64.b64encode(subject.encode()).decode()
    text = base64.encodebytes(body.encode()).decode()
    return (
        "From: Tomas <tomas@example.org>\nTo: Wei <wei@example.org>\nDate: Fri, 01 Mar 2024 09:00:00 +0000\n"
        f"Subject: =?utf-8?B?{encoded}?=\nMIME-Version: 1.0\nContent-Type: text/plain; charset=utf-8\n"
        f"Content-Transfer-Encoding: base64\n\n{text}"
    ).encode()


def files() -> Mapping[str, bytes]:
    """Every sample by its path."""
    return {
        "notes/harbour-meeting.txt": MEETING.encode(),
        "notes/说明.txt": READ_ME.encode("gb18030"),
        "handbook.md": HANDBOOK.encode(),
        "web/tide-table.html": TABLE.encode(),
        "contracts/采购合同.docx": docx(CONTRACT),
        "contracts/invoice.pdf": pdf(INVOICE),
        "mail/delivery.eml": eml(*MAIL),
        "accounts/2024.xlsx": xlsx(ACCOUNTS),
    }


def main(folder: Path) -> None:
    """Write them all below `folder`."""
    for name, content in files().items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "samples")
