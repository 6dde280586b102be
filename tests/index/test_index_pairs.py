"""Chinese is found exactly: over random small pools, a search finds what plain containment finds."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st
from index_samples import MEMORY, document, names_found, numbered

from tidegate.index import Searcher, publish

ALPHABET = "合同数据法后"
PIECES = st.sampled_from([*ALPHABET, "ok", "gen", " ", "，", "\n", "-"])
TEXTS = st.lists(st.lists(PIECES, max_size=14).map("".join), min_size=1, max_size=8)
Find = Callable[[Searcher, str], set[bytes]]


def words_in(texts: list[str]) -> list[str]:
    """Every run of one to six Chinese characters that stands in a text, and some that need not."""
    words = {text[at : at + length] for text in texts for at in range(len(text)) for length in range(1, 7)}
    return sorted(word for word in words if word and all(character in ALPHABET for character in word))[:60]


def differences(
    texts: list[str], words: list[str], find: Find = names_found
) -> list[tuple[str, set[bytes], set[bytes]]]:
    """The words for which the search and containment disagree."""
    with TemporaryDirectory(dir=MEMORY) as folder:
        root = Path(folder)
        publish(root, numbered(document(at, text) for at, text in enumerate(texts)), now_ns=1, memory_bytes=15_000_000)
        with Searcher(root) as searcher:
            pairs = [
                (word, find(searcher, word), {b"file-%d.txt" % at for at, text in enumerate(texts) if word in text})
                for word in words
            ]
    return [(word, found, held) for word, found, held in pairs if found != held]


@given(TEXTS, st.lists(st.text(st.sampled_from(ALPHABET), min_size=1, max_size=6), max_size=8))
@settings(max_examples=60, deadline=None)
def test_any_chinese_word_finds_exactly_the_texts_that_contain_it(texts: list[str], others: list[str]) -> None:
    assert differences(texts, words_in(texts) + others) == []


def test_comparison_would_notice_a_wrong_search() -> None:
    texts = ["合同数据", "数据合同", "合数同据"]

    def any_of_its_characters(searcher: Searcher, word: str) -> set[bytes]:
        return names_found(searcher, " OR ".join(word))

    assert differences(texts, ["合同"]) == []
    assert [word for word, _, _ in differences(texts, ["合同"], any_of_its_characters)] == ["合同"]
    assert words_in(["合同 ok"]) == ["合", "合同", "同"]
