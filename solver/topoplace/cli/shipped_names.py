"""The methods and machines that `--help` lists, and completion offers, without loading any.

A test holds the tables against the registries.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

METHODS: dict[str, dict[str, str]] = {
    "placement": {
        "exact": "column generation, integer phase and branching; certified bounds",
        "alps-o2": "nodes in queue order, along yz slabs of 2x4x2 blocks",
        "alps-2y": "nodes in queue order, along xz slabs of 4x2x8 blocks",
        "alps-4y": "as alps-2y, with slabs twice as thick in y",
        "best-fit": "prisms in queue order, each the free one of the largest shape score",
        "first-fit": "prisms in queue order, each the first free one in row-major order",
        "random-nodes": "nodes in queue order, anywhere (by seed)",
        "minizinc": "reference MiniZinc model, for tiny machines",
    },
    "allocation": {
        "exact": "least cost (eq. 6) of the most nodes, with a bound",
        "default": "Slurm's own: below the lowest switch that fits, fullest leaves first",
        "adaptive": "greedy or balanced, whichever costs less (Mishra 2020)",
        "balanced": "powers of two on every leaf, emptiest leaves first (Mishra 2020)",
        "fewest-domains": "as few leaves as possible, the last one a best fit",
        "greedy": "leaves of the least communication ratio first (Mishra 2020)",
        "random": "nodes anywhere (by seed)",
    },
    "mapping": {
        "auto": "the best of the constructions; for graphs as exact, within a time",
        "bisection": "machine and graph halved together, again and again",
        "blocks": "equal boxes of the grid on a full prism of routers",
        "default": "consecutive tasks fill node after node (SMP order)",
        "exact": "embedding with one hop per message, else branch and bound if small",
        "fold-2d": "a 2D grid folded over the layers of a full prism",
        "given": "a mapping made elsewhere, only evaluated and bounded",
        "greedy": "the most connected task next to its placed partners",
        "grid-order": "cells of the grid, in grid order, fill node after node",
        "hilbert": "tasks in the best of three orders along Hilbert's curve",
        "local-search": "simulated annealing from a mapping or the best simple method",
        "pencils": "best layout, window and routers of every pencil",
        "random-blocks": "equal boxes of the grid on random nodes",
        "round-robin": "tasks dealt out one by one to as many nodes as are needed",
        "scotch": "the external program gmap of Scotch, where installed",
        "search": "constructions, annealing and tabu search, as long as the time limit says",
        "tabu": "robust tabu search, for machines of few places",
        "topaware": "best-ranked layout, leftmost routers of every pencil",
    },
}
"""By problem, a line on each method shipped."""

MACHINES = ("blue_waters", "bluegene_8x8x16", "bluegene_8x8x8", "tpu_v4", "xt3")
"""Names of the shipped machines."""

SNAPSHOTS = (
    *(f"blue_waters_{busy}" for busy in (20, 30, 40, 50, 60, 70, 80, "empty")),
    "tiny_features",
)
"""Names of the shipped snapshots."""

_TITLES = {
    "placement": "Methods on a torus or mesh",
    "allocation": "Methods on a tree",
    "mapping": "Methods of mapping",
}


def epilogue(*problems: str, machines: bool = False, snapshots: bool = False) -> str:
    """Return what comes below the options: the methods of problems, machines and snapshots."""
    parts = []
    for problem in problems:
        rows = [f"- {name}: {summary}" for name, summary in METHODS[problem].items()]
        parts.append("\n".join([f"{_TITLES[problem]}:", *rows]))
    if machines:
        parts.append(f"Machines: {', '.join(MACHINES)}")
    if snapshots:
        parts.append(f"Snapshots by name: {', '.join(SNAPSHOTS)}")
    return "\n\n".join(parts)


def names_like(names: Iterable[str]) -> Callable[[str], list[str]]:
    """Return what lists, for a shell that completes, the names that begin so."""

    def like(incomplete: str) -> list[str]:
        return [name for name in names if name.startswith(incomplete)]

    return like


methods_like = names_like(sorted({name for methods in METHODS.values() for name in methods}))
machines_like = names_like(MACHINES)
snapshots_like = names_like(SNAPSHOTS)
