"""The text of a PDF, page by page, through PDFium; every handle is closed before the next page is opened.

A page without text, or with text that is only glyph numbers, is counted as a candidate for OCR. A page that PDFium
cannot load counts the same; a file of which no page can be loaded is damaged. Raises ProcessingError.
"""

from __future__ import annotations

from typing import Any

from tidegate.processing.text.gathering import PAGE_END, clean, cut, one_line
from tidegate.processing.text.glyphs import is_garbage
from tidegate.processing.text.limits import Text, TextLimits, damaged, encrypted

_PASSWORD, _SECURITY = 4, 5  # FPDF_ERR_*


def read_pdf(data: bytes, limits: TextLimits) -> Text:
    """The text of a PDF; one that only an owner password protects opens."""
    document = _open(data)
    try:
        count = len(document)
        if count == 0:
            raise damaged("PDF", "it has no pages")
        pages, is_cut = _read_pages(document, min(count, limits.pages), limits)
        title = document.get_metadata_value("Title")
    finally:
        document.close()
    missing = sum(not page.strip() or is_garbage(page) for page in pages)
    text, is_over = cut(PAGE_END.join(map(_tidy_page, pages)), limits.text_bytes)
    return Text(text, "pdf", one_line(title), count, missing, is_cut or is_over or count > limits.pages)


def _open(data: bytes) -> Any:
    import pypdfium2

    try:
        return pypdfium2.PdfDocument(data)
    except pypdfium2.PdfiumError as error:
        # PDFium's last error may be that of a file before; without this entry no PDF is encrypted.
        if error.err_code in (_PASSWORD, _SECURITY) and b"/Encrypt" in data:
            raise encrypted("PDF") from error
        raise damaged("PDF", error) from error


def _read_pages(document: Any, count: int, limits: TextLimits) -> tuple[list[str], bool]:
    import pypdfium2

    pages: list[str] = []
    room, failed = limits.text_bytes, 0
    for number in range(count):
        if room <= 0:
            return pages, True
        try:
            pages.append(_read_page(document, number))
        except pypdfium2.PdfiumError as error:
            failed += 1
            if failed == count:
                raise damaged("PDF", f"none of its pages can be loaded ({error})") from error
            pages.append("")
        room -= len(pages[-1])
    return pages, False


def _read_page(document: Any, number: int) -> str:
    page = document[number]
    try:
        text = page.get_textpage()
        try:
            return str(text.get_text_range())
        finally:
            text.close()
    finally:
        page.close()


def _tidy_page(text: str) -> str:
    return clean(text).replace(PAGE_END, "\n").strip("\n ")
