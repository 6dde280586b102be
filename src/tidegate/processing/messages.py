"""What supervisor and child say to each other: frames on a Unix stream socket.

    frame = 4 bytes length (big endian), then one msgpack message

A `Work` frame carries the open file with it (SCM_RIGHTS), so a child needs no path and no right to open one. The child
answers a text file's `Work` first with its `Digest`, and goes on when it is told that the content is new.
"""

from __future__ import annotations

import os
import socket
import struct
from collections import deque
from typing import Final

import msgspec

from tidegate.errors import Failure

_LENGTH: Final = struct.Struct(">I")
_READ: Final = 1 << 20
_READ_FIRST: Final = 1 << 16  # most that a child says fits; a megabyte for each look would be made and thrown away
_LONGEST: Final = 256 << 20  # no text of a child comes near it


class Hello(msgspec.Struct, frozen=True, tag=True):
    """The child is ready; whether Landlock confines it."""

    is_confined: bool


class Work(msgspec.Struct, frozen=True, tag=True):
    """Process the file that comes with this frame."""

    task: int
    name: str
    size: int
    processor: str


class Progress(msgspec.Struct, frozen=True, tag=True):
    """Bytes read so far."""

    task: int
    read: int


class Digest(msgspec.Struct, frozen=True, tag=True):
    """The SHA-256 of the whole file. For `checksum` it is the end; for `text` a question."""

    task: int
    digest: bytes


class Answer(msgspec.Struct, frozen=True, tag=True):
    """Whether the text of this content is wanted; if not, the child is done with the file."""

    task: int
    is_wanted: bool


class Extracted(msgspec.Struct, frozen=True, tag=True):
    """The text of the file."""

    task: int
    text: str
    kind: str
    title: str
    pages: int
    pages_without_text: int
    is_truncated: bool


class Failed(msgspec.Struct, frozen=True, tag=True):
    """The file could not be processed."""

    task: int
    failure: Failure
    reason: str


FromChild = Hello | Progress | Digest | Extracted | Failed
ToChild = Work | Answer


class Frames:
    """Cuts a byte stream into messages."""

    def __init__(self) -> None:
        self._bytes = bytearray()

    def feed(self, data: bytes) -> list[memoryview]:
        """The bodies of the frames that are complete now. Raises msgspec.DecodeError where there are no frames."""
        self._bytes += data
        bodies, start = [], 0
        while len(self._bytes) - start >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(self._bytes, start)
            if length > _LONGEST:
                raise msgspec.DecodeError(f"a message of {length} bytes")
            if len(self._bytes) - start - _LENGTH.size < length:
                break
            start += _LENGTH.size
            bodies.append(memoryview(bytes(self._bytes[start : start + length])))
            start += length
        del self._bytes[:start]
        return bodies


def send(channel: socket.socket, message: FromChild | ToChild, descriptor: int | None = None) -> None:
    """Send one message, with an open file where one is given. Raises OSError where the other side is gone."""
    body = msgspec.msgpack.encode(message)
    frame = _LENGTH.pack(len(body)) + body
    if descriptor is None:
        channel.sendall(frame)
        return
    sent = socket.send_fds(channel, [frame], [descriptor])
    channel.sendall(frame[sent:])


class Inbox:
    """The child's side: blocking, messages in order, each `Work` with its open file."""

    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel
        self._frames = Frames()
        self._files: deque[int] = deque()
        self._messages: deque[ToChild] = deque()

    def next(self) -> tuple[ToChild, int | None] | None:
        """The next message, with its file for `Work`; None when the supervisor closed."""
        while not self._messages:
            if not self._receive():
                return None
        message = self._messages.popleft()
        return message, self._files.popleft() if isinstance(message, Work) else None

    def answer_for(self, task: int) -> bool | None:
        """Wait for the answer about `task`, keeping other messages for later; None when the supervisor closed."""
        while True:
            for message in self._messages:
                if isinstance(message, Answer) and message.task == task:
                    self._messages.remove(message)
                    return message.is_wanted
            if not self._receive():
                return None

    def _receive(self) -> bool:
        data, files, _, _ = socket.recv_fds(self._channel, 1 << 16, 16)
        for file in files:
            os.set_inheritable(file, False)
            self._files.append(file)
        self._messages.extend(msgspec.msgpack.decode(body, type=ToChild) for body in self._frames.feed(data))
        return bool(data)


def receive(channel: socket.socket, frames: Frames) -> list[FromChild] | None:
    """The supervisor's side: the messages that are there now, without waiting; None where the child is gone. Raises
    msgspec.DecodeError for what is no message."""
    data, most = bytearray(), _READ_FIRST
    try:
        while len(data) < 32 * _READ and (part := channel.recv(most, socket.MSG_DONTWAIT)):
            data += part
            if len(part) < most:
                break
            most = _READ
        else:
            if not data:
                return None
    except BlockingIOError:
        pass
    except OSError:
        if not data:
            return None
    return [msgspec.msgpack.decode(body, type=FromChild) for body in frames.feed(bytes(data))]
