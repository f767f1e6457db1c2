"""The files that `topoplace map` writes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from topoplace.cli.options import require_writable
from topoplace.errors import InputError

if TYPE_CHECKING:
    from topoplace.mapping.problem import MappingProblem
    from topoplace.result.mapping import MappingResult


BESIDE = ".nodes"
"""What the name of a rank order's node list ends in, if not said otherwise (`node_list_beside`)."""


@dataclass(frozen=True)
class MapFiles:
    """Where to write what, each only if asked for; the fields are named as the options."""

    output: Path | None = None
    png: Path | None = None
    rank_order: Path | None = None
    node_list: Path | None = None
    hostfile: Path | None = None
    csv: Path | None = None
    maplib: Path | None = None
    scotch_map: Path | None = None

    @property
    def asked(self) -> dict[str, Path]:
        """The files asked for, by option without dashes, in the order above.

        A rank order alone has its node list beside it, where ``--mapping`` looks for it.
        """
        named = {name.replace("_", "-"): path for name, path in vars(self).items()}
        if self.rank_order is not None and self.node_list is None:
            named["node-list"] = self.rank_order.with_name(self.rank_order.name + BESIDE)
        return {name: path for name, path in named.items() if path is not None}

    def require_writable(self) -> None:
        """Raise `InputError` unless all can be written, and a node list has its rank order."""
        if self.rank_order is None and self.node_list is not None:
            raise InputError(
                "--rank-order beside it", field="--node-list", found="--node-list alone"
            )
        for option, path in self.asked.items():
            require_writable(path, f"--{option}")

    def require_suited(self, problem: MappingProblem) -> None:
        """Raise `InputError` if a file needs coordinates that the machine does not have."""
        if self.maplib is not None:
            try:
                _ = problem.torus
            except InputError as error:
                raise InputError(
                    error.expected, field="--maplib with --on", value=error.value
                ) from None

    def write(self, problem: MappingProblem, result: MappingResult) -> None:
        """Write the result, the picture, and the mapping in the formats asked for."""
        import numpy as np  # noqa: PLC0415 - heavy

        from topoplace.mapping.rankfiles import (  # noqa: PLC0415 - heavy
            write_mapping,
            write_rank_order,
        )
        from topoplace.snapshot.files import write_document  # noqa: PLC0415 - heavy

        if self.output is not None:
            write_document(self.output, result)
        if self.png is not None:
            from topoplace.report.figure import write_figure  # noqa: PLC0415 - heavy

            write_figure(result, self.png)
        if result.solution is None:
            return
        nodes = np.asarray(result.solution.nodes, dtype=np.int64)
        if self.rank_order is not None:
            write_rank_order(problem, nodes, self.rank_order, self.asked["node-list"])
        for path, form in (
            (self.hostfile, "hostfile"),
            (self.csv, "csv"),
            (self.maplib, "maplib"),
            (self.scotch_map, "scotch"),
        ):
            if path is not None:
                write_mapping(path, form, problem, nodes)
