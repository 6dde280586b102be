"""Tells what a file is by its first bytes, and by its ending only where the bytes leave it open.

The answer is a `Kind`; nothing is parsed. Containers (zip, OLE) and markup are told apart further by their readers.
"""

from __future__ import annotations

import re
from enum import StrEnum

from tidegate.processing.text.charsets import is_binary


class Kind(StrEnum):
    """What the bytes are, as far as their head shows."""

    PDF = "pdf"
    ZIP = "zip"
    OLE = "ole"
    RTF = "rtf"
    HTML = "html"
    XML = "xml"
    MAIL = "eml"
    MAILBOX = "mbox"
    PLAIN = "plain"
    NO_TEXT = "unknown"


_MAGIC = (
    (b"%PDF-", Kind.PDF),
    (b"PK\x03\x04", Kind.ZIP),
    (b"PK\x05\x06", Kind.ZIP),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", Kind.OLE),
    (b"{\\rtf", Kind.RTF),
)
_NO_TEXT = (
    b"\x89PNG", b"\xff\xd8\xff", b"GIF87a", b"GIF89a", b"BM", b"II*\0", b"MM\0*", b"RIFF", b"\0\0\1\0", b"8BPS",
    b"OggS", b"fLaC", b"ID3", b"\xff\xfb", b"\xff\xf3", b"\x1aE\xdf\xa3", b"FLV\1", b"\x30\x26\xb2\x75", b"MThd",
    b"\x7fELF", b"MZ", b"\xca\xfe\xba\xbe", b"\xcf\xfa\xed\xfe", b"\0asm", b"SQLite format 3\0", b"wOFF", b"wOF2",
    b"\x1f\x8b", b"BZh", b"\xfd7zXZ\0", b"7z\xbc\xaf\x27\x1c", b"Rar!\x1a\x07", b"\x28\xb5\x2f\xfd",
    b"\x04\x22\x4d\x18", b"PK\x07\x08",
    b"AC10", b"%!PS-AdobeFont", b"-----BEGIN PGP MESSAGE", b"wOTF", b"OTTO", b"\0\1\0\0\0", b"ttcf",
)  # fmt: skip
_NO_TEXT_AFTER = ((4, b"ftyp"), (4, b"moov"), (4, b"mdat"), (4, b"jP  "), (257, b"ustar"), (128, b"DICM"))
_TWO_LETTERS = (b"BM", b"MZ", b"ID3", b"RIFF", b"BZh", b"AC10", b"OTTO", b"OggS", b"fLaC", b"ttcf", b"8BPS", b"MThd")

_NOT_MARKUP = frozenset({
    "md", "markdown", "mdx", "rst", "txt", "php", "phtml", "jsx", "tsx", "vue", "svelte", "js", "ts", "jsp", "asp",
    "aspx", "erb", "ejs", "hbs", "tpl", "tmpl", "j2", "py", "c", "h", "cpp", "hpp", "java", "cs", "go", "rs", "rb",
    "pl", "sh", "log", "csv", "tsv", "json", "ini", "cfg", "conf", "tex", "diff", "patch",
})  # fmt: skip
_XML_ENDINGS = frozenset({
    "xml", "svg", "rss", "atom", "xsl", "xslt", "xsd", "kml", "gpx", "fb2", "opml", "fodt", "fods", "fodp", "plist",
    "dita", "docbook", "dbk", "rdf", "owl", "xmp", "tei", "wsdl",
})  # fmt: skip
_HTML_ENDINGS = frozenset({"html", "htm", "xhtml", "shtml"})
_HTML_START = re.compile(
    r"(?:<!--.{0,4000}?-->\s*)*<(?:!doctype\s+html|html|head|body|title|meta|script|style|link|table|div|p|h[1-6]|br|span"
    r"|font|center|ul|ol|a|b|i|form|img|hr|section|article|main|nav|header|footer)\b",
    re.IGNORECASE | re.DOTALL,
)
_HTML_ROOT = re.compile(r"<(?:!doctype\s+html|html)\b", re.IGNORECASE)
_XML_START = re.compile(
    r"(?:<!--.{0,4000}?-->\s*)*<(?:\?xml\b|!DOCTYPE\b|[A-Za-z_][\w.-]{0,60}(?::\w+)?(?=[\s>/]))", re.DOTALL
)
_HEADER = re.compile(r"([A-Za-z][A-Za-z0-9-]{1,60}):[ \t]?\S?")
_MAIL_HEADERS = frozenset({
    "from", "to", "cc", "bcc", "subject", "date", "message-id", "mime-version", "received", "return-path",
    "content-type", "delivered-to", "reply-to", "sender", "x-mailer", "in-reply-to", "references", "dkim-signature",
    "content-transfer-encoding", "authentication-results", "importance",
})  # fmt: skip
_MAIL_ENDINGS = frozenset({"eml", "mht", "mhtml", "email", "nws"})


def sniff(data: bytes, name: str) -> Kind:
    """What the file with this content and name is."""
    ending = name.rpartition(".")[2].lower() if "." in name else ""
    for magic, kind in _MAGIC:
        if data.startswith(magic):
            return kind
    head = data[:4096]
    if _is_late_pdf(data, head, ending):
        return Kind.PDF
    if _is_known_without_text(head):
        return Kind.NO_TEXT
    return _sniff_text(_as_text(head), ending)


def _is_late_pdf(data: bytes, head: bytes, ending: str) -> bool:
    # Programs accept a PDF that begins within the first kilobyte; a text that speaks of "%PDF-" is none.
    if b"%PDF-" not in head[:1100]:
        return False
    return ending == "pdf" or is_binary(head) or b"%%EOF" in data[-1100:]


def _is_known_without_text(head: bytes) -> bool:
    if any(head[at : at + len(magic)] == magic for at, magic in _NO_TEXT_AFTER):
        return True
    if not head.startswith(_NO_TEXT):
        return False
    return not head.startswith(_TWO_LETTERS) or is_binary(head)


def _as_text(head: bytes) -> str:
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return head[: len(head) // 2 * 2].decode("utf-16", "replace").lstrip("\ufeff \t\r\n")
    if head[1:4:2] == b"\0\0" and head[:1] == b"<":
        return head.decode("utf-16-le", "replace").lstrip()
    if head[0:3:2] == b"\0\0" and head[1:2] == b"<":
        return head.decode("utf-16-be", "replace").lstrip()
    return head.decode("latin-1").removeprefix("\xef\xbb\xbf").lstrip(" \t\r\n\0")


def _sniff_text(head: str, ending: str) -> Kind:
    if head.startswith("{\\rtf"):
        return Kind.RTF
    if head.startswith("<"):
        return _sniff_markup(head, ending)
    if head.startswith("From ") and _mail_headers(head.partition("\n")[2]) >= 2:
        return Kind.MAILBOX
    found = _mail_headers(head)
    if found >= (1 if ending in _MAIL_ENDINGS else 3):
        return Kind.MAIL
    if ending in _HTML_ENDINGS and re.search(r"<[a-z!/][^>]{0,200}>", head, re.IGNORECASE):
        return Kind.HTML
    return Kind.PLAIN


def _sniff_markup(head: str, ending: str) -> Kind:
    is_xml = head.startswith("<?xml")
    if is_xml or ending not in _NOT_MARKUP:
        if _HTML_ROOT.search(head[:2048]) and ending not in _NOT_MARKUP | {"xsl", "xslt"}:
            return Kind.HTML
        if is_xml:
            return Kind.XML
        if ending in _XML_ENDINGS:
            return Kind.XML
        if ending in _HTML_ENDINGS or _HTML_START.match(head):
            return Kind.HTML
        return Kind.XML if _XML_START.match(head) else Kind.PLAIN
    return (
        Kind.HTML if re.match(r"<(?:!doctype\s+html|html)\b", head, re.IGNORECASE) and ending == "txt" else Kind.PLAIN
    )


def _mail_headers(head: str) -> int:
    """How many different headers of mail stand at the start, before anything that is no header."""
    found: set[str] = set()
    for line in head.splitlines()[:60]:
        if line[:1] in (" ", "\t") and found:
            continue
        header = _HEADER.match(line)
        if header is None:
            break
        name = header[1].lower()
        if name in _MAIL_HEADERS and header[1][0].isupper():  # YAML has such keys too, in lower case
            found.add(name)
    return len(found)
