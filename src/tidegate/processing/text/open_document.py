"""The text of OpenDocument files: odt, odp, ods, their templates and their flat XML kind.

Body first, then the headers and footers of the page styles. Slides are pages. A repeated cell is read once. Deleted
text of tracked changes and phonetic guides are left out. Raises ProcessingError; an encrypted file is told by its
manifest.
"""

from __future__ import annotations

from dataclasses import replace

from tidegate.processing.text.archives import Archive
from tidegate.processing.text.gathering import PAGE_END, Gathering, finish, tidy
from tidegate.processing.text.limits import Text, TextLimits, damaged, encrypted
from tidegate.processing.text.office_xml import read_title
from tidegate.processing.text.xml_events import Attributes, attribute, read_xml

_SKIPPED = frozenset({
    "tracked-changes", "ruby-text", "binary-data", "note-citation", "automatic-styles", "scripts",
    "font-face-decls", "settings", "meta", "forms", "database-ranges", "calculation-settings",
    "page-number", "page-count", "sheet-name",
})  # fmt: skip
_KINDS = {
    "text": "odt",
    "presentation": "odp",
    "spreadsheet": "ods",
    "graphics": "odg",
    "chart": "odt",
    "formula": "odt",
}
_MOST_BLANKS = 1_000


class OdfReader:
    """The running text of one part of an OpenDocument file."""

    def __init__(self, out: Gathering) -> None:
        self.out = out
        self.is_done = False
        self.title = ""
        self.pages = 0
        self._skipped = 0
        self._paragraphs = 0
        self._cells: list[int] = []

    def start(self, name: str, attributes: Attributes) -> None:
        """An element begins."""
        if self._skipped or name in _SKIPPED:
            self._skipped += 1
        elif name in ("p", "h"):
            if self._paragraphs:
                self.out.mark("\n")
            self._paragraphs += 1
        elif name == "tab":
            self.out.add("\t")
        elif name == "line-break":
            self.out.add("\n")
        elif name == "s":
            count = attribute(attributes, "c")
            self.out.add(" " * min(int(count) if count.isdecimal() else 1, _MOST_BLANKS))
        elif name in ("table-cell", "covered-table-cell"):
            self._cells.append(len(self.out.pieces))
        elif name == "page":
            self._begin_page()

    def end(self, name: str) -> None:
        """An element ends."""
        if self._skipped:
            self._skipped -= 1
        elif name in ("p", "h"):
            self._paragraphs -= 1
            self.out.mark("\n")
        elif name in ("table-cell", "covered-table-cell") and self._cells:
            self.out.close_cell(self._cells.pop())
        elif name == "table-row":
            self.out.close_row()

    def characters(self, text: str) -> None:
        """Text, of which only that in paragraphs is meant for readers; its line ends are blanks."""
        if self._paragraphs and not self._skipped:
            self.out.add(text.replace("\n", " ") if "\n" in text else text)
            self.is_done = self.out.is_full

    def _begin_page(self) -> None:
        if self.pages:
            self.out.add(PAGE_END)
        self.pages += 1


def read_odf(archive: Archive, limits: TextLimits) -> Text:
    """The text of an OpenDocument file."""
    what = "OpenDocument file"
    if b"encryption-data" in archive.read("META-INF/manifest.xml") or archive.holds("encrypted-package"):
        raise encrypted(what)
    content = archive.read("content.xml")
    if not content:
        raise damaged(what, "its part content.xml is missing or empty")
    out = Gathering(limits)
    reader = OdfReader(out)
    read_xml(content, reader, limits, what)
    pages = reader.pages
    styles = archive.read("styles.xml")
    if b"text:p" in styles and not out.is_full:
        read_xml(styles, OdfReader(out), limits, what)
    title = read_title(archive.read("meta.xml"), limits, what)
    found = finish(tidy(out.join()), _kind(archive), limits, title=title, is_cut=out.is_cut or out.is_full)
    return replace(found, pages=pages)


def _kind(archive: Archive) -> str:
    media = archive.read("mimetype")[:200].decode("latin-1").rpartition("opendocument.")[2]
    return _KINDS.get(media.partition("-")[0].strip(), "odt")
