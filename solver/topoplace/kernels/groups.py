"""Which groups of kernels the methods of every kind of problem need."""

from __future__ import annotations

from collections.abc import Iterable

_EXACT, _PRISMS, _TREES = "placement.exact", "placement.heuristics", "allocation"
_BOUNDS, _BRANCH, _GROW = "mapping.bounds", "mapping.exact", "mapping.growing"
_HALVE, _ANNEAL, _TABU = "mapping.halving", "mapping.local_search", "mapping.tabu_search"

PACKAGES = {
    _EXACT: ("topoplace.placement.exact",),
    _PRISMS: (
        "topoplace.placement.heuristics",
        "topoplace.placement.periodic_sums",
        "topoplace.study.replay",
    ),
    _TREES: ("topoplace.placement.tree", "topoplace.certify"),
    _BOUNDS: ("topoplace.bounds",),
    _BRANCH: ("topoplace.mapping.exact",),
    _GROW: ("topoplace.mapping.growing",),
    _HALVE: ("topoplace.mapping.halving",),
    _ANNEAL: ("topoplace.mapping.local_search",),
    _TABU: ("topoplace.mapping.tabu_search",),
}
"""The packages and modules of every group."""

PROBLEMS = {
    "placement": (_EXACT, _PRISMS),
    "allocation": (_TREES,),
    "mapping": (_BOUNDS, _BRANCH, _GROW, _HALVE, _ANNEAL, _TABU),
}
"""The groups of every kind of problem."""

_SEARCH = (_BOUNDS, _GROW, _HALVE, _ANNEAL, _TABU)
_NEEDED: dict[str, dict[str, tuple[str, ...]]] = {
    "placement": {"exact": (_EXACT, _PRISMS)},
    "allocation": {"exact": (_TREES,)},
    "mapping": {
        "auto": (*_SEARCH, _BRANCH),
        "exact": (*_SEARCH, _BRANCH),
        "search": _SEARCH,
        "local-search": (_BOUNDS, _ANNEAL),
        "bisection": (_BOUNDS, _HALVE),
        "greedy": (_BOUNDS, _GROW),
        "tabu": (_BOUNDS, _GROW, _TABU),
    },
}
"""What methods need that need more than the rest of their kind."""

_OTHERS = {"placement": (_PRISMS,), "allocation": (), "mapping": (_BOUNDS,)}


def groups_of(problem: str, methods: Iterable[str]) -> list[str]:
    """Return the groups that methods of a kind of problem need; those of others need the least."""
    needed = [_NEEDED[problem].get(method, _OTHERS[problem]) for method in methods]
    return list(dict.fromkeys(group for groups in needed for group in groups))
