"""What `--help` lists of what is shipped, and completion offers, without loading any."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from topoplace.shipped import MACHINES, METHODS, SNAPSHOTS

_TITLES = {
    "placement": "Methods on a torus or mesh",
    "allocation": "Methods on a tree",
    "hierarchy": "Methods on a hierarchy",
    "cubes": "Methods on a pod of cubes",
    "repack": "Methods of repacking",
    "mapping": "Methods of mapping",
    "objects": "Methods for objects (--objects)",
}


def epilogue(*problems: str, machines: bool = False, snapshots: bool = False) -> str:
    """Return what comes below the options: the methods of problems, machines and snapshots."""
    parts = []
    for problem in problems:
        rows = [f"- {name}: {summary}" for name, (_, summary) in METHODS[problem].items()]
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
