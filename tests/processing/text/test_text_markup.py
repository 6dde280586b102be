"""HTML, XML and RTF, tame and wild."""

from __future__ import annotations

import pytest

from tidegate.errors import Failure, ProcessingError
from tidegate.processing.text import Text, TextLimits, extract
from tidegate.processing.text.html import html_text, is_tame

LIMITS = TextLimits()
PAGE = (
    "<html><head><title>Tide &amp; gate</title><style>p{color:red}</style><script>var x='<p>no</p>';</script></head>"
    "<body>"
    "<h1>Head</h1><p>One <b>bo</b>ld\n  word.</p><table><tr><td>a<td>b</tr><tr><th>c</th><td></td></tr></table>"
    "<pre>kept   as\n  is</pre><ul><li>x<li>y</ul>&lt;tag&gt;<br>潮汐</body></html>"
)
SHOWN = "Head\nOne bold word.\na\tb\nc\nkept   as\nis\nx\ny\n<tag>\n潮汐"


def read(data: bytes, name: str = "file") -> Text:
    return extract(data, name, LIMITS)


@pytest.mark.parametrize("name", ["a.html", "a.doc", "a.txt", "a", "a.pdf"])
def test_html_gives_what_a_browser_shows_whatever_its_name(name: str) -> None:
    assert read(PAGE.encode(), name) == Text(SHOWN, "html", "Tide & gate", 0, 0, False)


def test_flat_reading_of_html_gives_the_same_words() -> None:
    flat = html_text(PAGE, TextLimits(html_nesting=0))
    assert not is_tame(PAGE, TextLimits(html_nesting=0))
    assert (flat[0].split(), flat[1]) == (SHOWN.split(), "Tide & gate")


@pytest.mark.parametrize(
    ("encoding", "declared"),
    [
        ("gbk", "gb2312"),
        ("gb18030", "gbk"),
        ("utf-8", "utf-8"),
        ("utf-8", "iso-8859-1"),
        ("utf-16", "utf-16"),
        ("gbk", "utf-8"),
        ("utf-8", "gbk"),
        ("gbk", ""),
    ],
)
def test_html_is_decoded_by_its_own_word_by_its_mark_or_by_a_guess(encoding: str, declared: str) -> None:
    meta = f"<meta http-equiv=Content-Type content='text/html; charset={declared}'>" if declared else ""
    page = f"<html><head>{meta}</head><body>闸门管理办法与潮汐记录，请各部门认真执行</body></html>"
    assert read(page.encode(encoding), "a.htm").text == "闸门管理办法与潮汐记录，请各部门认真执行"


@pytest.mark.parametrize(
    "markup",
    [
        "<div>" * 100_000 + "deep",
        "<div></x>" * 100_000 + "deep",
        "<p " + " ".join(f"a{number}=1" for number in range(50_000)) + ">deep",
        "<p " + "a" + "".join(f'="1"b{number}' for number in range(50_000)) + ">deep",
        "<p deep" * 100_000,
        "<!--" * 100_000 + "deep",
        "<b><i>" * 50_000 + "deep",
        "deep" + "<" * 200_000,
        "deep" + "&" * 200_000,
        "deep " + " " * 400_000 + "x",
        "<script>" + "</scrip" * 100_000,
        "<table><tr><td>" * 30_000 + "deep",
    ],
    ids=range(12),
)
@pytest.mark.timeout(20)  # squares of these lengths take minutes
def test_hostile_html_is_read_in_linear_time(markup: str) -> None:
    found = read(b"<html>" + markup.encode(), "a.html")
    assert found.kind == "html"


def test_xml_gives_each_elements_text_on_its_own_line() -> None:
    data = b"<?xml version='1.0'?><feed><title>Tides</title><entry><a>x</a><b>y &amp; z</b></entry></feed>"
    assert read(data, "a.bin") == Text("Tides\nx\ny & z", "xml", "Tides", 0, 0, False)


@pytest.mark.parametrize("encoding", ["gb2312", "gbk", "big5", "shift_jis", "euc-kr", "utf-16"])
def test_xml_is_decoded_from_encodings_that_expat_does_not_know(encoding: str) -> None:
    text = "水門 記"
    data = f"<?xml version='1.0' encoding='{encoding}'?><a>{text}</a>".encode(
        "gbk" if encoding == "gb2312" else encoding
    )
    assert read(data, "a.xml").text == text


def test_drawing_in_svg_gives_its_words() -> None:
    svg = b"<svg xmlns='http://www.w3.org/2000/svg'><style>x</style><text x='1'>High water</text></svg>"
    assert (read(svg, "a.svg").text, read(svg, "a.svg").kind) == ("High water", "xml")


def test_entities_that_would_expand_to_gigabytes_are_never_expanded() -> None:
    levels = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10))
    laughs = f'<?xml version="1.0"?><!DOCTYPE l [<!ENTITY l0 "lol">{levels}]><l>&l9; said once</l>'
    found = read(laughs.encode(), "a.xml")
    assert len(found.text) < 100
    assert "said once" in found.text


def test_entities_from_outside_are_never_looked_for() -> None:
    data = b"<?xml version='1.0'?><!DOCTYPE a [<!ENTITY x SYSTEM 'file:///etc/passwd'>]><a>&x; word</a>"
    assert "root:" not in read(data, "a.xml").text


def test_xml_nested_beyond_the_cap_is_refused() -> None:
    with pytest.raises(ProcessingError) as caught:
        read(b"<?xml version='1.0'?>" + b"<a>" * 100_000, "a.xml")
    assert caught.value.failure is Failure.TOO_LARGE


def test_broken_xml_is_read_like_html() -> None:
    assert read(b"<?xml version='1.0'?><a>one & two<b>three</a>", "a.xml").text.split() == ["one", "&", "twothree"]


def test_rtf_gives_its_text_notes_and_title_whatever_its_name() -> None:
    data = (
        rb"{\rtf1\ansi\ansicpg1252{\fonttbl{\f0 Arial;}}{\info{\title Tide log}}Caf\'e9 \u28526?\u27728?{\b bold}\par "
        rb"next{\footnote note}\par\trowd a\cell b\cell\row}"
    )
    found = read(data, "a.doc")
    assert (found.kind, found.title) == ("rtf", "Tide log")
    assert found.text == "Café 潮汐bold\nnext\nnote\na\tb"


def test_chinese_rtf_in_bytes_is_decoded_by_its_code_page() -> None:
    octets = "闸门记录丂A".encode("gbk")
    hexed = b"".join(b"\\'%02x" % octet if octet > 127 else bytes([octet]) for octet in octets)
    assert read(b"{\\rtf1\\ansi\\ansicpg936 " + hexed + b"}").text == "闸门记录丂A"


def test_characters_beyond_the_basic_plane_come_whole_out_of_rtf_and_halves_do_not_come_out() -> None:
    assert read(rb"{\rtf1 \u-10180?\u-9214? \u-10180?x}").text == "\U0001f002 \ufffdx"


def test_pictures_in_rtf_are_passed_over() -> None:
    data = b"{\\rtf1 before {\\pict\\wmetafile8 " + b"0123456789abcdef" * 5_000 + b"}{\\pict\\bin8 {{{{}}\\\\}after}"
    assert read(data).text.split() == ["before", "after"]


@pytest.mark.parametrize(
    "piece", [b"{\\field{\\*\\fldinst{HYPERLINK ", b"\\f1", b"{", b"}", b"\\'e9", b"\\u1?", b"{\\fonttbl\\f1 "]
)
@pytest.mark.timeout(20)
def test_hostile_rtf_is_read_in_linear_time(piece: bytes) -> None:
    try:
        read(b"{\\rtf1 " + piece * 20_000 + b"}")
    except ProcessingError as error:
        assert error.failure is Failure.CORRUPT  # noqa: PT017
