"""What starts, whatever the kind of problem: what tables, host lists and CSV files have of it."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from topoplace.machine import Prism


@dataclass(frozen=True)
class Start:
    """A request that starts.

    Attributes
    ----------
    nodes
        Numbers of its nodes: ascending on a torus, in the order of its ranks on a tree; on a
        hierarchy the hosts of its units, ascending, a host once for each.
    hosts
        The same nodes as text: ranges of numbers on a torus, a host list as Slurm has it on a
        tree (``srun -w``) or hierarchy, there with the units of each host if they are several.
    origin, extents
        Its prism in routers; None on trees, and where the nodes form no prism. On cubes, of a part
        of one, from its first chip on.
    node_class
        On a torus.
    cost
        By eq. (6) of Mishra 2020, on a tree.
    score
        The value of the prism on level `shape`.
    cubes
        The cubes it is in.
    others
        The prisms of its further segments.
    """

    request: str
    nodes: tuple[int, ...]
    hosts: str
    origin: tuple[int, ...] | None = None
    extents: tuple[int, ...] | None = None
    node_class: str | None = None
    cost: Fraction | None = None
    score: int | None = None
    cubes: tuple[int, ...] | None = None
    others: tuple[Prism, ...] = ()

    @property
    def prism(self) -> str | None:
        """Extents and origin, such as ``4x4x8@0,0,8``; of several prisms one after another."""
        if self.origin is None or self.extents is None:
            return None
        prisms = (Prism(self.origin, self.extents), *self.others)
        return " ".join(prism.text for prism in prisms)
