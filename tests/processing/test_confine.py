"""The box of a child: small programs inside `lock_down` and `limit`, each in a process of its own."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tidegate.processing.confine import landlock_abi

BEFORE = """
import os, socket, sys
from tidegate.processing import confine
given = sys.argv[1:]
spare = os.open(given[0], os.O_RDONLY)
assert confine.lock_down() == (confine.landlock_abi() > 0)
"""


def inside(program: str, *given: object) -> str:
    """What a program prints inside the box; its first argument was opened before."""
    arguments = [sys.executable, "-c", BEFORE + program, *map(str, given)]
    done = subprocess.run(arguments, capture_output=True, text=True, check=False, timeout=60)
    return done.stdout + done.stderr


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    path = tmp_path / "secret"
    path.write_text("canary")
    return path


def test_this_kernel_has_landlock() -> None:
    """All that follows proves something only where it is there."""
    assert landlock_abi() >= 4


@pytest.mark.parametrize(
    "how", ["open(given[0])", "os.open(given[0], os.O_RDONLY)", "os.listdir(os.path.dirname(given[0]))"]
)
def test_no_other_file_or_folder_can_be_read(secret: Path, how: str) -> None:
    assert "PermissionError" in inside(how, secret)


@pytest.mark.parametrize(
    "path", ["/etc/passwd", "/etc/shadow", "/var/log", "/proc/1/environ", "/proc/self/root/etc/passwd"]
)
def test_nothing_of_the_system_that_holds_secrets_can_be_read(secret: Path, path: str) -> None:
    said = inside("os.open(given[1], os.O_RDONLY)", secret, path)
    assert "PermissionError" in said or "FileNotFoundError" in said


def test_the_file_that_was_handed_over_can_be_read(secret: Path) -> None:
    assert inside("print(os.read(spare, 99).decode(), end='')", secret) == "canary"


@pytest.mark.parametrize(
    "how",
    [
        "open(given[0], 'a')",
        "open(given[0] + '.new', 'w')",
        "os.mkdir(given[0] + '.d')",
        "os.unlink(given[0])",
        "os.rename(given[0], given[0] + '2')",
        "os.symlink('x', given[0] + '3')",
        "os.truncate(given[0], 0)",
        "os.mkfifo(given[0] + '4')",
    ],
)
def test_nothing_can_be_written_made_or_removed(secret: Path, how: str) -> None:
    assert "PermissionError" in inside(how, secret)
    assert secret.read_text() == "canary"
    assert [path.name for path in secret.parent.iterdir()] == ["secret"]


def test_no_tcp_connection_can_be_made_or_accepted(secret: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert "PermissionError" in inside("socket.create_connection(('127.0.0.1', int(given[1])))", secret, port)
    assert "PermissionError" in inside("socket.create_server(('127.0.0.1', 0))", secret)


def test_the_box_holds_for_what_is_started_in_it(secret: Path) -> None:
    program = "os.execv('/bin/cat', ['cat', given[0]])"
    assert "Permission denied" in inside(program, secret)


def test_the_box_still_lets_parsers_be_imported(secret: Path) -> None:
    assert inside("import pypdfium2, selectolax, email; print('fine', end='')", secret) == "fine"


def test_limits_cap_memory_files_and_descriptors_and_forbid_cores(tmp_path: Path) -> None:
    program = (
        "import resource, sys\nfrom tidegate.processing import confine\nconfine.limit(500_000_000)\n"
        "for one in ('AS', 'CORE', 'FSIZE', 'NOFILE'): print(*resource.getrlimit(getattr(resource, 'RLIMIT_' + one)))\n"
        "try: bytearray(1 << 30)\nexcept MemoryError: print('no memory')\n"
        "try: open(sys.argv[1], 'wb', 0).write(b'x' * 2_000_000) == 1_000_000 and print('cut')\n"
        "except OSError as error: print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "f")], capture_output=True, text=True, check=True
    )
    limits = ["500000000 500000000", "0 0", "1000000 1000000", "128 128"]
    assert done.stdout.splitlines() == [*limits, "no memory", "cut"]


def test_a_child_whose_parent_is_gone_already_ends_at_once() -> None:
    program = "from tidegate.processing import confine; confine.die_with_parent(1); print('lives')"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=30)
    assert (done.returncode, done.stdout) == (1, "")
    program = program.replace("(1)", f"({os.getpid()})")
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=30)
    assert done.stdout == "lives\n"
