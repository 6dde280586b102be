"""The supervisor's side of one child process: starting it, giving it files, hearing it, ending it.

Children are started anew, never forked from a running program, in a process group of their own that is killed as a
whole. They inherit no environment but a bare one, and write what libraries print into memory, whose end is the reason
given for a crash.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import msgspec

from tidegate.errors import Failure
from tidegate.ledger import Claim
from tidegate.pool import disk, display
from tidegate.processing.messages import Answer, Frames, FromChild, Hello, Work, receive, send

_LAST_WORDS: Final = 400


@dataclass(slots=True)
class InHand:
    """A claimed file that was given to a child, open, with its digest once that is known."""

    claim: Claim
    descriptor: int
    digest: bytes | None = None

    def close(self) -> None:
        """Give the open file back."""
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1


@dataclass(frozen=True, slots=True)
class ChildTerms:
    """Seconds without progress after which a child is ended, its address space in bytes, files until it is replaced."""

    deadline_s: float
    memory: int
    replace_after: int


@dataclass(slots=True)
class Child:
    """A running child. The first of `queue` is the file in hand; the others wait in it so that it never idles."""

    process: subprocess.Popen[bytes]
    channel: socket.socket
    words: int
    terms: ChildTerms
    queue: deque[InHand] = field(default_factory=deque)
    frames: Frames = field(default_factory=Frames)
    given: int = 0
    heard_at: float = field(default_factory=time.monotonic)
    is_confined: bool | None = None
    is_garbled: bool = False

    @classmethod
    def start(cls, terms: ChildTerms) -> Child:
        """Start a child; it greets with `Hello` when it is ready."""
        ours, theirs = socket.socketpair()
        arguments = [str(theirs.fileno()), str(os.getpid()), str(terms.memory)]
        with theirs, contextlib.ExitStack() as undo:
            undo.callback(ours.close)
            words = os.memfd_create("tidegate-child", os.MFD_CLOEXEC)
            undo.callback(os.close, words)
            process = subprocess.Popen(
                [sys.executable, "-P", "-m", "tidegate.processing.child", *arguments],
                stdin=subprocess.DEVNULL,
                stdout=words,
                stderr=words,
                env={"LC_ALL": "C.UTF-8", "PATH": os.defpath, "PYTHONPATH": os.pathsep.join(_import_path())},
                pass_fds=[theirs.fileno()],
                process_group=0,
            )
            undo.pop_all()
        return cls(process, ours, words, terms)

    @property
    def is_worn(self) -> bool:
        """Whether it has had its share of files and takes no more."""
        return self.given >= self.terms.replace_after

    def give(self, item: InHand, processor: str) -> None:
        """Hand over one open file. Raises OSError where the child is gone."""
        if not self.queue:
            self.heard_at = time.monotonic()
        self.queue.append(item)
        self.given += 1
        claim = item.claim
        send(self.channel, Work(claim.task, claim.path.display, claim.stamp.size, processor), item.descriptor)

    def answer(self, task: int, *, is_wanted: bool) -> None:
        """Say whether the text of the file in hand is wanted. A child that is gone is noticed when it is heard."""
        self.heard_at = time.monotonic()
        with contextlib.suppress(OSError):
            send(self.channel, Answer(task, is_wanted))

    def hear(self) -> list[FromChild] | None:
        """What it said since; None where it is gone, or says what is no message."""
        try:
            messages = receive(self.channel, self.frames)
        except msgspec.DecodeError:
            self.is_garbled = True
            return None
        if messages:
            self.heard_at = time.monotonic()
            for message in messages:
                if isinstance(message, Hello):
                    self.is_confined = message.is_confined
        return messages

    def is_late(self, now: float) -> bool:
        """Whether it has a file in hand and said nothing for longer than the deadline."""
        return bool(self.queue) and now - self.heard_at > self.terms.deadline_s

    def end(self, *, is_late: bool = False) -> tuple[Failure, str]:
        """End the child and all it started; what its death means for the file in hand, with its last words.

        A late one is killed at once; any other, idle or gone already, gets a second to go by itself.
        """
        self.channel.close()
        died_by_itself = _waited(self.process.pid, 0.0 if is_late or self.is_garbled else 1.0)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        status = self.process.wait()
        meaning = _meaning(status if died_by_itself else None, self._last_words())
        os.close(self.words)
        return (Failure.CRASH, "the child said what is no message") if self.is_garbled else meaning

    def _last_words(self) -> str:
        size = disk.stat_open(self.words).st_size
        tail = disk.read_at(self.words, _LAST_WORDS, max(0, size - _LAST_WORDS))
        lines = [display(line.strip()) for line in tail.splitlines() if line.strip()]
        return lines[-1] if lines else ""


def _import_path() -> list[str]:
    """Where a child may import from and read: not the folder this program was started in, which may be the pool."""
    here, ours = Path.cwd(), Path(__file__).parents[2]
    return [entry for entry in sys.path if entry and (Path(entry).resolve() != here or Path(entry).resolve() == ours)]


def _waited(pid: int, patience_s: float) -> bool:
    """Whether the child ended within that time. It is not reaped yet, so that its group keeps its number."""
    until = time.monotonic() + patience_s
    while True:
        if os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None:
            return True
        if time.monotonic() >= until:
            return False
        time.sleep(0.005)


def _meaning(status: int | None, words: str) -> tuple[Failure, str]:
    said = f": {words}" if words else ""
    if status is None:
        return Failure.TIMEOUT, f"no progress within the deadline{said}"
    if "memory allocation" in words or "MemoryError" in words or "out of memory" in words.lower():
        return Failure.MEMORY, f"needs more memory than a child may use{said}"
    if status == -signal.SIGKILL:
        return Failure.MEMORY, "the system killed the child, most likely for lack of memory"
    how = f"signal {signal.Signals(-status).name}" if status < 0 else f"exit status {status}"
    return Failure.CRASH, f"the child ended with {how}{said}"
