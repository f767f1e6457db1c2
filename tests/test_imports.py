"""Who imports whom: no circles, data that knows nobody, and few imports inside functions."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from topoplace.kinds import shipped

SOLVER = Path(__file__).resolve().parent.parent / "solver"

ALLOWED_CIRCLES = (
    # A mapping problem has its own bound for methods that stop there, which reads the problem.
    {
        *("mapping.bounds.bisection", "mapping.bounds.cuts", "mapping.bounds.levels"),
        *("mapping.bounds.star", "mapping.bounds.total", "mapping.evaluate", "mapping.link_bounds"),
        *("mapping.onto", "mapping.problem"),
    },
)
"""Circles that there still are, and why. The list only shrinks: no circle is added to it."""

MOST_INSIDE_FUNCTIONS = 53
"""Imports inside functions; the number only shrinks."""

FORBIDDEN = {
    "result": ("certify", "cli", "front", "placement", "report", "solving", "study"),
    "study": ("cli", "front", "report"),
    "solving": ("cli", "front", "report", "study"),
    "report": ("cli", "front"),
}
"""By room, the rooms that it does not know; `topoplace.shown` names what data offers by them."""


@cache
def modules() -> dict[str, ast.Module]:
    """Return the modules of the package by name, without ``topoplace.``."""
    found = {}
    for file in (SOLVER / "topoplace").rglob("*.py"):
        name = ".".join(file.relative_to(SOLVER).with_suffix("").parts)
        found[name.removesuffix(".__init__")] = ast.parse(file.read_text())
    return found


def imports(tree: ast.AST, *, inside: bool = False) -> Iterator[tuple[ast.stmt, bool]]:
    """Yield every import, and whether it is inside a function."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node, inside
        is_function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        yield from imports(node, inside=inside or is_function)


def targets(node: ast.stmt) -> Iterator[str]:
    """Yield the modules of the package that an import names, also under TYPE_CHECKING."""
    if isinstance(node, ast.Import):
        names = [alias.name for alias in node.names]
    else:
        assert isinstance(node, ast.ImportFrom)
        names = [f"{node.module}.{alias.name}" for alias in node.names]
    for name in names:
        found = name if name in modules() else name.rpartition(".")[0]
        if found in modules():
            yield found


@cache
def arrows() -> dict[str, set[str]]:
    """Return by module those that it imports, at the top or inside functions."""
    return {
        name: {target for node, _ in imports(tree) for target in targets(node)} - {name}
        for name, tree in modules().items()
    }


def circles() -> list[set[str]]:
    """Return the sets of modules that reach each other (strongly connected components)."""
    reached = {name: _reached(name) for name in arrows()}
    found: list[set[str]] = []
    for name in arrows():
        circle = {other for other in reached[name] if name in reached[other]}
        if circle and circle not in found:
            found.append(circle)
    return found


def _reached(start: str) -> set[str]:
    found: set[str] = set()
    ahead = [start]
    while ahead:
        new = arrows()[ahead.pop()] - found
        found |= new
        ahead += new
    return found


def test_modules_import_each_other_in_no_circle_but_those_listed() -> None:
    allowed = [{f"topoplace.{name}" for name in circle} for circle in ALLOWED_CIRCLES]
    new = [sorted(circle) for circle in circles() if not any(circle <= one for one in allowed)]
    assert new == []


def test_data_does_not_know_who_reads_it() -> None:
    for room, others in FORBIDDEN.items():
        for name, known in arrows().items():
            if name.split(".")[1:2] == [room]:
                wrong = [
                    one for one in known if one.split(".")[1:2] in [[other] for other in others]
                ]
                assert wrong == [], name


def test_few_imports_are_inside_functions() -> None:
    count = sum(inside for tree in modules().values() for _, inside in imports(tree))
    assert count <= MOST_INSIDE_FUNCTIONS


def test_the_checker_shares_no_code_with_the_solvers() -> None:
    folder = SOLVER / "topoplace" / "certify"
    shared = ("machine", "errors", "types", "result", "certify")
    shared += ("snapshot.schema", "snapshot.geometry")
    alone = {  # what one file may import beside them
        "__init__.py": ("snapshot.normal",),
        # snapshot.machines: of an instance beside the result that only names its machine
        "check.py": ("kinds", "snapshot.files", "snapshot.machines", "snapshot.normal"),
        "several.py": ("kinds",),
        "moves.py": ("kinds",),
        "mapping/_kernels.py": ("kernels",),
        "mapping/_objects_kernels.py": ("kernels",),
        "mapping/_routes_kernels.py": ("kernels",),
        "switches/_kernels.py": ("kernels",),
    }
    seen = set()
    for file in sorted(folder.rglob("*.py")):
        name = file.relative_to(folder).as_posix()
        for node in ast.walk(ast.parse(file.read_text())):
            modules = [node.module or "."] if isinstance(node, ast.ImportFrom) else []
            if isinstance(node, ast.Constant) and ":" in str(node.value):  # loaded by its name
                modules += re.findall(r"^(topoplace[\w.]*):\w+$", str(node.value))
            modules += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            for module in modules:
                seen.add(module)
                assert module.split(".")[0] not in {"numba", "ortools", "scipy"}, name
                ours = module.removeprefix("topoplace.")
                assert ours == module or ours.startswith(shared + alone.get(name, ())), name
    assert {"topoplace.machine", "topoplace.certify.optima"} <= seen
    for kind in shipped().values():
        own = (kind.checker, *filter(None, [kind.several]))
        assert all(ref.startswith("topoplace.certify.") for ref in own), kind.name
