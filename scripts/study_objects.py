"""The papers' mappings of OpenAtom and NAMD, an oblivious one and ours, against a certified bound.

As section 3.3 of Bhatele 2009, on tori of 8x8x8 and 8x8x16 nodes and on the XT3. Writes the tables
and pictures of docs/studies/objects.md.

    python scripts/study_objects.py [--machines NAME ..] [--jobs N] [--seed N]
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from study import Column, Record, Study, groups, percent, table
from topoplace.certify import check_document
from topoplace.machine import Torus
from topoplace.mapping.evaluate import hop_bytes
from topoplace.mapping.objects.applications import problem_of
from topoplace.mapping.objects.builders import namd, openatom
from topoplace.mapping.onto import load_places
from topoplace.mapping.problem import MappingProblem
from topoplace.result.mapping import MappingResult
from topoplace.snapshot.objects import ObjectsApplication
from topoplace.solving import Options, solve

MACHINES = ["bluegene_8x8x8", "bluegene_8x8x16", "xt3"]
BALANCE = {("openatom_blocks_of_16", "xt3"): "1.3", ("namd_apoa1", "xt3"): "2.3"}
"""Where a node has room for few objects; 1.1 elsewhere."""
PAPER = {"openatom_blocks_of_16": "prisms", "namd_apoa1": "bricks"}
METHODS = ("oblivious", "in-order", "paper", "search")
SCHEMES = {
    "proxies": "Topology Oblivious",
    "patches": "TopoPlace Patches",
    "bricks": "TopoAware LDBs",
    "search": "ours",
}
"""The schemes of Figure 6 of Bhatele 2009, and ours."""
SHOWN = {"oblivious": "oblivious", "paper": "the paper's", "search": "ours"}

Found = tuple[Record, MappingProblem, dict[str, MappingResult]]
"""What is found of a case, the problem, and the results behind it by method."""


def applications() -> list[ObjectsApplication]:
    """Return the applications: finer pair calculators than those shipped, so that loads balance."""
    return [
        openatom(block=16, loads=(4, 3, 5), name="openatom_blocks_of_16"),
        namd(name="namd_apoa1"),
    ]


def link_of(result: MappingResult) -> float:
    """Return the largest bytes over a link."""
    assert result.solution is not None
    load = result.solution.figures.max_link_load
    assert load is not None
    return load.numerator / load.denominator


def link_bound_of(result: MappingResult) -> float:
    """Return what no mapping's largest link load is below, 0 if nothing is known."""
    load = result.link_load
    return 0.0 if load is None else load.bound.numerator / load.bound.denominator


def measure(case: tuple[str, int], seed: int) -> Found:
    """Map an application onto a machine by every method."""
    machine, which = case
    application = applications()[which]
    balance = BALANCE.get((application.name, machine), "1.1")
    problem = problem_of(application, load_places(machine), balance)
    results = {}
    for method in METHODS:
        name = PAPER[application.name] if method == "paper" else method
        results[method] = solve(problem, name, Options(seed=seed))
        report = check_document(results[method])
        assert report.holds, report
        print(machine, application.name, name, results[method].objective, file=sys.stderr)
    best = max(results.values(), key=lambda result: result.bound or 0)
    certificate = best.levels[0].certificate
    ours, paper = results["search"], results["paper"]
    assert certificate is not None
    row = Record(
        application=application.name,
        machine=machine,
        objects=problem.num_tasks,
        balance=float(balance),
        **{method.replace("-", "_"): result.objective for method, result in results.items()},
        bound=best.bound,
        certificate=certificate.kind,
        paper_link=link_of(paper),
        search_link=link_of(ours),
        link_bound=max(map(link_bound_of, results.values())),
        paper_load=paper.levels[1].objective or 0,
        search_load=ours.levels[1].objective or 0,
        load_bound=ours.levels[1].bound or 0,
    )
    return row, problem, results


def both_ways(machine: str, seed: int) -> list[Record]:
    """Map the NAMD-like application by every scheme of Figure 6, and count messages both ways."""
    balance = BALANCE.get(("namd_apoa1", machine), "1.1")
    places = load_places(machine)
    problems = [problem_of(namd(once=once), places, balance) for once in (True, False)]
    found = []
    for method, scheme in SCHEMES.items():
        nodes = []
        for problem in problems if method == "search" else problems[:1]:
            result = solve(problem, method, Options(seed=seed))
            assert check_document(result).holds
            assert result.solution is not None
            nodes.append(np.asarray(result.solution.nodes))
        once, each = (
            hop_bytes(problem, mapped)
            for problem, mapped in zip(problems, (nodes[0], nodes[-1]), strict=True)
        )
        found.append(Record(machine=machine, scheme=scheme, once=once, each=each))
    base = found[0]
    for row in found:
        row.less_once, row.less_each = 1 - row.once / base.once, 1 - row.each / base.each
    assert found[-1].once <= found[-2].once
    return found


# ---- Tables and pictures -------------------------------------------------------------------------

HOP_BYTES: list[Column] = [
    *("application", "machine", ("balance", lambda row: f"{row.balance:g}")),
    *("oblivious", ("in order", "in_order"), ("paper's", "paper"), ("ours", "search")),
    *(("ours / paper's", lambda row: f"{row.search / row.paper:.2f}"), "bound"),
    ("gap", lambda row: percent((row.search - row.bound) / row.search)),
]
LOADS: list[Column] = [
    *("application", "machine", ("link, paper's", lambda row: f"{row.paper_link:,.0f}")),
    ("link, ours", lambda row: f"{row.search_link:,.0f}"),
    ("link, bound", lambda row: f"{row.link_bound:,.0f}"),
    *(
        ("node, paper's", "paper_load"),
        ("node, ours", "search_load"),
        ("node, bound", "load_bound"),
    ),
]
"""The largest loads of links and nodes, and their bounds."""
BOTH: list[Column] = [
    *("machine", "scheme", ("once per node", "once")),
    ("less", lambda row: percent(row.less_once)),
    ("per compute", "each"),
    ("less ", lambda row: percent(row.less_each)),
]
"""NAMD's schemes, counted both ways."""


@contextlib.contextmanager
def grid(study: Study, suffix: str, rows: int, columns: int, **size: Any) -> Iterator[Any]:
    """Yield the panels of a picture; those of more than one row show slices of a machine."""
    from matplotlib.figure import Figure  # noqa: PLC0415 - heavy

    figure = Figure(layout="constrained", dpi=110, **size)
    panels = figure.subplots(rows, columns, squeeze=False)
    yield panels
    for panel in panels.flat if rows > 1 else ():
        panel.set_xticks([])
        panel.set_yticks([])
    for z, panel in enumerate(panels[0]) if rows > 1 else ():
        panel.set_title(f"z = {z}", fontsize=7)
    figure.savefig(study.file(suffix))


def draw_hop_bytes(study: Study, rows: Sequence[Record]) -> None:
    """Draw the hop-bytes of every scheme by machine: Figures 6 and 7 of the paper, redrawn."""
    kinds = ("oblivious", "in_order", "paper", "search", "bound")
    labels = ("oblivious", "in order", "the paper's", "ours", "bound")
    applications = groups(rows, "application")
    with grid(study, "_hop_bytes.png", 1, len(applications), figsize=(9, 3.4)) as (panels,):
        for panel, (name, own) in zip(panels, applications.items(), strict=True):
            for k, (kind, label) in enumerate(zip(kinds, labels, strict=True)):
                heights = [getattr(row, kind) / row.paper for row in own]
                at = np.arange(len(own)) + 0.16 * (k - 2)
                colour = "#bbbbbb" if kind == "bound" else f"C{k}"
                panel.bar(at, heights, 0.15, label=label, color=colour)
            panel.set_xticks(np.arange(len(own)), [row.machine for row in own], fontsize=8)
            panel.set_title(name, fontsize=9)
            panel.set_ylabel("hop-bytes / the paper's", fontsize=8)
        panels[0].legend(fontsize=7)


def plane_of(problem: MappingProblem, nodes: Sequence[int], name: str, dim: int) -> Any:
    """Return the mean index in a dimension of the elements of an array on every node."""
    found = problem.array(name)
    assert found is not None
    numbers, _ = found
    index = np.indices(numbers.shape)[dim].ravel()
    at = np.asarray(nodes)[numbers.ravel()]
    size = problem.machine.num_routers
    count = np.bincount(at, minlength=size)
    total = np.bincount(at, weights=index, minlength=size)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def draw_planes(study: Study, found: Found, array: str) -> None:
    """Draw the machine in slices, each node coloured by the mean indices of an array there."""
    _, problem, results = found
    torus = problem.machine
    assert isinstance(torus, Torus)
    with grid(study, "_openatom.png", 2 * len(SHOWN), torus.shape[2], figsize=(9, 5.6)) as panels:
        for k, (method, label) in enumerate(SHOWN.items()):
            solution = results[method].solution
            assert solution is not None
            for dim, what in enumerate(("states", "planes")):
                values = plane_of(problem, solution.nodes, array, dim).reshape(torus.shape)
                line = panels[2 * k + dim]
                for z, panel in enumerate(line):
                    panel.imshow(values[:, :, z], vmin=0, vmax=np.nanmax(values), cmap="viridis")
                line[0].set_ylabel(f"{label}\n{what}", fontsize=8)


def draw_patch(study: Study, found: Found) -> None:
    """Draw where the computes of one patch are, how many on each node, and its neighbours."""
    _, problem, results = found
    torus = problem.machine
    assert isinstance(torus, Torus)
    patches = problem.array("Patches")
    assert patches is not None
    middle = int(patches[0][tuple(n // 2 for n in patches[1])])
    rows = problem.guide
    computes = rows.other[rows.first[middle] : rows.first[middle + 1]]
    with grid(study, "_namd.png", len(SHOWN), torus.shape[2], figsize=(9, 3.9)) as panels:
        for line, (method, label) in zip(panels, SHOWN.items(), strict=True):
            solution = results[method].solution
            assert solution is not None
            nodes = np.asarray(solution.nodes)
            counts = np.bincount(nodes[computes], minlength=torus.num_routers).reshape(torus.shape)
            home = torus.coordinates[nodes[middle]]
            for z, panel in enumerate(line):
                panel.imshow(counts[:, :, z], vmin=0, vmax=5, cmap="Blues")
                if z == home[2]:
                    panel.plot(home[1], home[0], "r+", markersize=9)
            line[0].set_ylabel(label, fontsize=8)


def main(given: Sequence[str] | None = None) -> None:
    """Run the study and write its part of the page, its figures and pictures."""
    study = Study("objects", __doc__, given, machines=MACHINES, seed=0, jobs=1)
    cases = [(machine, which) for machine in study.options.machines for which in (0, 1)]
    found = study.measured(partial(measure, seed=study.options.seed), cases)
    rows = [row for row, _, _ in found]
    study.write(rows)
    draw_planes(study, found[0], "GSpace")
    draw_patch(study, found[1])
    draw_hop_bytes(study, rows)
    schemes = [
        row for machine in study.options.machines for row in both_ways(machine, study.options.seed)
    ]
    study.write(schemes, "_namd")
    study.page(table(rows, HOP_BYTES, 3), table(schemes, BOTH, 2), table(rows, LOADS, 2))


if __name__ == "__main__":
    main()
