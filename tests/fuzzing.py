"""Broken input: mutations of valid files, and commands run on them in a process of their own with limits on time and memory."""

from __future__ import annotations

import gzip
import json
import os
import random
import re
import resource
import shutil
import signal
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer.main

from sim.cli import app

Command = list[str]
Kind = Callable[[random.Random, Path], list[Command]]
"""Writes one broken input into a folder; the commands to try it with, each if those before it went well."""

SECONDS = 60
"""No command takes longer, by the processor's clock, lest other work of the machine count; by the wall's, ten times that."""
BYTES = 4 << 30
"""No command takes more memory."""
LOGS = 12
"""Logs of odd rows that are prepared, of a few dozen rows each."""
LARGE = 3
"""Seconds after which a run that is large by what it says is stopped."""

LONGEST = 20_000
"""Characters that are said, at most: long values are cut."""

EXTREMES = (
    *("0", "-0", "-0.0", "1", "-1", "2", "0.5", "1e-9", "1e-300", "5e-324", "1e9", "1e18", "1e300", "1e308", "-1e308", "1e999"),
    *("nan", "inf", "-inf", "NaN", "Infinity", "2147483647", "2147483648", "4294967296", "9007199254740993"),
    *("9223372036854775807", "9223372036854775808", "-9223372036854775808", "18446744073709551616", "9" * 400, "9" * 5000),
    *("0x10", "1_000", "1e", "+5", "٣", "true", "false", "null", "None", "2020-01-01", "2020-01-01T10:00:00Z", "10:00:00"),
    *('""', '" "', '"x"', '"nan"', '"1e400"', '"-0"', '"1us"', '"1ns"', '"1e300d"', '"1e-300us"', '"10%"', '"1/0"', '"3/2"'),
    *('"ü ☃ 𝔘"', '"\\u0000"', '"\\u001b[31m"', '"' + "x" * 3000 + '"', '"../.."', '"/"', '"."', '"cells"', '"unbounded"'),
    *("[]", "[[]]", '[["x"]]', "[1]", "[nan]", '["", ""]', "[1, [2, [3]]]", "[" * 200 + "]" * 200, "[" * 3000 + "]" * 3000),
    *("{}", "{ a = 1 }", '{"a": 1}', '{ kind = "none" }', '{ from = 1, to = 9, steps = 3 }', '{ from = 0, to = 1e308, steps = 9 }'),
)  # fmt: skip
NUMBERS = (
    "0",
    "-0.0",
    "1",
    "-1",
    "2",
    "3",
    "7",
    "0.5",
    "0.999",
    "1e-9",
    "1e-300",
    "5e-324",
    "1e5",
    "1e9",
    "1e15",
    "9007199254740992",
    "1e308",
)
INTEGERS = (
    "0",
    "-1",
    "1",
    "2",
    "3",
    "5",
    "62",
    "63",
    "64",
    "100",
    "4096",
    "65537",
    "2147483647",
    "2147483648",
    "9223372036854775807",
)
DURATIONS = (
    '"0s"',
    '"1us"',
    '"1ms"',
    '"0.7s"',
    '"59min"',
    '"1h"',
    '"25h"',
    '"1w"',
    '"9e9s"',
    '"1e-300us"',
    '"-1s"',
    "3600",
    "1e-12",
    "0",
)
_TOKENS = re.compile(r'"(?:[^"\\\n]|\\.)*"|[+-]?\d[\w.+-]*|[^\W\d][\w-]*|\s+|.', re.DOTALL)
_VALUES = re.compile(r'(?<=[=:,\[\s])(?:"(?:[^"\\\n]|\\.)*"|[+-]?\d[\w.%+-]*|true|false|null)')


def mutated(rng: random.Random, text: str) -> bytes:
    """A text with one to three tokens or values deleted, repeated, swapped or replaced, or damaged as a whole."""
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        text = rng.choice((_value, _value, _value, _value, _value, _token, _line))(rng, text)
    data = text.encode("utf-8", "surrogatepass")
    return _broken(rng, data) if rng.random() < 0.1 else data


def _value(rng: random.Random, text: str) -> str:
    """A replacement for a value."""
    places = list(_VALUES.finditer(text))
    if not places:
        return _token(rng, text)
    place = rng.choice(places)
    return text[: place.start()] + instead(rng, place[0], rng.choice(places)[0]) + text[place.end() :]


def instead(rng: random.Random, value: str, other: str) -> str:
    """A possible replacement: mostly of the same type, otherwise another value of the text or any other."""
    if rng.random() < 0.35:
        return rng.choice((*EXTREMES, other))
    if re.fullmatch(r"[+-]?\d+", value):
        return rng.choice(INTEGERS)
    if re.fullmatch(r"[+-]?[\d.]+(e[+-]?\d+)?", value):
        return rng.choice(NUMBERS)
    if re.fullmatch(r'"[\d.]+(us|ms|s|min|h|d|w)"', value):
        return rng.choice(DURATIONS)
    if value in ("true", "false"):
        return "false" if value == "true" else "true"
    return rng.choice((other, value[:-1] + 'x"', value[:1] + value[2:]))


def _token(rng: random.Random, text: str) -> str:
    tokens = _TOKENS.findall(text)
    if not tokens:
        return rng.choice(EXTREMES)
    at, other = rng.randrange(len(tokens)), rng.randrange(len(tokens))
    match rng.randrange(5):
        case 0:
            del tokens[at]
        case 1:
            tokens.insert(at, tokens[at])
        case 2:
            tokens[at], tokens[other] = tokens[other], tokens[at]
        case 3:
            tokens[at] = rng.choice(EXTREMES)
        case _:
            tokens.insert(
                at, rng.choice(("\0", "\x1b[2J", "\u202e", "\ud800", "\\", "'", '"', "#", ";", "\r", "=", "[", "}"))
            )
    return "".join(tokens)


def _line(rng: random.Random, text: str) -> str:
    lines = text.splitlines(keepends=True) or [""]
    at, other = rng.randrange(len(lines)), rng.randrange(len(lines))
    match rng.randrange(4):
        case 0:
            del lines[at]
        case 1:
            lines.insert(at, lines[other])
        case 2:
            lines[at], lines[other] = lines[other], lines[at]
        case _:
            lines[at] *= rng.choice((2, 50))
    return "".join(lines)


def _broken(rng: random.Random, data: bytes) -> bytes:
    at = rng.randrange(len(data) + 1)
    match rng.randrange(8):
        case 0:
            return data[:at]
        case 1:
            return data[:at] + bytes(rng.randrange(256) for _ in range(8)) + data[at:]
        case 2:
            return data.decode("utf-8", "replace").encode("utf-16")
        case 3:
            return data.decode("utf-8", "replace").encode("latin-1", "replace") + b"\xe9"
        case 4:
            return b"\xef\xbb\xbf" + data
        case 5:
            return gzip.compress(data, mtime=0)[: rng.choice((None, -4, 9))]
        case 6:
            return data.replace(b"\n", rng.choice((b"\r\n", b"\r", b"\n\n")))
        case _:
            return rng.choice((b"", b"\n", b"\0" * 100, b"[" * 100_000, b"{" * 100_000, b'"' * 1001, b"<" * 1000))


@dataclass(frozen=True)
class Outcome:
    """The outcome of an input: "fine" (usable), "refused" (one sentence), "stopped" (a large run), or a description of the fault."""

    ending: str
    said: str = ""

    @property
    def wrong(self) -> bool:
        return self.ending not in ("fine", "refused", "stopped")


def tried(kind: Kind, seed: str, folder: Path) -> Outcome:
    """The outcome of an input in a separate process, which starts with everything that this one has compiled."""
    if folder.exists():
        shutil.rmtree(folder)
    folder.mkdir(parents=True)
    said, ended = folder / "said", folder / "ended"
    child = os.fork()
    if not child:
        try:
            ended.write_text(_commands(kind, seed, folder / "in", said))
        except BaseException:
            ended.write_text(f"fault of the test\n{traceback.format_exc()}")
        finally:
            os._exit(0)
    _, status = os.waitpid(child, 0)
    text = said.read_text("utf-8", "replace") if said.exists() else ""
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        large = number in (signal.SIGPROF, signal.SIGALRM) and (folder / "large").exists()
        return Outcome("stopped" if large else f"killed by {signal.Signals(number).name}", text[-3000:])
    ending, _, more = ended.read_text("utf-8", "replace").partition("\n")
    return Outcome(ending, f"{text[-3000:]}{more[-3000:]}")


def _commands(kind: Kind, seed: str, folder: Path, said: Path) -> str:
    folder.mkdir()
    os.chdir(folder)
    commands = kind(random.Random(seed), folder)
    with said.open("w", encoding="utf-8", errors="replace") as file:
        for descriptor in (1, 2):
            os.dup2(file.fileno(), descriptor)
        sys.stdout = sys.stderr = file
        sys.stdin.close()
        resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))
        warnings.simplefilter("error")
        for command in commands:
            print("$ brokersim", *(argument[:200] for argument in command), flush=True)
            if command[0] == "run" and is_large(command):
                (folder.parent / "large").touch()
                _limit(LARGE)
            else:
                _limit(SECONDS)
            status = _status(command)
            _limit(0)
            file.flush()
            if status == 2:
                return "refused" if len(said.read_text("utf-8", "replace")) < LONGEST else "a long message"
            if status:
                return "refused" if status == 1 and not _faults(folder) else f"exit status {status}"
    return "fine"


def _limit(seconds: float) -> None:
    """Let this process end after a time; 0: never."""
    for timer, number, wait in ((signal.ITIMER_PROF, signal.SIGPROF, 1), (signal.ITIMER_REAL, signal.SIGALRM, 10)):
        signal.signal(number, signal.SIG_DFL)
        signal.setitimer(timer, seconds * wait)


def _faults(folder: Path) -> list[str]:
    """The tracebacks of runs that failed by a fault, which the results keep."""
    records = [json.loads(path.read_text()) for path in folder.glob("r/failed/*.json")]
    faults = [record["traceback"] for record in records if record["traceback"]]
    print(*faults, flush=True)
    return faults if records else ["no run failed"]


def _status(command: Command) -> Any:
    sys.argv = ["brokersim", *command]
    try:
        app.main()
    except SystemExit as end:
        return end.code or 0
    except BaseException:
        traceback.print_exc()
        return "traceback"
    return 0


def is_large(command: Command) -> bool:
    """Whether a scenario would take long, in which case only its beginning is tried."""
    from sim.base.errors import BrokersimError
    from sim.scenario.reader import load_scenario

    values = [argument for i, argument in enumerate(command) if command[i - 1] == "--set"]
    workload = next((argument for i, argument in enumerate(command) if command[i - 1] == "--workload"), None)
    try:
        experiment = load_scenario(Path(command[1]), values, workload)
    except BrokersimError:
        return False
    scenarios = [scenario for point in experiment.points for scenario in point.variants.values()]
    most = experiment.precision.max_replications if experiment.precision else 0
    if len(scenarios) * max(experiment.base.replications, most) > 12:
        return True
    return any(number > 2000 for scenario in scenarios for number in _numbers(scenario))


def _numbers(scenario: Any) -> Iterator[float]:
    """What makes a scenario large: its horizon (h), the numbers of its workload, its brokers, and the steps of what recurs."""
    parameters = vars(scenario.workload.parameters)
    horizon = scenario.horizon or parameters.get("horizon", 0)
    yield horizon / 3600
    for key, value in parameters.items():
        if isinstance(value, int | float) and key not in (
            "horizon",
            "size",
            "payload",
            "scale",
            "peak",
            "release_time",
        ):
            yield value
    if isinstance(scenario.network.brokers, int):
        yield scenario.network.brokers
    for table in (scenario.selection, scenario.reconfiguration, scenario.offloading, scenario.network.geometry):
        for key, value in vars(table.parameters).items():
            if key.endswith("period"):
                yield horizon / value
            elif key in ("proposals", "parts", "digits", "levels"):
                yield value or 0
    yield horizon / scenario.window


def warmed(commands: Sequence[Command], folder: Path) -> None:
    """Compile and import in this process what commands need, so that those that are forked have it."""
    typer.main.get_command = __import__("functools").cache(typer.main.get_command)
    here = Path.cwd()
    os.chdir(folder)
    try:
        for command in commands:
            began = time.monotonic()
            status = _status(command)
            print(f"{status} after {time.monotonic() - began:.1f} s: brokersim {' '.join(command)}", file=sys.stderr)
            assert status in (0, 1, 2)  # some kinds do not go together
    finally:
        os.chdir(here)
