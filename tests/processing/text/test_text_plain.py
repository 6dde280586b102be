"""Plain text in the encodings of the world, and bytes that are no text."""

from __future__ import annotations

import random

import pytest

from tidegate.errors import Failure, ProcessingError
from tidegate.processing.text import Text, TextLimits, extract

LIMITS = TextLimits()
CHINESE = "闸门管理办法：数据安全与潮汐记录，请各部门认真执行。\n第二条 本办法自公布之日起施行。\n"
TAIWANESE = "這是一份關於潮汐閘門的紀錄，請各部門認真執行。\n第二條 本辦法自公布日施行。\n"
JAPANESE = "これは水門の記録です。東京湾の潮位は毎日測定されています。\n"
KOREAN = "이것은 수문의 기록입니다. 조수의 높이는 매일 측정됩니다.\n"
RUSSIAN = "Это обычная запись о приливах, которую никто не читает.\n"
FRENCH = "L'écluse a été fermée à cause de la marée; les élèves ont dû s'arrêter là-bas.\n"


def read(data: bytes, name: str = "a.txt") -> Text:
    return extract(data, name, LIMITS)


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        (CHINESE, "utf-8"), (CHINESE, "utf-8-sig"), (CHINESE, "utf-16"), (CHINESE, "utf-16-le"), (CHINESE, "utf-16-be"),
        (CHINESE, "utf-32"), (CHINESE, "gbk"), (CHINESE, "gb2312"), (CHINESE, "gb18030"), (TAIWANESE, "big5"),
        (JAPANESE, "shift_jis"), (JAPANESE, "euc-jp"), (JAPANESE, "iso-2022-jp"), (KOREAN, "euc-kr"),
        (RUSSIAN, "cp1251"), (RUSSIAN, "koi8-r"), (FRENCH, "latin-1"), (FRENCH, "utf-16-le"), (FRENCH, "utf-16-be"),
        (FRENCH, "utf-32-le"), (FRENCH, "utf-32-be"),
    ],
)  # fmt: skip
def test_text_is_decoded_from_its_encoding(text: str, encoding: str) -> None:
    found = read(text.encode(encoding))
    assert (found.text, found.kind, found.is_truncated) == (text, "plain", False)


def test_short_chinese_in_gbk_is_not_taken_for_western_letters() -> None:
    snippets = ("潮汐记录", "会议纪要模板", "数据安全管理办法", "关于放假的通知", "项目验收报告", "财务报表说明")
    assert [read(snippet.encode("gbk")).text for snippet in snippets] == list(snippets)


def test_few_accents_are_western_and_one_chinese_word_in_source_code_is_chinese() -> None:
    for text in ("naïve café", "Müller & Söhne GmbH, Straße 5", "mañana España", "30°C ±2"):
        assert read(text.encode("cp1252")).text == text
    for text in ("int main() {\n  return 0; // 返回\n}\n", "姓名,金额\n张三,100\n"):
        assert read(text.encode("gbk"), "a.c").text == text


def test_chinese_far_behind_an_english_head_is_decoded() -> None:
    text = "just ASCII for a long while\n" * 20_000 + CHINESE
    assert read(text.encode("gbk")).text == text


def test_file_cut_within_a_character_gives_all_whole_ones() -> None:
    assert read(CHINESE.encode()[:-2]).text == CHINESE[:-2]
    found = extract("潮汐".encode()[:-1], "a.txt", LIMITS, is_whole=False)
    assert (found.text, found.is_truncated) == ("潮", True)


def test_few_broken_bytes_do_not_turn_utf8_into_mojibake() -> None:
    assert read((CHINESE * 5).encode() + b"\xff\xfe broken " + CHINESE.encode()).text.count("闸门管理办法") == 6


def test_log_with_a_stretch_of_nul_is_still_read() -> None:
    assert (
        read(b"before the crash\n" + b"\0" * 4096 + b"after the crash\n").text == "before the crash\nafter the crash\n"
    )


def test_line_ends_are_one_kind_and_control_characters_are_gone() -> None:
    assert read(b"a\r\nb\rc\x07\x1b[0md\ttab\fpage\xc2\xadsoft").text == "a\nb\nc[0md\ttab\fpagesoft"


@pytest.mark.parametrize("name", ["a.md", "a.py", "a.csv", "a.json", "a.log", "a", "a.weird", "\udcff.txt", "潮", ""])
def test_name_does_not_matter_to_plain_text(name: str) -> None:
    assert read(b"name,height\nnoon,4.2\n", name).text == "name,height\nnoon,4.2\n"


def test_markdown_that_begins_with_a_tag_stays_plain() -> None:
    assert read(b"<div align=center>\n\n# Title\n", "README.md").kind == "plain"


def test_random_bytes_are_no_text() -> None:
    numbers = random.Random(7)
    for size in (64, 1_000, 100_000):
        assert read(numbers.randbytes(size), "a.txt") == Text("", "unknown", "", 0, 0, False)


@pytest.mark.parametrize(
    "head",
    [
        b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff\xe0\0\x10JFIF", b"GIF89a\1\0", b"\0\0\0\x18ftypmp42", b"RIFF\0\1\0\0AVI ",
        b"\x1aE\xdf\xa3\1\0", b"ID3\3\0\0", b"\x7fELF\2\1\1\0", b"\x1f\x8b\x08\0", b"Rar!\x1a\x07\0", b"BM\x36\0\0\0\0",
    ],
)  # fmt: skip
def test_pictures_sound_film_and_programs_are_unknown_and_no_failure(head: bytes) -> None:
    assert read(head + bytes(range(256)) * 4, "a.txt").kind == "unknown"


def test_text_that_begins_like_a_magic_number_is_text() -> None:
    assert read(b"BM stands for bench mark", "a.txt").kind == "plain"
    assert read(b"ID3 tags are metadata", "a.txt").kind == "plain"


@pytest.mark.parametrize("data", [b"", b"\0", b"\0" * 100_000])
def test_nothing_and_only_nul_are_empty(data: bytes) -> None:
    with pytest.raises(ProcessingError) as caught:
        read(data)
    assert caught.value.failure is Failure.EMPTY


def test_head_of_nul_says_nothing_about_the_rest() -> None:
    assert extract(b"\0" * 5_000, "a.img", LIMITS, is_whole=False).kind == "unknown"


def test_head_of_a_large_text_is_used_and_said_to_be_cut() -> None:
    found = extract(b"first lines\n", "a.log", LIMITS, is_whole=False)
    assert (found.text, found.is_truncated) == ("first lines\n", True)


def test_text_beyond_the_cap_is_cut() -> None:
    found = extract(b"0123456789" * 10, "a", TextLimits(text_bytes=15))
    assert (found.text, found.is_truncated) == ("012345678901234", True)
    exact = extract(b"0123456789", "a", TextLimits(text_bytes=10))
    assert (exact.text, exact.is_truncated) == ("0123456789", False)
