"""The text of HTML: what a browser would show, block by block, with tabs between a table's cells.

Scripts and styles are dropped. selectolax builds the tree where a linear look at the markup found it tame; its tree
building is quadratic in nesting and in attributes, so wilder markup gets a flat reading that is linear in its length.
"""

from __future__ import annotations

import html
import re
from typing import TYPE_CHECKING

from tidegate.processing.text.charsets import decode_markup
from tidegate.processing.text.gathering import Gathering, clean, finish, tidy
from tidegate.processing.text.limits import Text, TextLimits

if TYPE_CHECKING:
    from selectolax.lexbor import LexborNode

_BLOCKS = frozenset({
    "address", "article", "aside", "blockquote", "body", "br", "caption", "center", "dd", "details", "dialog",
    "dir", "div", "dl", "dt", "fieldset", "figcaption", "figure", "footer", "form", "h1", "h2", "h3", "h4", "h5",
    "h6", "header", "hr", "html", "legend", "li", "main", "menu", "nav", "ol", "optgroup", "option", "p", "pre",
    "section", "select", "summary", "table", "tbody", "textarea", "tfoot", "thead", "title", "tr", "ul",
})  # fmt: skip
_DROPPED = frozenset({"script", "style", "template", "noframes", "object", "iframe", "head"})
_VERBATIM = frozenset({"pre", "textarea", "listing", "xmp"})
_CELLS = frozenset({"td", "th"})
_VOID = frozenset({
    "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track", "wbr",
    "keygen", "frame",
})  # fmt: skip
_CLOSES_ITSELF = frozenset({
    "p", "li", "td", "th", "tr", "dt", "dd", "option", "optgroup", "tbody", "thead", "tfoot", "colgroup", "rp",
    "rt", "html", "head", "body",
})  # fmt: skip

_CHARSET = re.compile(
    rb"""<meta[^>]{1,300}?charset\s*=\s*["']?\s*([A-Za-z0-9._:-]{1,40})"""
    rb"""|<\?xml[^>]{0,100}?encoding\s*=\s*["']([A-Za-z0-9._:-]{1,40})""",
    re.IGNORECASE,
)
_TAG = re.compile(r"<(/?)([a-zA-Z][^\s/<>]*)([^<>]*)(>?)")
_TOKEN = re.compile(r"<!--|<(/?)([a-zA-Z][^\s/<>]*)[^<>]*>?|<[!?/][^<>]*>?")
_QUOTED = re.compile(r""""[^"]*"|'[^']*'""")
_SEPARATORS = re.compile(r"[\s/=]+")
_BLANKS = re.compile("[ \t\n\r\f\xa0]+")
_RAW_END = {name: re.compile(rf"</{name}\b[^<>]*>?", re.IGNORECASE) for name in ("script", "style", "title")}
_TITLE = re.compile(r"<title\b[^<>]*>([^<]{0,2000})", re.IGNORECASE)
_LONG_TAG = 2_000
_TREE_CHARACTERS = 60_000_000


def read_html(data: bytes, limits: TextLimits) -> Text:
    """The text of an HTML file; never fails, since any bytes are some HTML."""
    found = _CHARSET.search(data[:4096])
    label = (found[1] or found[2]).decode("ascii") if found else ""
    markup = decode_markup(data, label)
    text, title, is_cut = html_text(markup, limits)
    return finish(text, "html", limits, title=title, is_cut=is_cut)


def html_text(markup: str, limits: TextLimits) -> tuple[str, str, bool]:
    """The text and the title of `markup`, and whether the text was cut."""
    markup = clean(markup)
    gathering = Gathering(limits)
    layout = _Layout(gathering)
    if len(markup) <= _TREE_CHARACTERS and is_tame(markup, limits):
        title = _read_tree(markup, layout)
    else:
        title = _read_flat(markup, layout)
    return tidy(gathering.join()), title, gathering.is_cut


def is_tame(markup: str, limits: TextLimits) -> bool:
    """Whether no tag has too many attributes and no element can nest too deep; an estimate that errs towards no."""
    opened: dict[str, int] = {}
    depth = unclosed = 0
    for slash, name, rest, closed in _TAG.findall(markup):
        unclosed = 0 if closed else unclosed + 1
        if unclosed > limits.html_attributes:
            return False
        if len(rest) > _LONG_TAG and len(_SEPARATORS.split(_QUOTED.sub("=", rest))) > 2 * limits.html_attributes:
            return False
        name = name.lower()
        if name in _VOID or name in _CLOSES_ITSELF:
            continue
        if not slash:
            depth += 1
            opened[name] = opened.get(name, 0) + 1
            if depth > limits.html_nesting:
                return False
        elif opened.get(name):
            depth -= 1
            opened[name] -= 1
    return True


class _Layout:
    """Turns tags and text, in order, into lines."""

    def __init__(self, gathering: Gathering) -> None:
        self._out = gathering
        self._verbatim = 0

    @property
    def is_done(self) -> bool:
        return self._out.is_full

    def open(self, tag: str) -> None:
        if tag in _BLOCKS:
            self._out.mark("\n")
        elif tag in _CELLS and self._out.pieces and self._out.pieces[-1] not in ("\n", "\t"):
            self._out.add("\t")
        if tag in _VERBATIM:
            self._verbatim += 1

    def close(self, tag: str) -> None:
        if tag in _CELLS:
            self._out.add("\t")
        elif tag == "tr":
            self._out.close_row()
        elif tag in _BLOCKS:
            self._out.mark("\n")
        if tag in _VERBATIM and self._verbatim:
            self._verbatim -= 1

    def text(self, text: str) -> None:
        if not self._verbatim:
            if not text.isprintable() or "  " in text:
                text = _BLANKS.sub(" ", text)
            if text == " " and self._out.pieces and self._out.pieces[-1][-1:] in ("\n", "\t", " "):
                return
        self._out.add(text)


def _read_tree(markup: str, layout: _Layout) -> str:
    from selectolax.lexbor import LexborHTMLParser

    tree = LexborHTMLParser(markup)
    heading = tree.css_first("title")
    if tree.root is not None:
        _walk(tree.root, layout)
    return heading.text() if heading is not None else ""


def _walk(root: LexborNode, layout: _Layout) -> None:
    end = root.mem_id  # nodes compare by their markup, which is slow
    node: LexborNode | None = root
    while node is not None:
        tag = node.tag or "-"
        if tag == "-text":
            layout.text(node.text_content or "")
            if layout.is_done:
                return
        elif tag not in _DROPPED and tag[0] not in "-!_":
            layout.open(tag)
            inner = node.first_child
            if inner is not None:
                node = inner
                continue
            layout.close(tag)
        follower = node.next
        while follower is None:
            node = node.parent
            if node is None or node.mem_id == end:
                return
            layout.close(node.tag or "-")
            follower = node.next
        node = follower


def _read_flat(markup: str, layout: _Layout) -> str:
    at, has_comment_end = 0, True
    while not layout.is_done:
        token = _TOKEN.search(markup, at)
        if token is None:
            layout.text(html.unescape(markup[at:]))
            break
        if token.start() > at:
            layout.text(html.unescape(markup[at : token.start()]))
        at = token.end()
        if token[0] == "<!--":
            end = markup.find("-->", at) if has_comment_end else -1
            has_comment_end = end >= 0
            at = end + 3 if end >= 0 else at
        elif token[2]:
            at = _flat_tag(markup, token, layout)
    title = _TITLE.search(markup)
    return html.unescape(title[1]) if title else ""


def _flat_tag(markup: str, token: re.Match[str], layout: _Layout) -> int:
    """Lay out one tag; answers where reading goes on."""
    tag = token[2].lower()
    if token[1]:
        layout.close(tag)
    elif tag in _RAW_END:
        end = _RAW_END[tag].search(markup, token.end())
        return end.end() if end else len(markup)
    else:
        layout.open(tag)
        if tag in ("br", "hr"):
            layout.close(tag)
    return token.end()
