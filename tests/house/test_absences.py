"""What Tidegate never does. ARCHITECTURE.md names these tests; each keeps one sentence of it true."""

from __future__ import annotations

import ast
import os
import sqlite3
import stat
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from house_sources import SOURCE, calls, modules

from tidegate import Gate
from tidegate.config import Config, PoolConfig
from tidegate.errors import Failure
from tidegate.intake import Rules, Scanner, settle_due
from tidegate.ledger import NOTHING, Clock, End, Finish, SqliteLedger, State, Terms, Want
from tidegate.ledger.sqlite_store import Store
from tidegate.pool import PoolPath, disk, open_pool
from tidegate.pool.settle import Patience
from tidegate.processing.processors import VERSIONS

DISK = "pool/disk.py"
CHANGING = frozenset({"create_new", "write", "make_folder", "link", "rename_new", "replace", "remove", "remove_tree"})
CONFIG = '[pool]\npath = "pool"\nstate = "state"\nsettle = "200ms"\n'


@pytest.fixture
def pool(tmp_path: Path) -> Path:
    """A pool of a few files in a few folders, one of them a link and one of them broken."""
    folder = tmp_path / "pool"
    for number in range(12):
        inner = folder / f"part {number % 3}" / "deep"
        inner.mkdir(parents=True, exist_ok=True)
        (inner / f"{number}.txt").write_text(f"合同 {number}, tide {number}\n", encoding="utf-8")
    (folder / "empty.txt").touch()
    (folder / "film.mp4").write_bytes(b"\0\0\0\x20ftypmp42" + bytes(5000))
    (folder / "broken.pdf").write_bytes(b"%PDF-1.7\nnothing of use")
    (folder / "link").symlink_to("empty.txt")
    (tmp_path / "tidegate.toml").write_text(CONFIG, encoding="utf-8")
    return folder


def _gate(pool: Path) -> Gate:
    return Gate.open(config=pool.parent / "tidegate.toml")


def _tree(folder: Path) -> dict[str, tuple[int, ...]]:
    """Every entry with what would show a change: mode, size, owner, mtime, ctime, inode."""
    found = {}
    for path in [folder, *sorted(folder.rglob("*"))]:
        status = path.lstat()
        times = (status.st_mtime_ns, status.st_ctime_ns)
        found[str(path)] = (status.st_mode, status.st_size, status.st_uid, status.st_ino, status.st_nlink, *times)
    return found


# --- the pool --------------------------------------------------------------------------------------------------------


def test_scanner_opens_no_file(pool: Path, tmp_path: Path) -> None:
    seen: list[tuple[str, object]] = []
    state = tmp_path / "state"
    state.mkdir()
    root = open_pool(pool)
    ledger, _ = SqliteLedger.open(state, Terms(), Clock.of_host())
    rules = Rules(Config(PoolConfig(pool)), VERSIONS)
    with closing(ledger), disk.watch_operations(lambda operation, target: seen.append((operation, target))):
        report = Scanner(root, ledger, rules, lambda: False).run()
    os.close(root)
    assert report.files == 16
    assert {operation for operation, _ in seen} <= {"open_beneath", "list_folder", "stat", "lock", "unlock"}
    opened = [target for operation, target in seen if operation == "open_beneath"]
    assert opened
    for target in opened:
        assert isinstance(target, bytes)
        assert stat.S_ISDIR(os.lstat(os.fsencode(pool) + b"/" + target).st_mode)


def test_no_transaction_spans_an_operation_on_files(pool: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inside = threading.local()
    seen: list[tuple[str, object]] = []
    transactions = []
    writing = Store.writing

    @contextmanager
    def watched(store: Store) -> Iterator[sqlite3.Connection]:
        with writing(store) as db:
            inside.now = True
            transactions.append(1)
            try:
                yield db
            finally:
                inside.now = False

    def note(operation: str, target: object) -> None:
        if getattr(inside, "now", False):
            seen.append((operation, target))

    monkeypatch.setattr(Store, "writing", watched)
    with _gate(pool) as gate, disk.watch_operations(note):
        gate.run()
    assert len(transactions) > 3
    assert not seen


def test_a_run_changes_nothing_in_the_pool(pool: Path) -> None:
    before = _tree(pool)
    with _gate(pool) as gate:
        gate.run()
        (pool / "part 1" / "new.txt").write_text("later", encoding="utf-8")
        (pool / "empty.txt").write_text("no longer empty", encoding="utf-8")
        changed = _tree(pool)
        gate.run()
        gate.retry()
        gate.run()
    assert _tree(pool) == changed
    kept = {path for path in before if path not in {str(pool / "part 1"), str(pool / "empty.txt")}}
    assert {path: changed[path] for path in kept} == {path: before[path] for path in kept}


def test_nothing_is_made_renamed_or_removed_below_the_pool(pool: Path) -> None:
    inside = os.fsencode(pool)
    seen: list[tuple[str, object]] = []

    def note(operation: str, target: object) -> None:
        if operation in CHANGING and isinstance(target, (str, bytes, Path)) and inside in os.fsencode(target):
            seen.append((operation, target))

    with _gate(pool) as gate, disk.watch_operations(note):
        gate.run()
        gate.run()
    assert not seen


def test_only_known_places_remove_or_rename() -> None:
    """Each of them works below the state or outputs folder; none ever sees a path of a pool."""
    expected = {
        "pool/place.py",  # temporary files of its own
        "ledger/owners.py",  # files of owners that ended
        "ledger/sqlite_store.py",  # a damaged ledger is put aside
        "index/publishing.py",  # a snapshot in the making
        "index/snapshots.py",  # old snapshots
        "cli/doctor.py",  # its own probe
        "ledger/home.py",  # an empty file that should say whose state this is
    }
    changing = ("disk.remove", "disk.remove_tree", "disk.rename_new", "disk.replace", "disk.link")
    found = {module.name for module in modules() for called, _ in calls(module) if called in changing}
    assert found == expected


def test_only_disk_knows_how_to_remove_or_rename() -> None:
    words = {"unlink", "rmdir", "rmtree", "removedirs", "rename", "renames", "renameat2", "truncate", "ftruncate"}
    found = {
        f"{module.name}: {called}"
        for module in modules()
        for called, call in calls(module)
        if module.name != DISK
        and (
            called.rpartition(".")[2] in words
            or called in ("os.remove", "os.replace")
            or _replaces_a_path(called, call)
        )
    }
    assert not found


def _replaces_a_path(called: str, call: ast.Call) -> bool:
    # Path.replace takes one argument; str.replace takes two, and the others are named.
    is_replace = called.endswith(".replace") and called not in ("dataclasses.replace", "disk.replace")
    return is_replace and len(call.args) == 1 and not call.keywords


FILE_IO_ELSEWHERE = {
    "cli/app.py: os.open": "the null device, when the reader of a pipe is gone",
    "cli/app.py: target.open": "`init` writes the configuration file that a person asked for, and never over another",
    "cli/doctor.py: (probe / 'one').touch": "two empty files in its own probe",
    "cli/doctor.py: (probe / 'two').touch": "two empty files in its own probe",
    "config.py: file.open": "reads the configuration file",
    "config.py: environment.state_home.glob": "finds the pools that this user's state knows",
    "config.py: marker.read_bytes": "finds the pools that this user's state knows",
    "ledger/home.py: marker.read_bytes": "whose state this is",
    "index/publishing.py: tantivy.Index.open": "tantivy writes inside a snapshot that is being built",
    "index/search.py: tantivy.Index.open": "tantivy reads a snapshot",
    "ledger/clock.py: Path('/proc/sys/kernel/random/boot_id').read_text": "which boot of the machine this is",
    "ledger/sqlite_store.py: sqlite3.connect": "SQLite writes the ledger",
    "ledger/sqlite_store.py: (self.state / SUSPECT).touch": "marks a ledger that was found damaged",
    "ledger/statements.py: resources.files('tidegate.ledger').joinpath(file).read_text": "the SQL of this package",
    "processing/children.py: os.memfd_create": "last words of a child, in memory",
    "processing/confine.py: os.open": "a path that Landlock is told about; nothing is read",
}


def test_all_file_io_goes_through_disk() -> None:
    """What does not is listed above, with its reason. Questions such as `exists` and `stat` are not counted."""
    words = {"open", "fdopen", "read_text", "read_bytes", "write_text", "write_bytes", "touch", "mkdir", "makedirs"}
    words |= {"iterdir", "glob", "rglob", "scandir", "listdir", "walk", "memfd_create", "symlink_to", "hardlink_to"}
    names = {"open", "sqlite3.connect", "shutil.copy", "shutil.copyfile", "shutil.move", "tempfile.mkdtemp"}
    other = {"Gate.open", "SqliteLedger.open", "cls.open", "ast.walk", "layout.open", "self._zip.open", "ole.listdir"}
    found = {
        f"{module.name}: {called}"
        for module in modules()
        for called, _ in calls(module)
        if module.name != DISK
        and called not in other
        and not called.startswith("disk.")
        and (called in names or ("." in called and called.rpartition(".")[2] in words))
    }
    assert found == set(FILE_IO_ELSEWHERE)


# --- ledger, environment ---------------------------------------------------------------------------------------------


def test_only_the_stores_of_the_ledger_speak_sql() -> None:
    importing = {
        module.name
        for module in modules()
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Import) and any(name.name == "sqlite3" for name in node.names)
    }
    assert importing == {"ledger/sqlite.py", "ledger/sqlite_store.py", "cli/doctor.py"}
    doctor = next(module for module in modules() if module.name == "cli/doctor.py")
    assert doctor.text.count("sqlite3.") == doctor.text.count("sqlite3.sqlite_version")
    assert [path.relative_to(SOURCE).as_posix() for path in SOURCE.rglob("*.sql")] == ["ledger/sqlite.sql"]


def test_only_config_reads_the_environment() -> None:
    reading = {
        module.name
        for module in modules()
        for node in ast.walk(module.tree)
        if (isinstance(node, ast.Attribute) and node.attr in ("environ", "environb", "getenv", "getenvb", "expanduser"))
        or (isinstance(node, ast.ImportFrom) and node.module == "os")
        or (isinstance(node, ast.Attribute) and ast.unparse(node) == "Path.home")
    }
    assert reading == {"config.py"}


# --- claims, outputs -------------------------------------------------------------------------------------------------


def test_a_lost_claim_writes_nothing_into_the_ledger(pool: Path, tmp_path: Path) -> None:
    state = tmp_path / "state"
    state.mkdir()
    root = open_pool(pool)
    ledger, _ = SqliteLedger.open(state, Terms(settle_s=0.0), Clock.of_host())
    with closing(ledger):
        Scanner(root, ledger, Rules(Config(PoolConfig(pool)), VERSIONS), lambda: False).run()
        settle_due(root, ledger, Patience(0.0, 3600.0))
        os.close(root)
        slow = ledger.commit("slow", (), Want(1, 1 << 30)).claims[0]
        ledger.recover(["slow"])
        quick = _claim_again(ledger, slow.task)
        before = ledger.find_file(slow.path)
        committed = ledger.commit("slow", [Finish(slow, End.FAILED, "late", Failure.CORRUPT)], NOTHING)
        assert committed.stale == {slow.task}
        assert ledger.renew("slow", [slow]) == {slow.task}
        assert ledger.find_file(slow.path) == before
        assert before is not None
        assert before.tasks[0].state is State.CLAIMED
        assert quick.fence > slow.fence


def _claim_again(ledger: SqliteLedger, task: int) -> object:
    while claims := ledger.commit("quick", (), Want(64, 1 << 30)).claims:
        for claim in claims:
            if claim.task == task:
                return claim
    raise AssertionError("the task was not given again")


def test_losing_the_ledger_loses_no_output(pool: Path, tmp_path: Path) -> None:
    packs = tmp_path / "state" / "outputs" / "packs"
    with _gate(pool) as gate:
        gate.run()
    kept = {path: path.read_bytes() for path in packs.rglob("*.gz")}
    for path in (tmp_path / "state").glob("ledger.db*"):
        path.unlink()
    with _gate(pool) as gate:
        summary = gate.run()
        assert {hit.path for hit in gate.search("合同 7").hits} == {"part 1/deep/7.txt"}
        assert gate.ledger.find_file(PoolPath(b"part 1/deep/7.txt"))
    assert summary.work.ends[End.SKIPPED] == 12
    assert {path: path.read_bytes() for path in packs.rglob("*.gz")} == kept
    assert kept
