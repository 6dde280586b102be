"""What is never taken in, and why; and what looks like it and is taken."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tidegate.intake.ignore import BUILT_IN, STAGING, is_ignored, reason_for_path, reason_to_ignore
from tidegate.pool import Kind, PoolPath, open_pool, walk

FOLDER = PoolPath(b"folder")
# RF24, with what the same programs write besides
UNFINISHED = [
    b"x.crdownload",
    b"x.part",
    b"X.PART",
    b".~lock.x#",
    b"~$x.docx",
    b".smbdeleteAAA1b3",
    b".nfs000000001",
    b".syncthing.x.tmp",
    b"~syncthing~x.tmp",
    b".x.rsync-tmp",
    b"x.partial",
    b"x.filepart",
    b".goutputstream-ABC123",
    b"Thumbs.db",
    b"thumbs.DB",
    b"._x",
    b".DS_Store",
    b"desktop.ini",
    b"@eaDir",
    b"#recycle",
    b"$RECYCLE.BIN",
    b".snapshot",
    b".snapshots",
    b".Trash-1000",
    b"lost+found",
    b"System Volume Information",
    os.fsencode(STAGING),
    # rsync -a without --inplace: a dot, the name, a dot, six of [A-Za-z0-9]
    b".report.pdf.8Jk2Lq",
    b".report.pdf.AbCdEf",
    b".report.pdf.ABCDEF",
    b".r\xe9sum\xe9.pdf.x0y1Z2",
]
KEPT = [
    b".x.backup",
    b".bashrc",
    b".config.yaml",
    b"report.8Jk2Lq",
    b"part",
    b"x.parts",
    b"x.part1.rar",
    b"apart.txt",
    b"Thumbs.db.txt",
    b"~x.docx",
    b"$RECYCLE.BIN.txt",
    b"\xe5\x90\x88\xe5\x90\x8c.pdf",
    b"new\nline.part.txt",
]


@pytest.mark.parametrize("name", UNFINISHED)
def test_unfinished_and_system_files_are_ignored_with_a_reason(name: bytes) -> None:
    assert reason_to_ignore(name)
    assert is_ignored(FOLDER, name, Kind.FILE), "the quick look and the reason agree"
    assert reason_for_path(PoolPath(b"folder") / name)


@pytest.mark.parametrize("name", KEPT)
def test_names_that_only_resemble_them_are_taken_in(name: bytes) -> None:
    assert reason_to_ignore(name) is None
    assert not is_ignored(FOLDER, name, Kind.FILE)


@pytest.mark.parametrize(("pattern", "reason"), BUILT_IN)
def test_every_built_in_rule_ignores_something_for_its_reason(pattern: str, reason: str) -> None:
    name = pattern.replace("*", "some").encode()
    assert reason_to_ignore(name) == reason


def test_special_files_are_ignored_as_what_they_are() -> None:
    assert is_ignored(FOLDER, b"pipe.txt", Kind.SPECIAL)
    assert "pipe" in (reason_to_ignore(b"pipe.txt", Kind.SPECIAL) or "")


def test_a_folder_is_never_taken_for_an_rsync_file() -> None:
    assert not is_ignored(FOLDER, b".folder.8Jk2Lq", Kind.FOLDER)


def test_a_file_below_an_ignored_folder_has_that_folders_reason() -> None:
    reason = reason_for_path(PoolPath(b"a/@eaDir/b.pdf"))
    assert reason == "@eaDir: thumbnails of a Synology NAS"
    assert reason_for_path(PoolPath(b"a/b.pdf")) is None


def test_ignored_folders_are_not_entered(tmp_path: Path) -> None:
    for name in (b"@eaDir", b".snapshot", b"#recycle", b"$RECYCLE.BIN"):
        folder = Path(os.fsdecode(os.fsencode(tmp_path) + b"/" + name))
        folder.mkdir()
        (folder / "inside.txt").write_text("x")
    (tmp_path / "kept").mkdir()
    root = open_pool(tmp_path)
    listings = list(walk(root, is_ignored))
    os.close(root)
    assert [listing.path.raw for listing in listings] == [b"", b"kept"]
    assert listings[0].ignored == 4
