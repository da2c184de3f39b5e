"""Mutation testing: makes small changes to the code (mutants), one at a time, and runs the tests that should fail.

    .venv/bin/python tests/mutants.py [PACKAGE …] [--results FOLDER] [--list] [--table]

A mutant moves a bound, a sign, a constant by 1, a tie, swaps sides or drops a term. Which ones are made follows from `SEED` and the
code alone: those whose hash is lowest, so many of each package. Mutants are tried in a temporary copy of the checkout; results are
lines of JSON, one for each mutant, and what has a line is not tried again. Compiled code of the changed file and of all that may have
it inlined is left out of the copy meanwhile.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import json
import os
import re
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import IO, Any, NoReturn

import hypothesis
import pytest
from mutant_tests import EQUIVALENT, LEFT_OUT, PICKED, TESTS

ROOT = Path(__file__).resolve().parents[1]
SEED = 1
SAMPLE = {"picked": len(PICKED), "overlay": 32, "policies": 32, "workloads": 36, "experiments": 24, "brokers": 40}
CPU_SECONDS = 600  # for the tests of one mutant; tests that take longer are taken to hang
MEMORY = 8 << 30  # bytes of address space

BOUNDS = {ast.Lt: ("<", "<="), ast.LtE: ("<=", "<"), ast.Gt: (">", ">="), ast.GtE: (">=", ">")}
SIGNS = {ast.Add: ("+", "-"), ast.Sub: ("-", "+")}
TWINS = {"min": "max", "minimum": "maximum", "argmin": "argmax", "floor": "ceil", "any": "all"}
TWINS |= {other: one for one, other in TWINS.items()}
MESSAGES = ("__str__", "__repr__", "describe", "summary")
SIZES = ("empty", "zeros", "ones", "full", "reshape", "astype", "round", "Field", "format", "cast")
SETTINGS = (
    "axis",
    "strict",
    "ddof",
    "indent",
    "stacklevel",
    "exist_ok",
    "parents",
    "copy",
    "compression",
    "minlength",
    "dtype",
)


@dataclass(frozen=True)
class Mutant:
    """One change: `start` to `end` (bytes of the file) become `text`. `key` names it, whatever line it stands in."""

    key: str
    path: str
    line: int
    kind: str
    start: int
    end: int
    text: bytes
    tests: tuple[str, ...]  # that should fail

    def change(self, source: bytes) -> str:
        """The line before and after the change."""
        first, last = source.rfind(b"\n", 0, self.start) + 1, source.find(b"\n", self.end)
        before, after = source[first:last], source[first : self.start] + self.text + source[self.end : last]
        return " → ".join(re.sub(r"\s+", " ", part.decode()).strip() for part in (before, after))


# -- making mutants


class Changes(ast.NodeVisitor):
    """All changes to a file that mean something, as (line, kind, start, end, text): not those to messages, types and defaults."""

    def __init__(self, source: bytes) -> None:
        self.source = source
        self.starts = [0, *(found.end() for found in re.finditer(b"\n", source))]
        self.found: list[tuple[str, ast.AST, str, int, int, bytes]] = []
        self.names: list[str] = []
        self.loops = False
        self.visit(ast.parse(source))

    def span(self, node: Any) -> tuple[int, int]:
        return (
            self.starts[node.lineno - 1] + node.col_offset,
            self.starts[node.end_lineno - 1] + node.end_col_offset,
        )

    def text(self, node: ast.AST) -> bytes:
        start, end = self.span(node)
        return self.source[start:end]

    def add(self, node: ast.AST, kind: str, start: int, end: int, text: bytes) -> None:
        self.found.append((".".join(self.names), node, kind, start, end, text))

    def replace(self, node: ast.AST, kind: str, text: bytes) -> None:
        self.add(node, kind, *self.span(node), text)

    def between(self, node: ast.AST, one: ast.AST, other: ast.AST, kind: str, old: str, new: str) -> None:
        """The operator between two operands."""
        first, last = self.span(one)[1], self.span(other)[0]
        at = self.source.find(old.encode(), first, last)
        if at >= 0:
            self.add(node, kind, at, at + len(old), new.encode())

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        if node.name != "Parameters":
            self.inside(node.name, node.body)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        if node.name not in MESSAGES:
            self.inside(node.name, node.body)

    def inside(self, name: str, body: list[ast.stmt]) -> None:
        self.names.append(name)
        for statement in body:
            self.visit(statement)
        self.names.pop()

    def nothing(self, node: ast.AST) -> None:
        """Visit no deeper: the node stays unchanged."""

    visit_Raise = visit_JoinedStr = visit_Assert = visit_Import = visit_ImportFrom = nothing

    def in_function(self) -> bool:
        return bool(self.names) and not self.names[-1].lstrip("_")[0].isupper()

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if self.in_function() and node.value is not None:
            self.visit(node.value)

    def visit_Assign(self, node: ast.Assign) -> None:
        if self.in_function():
            self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> None:
        if len(node.ops) == 1 and type(node.ops[0]) in BOUNDS:
            self.between(node, node.left, node.comparators[0], "bound", *BOUNDS[type(node.ops[0])])
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        texts = is_text(node.left) or is_text(node.right)
        if not texts and type(node.op) in SIGNS:
            self.between(node, node.left, node.right, "sign", *SIGNS[type(node.op)])
        if not texts and isinstance(node.op, ast.Add | ast.Sub | ast.Mult):
            self.replace(node, "dropped term", self.text(node.left))
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        old, new = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
        self.between(node, node.values[0], node.values[1], "and/or", old, new)
        self.add(node, "dropped condition", self.span(node.values[-2])[1], self.span(node)[1], b"")
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        if isinstance(node.op, ast.Not):
            self.replace(node, "dropped not", b"(" + self.text(node.operand) + b")")
        elif isinstance(node.op, ast.USub) and not isinstance(node.operand, ast.Constant):
            self.replace(node, "dropped sign", b"(" + self.text(node.operand) + b")")
        if not isinstance(node.op, ast.USub) or not isinstance(node.operand, ast.Constant):
            self.generic_visit(node)

    def visit_While(self, node: ast.While) -> None:
        """Leaves the counter of such a loop unchanged, since most mutants of it never end."""
        was, self.loops = self.loops, True
        self.generic_visit(node)
        self.loops = was

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        if type(node.op) in SIGNS and not self.loops:
            old, new = SIGNS[type(node.op)]
            self.between(node, node.target, node.value, "sign", old + "=", new + "=")
            self.replace(node, "dropped statement", b"pass")
        self.generic_visit(node)

    def visit_IfExp(self, node: ast.IfExp) -> None:
        one, test, other = (self.text(part) for part in (node.body, node.test, node.orelse))
        self.replace(node, "swapped sides", b" ".join([other, b"if", test, b"else", one]))
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        if type(node.value) is int:
            self.replace(node, "constant", str(node.value + 1).encode())
        elif node.value is True or node.value is False:
            self.replace(node, "truth", str(not node.value).encode())

    def visit_Call(self, node: ast.Call) -> None:
        function = node.func
        name = (
            function.attr
            if isinstance(function, ast.Attribute)
            else function.id
            if isinstance(function, ast.Name)
            else ""
        )
        if name.endswith(("Error", "Warning")) or name in SIZES:
            return
        if name in TWINS:
            end = self.span(function)[1]
            self.add(node, "twin", end - len(name), end, TWINS[name].encode())
        sides = [word.value for word in node.keywords if word.arg == "side"]
        if name == "searchsorted" and not sides and len(node.args) == 2:
            end = self.span(node)[1] - 1
            self.add(node, "tie", end, end, b', side="right"')
        for side in sides:
            self.replace(side, "tie", b'"left"' if b"right" in self.text(side) else b'"right"')
        for word in node.keywords:
            if word.arg == "kind" and b"stable" in self.text(word.value):
                self.add(node, "tie", *self.span(word.value), b'"quicksort"')
        if name == "lexsort" and isinstance(node.args[0], ast.Tuple):
            texts = [self.text(key) for key in node.args[0].elts]
            self.replace(node.args[0], "tie", b"(" + b", ".join([texts[-1], *texts[1:-1], texts[0]]) + b")")
        self.visit(function)
        for argument in node.args:
            self.visit(argument)
        for word in node.keywords:
            if word.arg not in SETTINGS:
                self.visit(word.value)


def is_text(node: ast.AST) -> bool:
    """Whether an operand is a text or a list rather than a number, as far as can be seen."""
    if isinstance(node, ast.Constant):
        return type(node.value) not in (int, float)
    joins = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "join"
    return joins or isinstance(node, ast.JoinedStr | ast.List)


def mutants_of(path: Path) -> Iterator[Mutant]:
    source, name = path.read_bytes(), path.relative_to(ROOT).as_posix()
    seen: Counter[tuple[str, ...]] = Counter()
    for within, node, kind, start, end, text in Changes(source).found:
        what = (name, within, kind, source[start:end].decode(), text.decode())
        seen[what] += 1
        key = hashlib.sha256("|".join((str(SEED), *what, str(seen[what]))).encode()).hexdigest()[:12]
        yield Mutant(key, name, node.lineno, kind, start, end, text, tests_of(name))  # type: ignore[attr-defined]


def tests_of(path: str) -> tuple[str, ...]:
    """The test files for a file of the code, the cheapest first: those of the longest prefix."""
    return TESTS[max((prefix for prefix in TESTS if path.startswith(prefix)), key=len)]


def picked() -> Iterator[Mutant]:
    """The mutants picked by hand."""
    for path, before, after, test in PICKED:
        source, key = (ROOT / path).read_bytes(), hashlib.sha256(f"{path}|{before}|{after}".encode()).hexdigest()[:12]
        if source.count(before.encode()) != 1:
            sys.exit(f"{path}: expected {before!r} once")
        start = source.index(before.encode())
        line = source.count(b"\n", 0, start) + 1
        yield Mutant(key, path, line, "picked", start, start + len(before.encode()), after.encode(), (test,))


def candidates(package: str) -> list[Mutant]:
    """All mutants of a package in the order in which they are taken: of each kind in turn."""
    paths = sorted((ROOT / "sim" / package).rglob("*.py"))
    kept = [path for path in paths if not path.relative_to(ROOT).as_posix().startswith(LEFT_OUT)]
    turns: Counter[str] = Counter()
    ordered = []
    for mutant in sorted((mutant for path in kept for mutant in mutants_of(path)), key=lambda mutant: mutant.key):
        turns[mutant.kind] += 1
        ordered.append((turns[mutant.kind], mutant.key, mutant))
    return [mutant for *_, mutant in sorted(ordered, key=lambda row: row[:2])]


def chosen(package: str) -> list[Mutant]:
    """Those that are tried, one for each line at most, without those that nobody can tell from the code as it is."""
    if package == "picked":
        return list(picked())
    taken: dict[tuple[str, int], Mutant] = {}
    for mutant in candidates(package):
        if mutant.key not in EQUIVALENT:
            taken.setdefault((mutant.path, mutant.line), mutant)
        if len(taken) == SAMPLE[package]:
            break
    return list(taken.values())


# -- trying them


@cache
def imports(path: Path) -> frozenset[str]:
    """The modules of this project that a file imports."""
    found = set()
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] in ("sim", "analysis"):
            found |= {node.module, *(f"{node.module}.{name.name}" for name in node.names)}
    return frozenset(found)


def may_inline(copy: Path, path: Path) -> list[Path]:
    """The file and all that import it, or import what does: their compiled code may contain the file's."""
    files = {
        file: ".".join(file.relative_to(copy).with_suffix("").parts)
        for part in ("sim", "analysis")
        for file in (copy / part).rglob("*.py")
    }
    reached = {path}
    while more := {f for f in files if f not in reached and imports(f) & {files[r] for r in reached}}:
        reached |= more
    return sorted(reached)


def compiled(file: Path) -> list[Path]:
    return [*file.parent.glob(f"__pycache__/{file.stem}.*.nb[ic]")]


class Trials:
    """Runs tests in a copy of the checkout; `seconds` that each has taken when it passed are kept with the results."""

    def __init__(self, copy: Path, results: Path) -> None:
        self.copy, self.log, self.kept = copy, results / "log.txt", results / "seconds.json"
        self.seconds: dict[str, float] = json.loads(self.kept.read_text()) if self.kept.exists() else {}

    def failing(self, tests: set[str]) -> set[str]:
        """The tests that have never passed, and fail without a mutant too."""
        self.run(sorted(tests - self.seconds.keys()), to_the_end=True)
        return tests - self.seconds.keys()

    def run(self, tests: Sequence[str], to_the_end: bool = False) -> tuple[str, str, float]:
        """Run tests in a process of their own, the quickest first, until one fails: what came of it, which failed, and the CPU time."""
        before, report = os.times(), self.copy.parent / "report"
        report.write_text("")
        child = os.fork()
        if not child:
            self._be_tested(tests, report, [] if to_the_end else ["-x"])
        deadline, status = time.monotonic() + 20 * CPU_SECONDS, None
        while status is None and time.monotonic() < deadline:
            pid, found = os.waitpid(child, os.WNOHANG)
            status = found if pid else None
            time.sleep(0.05)
        with suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)  # what it has left behind
        if status is None:
            os.waitpid(child, 0)
        failed = ""
        for outcome, took, test in (line.split("\t") for line in report.read_text().splitlines()):
            if outcome == "failed":
                failed = test
            else:
                self.seconds[test] = float(took)
        self.kept.write_text(json.dumps(self.seconds))
        after = os.times()
        cpu = after.children_user + after.children_system - before.children_user - before.children_system
        return *self._outcome(status, failed), round(cpu, 1)

    def _outcome(self, status: int | None, failed: str) -> tuple[str, str]:
        if status is None or os.WIFSIGNALED(status):
            return "caught", failed or ("crash" if status and os.WTERMSIG(status) != signal.SIGXCPU else "no end")
        code = os.waitstatus_to_exitcode(status)
        if code in (0, 1, 2):  # 2: the tests could not be imported
            return ("caught", failed or "import") if code else ("survived", "")
        return "broken", f"pytest ended with {code}, see {self.log}"

    def _be_tested(self, tests: Sequence[str], report: Path, options: list[str]) -> NoReturn:
        """Run tests, as the child process."""
        code = 3
        try:
            os.setsid()
            resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS + 5))
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
            os.chdir(self.copy)
            os.environ |= {"PYTHONPATH": str(self.copy), "PYTHONDONTWRITEBYTECODE": "1"}
            sys.dont_write_bytecode = True
            sys.path[:] = [str(self.copy), *(entry for entry in sys.path if Path(entry) != ROOT / "tests")]
            with self.log.open("ab", 0) as out:
                os.dup2(out.fileno(), 1)
                os.dup2(out.fileno(), 2)
            options += ["-q", "-n", "0", "-p", "no:cacheprovider", "--tb=line"]
            options += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]
            # code that is not optimised may not be cached; that is no failure of a test
            options += ["-W", "ignore:Cannot cache compiled function::"]
            with report.open("a") as told:
                code = int(pytest.main([*options, *tests], plugins=[Watch(self.seconds, told)]))
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(code)


class Watch:
    """Has the quickest tests run first and their examples not made simpler, and reports what came of each."""

    def __init__(self, seconds: dict[str, float], told: IO[str]) -> None:
        self.seconds, self.told = seconds, told

    def pytest_collection(self, session: pytest.Session) -> None:
        phases = hypothesis.Phase.explicit, hypothesis.Phase.generate
        hypothesis.settings.register_profile("mutants", deadline=None, database=None, derandomize=True, phases=phases)
        hypothesis.settings.load_profile("mutants")

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items.sort(key=lambda item: self.seconds.get(item.nodeid, 0.0))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed or report.when == "call":
            outcome = "failed" if report.failed else "passed"
            print(outcome, report.duration, report.nodeid, sep="\t", file=self.told, flush=True)


def preload() -> None:
    """Import what tests need from elsewhere, once for all processes that are forked."""
    os.environ["NUMBA_OPT"] = "0"  # what is compiled anew is to be compiled fast, rather than to be fast
    for name in ("numba", "numpy", "scipy.optimize", "scipy.sparse.csgraph", "scipy.stats", "networkx",
                 "pyarrow.parquet", "pandas", "pydantic", "simpy", "filelock", "typer", "rich.console"):  # fmt: skip
        __import__(name)


def attempt(trials: Trials, mutant: Mutant) -> dict[str, Any]:
    """Change the copy, run the tests, and change it back, compiled code included."""
    file = trials.copy / mutant.path
    source, was = file.read_bytes(), file.stat()
    reached = may_inline(trials.copy, file)
    with tempfile.TemporaryDirectory(dir=trials.copy.parent) as aside:
        stale = [cached for other in reached for cached in compiled(other)]
        for number, cached in enumerate(stale):
            shutil.move(cached, Path(aside) / str(number))
        file.write_bytes(source[: mutant.start] + mutant.text + source[mutant.end :])
        outcome, by, cpu = trials.run(mutant.tests)
        file.write_bytes(source)
        os.utime(file, ns=(was.st_atime_ns, was.st_mtime_ns))
        for cached in (cached for other in reached for cached in compiled(other)):
            cached.unlink()
        for number, cached in enumerate(stale):
            shutil.move(Path(aside) / str(number), cached)
    row = {"key": mutant.key, "path": mutant.path, "line": mutant.line, "kind": mutant.kind}
    return row | {"change": mutant.change(source), "outcome": outcome, "by": by, "cpu": cpu}


def copied(folder: Path) -> Path:
    """A copy of the checkout without untracked parts, with times and compiled code preserved."""
    left_out = shutil.ignore_patterns(
        ".git", ".venv*", ".*_cache", ".hypothesis", "results", "demo", "dist", "mutants-*"
    )
    return Path(shutil.copytree(ROOT, folder / "checkout", ignore=left_out, symlinks=True))


def try_all(packages: list[str], results: Path) -> None:
    results.mkdir(parents=True, exist_ok=True)
    known = {row["key"] for row in rows(results)}
    todo = [mutant for package in packages for mutant in chosen(package) if mutant.key not in known]
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        preload()
        trials = Trials(copied(Path(folder)), results)
        for number, mutant in enumerate(todo, 1):
            row = attempt(trials, mutant)
            with (results / "mutants.jsonl").open("a") as out:
                print(json.dumps(row, ensure_ascii=False), file=out)
            how = f"{row['outcome']} {row['path']}:{row['line']} {row['change']} [{row['by']}]"
            print(f"{number}/{len(todo)} {how}", flush=True)
        caught = {row["by"] for row in rows(results) if "::" in row["by"]}
        for test in sorted(trials.failing(caught) if todo else ()):
            print(f"fails without any change, too: {test}")


# -- what came out


def rows(results: Path) -> list[dict[str, Any]]:
    file = results / "mutants.jsonl"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def table(packages: list[str], results: Path) -> None:
    found = {row["key"]: row for row in rows(results)}
    print("| package | mutants | caught | survived | not tried |\n| --- | --- | --- | --- | --- |")
    for package in packages:
        own = [found.get(mutant.key) for mutant in chosen(package)]
        count = Counter("not tried" if row is None else row["outcome"] for row in own)
        print(f"| {package} | {len(own)} | {count['caught']} | {count['survived']} | {count['not tried']} |")
    for package in packages:
        for mutant in chosen(package):
            row = found.get(mutant.key, {})
            if row.get("outcome") not in (None, "caught"):
                print(f"{row['outcome']}: {mutant.key} {row['path']}:{row['line']}: {row['change']}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("packages", nargs="*", metavar="PACKAGE", help=f"of {', '.join(SAMPLE)} (all)")
    parser.add_argument("--results", type=Path, default=ROOT / "results" / "mutants")
    parser.add_argument("--list", action="store_true", help="print the mutants and try none")
    parser.add_argument("--table", action="store_true", help="print what came out and try none")
    given = parser.parse_args()
    packages = given.packages or list(SAMPLE)
    if wrong := [package for package in packages if package not in SAMPLE]:
        parser.error(f"unknown package {wrong[0]!r} (allowed: {', '.join(SAMPLE)})")
    if given.list:
        for mutant in (mutant for package in packages for mutant in chosen(package)):
            print(
                f"{mutant.key} {mutant.path}:{mutant.line} {mutant.kind}: {mutant.change((ROOT / mutant.path).read_bytes())}"
            )
    elif given.table:
        table(packages, given.results)
    else:
        try_all(packages, given.results)


if __name__ == "__main__":
    main()
