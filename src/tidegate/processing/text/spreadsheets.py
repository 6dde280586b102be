"""The text of workbooks: xlsx, xlsm, xlsb and xls. Each sheet's name, then its rows with tabs between the cells.

calamine lays a sheet out as a full rectangle, so one cell in the last corner asks for gigabytes: an xlsx sheet whose
cells are few and far between is streamed here instead. Raises ProcessingError.
"""

from __future__ import annotations

import datetime as dt
import io
import re
from collections.abc import Iterable, Iterator
from typing import Any

from tidegate.processing.text.archives import Archive
from tidegate.processing.text.gathering import Gathering, finish, tidy
from tidegate.processing.text.limits import Text, TextLimits, damaged, encrypted
from tidegate.processing.text.office_xml import Package, loose_texts
from tidegate.processing.text.xml_events import Attributes, read_xml

_WHAT = "workbook"
_COLUMNS = re.compile(rb'<c\s[^>]{0,100}?\br="([A-Z]{1,3})')
_ROWS = re.compile(rb'<row\s[^>]{0,100}?\br="(\d{1,7})"')


def read_xlsx(data: bytes, archive: Archive, limits: TextLimits) -> Text:
    """The text of an xlsx, xlsm or xlsb workbook."""
    archive.refuse_bombs("xl/")
    package = Package(archive, limits, _WHAT)
    out = Gathering(limits)
    kind = "xlsb" if archive.holds("xl/workbook.bin") else "xlsx"
    if kind == "xlsx" and any(_is_sparse(archive.read(name), limits) for name in _sheets(archive)):
        _stream(archive, limits, out)
    else:
        _lay_out(data, out)
    loose_texts(archive, limits, out)
    return finish(tidy(out.join()), kind, limits, title=package.title(), is_cut=out.is_cut or out.is_full)


def read_xls(data: bytes, limits: TextLimits) -> Text:
    """The text of an xls workbook."""
    out = Gathering(limits)
    _lay_out(data, out)
    return finish(tidy(out.join()), "xls", limits, is_cut=out.is_cut or out.is_full)


def _lay_out(data: bytes, out: Gathering) -> None:
    import python_calamine

    try:
        with python_calamine.load_workbook(io.BytesIO(data)) as book:
            for sheet in book.sheets_metadata:
                if sheet.typ == python_calamine.SheetTypeEnum.WorkSheet:
                    out.add(f"\n{sheet.name}\n")
                    _add_rows(book.get_sheet_by_name(sheet.name).iter_rows(), out)
    except python_calamine.PasswordError as error:
        raise encrypted(_WHAT) from error
    except (python_calamine.CalamineError, OSError, ValueError) as error:
        if "password" in str(error).lower() or "encrypt" in str(error).lower():
            raise encrypted(_WHAT) from error
        raise damaged(_WHAT, error) from error


def _add_rows(rows: Iterable[list[Any]], out: Gathering) -> None:
    for row in rows:
        line = "\t".join(map(_shown, row)).rstrip("\t")
        if line:
            out.add(line + "\n")
            if out.is_full:
                return


def _shown(value: object) -> str:
    if isinstance(value, str):
        return " ".join(value.split()) if "\n" in value or "\t" in value else value
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 1e18 else repr(value)
    if isinstance(value, dt.datetime):
        return value.isoformat(" ")
    return str(value)


def _sheets(archive: Archive) -> Iterator[str]:
    return (name for name in archive.names() if name.startswith("xl/worksheets/") and name.endswith(".xml"))


def _is_sparse(sheet: bytes, limits: TextLimits) -> bool:
    """Whether the rectangle around the sheet's cells is too large to lay out."""
    rows = [int(row) for row in _ROWS.findall(sheet)]
    if not rows:
        return False
    width = max(map(_column, set(_COLUMNS.findall(sheet))), default=1)
    return (max(rows) - min(rows) + 1) * width > limits.dense_cells


def _column(letters: bytes) -> int:
    number = 0
    for letter in letters:
        number = number * 26 + letter - 64
    return number


def _stream(archive: Archive, limits: TextLimits, out: Gathering) -> None:
    strings = _Strings(limits)
    shared = archive.read("xl/sharedStrings.xml")
    if shared:
        read_xml(shared, strings, limits, _WHAT)
    for name in _sheets(archive):
        read_xml(archive.read(name), _Sheet(out, strings.found), limits, _WHAT)
        out.mark("\n")


class _Strings:
    """The strings that cells refer to by number."""

    def __init__(self, limits: TextLimits) -> None:
        self.is_done = False
        self.found: list[str] = []
        self._parts: list[str] = []
        self._is_text = False
        self._phonetic = 0

    def start(self, name: str, attributes: Attributes) -> None:
        self._phonetic += name == "rPh"
        self._is_text = name == "t" and not self._phonetic

    def end(self, name: str) -> None:
        self._is_text = False
        self._phonetic -= name == "rPh"
        if name == "si":
            self.found.append("".join(self._parts))
            self._parts = []

    def characters(self, text: str) -> None:
        if self._is_text:
            self._parts.append(text)


class _Sheet:
    """The cells of one sheet in the order of the file."""

    def __init__(self, out: Gathering, strings: list[str]) -> None:
        self.out = out
        self.is_done = False
        self._strings = strings
        self._type = ""
        self._value: list[str] = []
        self._is_value = False

    def start(self, name: str, attributes: Attributes) -> None:
        if name == "c":
            self._type, self._value = attributes.get("t", ""), []
        self._is_value = name in ("v", "t")

    def end(self, name: str) -> None:
        self._is_value = False
        if name == "c":
            value = "".join(self._value)
            if self._type == "s" and value.isdecimal():
                number = int(value) if len(value) < 10 else len(self._strings)
                value = self._strings[number] if number < len(self._strings) else ""
            if value:
                self.out.add(" ".join(value.split()))
                self.out.add("\t")
        elif name == "row":
            self.out.close_row()
        self.is_done = self.out.is_full

    def characters(self, text: str) -> None:
        if self._is_value:
            self._value.append(text)
