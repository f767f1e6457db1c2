"""Results and certificates worked out by hand, and what the checker makes of them.

The ring of 6 with a job of 4 ("four", as 4 in a row) and one of 2 ("two"): four uses all six
links, since 2 (4 - 1) >= 6, so that under the strict rule only one of the two can start. The
weights make a shape worth -volume, and -10 where it wraps.
"""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path
from typing import Any

import pytest

import topoplace.certify
from small_snapshot import snapshot_of
from solved_results import result_from
from topoplace.certify import check_document, check_file
from topoplace.certify.torus.instance import read_instance
from topoplace.certify.torus.shapes import ShapeTables
from topoplace.errors import InputError
from topoplace.kinds import shipped
from topoplace.machine import bisection_per_node
from topoplace.result import Interference

Document = dict[str, Any]
WEIGHTS = {"bisection": 0, "volume": 1, "hops": 0, "idle": 0, "wrap": 10}


def leaf(routers: str, scale: int = 1, rows: dict[str, str] | None = None, *m: int) -> Document:
    return {
        "kind": "leaf",
        "scale": scale,
        "prices": {"routers": routers, **(rows or {})},
        "multipliers": list(m),
    }


def links(price: int, family: str = "links") -> dict[str, str]:
    return {family: f"{price}*6"}


def level(name: str, objective: int | None, bound: int | None, certificate: Any) -> Document:
    known = objective is not None and bound is not None
    status = "optimal" if objective == bound else "feasible"
    return {
        "name": name,
        "sense": "min" if name == "fragmentation" else "max",
        "status": "unknown" if objective is None else status,
        "objective": objective,
        "bound": bound,
        "gap": abs(objective - bound) / max(1, abs(objective)) if known else None,
        "proof": "none" if certificate is None else "certificate",
        "certificate": certificate,
    }


def document_of(
    snapshot: Any, mode: str, placements: list[Document] | None, *levels: Document, shared: int = 0
) -> Document:
    solution = None
    if placements is not None:
        conforming = not shared and all(p["prism"] is not None for p in placements)
        solution = {
            "placements": placements,
            "num_shared_links": shared,
            "conforming": conforming,
        }
    top = {key: levels[0][key] for key in ("status", "objective", "bound", "gap", "proof")}
    return top | {
        "schema": "topoplace.result/3",
        "problem": "placement",
        "method": "hand",
        "seconds": 0.0,
        "limits": {"time_limit": None, "interference": mode, "hit": False},
        "seed": None,
        "versions": {},
        "levels": list(levels),
        "solution": solution,
        "explanations": [],
        "instance": snapshot.model_dump(mode="json"),
    }


def ring(communication: str = "strict") -> Any:
    return snapshot_of(
        [6],
        [
            {"id": "four", "nodes": 4, "shapes": "4", "communication": communication},
            {"id": "two", "nodes": 2, "shapes": "2", "communication": communication},
        ],
        weights=WEIGHTS,
    )


def on(request: str, nodes: str, origin: list[int], extents: list[int]) -> Document:
    return {"request": request, "nodes": nodes, "prism": {"origin": origin, "extents": extents}}


FOUR = on("four", "0-3", [0], [4])
TWO = on("two", "4-5", [4], [2])
NOTHING = [level(name, None, None, None) for name in ("shape", "fragmentation")]


def branch(into: Document, out: Document) -> Document:
    return {"kind": "start", "request": "four", "into": into, "out": out}


def strict_ring() -> Document:
    """Return the strict optimum with a bound of every level that closes its gap.

    Level 1, one leaf: D = 3 and 2 per link cost 12; four gains 12 - 12 = 0 and two 6 - 2 = 4, so
    16/3, rounded down to 5 and then to 4, the largest of the sums 0, 2, 4 and 6 below.
    Level 2: with four started, 38 per link cost 228; 20 per node of level 1 counts -80, and four
    gains -14 + 80 - 228, two -2 + 40 - 38 = 0: in all -14. Without four: -80 - 2 + 40 = -42.
    Level 3, the same prices: 228 - 80 + (-2 + 80 - 228) + (-2 + 40 - 38) = -2.
    """
    none = "0*6"
    return document_of(
        ring(),
        "strict",
        [FOUR],
        level("nodes", 4, 4, leaf(none, 3, links(2))),
        level("shape", -14, -14, branch(leaf(none, 1, links(38), 20), leaf(none, 1, None, 20))),
        level(
            "fragmentation",
            2,
            2,
            branch(leaf(none, 1, links(38), 20, 0), leaf(none, 1, None, 20, 0)),
        ),
    )


def test_the_strict_ring_is_optimal_on_all_levels() -> None:
    report = check_document(result_from(strict_ring()))
    assert report.holds, report.failures
    assert [claim.name for claim in report.claims[-6:]] == [
        name + end for name in ("nodes", "shape", "fragmentation") for end in ("", ".bound")
    ]


def test_the_trivial_leaf_counts_usable_nodes() -> None:
    # 1 per router costs 6; neither job gains more than it pays.
    document = document_of(
        ring(), "strict", [FOUR], level("nodes", 4, 6, leaf("1*6")), *_levels_of_four()
    )
    assert check_document(result_from(document)).holds
    document["levels"][0] |= {"bound": 5, "gap": 0.25}
    document |= {"bound": 5, "gap": 0.25}
    failed = check_document(result_from(document)).failures
    assert [claim.name for claim in failed] == ["nodes.bound"]


def _levels_of_four() -> tuple[Document, Document]:
    return level("shape", -14, None, None), level("fragmentation", 2, None, None)


@pytest.mark.parametrize(
    ("mode", "communication", "shared"),
    [
        ("strict", "strict", 1),
        ("strict", "tolerant", 1),
        ("tolerant", "strict", 1),
        ("tolerant", "tolerant", 0),
        ("strict", "none", 0),
        ("off", "strict", 0),
    ],
)
def test_who_may_share_links(mode: str, communication: str, shared: int) -> None:
    document = document_of(
        ring(communication),
        mode,
        [FOUR, TWO],
        level("nodes", 6, 6, leaf("1*6")),
        level("shape", -16, None, None),
        level("fragmentation", 4, None, None),  # each counts the other's routers
        shared=shared,
    )
    report = check_document(result_from(document))
    assert report.holds == (shared == 0)
    assert {claim.name for claim in report.failures} <= {"links"}


def test_rows_of_tolerant_requests() -> None:
    # Strict four and tolerant two: one row of two says what the strict row says of two strict
    # jobs, and four pays it as well.
    queue = [
        {"id": "four", "nodes": 4, "shapes": "4"},
        {"id": "two", "nodes": 2, "shapes": "2", "communication": "tolerant"},
    ]
    snapshot = snapshot_of([6], queue, weights=WEIGHTS)
    for family, bound in (("links of two", 4), ("links", 6)):  # the strict row asks nothing of two
        certificate = leaf("0*6", 3, links(2, family))
        document = document_of(
            snapshot, "tolerant", [FOUR], level("nodes", 4, bound, certificate), *_levels_of_four()
        )
        assert check_document(result_from(document)).holds
    wrong = leaf("0*6", 3, links(2, "links of four"))
    document = document_of(
        snapshot, "tolerant", [FOUR], level("nodes", 4, 6, wrong), *_levels_of_four()
    )
    assert not check_document(result_from(document)).holds


def test_a_torus_of_three_dimensions() -> None:
    # 2x2x2 with a service router and two classes: 6 usable compute nodes at 2 each, worth 12;
    # the sums of the values 8 (priority 2) and 3 below that are 0, 3, 8 and 11.
    queue = [{"id": "a", "nodes": 4, "priority": 2}, {"id": "b", "nodes": 3}]
    snapshot = snapshot_of([2, 2, 2], queue, weights=WEIGHTS, down="6")
    machine = snapshot.machine.model_copy(update={"classes": {"gpu": "7"}})
    snapshot = snapshot.model_copy(update={"machine": machine})
    placements = [on("a", "0-3", [0, 0, 0], [1, 2, 2])]
    document = document_of(
        snapshot,
        "strict",
        placements,
        level("nodes", 8, 11, leaf("2*6 0*2")),
        level("shape", -4, None, None),
        # Both links of a ring of 2 lead to the other router: 3 free neighbours, twice.
        level("fragmentation", 6, 0, leaf("0*8", 1, None, 0, 0)),
    )
    assert check_document(result_from(document)).holds


def scattered(nodes: str = "0,2,4-5", other: str = "1,3") -> Document:
    placements = [
        {"request": "four", "nodes": nodes, "prism": None},
        {"request": "two", "nodes": other, "prism": None},
    ]
    # 0-2-4-5 round the ring uses all links, and two the links 1 and 2.
    levels = level("nodes", 6, None, None), *NOTHING
    return document_of(ring(), "strict", placements, *levels, shared=2)


def test_scattered_nodes() -> None:
    assert check_document(result_from(scattered())).holds
    assert check_document(result_from(scattered(other="3,1"))).holds
    for spoilt in (scattered(other="3-4"), scattered(other="1"), scattered(nodes="0,2,4-6")):
        assert not check_document(result_from(spoilt)).holds
    spoilt = scattered()
    spoilt["solution"]["num_shared_links"] = 1
    assert not check_document(result_from(spoilt)).holds
    spoilt = scattered()
    spoilt["solution"]["conforming"] = True
    assert not check_document(result_from(spoilt)).holds
    spoilt = scattered()
    spoilt["levels"][1] = level("shape", -6, None, None)
    assert not check_document(result_from(spoilt)).holds


def test_a_bound_on_prisms_says_nothing_of_scattered_nodes() -> None:
    document = scattered()
    document["levels"][0] = level("nodes", 6, 6, leaf("1*6"))
    document |= {key: document["levels"][0][key] for key in ("status", "bound", "gap", "proof")}
    failed = check_document(result_from(document)).failures
    assert failed[0].name == "nodes.bound"
    assert "scattered" in failed[0].detail


def test_a_bound_without_a_solution() -> None:
    first = level("nodes", None, 4, leaf("0*6", 3, links(2)))
    assert check_document(result_from(document_of(ring(), "strict", None, first, *NOTHING))).holds
    later = level("shape", None, 0, leaf("0*6", 1, None, 0))
    document = document_of(ring(), "strict", None, first, later, NOTHING[1])
    assert [c.name for c in check_document(result_from(document)).failures] == ["shape.bound"]


def test_infeasible_is_never_true() -> None:
    document = document_of(ring(), "strict", None, level("nodes", None, None, None), *NOTHING)
    assert check_document(result_from(document)).holds
    document["levels"][0]["status"] = document["status"] = "infeasible"
    assert not check_document(result_from(document)).holds


def test_an_empty_leaf_is_left_out() -> None:
    # Both must start: 6 for the links, four 4 D - 6 and two 2 D - 1 are just below 6 D, and no
    # set that holds both is worth as little as 5. The other leaves prove 4, 2 and 0.
    both = leaf("0*6", 10**9, links(1))
    tree = branch(
        {"kind": "start", "request": "two", "into": both, "out": leaf("0*6")},
        {"kind": "start", "request": "two", "into": leaf("0*6"), "out": leaf("0*6")},
    )
    document = document_of(ring(), "strict", [FOUR], level("nodes", 4, 4, tree), *_levels_of_four())
    assert check_document(result_from(document)).holds
    both["prices"] = {}  # free links: both fit, for all this leaf knows
    assert [c.name for c in check_document(result_from(document)).failures] == ["nodes.bound"]


def test_shape_tables_agree_with_the_machine() -> None:
    snapshot = snapshot_of([5, 6, 1, 2], [], nodes_per_router=3)
    machine = snapshot.machine.model_copy(
        update={"wrap": [True, True, True, False], "bandwidth": [4, 3, 7, 5]}
    )
    instance = read_instance(snapshot.model_copy(update={"machine": machine}), Interference.OFF)
    tables = ShapeTables(instance)
    checked = 0
    for a in range(1, 6):
        for b in range(1, 7):
            for d in (1, 2):
                found = min(int(tables.bisection[k][e]) for k, e in enumerate((a, b, 1, d)))
                exact = 1000 * bisection_per_node(instance.torus, (a, b, 1, d)) / 3
                assert found == exact.numerator // exact.denominator
                checked += 1
    assert checked == 60


def test_files(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    path.write_text(json.dumps(strict_ring()))
    assert check_file(path).holds
    path.write_text(json.dumps(strict_ring() | {"bound": 5}))
    assert not check_file(path).holds


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"7",
        b"[]",
        b"[" * 100_000,
        b"\xff\xfe",
        b'{"schema": "topoplace.result/1"}',
        b'{"schema": "topoplace.result/2"}',
        b'{"schema": "topoplace.result/3"}',
        b'{"schema": "topoplace.result/3", "x": 1e999}',
    ],
)
def test_files_that_are_no_results(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "result.json"
    path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        check_file(path)
    lines = str(caught.value).splitlines()
    assert all(line.startswith(f"{path}: ") for line in lines)
    assert len(lines) == len(caught.value.faults)  # a line each, and no line within a line


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "missing.json"):
        with pytest.raises(InputError, match="a file"):
            check_file(path)


def test_the_checker_shares_no_code_with_the_solvers() -> None:
    folder = Path(topoplace.certify.__file__).parent
    shared = ("machine", "errors", "types", "result", "certify")
    shared += ("snapshot.schema", "snapshot.geometry")
    alone = {  # what one file may import beside them
        "__init__.py": ("snapshot.normal",),
        # snapshot.machines: of an instance beside the result that only names its machine
        "check.py": ("kinds", "snapshot.files", "snapshot.machines", "snapshot.normal"),
        "several.py": ("kinds",),
        "mapping/_kernels.py": ("kernels",),
        "mapping/_objects_kernels.py": ("kernels",),
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
