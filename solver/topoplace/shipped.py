"""What topoplace ships, by name: a table instead of imports.

`--help` lists it and a shell completes it without loading anything; of the methods, a command loads
the module of the one it runs. A test holds the names of files against those there are.
"""

from __future__ import annotations

_EXACT = "topoplace.placement.torus.exact"
_NODES = "topoplace.placement.torus.heuristics.node_orders"
_FITS = "topoplace.placement.torus.heuristics.fits"
_TORUS3D = "topoplace.placement.torus.heuristics.slurm_torus3d"
_MINIZINC = "topoplace.placement.torus.minizinc"
_THRESHOLDS = "topoplace.placement.switches.exact.method"
_REPACK = "topoplace.placement.torus.repack.outcome"
_CUBES = "topoplace.placement.cubes.exact"
_IN_CUBES = "topoplace.placement.cubes.heuristics"
_DOMAINS = "topoplace.placement.hierarchy.exact"
_DOMAINS_MODEL = "topoplace.placement.hierarchy.minizinc"
_RULES = "topoplace.placement.switches.allocators"
_KUEUE = "topoplace.placement.hierarchy.heuristics.kueue"
_BALANCED = "topoplace.placement.hierarchy.heuristics.kueue_balanced"
_BLOCK = "topoplace.placement.hierarchy.heuristics.slurm_block"
_TREE = "topoplace.placement.hierarchy.heuristics.slurm_tree"
_FILLS = "topoplace.placement.hierarchy.heuristics.fits"
_BEST = "topoplace.mapping.methods.best"
_BUILT = "topoplace.mapping.methods.constructions"
_NESTED = "topoplace.mapping.methods.nested"
_ORDERS = "topoplace.mapping.methods.orders"
_SEARCHES = "topoplace.mapping.methods.searches"
_OBJECTS = "topoplace.mapping.objects.search"
_PAPERS = "topoplace.mapping.objects.papers"
_FEW = "topoplace.mapping.objects.exact"

METHODS: dict[str, dict[str, tuple[str, str]]] = {
    "placement": {
        "exact": (_EXACT, "column generation, integer phase and branching; certified bounds"),
        "alps-o2": (_NODES, "nodes in queue order, along yz slabs of 2x4x2 blocks"),
        "alps-2y": (_NODES, "nodes in queue order, along xz slabs of 4x2x8 blocks"),
        "alps-4y": (_NODES, "as alps-2y, with slabs twice as thick in y"),
        "best-fit": (_FITS, "prisms in queue order, each the free one of the largest shape score"),
        "first-fit": (_FITS, "prisms in queue order, each the first free one in row-major order"),
        "slurm-torus3d": (
            _TORUS3D,
            "Slurm's own for anchored prisms: the one that blocks fewest of the next larger shape",
        ),
        "random-nodes": (_NODES, "nodes in queue order, anywhere (by seed)"),
        "minizinc": (_MINIZINC, "reference MiniZinc model, for tiny machines"),
    },
    "allocation": {
        "exact": (_THRESHOLDS, "least cost (eq. 6) of the most nodes, with a bound"),
        "default": (
            _RULES,
            "Slurm's own: below the lowest switch that fits, fullest leaves first",
        ),
        "adaptive": (_RULES, "greedy or balanced, whichever costs less (Mishra 2020)"),
        "balanced": (
            _RULES,
            "powers of two on every leaf, emptiest leaves first (Mishra 2020)",
        ),
        "slurm-tree": (_RULES, "Slurm's topology/tree: the lowest switch that fits, fullest last"),
        "fewest-domains": (_RULES, "as few leaves as possible, the last one a best fit"),
        "greedy": (_RULES, "leaves of the least communication ratio first (Mishra 2020)"),
        "random": (_RULES, "nodes anywhere (by seed)"),
    },
    "hierarchy": {
        "exact": (_DOMAINS, "most value on the fewest domains, by branch and price; certified"),
        "first-fit": (_FILLS, "hosts in their order, below the first domain that fits"),
        "kueue": (_KUEUE, "Kueue's: BestFit, without a level LeastFreeCapacity"),
        "kueue-balanced": (_BALANCED, "as kueue, evenly over the domains of a preferred level"),
        "kueue-least-free": (_KUEUE, "Kueue's LeastFreeCapacity: small domains first, always"),
        "minizinc": (_DOMAINS_MODEL, "reference MiniZinc model, for tiny machines"),
        "random": (_FILLS, "units anywhere within the rules (by seed)"),
        "slurm-block": (_BLOCK, "Slurm's topology/block: aligned blocks, fewest free nodes first"),
        "default": (_TREE, "Slurm's in short: below the lowest switch that fits, fullest leaves"),
        "slurm-tree": (_TREE, "Slurm's topology/tree: the lowest switch that fits, fullest last"),
        "tree-best-fit": (_FILLS, "the lowest domain that fits, fewest free first"),
    },
    "cubes": {
        "exact": (_CUBES, "most value, then most cubes left free; certified bounds"),
        "best-fit": (_IN_CUBES, "in queue order, parts in the fullest cube that has room"),
        "first-fit": (_IN_CUBES, "in queue order, the first cube or cubes that have room"),
    },
    "repack": {
        "exact": (_REPACK, "fewest moves so that requests start, by branch and price; certified"),
    },
    "mapping": {
        "auto": (_BEST, "the best of the constructions; for graphs as exact, within a time"),
        "bisection": (_BUILT, "machine and graph halved together, again and again"),
        "blocks": (_BUILT, "equal boxes of the grid on a full prism of routers"),
        "default": (_ORDERS, "consecutive tasks fill node after node (SMP order)"),
        "exact": (_BEST, "embedding with one hop per message, else branch and bound if small"),
        "fold-2d": (_BUILT, "a 2D grid folded over the layers of a full prism"),
        "given": (_ORDERS, "a mapping made elsewhere, only evaluated and bounded"),
        "greedy": (_BUILT, "the most connected task next to its placed partners"),
        "grid-order": (_ORDERS, "cells of the grid, in grid order, fill node after node"),
        "hilbert": (_ORDERS, "tasks in the best of three orders along Hilbert's curve"),
        "local-search": (_SEARCHES, "simulated annealing from a mapping or the best simple method"),
        "nested-boxes": (_NESTED, "trees and hierarchies: a grid cut into boxes within boxes"),
        "pencils": (_BUILT, "best layout, window and routers of every pencil"),
        "random-blocks": (_BUILT, "equal boxes of the grid on random nodes"),
        "round-robin": (_ORDERS, "tasks dealt out one by one to as many nodes as are needed"),
        "scotch": (_BEST, "the external program gmap of Scotch, where installed"),
        "search": (
            _SEARCHES,
            "constructions, annealing and tabu search, as long as the time limit says",
        ),
        "tabu": (_SEARCHES, "robust tabu search, for machines of few places"),
        "topaware": (_BUILT, "best-ranked layout, leftmost routers of every pencil"),
    },
    "objects": {
        "search": (_OBJECTS, "annealing under the caps, from the best of the others"),
        "bisection": (_OBJECTS, "machine and objects halved together, again and again"),
        "bricks": (_PAPERS, "patches by bisection, computes between theirs (Bhatele 2009, 3.3.2)"),
        "exact": (_FEW, "all mappings of a few objects; more by search"),
        "in-order": (_OBJECTS, "consecutive objects, the average load on node after node"),
        "oblivious": (_OBJECTS, "the largest load first, on the emptiest node"),
        "prisms": (_PAPERS, "GSpace, RealSpace, PairCalculators in prisms (Bhatele 2009, 3.3.1)"),
    },
}
"""By problem, the module that registers a method when imported, and a line on what it does."""

MACHINES = ("blue_waters", "bluegene_8x8x16", "bluegene_8x8x8", "tpu_v4", "tpu_v4_pod", "xt3")
"""Names of the shipped machines."""

SNAPSHOTS = (
    *(f"blue_waters_{busy}" for busy in (20, 30, 40, 50, 60, 70, 80, "empty")),
    "tiny_features",
)
"""Names of the shipped snapshots."""

FORMATS = (
    *("snapshot", "cray-neighbours", "swf", "slurm", "slurm-topology", "machine", "kubernetes"),
    *("topograph", "slice-packer", "rfold"),
)
"""Formats that `topoplace convert` reads."""
