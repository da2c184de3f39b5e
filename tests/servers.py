"""Brokers that run on loopback, each with its own port and folder, and are ended by their own process."""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


def program(name: str) -> str:
    """The path of a program; the test is skipped where it is not installed."""
    path = shutil.which(name) or shutil.which(name, path="/usr/sbin")
    if path is None:
        pytest.skip(f"{name} is not installed (apt-get install {name})")
    return path


def started(name: str, *arguments: str, port: int) -> subprocess.Popen[bytes]:
    """Start a server, and return it once it accepts connections."""
    server = subprocess.Popen([program(name), *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for _ in range(1000):
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return server
        except OSError:
            assert server.poll() is None, f"{name} ended with {server.poll()}"
            time.sleep(0.01)
    end(server)
    raise AssertionError(f"{name} does not listen at port {port}")


def end(server: subprocess.Popen[bytes], kill: bool = False) -> None:
    """End a server, and wait until it has."""
    (server.kill if kill else server.terminate)()
    try:
        server.wait(10)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait(10)


@contextmanager
def running(name: str, *arguments: str, port: int) -> Iterator[subprocess.Popen[bytes]]:
    """Start a server, yield it once it accepts connections, and end it with the body."""
    server = started(name, *arguments, port=port)
    try:
        yield server
    finally:
        end(server)
