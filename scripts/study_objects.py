"""The papers' mappings of OpenAtom and NAMD, an oblivious one and ours, against a certified bound.

As section 3.3 of Bhatele 2009, on tori of 8x8x8 and 8x8x16 nodes and on the XT3. Writes the tables
and pictures of docs/studies/objects.md.

    python scripts/study_objects.py [--machines NAME,...] [--jobs N] [--seed N]
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from study_page import (
    STUDIES,
    markdown,
    number,
    percent,
    spawned,
    stamp,
    write_between_markers,
    write_rows,
)
from topoplace.certify import check_document
from topoplace.machine import Torus
from topoplace.mapping.objects.applications import problem_of
from topoplace.mapping.objects.builders import namd, openatom
from topoplace.mapping.onto import load_places
from topoplace.mapping.problem import MappingProblem
from topoplace.result.mapping import MappingResult
from topoplace.snapshot.objects import ObjectsApplication
from topoplace.solving import Options, solve

MACHINES = ("bluegene_8x8x8", "bluegene_8x8x16", "xt3")
BALANCE = {("openatom_water_32m", "xt3"): "1.3", ("namd_apoa1", "xt3"): "2.3"}
"""Where a node has room for few objects; 1.1 elsewhere."""
PAPER = {"openatom_water_32m": "prisms", "namd_apoa1": "bricks"}
METHODS = ("oblivious", "in-order", "paper", "search")
BEGIN, END = "<!-- begin: written by scripts/study_objects.py -->", "<!-- end -->"


@dataclass(frozen=True)
class Row:
    """One application on one machine: hop-bytes and largest link load by method, and the bound."""

    application: str
    machine: str
    objects: int
    messages: int
    balance: float
    bytes: int
    oblivious: int
    in_order: int
    paper: int
    search: int
    bound: int
    certificate: str
    paper_link: float
    search_link: float
    link_bound: float
    paper_load: int
    search_load: int
    load_bound: int


def applications() -> list[ObjectsApplication]:
    """Return the applications: finer pair calculators than those shipped, so that loads balance."""
    return [
        openatom(block=16, loads=(4, 3, 5), name="openatom_water_32m"),
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


def case_of(
    which: int, machine: str, seed: int
) -> tuple[Row, MappingProblem, dict[str, MappingResult]]:
    """Return the row of an application on a machine, and the results behind it."""
    application = applications()[which]
    places = load_places(machine)
    balance = BALANCE.get((application.name, machine), "1.1")
    problem = problem_of(application, places, balance)
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
    assert best.bound is not None
    values = {method.replace("-", "_"): result.objective or 0 for method, result in results.items()}
    row = Row(
        application=application.name,
        machine=machine,
        objects=problem.num_tasks,
        messages=problem.graph.num_messages,
        balance=float(balance),
        bytes=problem.graph.total_bytes,
        **values,
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


def table(rows: list[Row]) -> str:
    """Return hop-bytes as a Markdown table."""
    head = ["application", "machine", "balance", "oblivious", "in order", "paper's", "ours"]
    head += ["ours / paper's", "bound", "gap"]
    lines = []
    for row in rows:
        figures = (row.oblivious, row.in_order, row.paper, row.search)
        gap = (row.search - row.bound) / row.search
        share = f"{row.search / row.paper:.2f}"
        lines.append([row.application, row.machine, f"{row.balance:g}"])
        lines[-1] += [*map(number, figures), share, number(row.bound), percent(gap)]
    return markdown(head, 3, lines)


def loads_table(rows: list[Row]) -> str:
    """Return the largest loads of links and nodes, and their bounds, as a Markdown table."""
    head = ["application", "machine", "link, paper's", "link, ours", "link, bound"]
    head += ["node, paper's", "node, ours", "node, bound"]
    lines = [
        [row.application, row.machine, f"{row.paper_link:,.0f}", f"{row.search_link:,.0f}"]
        + [f"{row.link_bound:,.0f}"]
        + [number(x) for x in (row.paper_load, row.search_load, row.load_bound)]
        for row in rows
    ]
    return markdown(head, 2, lines)


# ---- Pictures ------------------------------------------------------------------------------------


def draw_hop_bytes(rows: list[Row], path: Path) -> None:
    """Draw hops per byte of every scheme by machine: Figures 6 and 7 of the paper, redrawn."""
    from matplotlib.figure import Figure  # noqa: PLC0415 - heavy

    names = list(dict.fromkeys(row.application for row in rows))
    figure = Figure(figsize=(9, 3.4), layout="constrained", dpi=110)
    for axes, name in zip(np.atleast_1d(figure.subplots(1, len(names))), names, strict=True):
        own = [row for row in rows if row.application == name]
        kinds = ("oblivious", "in_order", "paper", "search", "bound")
        labels = ("oblivious", "in order", "the paper's", "ours", "bound")
        for k, (kind, label) in enumerate(zip(kinds, labels, strict=True)):
            heights = [getattr(row, kind) / row.bytes for row in own]
            at = np.arange(len(own)) + 0.16 * (k - 2)
            colour = "#bbbbbb" if kind == "bound" else f"C{k}"
            axes.bar(at, heights, 0.15, label=label, color=colour)
        axes.set_xticks(np.arange(len(own)), [row.machine for row in own], fontsize=8)
        axes.set_title(name, fontsize=9)
        axes.set_ylabel("hops of a byte, mean", fontsize=8)
    figure.axes[0].legend(fontsize=7)
    figure.savefig(path)


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


def draw_planes(
    problem: MappingProblem, results: dict[str, MappingResult], array: str, path: Path
) -> None:
    """Draw the machine in slices, each node coloured by the mean indices of an array there."""
    from matplotlib.figure import Figure  # noqa: PLC0415 - heavy

    torus = problem.machine
    assert isinstance(torus, Torus)
    shown = ("oblivious", "paper", "search")
    label = {"oblivious": "oblivious", "paper": "the paper's", "search": "ours"}
    slices = torus.shape[2]
    figure = Figure(figsize=(9, 5.6), layout="constrained", dpi=110)
    grid = figure.subplots(2 * len(shown), slices)
    for k, method in enumerate(shown):
        solution = results[method].solution
        assert solution is not None
        for dim in (0, 1):
            values = plane_of(problem, solution.nodes, array, dim).reshape(torus.shape)
            top = np.nanmax(values)
            for z in range(slices):
                axes = grid[2 * k + dim, z]
                axes.imshow(values[:, :, z], vmin=0, vmax=top, cmap="viridis")
                axes.set_xticks([])
                axes.set_yticks([])
            grid[2 * k + dim, 0].set_ylabel(
                f"{label[method]}\n{('states', 'planes')[dim]}", fontsize=8
            )
    for z in range(slices):
        grid[0, z].set_title(f"z = {z}", fontsize=7)
    figure.savefig(path)


def draw_patch(problem: MappingProblem, results: dict[str, MappingResult], path: Path) -> None:
    """Draw where the computes of one patch are, how many on each node, and its neighbours."""
    from matplotlib.figure import Figure  # noqa: PLC0415 - heavy

    torus = problem.machine
    assert isinstance(torus, Torus)
    found = problem.array("Patches")
    assert found is not None
    middle = int(found[0][tuple(n // 2 for n in found[1])])
    rows = problem.graph.exchanged
    computes = rows.other[rows.first[middle] : rows.first[middle + 1]]
    shown = (("oblivious", "oblivious"), ("paper", "the paper's"), ("search", "ours"))
    figure = Figure(figsize=(9, 3.9), layout="constrained", dpi=110)
    grid = figure.subplots(len(shown), torus.shape[2])
    for k, (method, label) in enumerate(shown):
        solution = results[method].solution
        assert solution is not None
        nodes = np.asarray(solution.nodes)
        counts = np.bincount(nodes[computes], minlength=torus.num_routers).reshape(torus.shape)
        home = torus.coordinates[nodes[middle]]
        for z in range(torus.shape[2]):
            axes = grid[k, z]
            axes.imshow(counts[:, :, z], vmin=0, vmax=5, cmap="Blues")
            if z == home[2]:
                axes.plot(home[1], home[0], "r+", markersize=9)
            axes.set_xticks([])
            axes.set_yticks([])
            if not k:
                axes.set_title(f"z = {z}", fontsize=7)
        grid[k, 0].set_ylabel(label, fontsize=8)
    figure.savefig(path)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the study and write its part of the page, its figures and pictures."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--machines", default=",".join(MACHINES))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args(arguments)
    cases = [(which, machine) for machine in options.machines.split(",") for which in (0, 1)]
    with spawned(options.jobs) as pool:
        futures = [pool.submit(case_of, *case, options.seed) for case in cases]
        found = [future.result() for future in futures]
    rows = [row for row, _, _ in found]
    write_rows(STUDIES / "objects.csv", rows)
    draw_planes(*found[0][1:], "GSpace", STUDIES / "objects_openatom.png")
    draw_patch(*found[1][1:], STUDIES / "objects_namd.png")
    draw_hop_bytes(rows, STUDIES / "objects_hop_bytes.png")
    text = f"{stamp('study_objects.py', arguments)}\n\n{table(rows)}\n\n{loads_table(rows)}\n"
    write_between_markers(STUDIES / "objects.md", BEGIN, END, "Objects", text)


if __name__ == "__main__":
    main()
