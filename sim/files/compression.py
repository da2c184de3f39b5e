"""Compressed files: gzip, bzip2, xz and zstd, recognised by their first bytes and unpacked in pieces."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import re
import zlib
from collections.abc import Callable, Iterator

# Any: files of several modules, of which only reading is asked.
from typing import Any, BinaryIO

from sim.files.readable import ReadableFile

COMPRESSIONS = "plain, gzip, bzip2, xz or zstd"
ENDINGS = (".gz", ".bz2", ".xz", ".zst")  # usual endings of compressed files

_SIGN_BYTES, _PIECE_BYTES = 10, 1 << 20
_SIGNS = {
    "gzip": rb"\x1f\x8b",
    "bzip2": rb"BZh[1-9](?:1AY&SY|\x17rE8P\x90)",  # a first block, or the end of an empty file
    "xz": rb"\xfd7zXZ\x00",
    "zstd": rb"(?:\x28\xb5\x2f\xfd|[\x50-\x5f]\x2a\x4d\x18)",  # a frame, or a skippable frame
}
# Archives, and compressions that are not supported.
_ARCHIVES = {"zip": rb"PK\x03\x04", "7z": rb"7z\xbc\xaf\x27\x1c", "RAR": rb"Rar!\x1a\x07", "lz4": rb"\x04\x22\x4d\x18"}
_TAR = re.compile(rb"[\s\S]{257}ustar(?:\x00|  \x00)")
_TAR_BYTES = 265


class Damaged(Exception):
    """A compressed file that cannot be unpacked."""

    def __init__(self, codec: str, reason: str) -> None:
        super().__init__(f"damaged {codec} file ({reason})")
        self.codec, self.reason = codec, reason


def codec_of(path: ReadableFile) -> str | None:
    """How a file is compressed, regardless of its name; None where it is not."""
    with path.open("rb") as file:
        return _codec(file.read(_SIGN_BYTES))


def pieces(file: BinaryIO, size: int = _PIECE_BYTES) -> Iterator[bytes]:
    """Yield the unpacked content of a file that is open at its start, in pieces of at most `size` bytes. Raises Damaged."""
    codec = _codec(file.read(_SIGN_BYTES))
    file.seek(0)
    content = file if codec is None else _OPENERS[codec](file)
    while piece := _read(content, size, codec):
        yield piece


def first_bytes(path: ReadableFile, count: int) -> bytes:
    """The first `count` bytes of a file's content, unpacked; fewer where it has fewer. Raises Damaged."""
    with path.open("rb") as file:
        start = b""
        for piece in pieces(file, count):  # a piece may be shorter than requested
            start += piece
            if len(start) >= count:
                break
        return start[:count]


def archive(path: ReadableFile) -> str | None:
    """The kind of archive that a file is; None where it is not an archive. Raises Damaged."""
    start = first_bytes(path, _TAR_BYTES)
    if _TAR.match(start):
        return "tar"
    return next((name for name, sign in _ARCHIVES.items() if re.match(sign, start)), None)


def _codec(start: bytes) -> str | None:
    return next((name for name, sign in _SIGNS.items() if re.match(sign, start)), None)


def _read(content: BinaryIO, size: int, codec: str | None) -> bytes:
    if codec is None:
        return content.read(size)
    try:
        return content.read(size)
    except (EOFError, OSError, zlib.error, lzma.LZMAError) as error:
        raise Damaged(codec, str(error)) from None


class _Streams(io.RawIOBase):
    """Streams one after the other, each unpacked by a `new()` decompressor; nothing else but zeros may stand between and after them."""

    def __init__(self, file: BinaryIO, new: Callable[[], Any]) -> None:
        self._file, self._new, self._stream = file, new, new()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        piece = b""
        while not piece:
            if self._stream.eof:
                packed = self._stream.unused_data.lstrip(b"\0")
                while not packed and (read := self._file.read(_PIECE_BYTES)):
                    packed = read.lstrip(b"\0")
                if not packed:
                    return 0
                self._stream = self._new()
            else:
                packed = self._file.read(_PIECE_BYTES) if self._stream.needs_input else b""
                if self._stream.needs_input and not packed:
                    raise EOFError("it ends within a stream")
            piece = self._stream.decompress(packed, len(buffer))
        buffer[: len(piece)] = piece
        return len(piece)


def _zstd(file: BinaryIO) -> BinaryIO:
    import pyarrow as pa

    return io.BufferedReader(pa.input_stream(file, compression="zstd"))


_OPENERS: dict[str, Callable[[BinaryIO], Any]] = {
    "gzip": lambda file: gzip.GzipFile(fileobj=file),
    "bzip2": lambda file: _Streams(file, bz2.BZ2Decompressor),
    "xz": lambda file: _Streams(file, lzma.LZMADecompressor),
    "zstd": _zstd,
}
