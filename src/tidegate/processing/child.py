"""The child process: takes open files over a socket, reads them, extracts text, says what came of it.

Runs as `python -m tidegate.processing.child SOCKET PARENT MEMORY`, confined before it sees the first file. Knows
nothing of ledger, pool or outputs. Whatever a parser does ends here: an error is an answer, a crash is the end of this
process, and the supervisor counts it against the file in hand.
"""

from __future__ import annotations

import errno
import os
import socket
import sys
from typing import NoReturn

from tidegate.errors import Failure, ProcessingError
from tidegate.processing import confine
from tidegate.processing.messages import Digest, Extracted, Failed, FromChild, Hello, Inbox, Progress, Work, send
from tidegate.processing.processors import TEXT
from tidegate.processing.reading import read
from tidegate.processing.text import TextLimits, extract


class Child:
    """One child's life: files in, answers out, until the socket closes."""

    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel
        self._inbox = Inbox(channel)

    def run(self) -> None:
        """Work until the supervisor closes."""
        while (received := self._inbox.next()) is not None:
            message, descriptor = received
            if isinstance(message, Work) and descriptor is not None:
                try:
                    self._process(message, descriptor)
                finally:
                    os.close(descriptor)

    def _process(self, work: Work, descriptor: int) -> None:
        try:
            self._read_and_extract(work, descriptor)
        except ProcessingError as error:
            self._say(Failed(work.task, error.failure, str(error)))
        except OSError as error:
            self._say(Failed(work.task, _failure_of(error), error.strerror or str(error)))
        except MemoryError:
            self._say(Failed(work.task, Failure.MEMORY, "needs more memory than a child may use"))
            sys.exit(0)
        except Exception as error:  # noqa: BLE001 - the task boundary: whatever one file does is that file's failure
            self._say(Failed(work.task, Failure.CRASH, f"{type(error).__name__}: {error}"))

    def _read_and_extract(self, work: Work, descriptor: int) -> None:
        is_text = work.processor == TEXT
        content = read(descriptor, work.size, is_kept=is_text, say=lambda count: self._say(Progress(work.task, count)))
        self._say(Digest(work.task, content.digest))
        if not is_text:
            return
        if not self._inbox.answer_for(work.task):
            return
        text = extract(content.data, work.name, TextLimits(), is_whole=content.is_whole)
        about = (text.kind, text.title, text.pages, text.pages_without_text, text.is_truncated)
        self._say(Extracted(work.task, text.text, *about))

    def _say(self, message: FromChild) -> None:
        send(self._channel, message)


def _failure_of(error: OSError) -> Failure:
    if error.errno in (errno.EACCES, errno.EPERM):
        return Failure.PERMISSION
    if error.errno in (errno.EBUSY, errno.ETXTBSY):
        return Failure.BUSY
    return Failure.MEMORY if error.errno == errno.ENOMEM else Failure.TRANSIENT


def main(arguments: list[str]) -> NoReturn:
    """Confine this process, greet, work."""
    number, parent, memory = (int(argument) for argument in arguments)
    confine.die_with_parent(parent)
    confine.limit(memory)
    is_confined = confine.lock_down()
    with socket.socket(fileno=number) as channel:
        try:
            send(channel, Hello(is_confined))
            Child(channel).run()
        except (BrokenPipeError, ConnectionResetError):
            sys.exit(0)
    sys.exit(0)


if __name__ == "__main__":
    main(sys.argv[1:])
