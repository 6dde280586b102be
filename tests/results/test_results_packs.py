"""Packs: whole or absent whatever fails, readable up to a cut, and a round trip of any text."""

from __future__ import annotations

import errno
import gzip
import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from results_faults import FAULTS, at_every_operation, one_byte_at_a_time

from tidegate.errors import DiskFull
from tidegate.pool import disk
from tidegate.results import PackEntry, Receipt, TextRef, all_entries, clear_unfinished, read_entry, write_pack
from tidegate.results.packs import FOLDER

NOW = 1_800_000_000_000_000_000
NONCE = "0123abcd"


def entry(number: int, text: str = "some text\n" * 20) -> PackEntry:
    receipt = Receipt(
        pool="office",
        path=f"a/{number}",
        path_hex=f"a/{number}".encode().hex(),
        size=number,
        mtime_ns=number,
        digest=f"sha256:{number:064x}",
        processor="text",
        version="1",
    )
    return PackEntry(receipt, text)


def packs(outputs: Path) -> list[Path]:
    return sorted(path for path in (outputs / FOLDER).rglob("*.jsonl.gz") if not path.name.startswith("."))


def test_entries_come_back_by_their_references(tmp_path: Path) -> None:
    entries = [entry(number) for number in range(5)]
    refs = write_pack(tmp_path, entries, NOW, NONCE)
    assert [read_entry(tmp_path, ref) for ref in refs] == entries
    assert list(all_entries(tmp_path)) == [(ref, one.receipt) for ref, one in zip(refs, entries, strict=True)]


def test_pack_lies_under_its_month_time_and_nonce(tmp_path: Path) -> None:
    (ref,) = write_pack(tmp_path, [entry(1)], NOW, NONCE)
    assert ref.pack == f"2027-01/{NOW:016x}{NONCE}.jsonl.gz"


def test_zcat_shows_one_line_of_json_an_entry(tmp_path: Path) -> None:
    write_pack(tmp_path, [entry(1), entry(2)], NOW, NONCE)
    (path,) = packs(tmp_path)
    lines = gzip.decompress(path.read_bytes()).splitlines()
    assert [json.loads(line)["receipt"]["path"] for line in lines] == ["a/1", "a/2"]


@given(st.lists(st.text(st.characters(codec="utf-8"), max_size=200), min_size=1, max_size=5))
def test_any_text_survives(tmp_path_factory: pytest.TempPathFactory, texts: list[str]) -> None:
    outputs = tmp_path_factory.mktemp("outputs")
    entries = [entry(number, text) for number, text in enumerate(texts)]
    assert [read_entry(outputs, ref) for ref in write_pack(outputs, entries, NOW, NONCE)] == entries


def test_packs_are_listed_oldest_first_and_strange_files_passed_over(tmp_path: Path) -> None:
    later = write_pack(tmp_path, [entry(2)], NOW + 40 * 86_400 * 10**9, NONCE)
    sooner = write_pack(tmp_path, [entry(1)], NOW, NONCE)
    (tmp_path / FOLDER / "2027-01" / "notes.txt").write_text("hello")
    (tmp_path / FOLDER / "2027-01" / "0.jsonl.gz").write_bytes(b"")
    (tmp_path / FOLDER / "2027-01" / "1.jsonl.gz").write_bytes(b"garbage")
    assert [ref for ref, _ in all_entries(tmp_path)] == sooner + later


def test_no_outputs_are_no_entries(tmp_path: Path) -> None:
    assert list(all_entries(tmp_path)) == []
    assert clear_unfinished(tmp_path) == 0


def test_receipt_of_a_later_format_is_passed_over_and_unknown_keys_are_ignored(tmp_path: Path) -> None:
    folder = tmp_path / FOLDER / "2027-01"
    folder.mkdir(parents=True)
    known = json.loads(gzip.decompress(_member(entry(1))))
    newer = json.loads(gzip.decompress(_member(entry(2))))
    known["receipt"]["colour"] = "blue"
    newer["receipt"]["receipt"] = 2
    members = [gzip.compress(json.dumps(one).encode() + b"\n") for one in (newer, known)]
    (folder / "1.jsonl.gz").write_bytes(b"".join(members))
    (found,) = all_entries(tmp_path)
    assert found == (TextRef("2027-01/1.jsonl.gz", len(members[0]), len(members[1])), entry(1).receipt)


def _member(one: PackEntry) -> bytes:
    import msgspec

    return gzip.compress(msgspec.json.encode(one) + b"\n")


def test_truncated_pack_is_readable_up_to_the_cut(tmp_path: Path) -> None:
    refs = write_pack(tmp_path, [entry(number) for number in range(4)], NOW, NONCE)
    (path,) = packs(tmp_path)
    whole = path.read_bytes()
    for cut in range(len(whole)):
        path.write_bytes(whole[:cut])
        readable = [ref for ref in refs if ref.offset + ref.length <= cut]
        assert [ref for ref, _ in all_entries(tmp_path)] == readable


def test_damaged_entry_is_named_and_a_missing_pack_too(tmp_path: Path) -> None:
    (first, second) = write_pack(tmp_path, [entry(1), entry(2)], NOW, NONCE)
    (path,) = packs(tmp_path)
    content = bytearray(path.read_bytes())
    content[second.offset + 20] ^= 0xFF
    path.write_bytes(content)
    assert read_entry(tmp_path, first) == entry(1)
    with pytest.raises(ValueError, match="damaged pack entry"):
        read_entry(tmp_path, second)
    path.unlink()
    with pytest.raises(FileNotFoundError):
        read_entry(tmp_path, first)


@pytest.mark.parametrize("length", [0, 1, 30])
def test_wrong_reference_is_a_damaged_entry(tmp_path: Path, length: int) -> None:
    (ref,) = write_pack(tmp_path, [entry(1)], NOW, NONCE)
    with pytest.raises(ValueError, match="damaged pack entry"):
        read_entry(tmp_path, TextRef(ref.pack, 0, length))


@pytest.mark.fault("F39")
def test_short_reads_and_writes_have_no_effect(tmp_path: Path) -> None:
    entries = [entry(1), entry(2)]
    with disk.watch_operations(one_byte_at_a_time):
        refs = write_pack(tmp_path, entries, NOW, NONCE)
        assert [read_entry(tmp_path, ref) for ref in refs] == entries
        assert len(list(all_entries(tmp_path))) == 2


@pytest.mark.fault("F53")
@pytest.mark.parametrize("fault", sorted(FAULTS))
def test_whatever_fails_at_any_operation_a_pack_is_whole_or_absent(tmp_path: Path, fault: str) -> None:
    acknowledged: list[TextRef] = []
    entries = [entry(1), entry(2)]

    def act(run: int) -> None:
        acknowledged.extend(write_pack(tmp_path, entries, NOW + run, NONCE))

    def check(run: int, _was_acknowledged: bool) -> None:
        for path in packs(tmp_path):
            assert len(gzip.decompress(path.read_bytes()).splitlines()) == 2
        for number, ref in enumerate(acknowledged):
            assert read_entry(tmp_path, ref) == entries[number % 2]
        clear_unfinished(tmp_path)
        assert [path for path in tmp_path.rglob("*") if path.is_file() and path not in packs(tmp_path)] == []

    assert at_every_operation(fault, act, check) >= 6
    assert len(acknowledged) == 2


def test_error_leaves_no_litter(tmp_path: Path) -> None:
    def fail_to_sync(operation: str, _target: object) -> None:
        if operation == "sync":
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    with disk.watch_operations(fail_to_sync), pytest.raises(OSError, match="Input/output"):
        write_pack(tmp_path, [entry(1)], NOW, NONCE)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


@pytest.mark.fault("F52")
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT])
def test_full_disk_is_named(tmp_path: Path, code: int) -> None:
    def no_room(operation: str, _target: object) -> None:
        if operation == "write":
            raise OSError(code, os.strerror(code))

    with disk.watch_operations(no_room), pytest.raises(DiskFull):
        write_pack(tmp_path, [entry(1)], NOW, NONCE)
    assert packs(tmp_path) == []


def test_pack_never_replaces_another(tmp_path: Path) -> None:
    (ref,) = write_pack(tmp_path, [entry(1)], NOW, NONCE)
    with pytest.raises(FileExistsError):
        write_pack(tmp_path, [entry(2)], NOW, NONCE)
    assert read_entry(tmp_path, ref) == entry(1)
