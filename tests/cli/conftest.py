"""Fixtures of the tests of the command line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

OF_ALL = ("costs", "event rates", "expected")
"""How messages begin that are of a whole problem and of none of its keys."""


@pytest.fixture
def check_refused(
    brokersim: Callable[..., tuple[int, str, str]], tmp_path: Path
) -> Callable[[str, Any, Any, str], None]:
    """Checks that `solve` says what is wrong with a problem in i.json, alone and behind another in a list."""

    def check(command: str, valid: Any, content: Any, message: str) -> None:
        colon = "." if ":" in message and not message.startswith(OF_ALL) else ": "
        for written, place in ((content, ""), ([valid, content], f"[1]{colon}")):
            (tmp_path / "i.json").write_text(json.dumps(written))
            expected = (2, "", f"brokersim: error: i.json: {place}{message}\n")
            assert brokersim("solve", *command.split(), "--json") == expected

    return check
