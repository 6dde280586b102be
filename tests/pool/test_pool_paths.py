"""PoolPath and display: any bytes, never outside the pool, always fit for eyes."""

from __future__ import annotations

import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.errors import UsageError
from tidegate.pool import PoolPath, display

NAME = st.binary(min_size=1, max_size=20).filter(lambda raw: not {0x2F, 0} & set(raw) and raw not in (b".", b".."))
ANYTHING = st.one_of(st.binary(max_size=40), st.text(max_size=40).map(lambda text: text.encode("utf-8", "replace")))


@given(ANYTHING)
def test_parsed_path_is_inside_the_pool_or_refused(raw: bytes) -> None:
    try:
        path = PoolPath.parse(raw)
    except UsageError:
        assert raw.startswith(b"/") or b".." in raw.split(b"/") or b"\0" in raw
        return
    assert not {b"", b".", b".."} & set(path.raw.split(b"/")) or path.raw == b""
    assert PoolPath.parse(path.raw) == path


@pytest.mark.parametrize("raw", [b"/etc/passwd", b"../x", b"a/../b", b"a/..", b"..", b"a\0b", b"/"])
def test_path_that_leaves_the_pool_is_refused(raw: bytes) -> None:
    with pytest.raises(UsageError) as caught:
        PoolPath.parse(raw)
    assert caught.value.hint


@pytest.mark.parametrize(("raw", "clean"), [(b"", b""), (b".", b""), (b"a//b/./c/", b"a/b/c"), (b"...", b"...")])
def test_empty_and_dot_components_mean_nothing(raw: bytes, clean: bytes) -> None:
    assert PoolPath.parse(raw) == PoolPath(clean)


@given(st.lists(NAME, min_size=1, max_size=5))
def test_path_is_its_folder_and_its_name(names: list[bytes]) -> None:
    path = PoolPath(b"")
    for name in names:
        path = path / name
    assert path.raw == b"/".join(names)
    assert path.folder / path.name == path
    assert path.name == names[-1]


@given(st.binary(max_size=60))
def test_display_holds_nothing_that_moves_a_terminal_or_breaks_json(raw: bytes) -> None:
    shown = display(raw)
    assert not [one for one in shown if unicodedata.category(one) in ("Cc", "Cf", "Cs", "Zl", "Zp")]
    assert json.loads(json.dumps(shown)) == shown
    shown.encode("utf-8")


@given(st.text(st.characters(categories=("L", "N", "P", "S", "Zs")), max_size=30).filter(lambda text: "\\" not in text))
def test_readable_names_are_shown_as_they_are(text: str) -> None:
    assert display(text.encode()) == text


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        (b"\xff.pdf", "\\xff.pdf"),
        (b"a\nb\x1b[0m", "a\\x0ab\\x1b[0m"),
        ("\u202egpj".encode(), "\\u202egpj"),
        ("\u2028".encode(), "\\u2028"),
        ("\U000e0001".encode(), "\\U000e0001"),
        ("🙂 ü".encode(), "🙂 ü"),
    ],
)
def test_what_cannot_be_seen_is_escaped(raw: bytes, shown: str) -> None:
    assert display(raw) == shown
    assert str(PoolPath(raw)) == shown


@given(st.text(st.characters(categories=("L", "M")), min_size=1, max_size=10))
def test_both_spellings_have_one_search_form(text: str) -> None:
    spellings = {PoolPath(unicodedata.normalize(form, text).encode()).search_form for form in ("NFC", "NFD")}
    assert len(spellings) == 1


@pytest.mark.parametrize(
    ("raw", "suffix"), [(b"a/B.PDF", "pdf"), (b"a.tar.gz", "gz"), (b".bashrc", ""), (b"none", ""), (b"x.d/none", "")]
)
def test_suffix_is_the_ending_in_lower_case(raw: bytes, suffix: str) -> None:
    assert PoolPath(raw).suffix == suffix
