"""Files that change, vanish or cannot be opened while a real supervisor works on them."""

from __future__ import annotations

import errno
import os
import resource
from collections.abc import Callable
from pathlib import Path

import pytest
from workshop import Workshop, descriptors

from tidegate.ledger import End
from tidegate.pool import disk

Open = Callable[..., Workshop]


def test_a_file_is_read_extracted_and_recorded_with_digest_and_receipt(open_workshop: Open) -> None:
    shop = open_workshop()
    shop.ready(a="words of a")
    shop.work()
    assert shop.end("a") == ("done", None, 1)
    (entry,) = shop.entries()
    assert entry.text == "words of a"
    assert entry.receipt.path == "a.txt"
    assert entry.receipt.digest == f"sha256:{(shop.view('a').digest or b'').hex()}"
    assert shop.supervisor.tallies.ends == {End.DONE: 1}
    assert shop.supervisor.tallies.size == 10


def test_links_are_done_without_being_opened(open_workshop: Open) -> None:
    shop = open_workshop()
    (shop.pool / "a.txt").symlink_to("/etc/passwd")
    shop.scan()
    opened: list[object] = []
    with disk.watch_operations(lambda operation, target: opened.append(operation)):
        shop.work()
    assert shop.task("a").reason == "symbolic link, recorded and not followed"
    assert "open_beneath" not in opened


@pytest.mark.fault("F28")
def test_a_file_that_changed_since_its_stamp_goes_back_to_settling_with_its_attempt(open_workshop: Open) -> None:
    shop = open_workshop()
    shop.ready(a="before")
    shop.write("a.txt", "after, and longer")
    shop.work()
    assert shop.end("a") == ("settling", None, 0)
    assert shop.entries() == []
    shop.settle()
    shop.settle()
    shop.work()
    assert shop.end("a") == ("done", None, 1)
    assert shop.texts() == {"a.txt": "after, and longer"}


@pytest.mark.fault("F27")
@pytest.mark.parametrize("what", ["append", "truncate", "replace", "rewrite", "chmod"])
def test_a_file_that_changes_while_it_is_read_goes_back_to_settling_with_its_attempt(
    open_workshop: Open, what: str
) -> None:
    shop = open_workshop()
    shop.ready(a="before")
    path = shop.pool / "a.txt"
    asked: list[object] = []

    def change(operation: str, target: object) -> None:
        if operation == "fstat":
            asked.append(target)
            if len(asked) == 2:  # the first is after opening, the second after the last read
                alter(path, what)

    with disk.watch_operations(change):
        shop.work()
    assert shop.end("a") == ("settling", None, 0)
    assert shop.supervisor.tallies.changed == 1
    assert shop.entries() == []
    shop.settle()
    shop.settle()
    shop.work()
    assert shop.end("a") == ("done", None, 1)
    assert shop.texts() == {"a.txt": path.read_text()}


def alter(path: Path, what: str) -> None:
    match what:
        case "append":
            with path.open("a") as stream:
                stream.write("more")
        case "truncate":
            os.truncate(path, 2)
        case "replace":
            newer = path.with_suffix(".new")
            newer.write_text("other words")
            newer.replace(path)
        case "rewrite":
            path.write_text("BEFORE")
        case "chmod":
            path.chmod(0o600)


def test_rf05_a_file_deleted_while_it_is_read_ends_as_vanished_and_the_worker_lives(open_workshop: Open) -> None:
    shop = open_workshop()
    shop.ready(a="PLANT slow 0", b="other words")
    asked: list[object] = []

    def delete(operation: str, target: object) -> None:
        if operation == "fstat" and not asked:
            asked.append(target)
            (shop.pool / "a.txt").unlink()
            (shop.pool / "b.txt").unlink()

    with disk.watch_operations(delete):
        shop.work()
    shop.settle()
    states = {shop.end("a")[:2], shop.end("b")[:2]}
    assert states == {("blocked", "vanished")}
    assert shop.supervisor.tallies.crashed_children == 0


@pytest.mark.fault("F33")
def test_a_file_gone_before_it_is_opened_is_blocked_as_vanished(open_workshop: Open) -> None:
    shop = open_workshop()
    shop.ready(a="x", b="y")
    (shop.pool / "a.txt").unlink()
    shop.work()
    assert shop.end("a") == ("blocked", "vanished", 1)
    assert shop.view("a").presence == "suspected"
    assert shop.end("b") == ("done", None, 1)


@pytest.mark.fault("F46")
def test_a_file_swapped_for_a_link_is_not_followed(open_workshop: Open) -> None:
    shop = open_workshop()
    shop.ready(a="x")
    (shop.pool / "a.txt").unlink()
    (shop.pool / "a.txt").symlink_to("/etc/passwd")
    shop.work()
    assert shop.end("a")[:2] == ("blocked", "vanished")
    assert shop.entries() == []


@pytest.mark.fault("F47")
def test_a_file_swapped_for_a_pipe_neither_hangs_nor_is_read(open_workshop: Open) -> None:
    shop = open_workshop()
    shop.ready(a="x")
    (shop.pool / "a.txt").unlink()
    os.mkfifo(shop.pool / "a.txt")
    shop.work()
    assert shop.end("a") == ("settling", None, 0)


def raising(code: int, times: int, wanted: str = "open_beneath") -> Callable[[str, object], None]:
    left = [times]

    def fail(operation: str, target: object) -> None:
        if operation == wanted and left[0] > 0:
            left[0] -= 1
            raise OSError(code, os.strerror(code))

    return fail


@pytest.mark.parametrize(
    ("code", "end"),
    [
        (errno.EACCES, ("blocked", "permission", 1)),
        (errno.EPERM, ("blocked", "permission", 1)),
        (errno.EIO, ("failed", "transient", 1)),
        (errno.ESTALE, ("failed", "transient", 1)),
        (errno.EBUSY, ("settling", None, 0)),
        (errno.ETXTBSY, ("settling", None, 0)),
        (errno.ENOENT, ("blocked", "vanished", 1)),
    ],
)
@pytest.mark.fault("F34 F36 F37")
def test_what_an_error_of_opening_means(open_workshop: Open, code: int, end: tuple[str, str | None, int]) -> None:
    shop = open_workshop()
    shop.ready(a="x")
    with disk.watch_operations(raising(code, 1)):
        shop.work()
    assert shop.end("a") == end


@pytest.mark.parametrize("after", [0, 1])
@pytest.mark.fault("F35 F36")
def test_a_share_that_fails_when_an_open_file_is_looked_at_fails_that_file_only(
    open_workshop: Open, after: int
) -> None:
    shop = open_workshop()
    shop.ready(a="x", b="y z")
    asked: list[object] = []

    def fail(operation: str, target: object) -> None:
        if operation == "fstat":
            asked.append(target)
            if len(asked) == 1 + after:
                raise OSError(errno.ESTALE, "planted")

    before = descriptors()
    with disk.watch_operations(fail):
        shop.work()
    ends = sorted([shop.end("a"), shop.end("b")])
    assert ends == [("done", None, 1), ("failed", "transient", 1)]
    shop.supervisor.stop()
    shop.hire()
    assert descriptors() <= before
    shop.retry_all()
    assert {shop.end("a")[0], shop.end("b")[0]} == {"done"}


@pytest.mark.fault("F38")
def test_running_out_of_descriptors_waits_and_goes_on(open_workshop: Open) -> None:
    shop = open_workshop(workers=2)
    shop.ready(**{f"f{number}": f"text {number}" for number in range(10)})
    with disk.watch_operations(raising(errno.EMFILE, 5)):
        shop.work()
    assert {shop.end(f"f{number}") for number in range(10)} == {("done", None, 1)}


@pytest.mark.fault("F38")
def test_with_no_descriptor_left_in_the_process_nothing_fails_and_none_is_leaked(open_workshop: Open) -> None:
    shop = open_workshop()
    shop.ready(a="one", b="two")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors() + 20, hard))
    taken: list[int] = []
    try:
        for spare in range(1, 9):
            take_all(taken)
            for _ in range(spare):
                os.close(taken.pop())
            held = descriptors()
            for _ in range(3):
                shop.supervisor.step(0.0)
                if shop.supervisor._children:
                    break
            if shop.supervisor._children:
                break
            assert descriptors() == held, f"with {spare} left"
    finally:
        for descriptor in taken:
            os.close(descriptor)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    shop.work()
    assert {shop.end("a"), shop.end("b")} == {("done", None, 1)}


def take_all(taken: list[int]) -> None:
    while True:
        try:
            taken.append(os.open(os.devnull, os.O_RDONLY))
        except OSError:
            return


@pytest.mark.parametrize(
    ("content", "end"),
    [("", ("blocked", "empty")), ("\0" * 100, ("blocked", "empty")), ("%PDF-1.4 broken", ("blocked", "corrupt"))],
)
@pytest.mark.fault("F48")
def test_one_bad_file_is_blocked_with_its_class_and_others_go_on(
    open_workshop: Open, content: str, end: tuple[str, str]
) -> None:
    shop = open_workshop()
    shop.ready(bad=content, good="words")
    shop.work()
    assert shop.end("bad")[:2] == end
    assert shop.task("bad").reason
    assert shop.end("good") == ("done", None, 1)


@pytest.mark.fault("F48")
def test_a_sparse_file_larger_than_memory_is_read_in_bounds(open_workshop: Open) -> None:
    shop = open_workshop(memory=700_000_000)
    path = shop.write("a.txt", "")
    os.truncate(path, 600 << 20)
    shop.scan()
    shop.work()
    state, failure, _ = shop.end("a")
    assert state in ("done", "blocked")
    assert failure in (None, "empty", "too_large")


def test_the_same_content_is_extracted_once_across_two_workers(open_workshop: Open) -> None:
    shop = open_workshop(workers=2)
    shop.ready(**{f"f{number}": "PLANT slow 0.3" for number in range(8)})
    shop.work()
    assert len(shop.entries()) == 1
    ends = [shop.end(f"f{number}") for number in range(8)]
    assert sorted(ends) == [("done", None, 1)] + [("skipped", None, 1)] * 7
    assert {shop.task(f"f{number}").reason for number in range(8)} == {
        "read as planted",
        "same content as another file",
    }


def test_the_same_content_is_extracted_once_in_a_later_round(open_workshop: Open) -> None:
    shop = open_workshop()
    shop.ready(a="the same words")
    shop.work()
    shop.ready(b="the same words")
    shop.work()
    assert shop.end("b") == ("skipped", None, 1)
    assert len(shop.entries()) == 1


def test_a_touched_file_with_equal_content_is_skipped_and_only_its_stamp_refreshed(open_workshop: Open) -> None:
    shop = open_workshop()
    shop.ready(a="words")
    shop.work()
    before = shop.view("a")
    os.utime(shop.pool / "a.txt", (1_000_000_000, 1_000_000_000))
    shop.scan()
    shop.work()
    after = shop.view("a")
    assert shop.end("a") == ("skipped", None, 1)
    assert shop.task("a").reason == "touched, same content"
    assert after.digest == before.digest
    assert (before.stamp.mtime_ns, after.stamp.mtime_ns) != (after.stamp.mtime_ns, 0)
    assert after.stamp.mtime_ns == 1_000_000_000 * 10**9
    assert len(shop.entries()) == 1


def test_a_touched_film_with_equal_content_is_skipped(open_workshop: Open) -> None:
    shop = open_workshop()
    film = shop.write("film.mp4", "moving pictures")
    shop.scan()
    shop.work()
    os.utime(film, (1_000_000_000, 1_000_000_000))
    shop.scan()
    shop.work()
    assert shop.supervisor.tallies.ends == {End.DONE: 1, End.SKIPPED: 1}


def test_descriptors_are_not_leaked_over_two_thousand_files(open_workshop: Open) -> None:
    shop = open_workshop(workers=2)
    for number in range(2000):
        shop.write(f"{number % 20}/{number}.txt", f"text number {number}")
    shop.ready(zz="PLANT descriptors " + "x" * 100)
    before = descriptors()
    shop.work()
    assert shop.supervisor.tallies.ends == {End.DONE: 2001}
    assert descriptors() <= before + 2 * 2, "two children: a socket and their words each"
    assert int(shop.texts()["zz.txt"]) <= 12
