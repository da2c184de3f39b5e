"""How every command ends that is interrupted or finds the machine too small: one sentence, no traceback."""

from __future__ import annotations

import errno
from collections.abc import Callable

import pytest

from sim.workloads.synthetic.poisson import PoissonWorkload

Brokersim = Callable[..., tuple[int, str, str]]


@pytest.mark.parametrize(
    ("raised", "status", "said"),
    [
        (KeyboardInterrupt(), 130, "brokersim: interrupted\n"),
        (MemoryError("1 TiB"), 2, "brokersim: error: not enough memory (1 TiB)\n"),
        (OSError(errno.ENOSPC, "No space left on device"), 2, "brokersim: error: No space left on device\n"),
        (OSError(errno.EACCES, "Permission denied", "w"), 2, "brokersim: error: w: Permission denied\n"),
        (OSError(errno.ENAMETOOLONG, "File name too long", "w"), 2, "brokersim: error: w: File name too long\n"),
    ],
)
def test_what_is_no_fault_of_ours_ends_in_a_sentence(
    brokersim: Brokersim, monkeypatch: pytest.MonkeyPatch, raised: BaseException, status: int, said: str
) -> None:
    def fails(*_: object) -> None:
        raise raised

    monkeypatch.setattr(PoissonWorkload, "generate", fails)
    assert brokersim("generate", "poisson", "--out", "w") == (status, "", said)


def test_any_other_error_is_a_fault_and_keeps_its_traceback(
    brokersim: Brokersim, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise OSError(errno.EBADF, "Bad file descriptor")

    monkeypatch.setattr(PoissonWorkload, "generate", fails)
    with pytest.raises(OSError, match="Bad file descriptor"):
        brokersim("generate", "poisson", "--out", "w")
