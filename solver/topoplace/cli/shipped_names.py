"""What `--help` lists of what is shipped, and completion offers, without loading any."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from topoplace import kinds
from topoplace.shipped import MACHINES, SNAPSHOTS


def epilogue(*problems: str, machines: bool = False, snapshots: bool = False) -> str:
    """Return what comes below the options: the methods of problems, machines and snapshots."""
    parts = []
    for problem in problems:
        kind = kinds.kind_named(problem)
        rows = [f"- {name}: {summary}" for name, (_, summary) in kind.methods.items()]
        parts.append("\n".join([f"Methods {kind.title}:", *rows]))
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


methods_like = names_like(
    sorted({name for kind in kinds.shipped().values() for name in kind.methods})
)
machines_like = names_like(MACHINES)
snapshots_like = names_like(SNAPSHOTS)
