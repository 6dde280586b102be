"""Publishing: what a snapshot holds, where it stops, who may, and what stays when it fails."""

from __future__ import annotations

import errno
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import tantivy
from index_samples import document, names_found, numbered, publish_next

from tidegate.errors import DiskFull, HeldElsewhere, IndexMissing, StateError
from tidegate.index import (
    Change,
    Document,
    Removal,
    Searcher,
    Since,
    collect,
    current,
    layout,
    publish,
    publishing,
    snapshots,
    start_change,
)
from tidegate.pool import disk

SMALL = 15_000_000


def found_in(root: Path, query: str) -> set[bytes]:
    with Searcher(root) as searcher:
        return names_found(searcher, query)


def names_in(root: Path) -> set[str]:
    return set(disk.list_names(root))


# --- what a snapshot holds -------------------------------------------------------------------------------------------


def test_snapshots_replace_and_remove_by_the_ledgers_id(tmp_path: Path) -> None:
    publish_next(tmp_path, document(1, "old", "a"), document(2, "old", "b"), document(3, "old", "c"))
    second = publish(tmp_path, [(4, document(1, "new", "moved")), (5, Removal(2)), (6, Removal(99))], now_ns=7)
    assert second is not None
    assert (second.number, second.change, second.documents, second.published_ns) == (2, 6, 2, 7)
    assert current(tmp_path) == second
    assert start_change(tmp_path) == 6
    assert (found_in(tmp_path, "old"), found_in(tmp_path, "new")) == ({b"c"}, {b"moved"})
    assert found_in(tmp_path, "-nothing") == {b"c", b"moved"}


def test_later_version_wins_within_one_publish_too(tmp_path: Path) -> None:
    changes: list[Change] = [
        (1, document(1, "one")),
        (2, document(1, "two")),
        (3, document(2, "three")),
        (4, Removal(2)),
    ]
    snapshot = publish(tmp_path, changes, now_ns=1)
    assert snapshot is not None
    assert snapshot.documents == 1
    assert found_in(tmp_path, "one OR two OR three") == found_in(tmp_path, "two") == {b"file-1.txt"}


def test_file_ids_of_every_size_are_replaced(tmp_path: Path) -> None:
    for file in (0, -1, 1 << 40, (1 << 63) - 1):
        publish_next(tmp_path, document(file, "old"))
        assert publish_next(tmp_path, document(file, "new"), document(file, "newest")).documents >= 1
    assert found_in(tmp_path, "old OR new") == set()


def test_nothing_to_apply_publishes_nothing(tmp_path: Path) -> None:
    assert publish(tmp_path, [], now_ns=1) is None
    assert current(tmp_path) is None
    assert start_change(tmp_path) == 0
    publish_next(tmp_path, document(1))
    assert publish(tmp_path, iter(()), now_ns=1) is None
    assert names_in(tmp_path) == {"1", "publish.lock"}


def test_index_may_become_empty_and_grow_again(tmp_path: Path) -> None:
    publish_next(tmp_path, document(1, "word"))
    emptied = publish(tmp_path, [(2, Removal(1))], now_ns=1)
    assert emptied is not None
    assert emptied.documents == 0
    with Searcher(tmp_path) as searcher:
        assert searcher.search("word OR -word").total == 0
        publish_next(tmp_path, document(2, "word"))
        assert searcher.refresh()
        assert searcher.search("word").total == 1


def test_changes_out_of_order_are_refused_and_leave_nothing(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="comes after"):
        publish(tmp_path, [(2, document(1)), (1, document(2))], now_ns=1)
    assert names_in(tmp_path) == {"publish.lock"}


def test_odd_documents_are_taken(tmp_path: Path) -> None:
    odd = Document(1, document(1).path, 10**30, 10**12, "lone \ud800 surrogate \x00 数", "\udfff title", "ki\ud800nd")
    snapshot = publish(tmp_path, [(1, odd)], now_ns=1)
    assert snapshot is not None
    with Searcher(tmp_path) as searcher:
        (hit,) = searcher.search("lone surrogate 数 title").hits
    assert hit.snippet == "lone ? surrogate 数"
    assert hit.mtime_ns == (1 << 63) - 1


def test_deleting_on_an_unsigned_field_would_delete_nothing(tmp_path: Path) -> None:
    # Why `file` is a signed field: should this fail one day, tantivy was repaired, and nothing is lost.
    left = {}
    for name, builder in {
        "unsigned": tantivy.SchemaBuilder().add_unsigned_field("file", indexed=True),
        "integer": tantivy.SchemaBuilder().add_integer_field("file", indexed=True),
    }.items():
        schema = builder.build()
        index = tantivy.Index(schema)
        writer = index.writer(SMALL, 1)
        writer.add_document(tantivy.Document.from_dict({"file": 7}, schema))
        writer.commit()
        writer.delete_documents_by_term("file", 7)
        writer.commit()
        writer.wait_merging_threads()
        index.reload()
        left[name] = index.searcher().num_docs
    assert left == {"unsigned": 1, "integer": 0}


# --- stopping --------------------------------------------------------------------------------------------------------


def stop_after(looks: int) -> Callable[[], bool]:
    seen = iter(range(looks))
    return lambda: next(seen, None) is None


def test_stop_publishes_what_was_applied_and_says_how_far(tmp_path: Path) -> None:
    changes = numbered(document(file, "word") for file in range(100))
    first = publish(tmp_path, iter(changes), now_ns=1, should_stop=stop_after(2))
    assert first is not None
    assert 0 < first.change < 100
    assert first.documents == first.change
    rest = publish(tmp_path, changes[first.change :], now_ns=2, since=Since(first.change))
    assert rest is not None
    assert (rest.change, rest.documents) == (100, 100)


def test_stop_never_parts_the_documents_of_one_change(tmp_path: Path) -> None:
    changes = [(1 + file // 50, document(file, "word")) for file in range(150)]
    snapshot = publish(tmp_path, changes, now_ns=1, should_stop=stop_after(1))
    assert snapshot is not None
    assert (snapshot.change, snapshot.documents) == (1, 50)


def test_stop_before_the_first_change_publishes_nothing(tmp_path: Path) -> None:
    assert publish(tmp_path, numbered([document(1)]), now_ns=1, should_stop=lambda: True) is None
    assert current(tmp_path) is None


def test_changes_that_fail_half_way_leave_the_old_snapshot(tmp_path: Path) -> None:
    old = publish_next(tmp_path, document(1, "old"))

    def changes() -> Iterator[Change]:
        yield 2, document(2, "new")
        raise StateError("the ledger went away")

    with pytest.raises(StateError, match="went away"):
        publish(tmp_path, changes(), now_ns=1)
    assert current(tmp_path) == old
    assert names_in(tmp_path) == {"1", "publish.lock"}


# --- one publisher ---------------------------------------------------------------------------------------------------


def test_second_publisher_is_told_that_another_is_at_work(tmp_path: Path) -> None:
    def changes() -> Iterator[Change]:
        yield 1, document(1, "first")
        with pytest.raises(HeldElsewhere):
            publish(tmp_path, [(1, document(1, "second"))], now_ns=1)
        yield 2, document(2, "first")

    assert publish(tmp_path, changes(), now_ns=1) is not None
    assert found_in(tmp_path, "first") == {b"file-1.txt", b"file-2.txt"}


def test_loser_of_a_race_discards_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # As where the file system's locks do not work: the other one places its snapshot while this one builds.
    publish_next(tmp_path, document(1, "base"))
    with monkeypatch.context() as patch:
        patch.setattr(disk, "try_lock", lambda descriptor, *, shared=False: True)
        patch.setattr(snapshots, "next_number", lambda root: 2)
        patch.setattr(snapshots, "sweep", lambda root: None)

        def changes() -> Iterator[Change]:
            yield 2, document(2, "loser")
            publish(tmp_path, [(2, document(2, "winner"))], now_ns=1)

        with pytest.raises(HeldElsewhere, match="placed"):
            publish(tmp_path, changes(), now_ns=1)
    assert names_in(tmp_path) == {"1", "2", "publish.lock"}
    assert (found_in(tmp_path, "winner"), found_in(tmp_path, "loser")) == ({b"file-2.txt"}, set())


def test_publishing_on_another_start_than_asked_for_is_refused(tmp_path: Path) -> None:
    since = start_change(tmp_path)
    publish_next(tmp_path, document(1))
    with pytest.raises(StateError, match="up to change 1, not 0"):
        publish(tmp_path, [(1, document(1))], now_ns=1, since=Since(since))


def test_build_of_a_dead_publisher_is_removed(tmp_path: Path) -> None:
    (tmp_path / "build-dead").mkdir()
    (tmp_path / "build-dead" / "half").write_bytes(b"x")
    publish_next(tmp_path, document(1))
    assert names_in(tmp_path) == {"1", "publish.lock"}


# --- segments --------------------------------------------------------------------------------------------------------


def test_segments_are_shared_with_the_snapshot_before(tmp_path: Path) -> None:
    first = publish_next(tmp_path, *(document(file, "word") for file in range(50)))
    second = publish_next(tmp_path, document(99, "word"))
    shared = [path for path in first.path.glob("*.store") if path.stat().st_nlink == 2]
    assert shared
    assert all((second.path / path.name).samefile(path) for path in shared)
    assert not (second.path / "meta.json").samefile(first.path / "meta.json")


def test_segments_do_not_pile_up_over_many_small_publishes(quick_path: Path) -> None:
    most_segments = most_files = 0
    for number in range(200):
        snapshot = publish_next(quick_path, document(number % 150, f"word{number}"))
        meta = json.loads((snapshot.path / "meta.json").read_bytes())
        most_segments = max(most_segments, len(meta["segments"]))
        most_files = max(most_files, len(disk.list_names(snapshot.path)))
        collect(quick_path, keep=1)
    assert most_segments <= 16
    assert most_files <= 16 * 9
    assert current(quick_path) == snapshot
    assert snapshot.documents == 150
    assert len(names_in(quick_path)) == 2


# --- disk full -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("operation", ["open_lock", "make_folder", "link", "create_new", "write", "sync"])
def test_full_disk_is_named_and_the_old_snapshot_stays(tmp_path: Path, operation: str) -> None:
    old = publish_next(tmp_path, document(1, "old"))

    def full(name: str, target: object) -> None:
        if name == operation and (name != "make_folder" or "build-" in str(target)):
            raise OSError(errno.ENOSPC, "No space left on device")

    with disk.watch_operations(full), pytest.raises(DiskFull):
        publish(tmp_path, [(2, document(2, "new"))], now_ns=1)
    assert current(tmp_path) == old
    assert names_in(tmp_path) == {"1", "publish.lock"}
    assert publish_next(tmp_path, document(2, "new")).documents == 2


@pytest.mark.parametrize(
    ("words", "free"),
    [
        ("An IO error occurred: 'No space left on device (os error 28)'", 1 << 40),
        ('IoError { io_error: Os { code: 28, kind: StorageFull, message: "No space left on device" } }', 1 << 40),
        # What tantivy 0.27 says when its indexing thread met ENOSPC: only the disk itself tells.
        (
            "An index writer was killed.. A worker thread encountered an error (io::Error most likely) or panicked.",
            4096,
        ),
    ],
)
def test_full_disk_in_tantivys_words_is_named_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: str, free: int
) -> None:
    old = publish_next(tmp_path, document(1, "old"))

    class FailingWriter:
        def __init__(self, *_: object) -> None: ...

        def delete_documents_by_term(self, *_: object) -> None:
            raise ValueError(words)

        add_document = delete_documents_by_term

        def wait_merging_threads(self) -> None: ...

    class FailingIndex:
        writer = FailingWriter

        def config_reader(self, _: str) -> None: ...

    monkeypatch.setattr(publishing.tantivy.Index, "open", staticmethod(lambda path: FailingIndex()), raising=False)
    monkeypatch.setattr(disk, "free_bytes", lambda path: free)
    with pytest.raises(DiskFull) as caught:
        publish(tmp_path, [(2, document(2, "new"))], now_ns=1)
    assert caught.value.hint
    assert current(tmp_path) == old
    assert names_in(tmp_path) == {"1", "publish.lock"}


# --- readers and collecting ------------------------------------------------------------------------------------------


def test_reader_keeps_its_snapshot_while_it_is_collected(tmp_path: Path) -> None:
    publish_next(tmp_path, document(1, "first"))
    with Searcher(tmp_path) as searcher:
        for number in range(2, 6):
            publish_next(tmp_path, document(1, f"later{number}"))
        assert collect(tmp_path, keep=2) == 2
        assert names_in(tmp_path) == {"1", "4", "5", "publish.lock"}
        assert searcher.search("first").total == 1
        assert searcher.refresh()
        assert not searcher.refresh()
        assert (searcher.snapshot.number, searcher.search("later5").total) == (5, 1)
        assert collect(tmp_path, keep=2) == 1
    assert names_in(tmp_path) == {"4", "5", "publish.lock"}


def test_collecting_never_takes_the_current_snapshot(tmp_path: Path) -> None:
    for number in range(3):
        publish_next(tmp_path, document(1, f"v{number}"))
    assert collect(tmp_path, keep=0) == 2
    assert collect(tmp_path, keep=-5) == 0
    assert found_in(tmp_path, "v2") == {b"file-1.txt"}
    assert collect(tmp_path / "nowhere") == 0


def test_collecting_leaves_the_build_of_a_living_publisher(tmp_path: Path) -> None:
    def changes() -> Iterator[Change]:
        yield 1, document(1)
        collect(tmp_path)

    assert publish(tmp_path, changes(), now_ns=1) is not None


def test_collecting_removes_what_the_dead_left(tmp_path: Path) -> None:
    publish_next(tmp_path, document(1))
    for name in ("build-dead", "dropped-dead"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").touch()
    assert collect(tmp_path) == 0
    assert names_in(tmp_path) == {"1", "publish.lock"}


# --- damage and formats ----------------------------------------------------------------------------------------------


def spoil_missing(path: Path) -> None:
    path.unlink()


def spoil_short(path: Path) -> None:
    data = path.read_bytes()
    path.unlink()
    path.write_bytes(data[:-10])


SPOILT = ["store", "term", "idx", "pos", "fast", "fieldnorm", "meta.json", ".managed.json"]


@pytest.mark.parametrize("spoil", [spoil_missing, spoil_short])
@pytest.mark.parametrize("suffix", SPOILT)
def test_damaged_snapshot_is_moved_aside_for_the_one_before(
    tmp_path: Path, suffix: str, spoil: Callable[[Path], None]
) -> None:
    publish_next(tmp_path, document(1, "first"))
    second = publish(tmp_path, [(2, Removal(1)), (3, document(2, "second"))], now_ns=1)
    assert second is not None
    spoil(next(path for path in second.path.iterdir() if path.name.endswith(suffix)))
    assert start_change(tmp_path) == 1
    assert names_in(tmp_path) == {"1", "damaged-2", "publish.lock"}
    assert found_in(tmp_path, "first OR second") == {b"file-1.txt"}
    third = publish(tmp_path, [(2, Removal(1)), (3, document(2, "second"))], now_ns=1, since=Since(1))
    assert third is not None
    assert third.number == 3  # never a number that a reader may know for something else
    assert found_in(tmp_path, "first OR second") == {b"file-2.txt"}


def test_only_snapshot_damaged_means_building_from_zero(tmp_path: Path) -> None:
    first = publish_next(tmp_path, document(1))
    spoil_missing(first.path / "meta.json")
    with pytest.raises(IndexMissing):
        Searcher(tmp_path)
    assert start_change(tmp_path) == 0
    publish_next(tmp_path, document(1))
    assert names_in(tmp_path) == {"2", "damaged-1", "publish.lock"}


def flip(path: Path) -> None:
    """Other bytes of the same length, tantivy's footer spared, in a file of its own."""
    data = bytearray(path.read_bytes())
    end = max(len(data) - 400, 5)
    data[:end] = bytes(byte ^ 0x55 for byte in data[:end])
    path.unlink()
    path.write_bytes(data)


@pytest.mark.parametrize("suffix", ["store", "term"])
def test_open_searcher_leaves_a_snapshot_whose_bytes_rotted(tmp_path: Path, suffix: str) -> None:
    publish_next(tmp_path, *(document(file, f"old word{file}") for file in range(30)))
    changes: list[Change] = [(31, Removal(file)) for file in range(30)]
    second = publish(tmp_path, [*changes, *((32, document(file, f"new word{file}")) for file in range(30))], now_ns=1)
    assert second is not None
    flip(next(second.path.glob(f"*.{suffix}")))
    with Searcher(tmp_path) as searcher:
        assert searcher.search("word7").snapshot == 1
        assert searcher.search("old").total == 30
    assert names_in(tmp_path) == {"1", "damaged-2", "publish.lock"}


def test_publishing_on_rotten_bytes_moves_them_aside(tmp_path: Path) -> None:
    first = publish_next(tmp_path, *(document(file, f"old word{file}") for file in range(30)))
    flip(next(first.path.glob("*.term")))
    with pytest.raises(StateError, match="damaged"):
        publish(tmp_path, [(31, document(1, "new"))], now_ns=1)
    assert start_change(tmp_path) == 0
    assert names_in(tmp_path) == {"damaged-1", "publish.lock"}


@pytest.mark.parametrize("manifest", [None, b"", b"{", b"{}", b"[1]", b"\xff\xfe", b'{"number": "x"}'])
def test_snapshot_without_a_readable_manifest_is_none(tmp_path: Path, manifest: bytes | None) -> None:
    first = publish_next(tmp_path, document(1, "first"))
    (tmp_path / "7").mkdir()
    if manifest is not None:
        (tmp_path / "7" / "snapshot.json").write_bytes(manifest)
    assert current(tmp_path) == first
    assert found_in(tmp_path, "first") == {b"file-1.txt"}
    assert names_in(tmp_path) == {"1", "damaged-7", "publish.lock"}


@pytest.mark.parametrize(("module", "name"), [(snapshots, "SCHEMA"), (snapshots, "TOKENISER")])
def test_newer_format_is_refused_in_words_and_older_is_built_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: object, name: str
) -> None:
    publish_next(tmp_path, document(1, "ours"))
    monkeypatch.setattr(module, name, 0)
    for act in (current, start_change, Searcher, collect, lambda root: publish(root, [(1, document(1))], now_ns=1)):
        with pytest.raises(StateError, match="newer Tidegate") as caught:
            act(tmp_path)
        assert caught.value.hint
    monkeypatch.setattr(module, name, 9)
    monkeypatch.setattr(publishing, name, 9)
    assert current(tmp_path) is None
    assert start_change(tmp_path) == 0
    rebuilt = publish_next(tmp_path, document(2, "rebuilt"))
    assert (rebuilt.number, rebuilt.documents) == (2, 1)
    assert found_in(tmp_path, "ours OR rebuilt") == {b"file-2.txt"}


@pytest.mark.parametrize("others", [{}, {"number": "seven", "files": None}])
def test_newer_format_is_refused_even_where_its_manifest_reads_otherwise(
    tmp_path: Path, others: dict[str, object]
) -> None:
    publish_next(tmp_path, document(1))
    (tmp_path / "7").mkdir()
    (tmp_path / "7" / "snapshot.json").write_text(json.dumps({"schema": layout.SCHEMA + 1, **others}))
    for act in (current, start_change, Searcher):
        with pytest.raises(StateError, match="newer Tidegate"):
            act(tmp_path)
    assert names_in(tmp_path) == {"1", "7", "publish.lock"}


def test_format_of_tantivys_files_counts_not_its_release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = publish_next(tmp_path, document(1))
    monkeypatch.setattr(snapshots, "TANTIVY", "tantivy v0.99.1, index_format v7")
    assert current(tmp_path) == first
    monkeypatch.setattr(snapshots, "TANTIVY", "tantivy v0.99.1, index_format v8")
    assert current(tmp_path) is None


def test_manifest_says_what_the_snapshot_is(tmp_path: Path) -> None:
    first = publish_next(tmp_path, document(1))
    said = json.loads((first.path / "snapshot.json").read_bytes())
    files = said.pop("files")
    assert said == {
        "number": 1,
        "change": 1,
        "documents": 1,
        "published_ns": 1,
        "schema": layout.SCHEMA,
        "tokeniser": 1,
        "ledger": "",
        "tantivy": snapshots.TANTIVY,
    }
    assert files.keys() == names_in(first.path) - {
        "snapshot.json",
        "reader.lock",
        ".tantivy-meta.lock",
        ".tantivy-writer.lock",
    }


def test_an_index_that_follows_another_ledger_is_built_anew_and_the_old_one_serves_until_then(tmp_path: Path) -> None:
    assert publish(tmp_path, [(7, document(1, "old"))], now_ns=1, since=Since(0, "first")) is not None
    assert start_change(tmp_path, "first") == 7
    assert start_change(tmp_path, "second") == 0
    with Searcher(tmp_path) as searcher:
        assert searcher.search("old").total == 1
    assert publish(tmp_path, [(1, document(1, "new"))], now_ns=2, since=Since(0, "second")) is not None
    assert start_change(tmp_path, "second") == 1
    with Searcher(tmp_path) as searcher:
        assert (searcher.search("old").total, searcher.search("new").total) == (0, 1)
