"""Comparing a folder with what is known of it: the quick check."""

from __future__ import annotations

import os

from tidegate.intake.compare import Look, compare, is_changed, signature_of
from tidegate.ledger import FilePlan, KnownFile, Presence, SeenFile, TaskPlan
from tidegate.pool import Kind, PoolPath, Stamp
from tidegate.pool.walk import Entry

FOLDER = PoolPath(b"f")
PLAN = FilePlan((TaskPlan("text", "1"),), 1, 0)
NEWER = FilePlan((TaskPlan("text", "2"),), 1, 0)


def status(size: int = 5, mtime: int = 7, ctime: int = 8, inode: int = 9, mode: int = 0o100644) -> os.stat_result:
    values = [mode, inode, 1, 1, 0, 0, size, 0, 0, 0, 0, 0, 0, 0, mtime, ctime, 0, 0, 0, 0]
    return os.stat_result(values[:10], {"st_mtime_ns": mtime, "st_ctime_ns": ctime, "st_mtime": 0.0, "st_ctime": 0.0})


def known(
    stamp: Stamp, *, plan: FilePlan = PLAN, presence: Presence = Presence.PRESENT, kind: Kind = Kind.FILE
) -> KnownFile:
    return KnownFile(1, kind, stamp, plan.key, presence)


def difference(entries: list[Entry], before: dict[bytes, KnownFile], plan: FilePlan = PLAN) -> object:
    return compare(Look(FOLDER, entries, b"old", b"new"), before, lambda *_: plan)


STAMP = Stamp.of(status())


def test_an_equal_stamp_is_unchanged() -> None:
    found = difference([(b"a", status())], {b"a": known(STAMP)})
    assert found.unchanged == 1
    assert (found.change.new, found.change.changed, found.change.refreshed, found.change.returned) == ((), (), (), ())


def test_another_size_or_mtime_is_a_change() -> None:
    for other in (status(size=6), status(mtime=8), status(mtime=6)):
        found = difference([(b"a", other)], {b"a": known(STAMP)})
        assert [file for file, _ in found.change.changed] == [1]


def test_another_ctime_or_inode_alone_only_refreshes_the_stamp() -> None:
    for other in (status(ctime=99), status(inode=99)):
        found = difference([(b"a", other)], {b"a": known(STAMP)})
        assert found.change.changed == ()
        assert found.change.refreshed == ((1, Stamp.of(other)),)
        assert found.unchanged == 1


def test_a_new_plan_queues_the_file_again() -> None:
    found = difference([(b"a", status())], {b"a": known(STAMP)}, NEWER)
    assert [(file, seen.plan) for file, seen in found.change.changed] == [(1, NEWER)]


def test_another_kind_under_the_same_name_is_a_change() -> None:
    found = difference([(b"a", status(mode=0o120777))], {b"a": known(STAMP)})
    assert [seen.kind for _, seen in found.change.changed] == [Kind.SYMLINK]


def test_a_file_that_was_gone_and_is_as_before_has_returned() -> None:
    for presence in (Presence.SUSPECTED, Presence.MISSING):
        found = difference([(b"a", status())], {b"a": known(STAMP, presence=presence)})
        assert found.change.returned == (1,)


def test_known_files_that_are_not_there_are_counted_and_left_alone() -> None:
    found = difference([(b"b", status())], {b"a": known(STAMP)})
    assert found.unseen == 1
    assert [seen.name for seen in found.change.new] == [b"b"]
    assert found.change.changed == ()


def test_the_quick_check_asks_for_kind_size_mtime_and_plan() -> None:
    seen = SeenFile(b"a", Kind.FILE, STAMP, PLAN)
    assert not is_changed(known(STAMP), seen)
    assert not is_changed(known(Stamp(5, 7, 0, 0)), seen)
    assert is_changed(known(STAMP, kind=Kind.SYMLINK), seen)


def test_a_signature_depends_on_every_name_every_stamp_and_the_rules() -> None:
    base = [(b"a", status()), (b"b", status())]
    variants = [
        base[:1],
        [(b"a", status()), (b"c", status())],
        [(b"a\0b", status())],
        [(b"a", status(size=6)), (b"b", status())],
        [(b"a", status(mtime=6)), (b"b", status())],
        [(b"a", status(ctime=6)), (b"b", status())],
        [(b"a", status(inode=6)), (b"b", status())],
        [],
    ]
    signatures = {signature_of(entries, b"rules") for entries in (base, *variants)}
    assert len(signatures) == len(variants) + 1
    assert signature_of(base, b"rules") == signature_of(list(base), b"rules") != signature_of(base, b"other")


def test_a_signature_takes_inodes_of_all_64_bits() -> None:
    assert len(signature_of([(b"a", status(inode=(1 << 64) - 1))], b"r")) == 16
