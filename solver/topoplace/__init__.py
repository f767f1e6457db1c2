"""Optimal, certified placement of jobs and tasks on HPC interconnects.

>>> import topoplace as tp
>>> result = tp.place("blue_waters_60", time_limit=60)
>>> result.check().verified
True
"""

from __future__ import annotations

from topoplace.importing import imported
from topoplace.version import __version__ as __version__

TYPE_CHECKING = False  # typing is not imported: until `__main__` runs, Ctrl-C shows a traceback
if TYPE_CHECKING:
    from typing import Any

    from topoplace.errors import InputError as InputError
    from topoplace.errors import TopoplaceError as TopoplaceError
    from topoplace.front.checking import check as check
    from topoplace.front.converting import convert as convert
    from topoplace.front.documents import load as load
    from topoplace.front.documents import machines as machines
    from topoplace.front.documents import methods as methods
    from topoplace.front.documents import snapshots as snapshots
    from topoplace.front.exporting import export as export
    from topoplace.front.live import live_snapshot as live_snapshot
    from topoplace.front.mapping import map as map
    from topoplace.front.mapping import phase_time as phase_time
    from topoplace.front.mapping import recognise as recognise
    from topoplace.front.placing import place as place
    from topoplace.front.trading import frontier as frontier
    from topoplace.front.trading import optima as optima
    from topoplace.front.repacking import repack as repack
    from topoplace.front.studies import audit as audit
    from topoplace.front.studies import batch as batch
    from topoplace.front.studies import compare as compare
    from topoplace.front.studies import whatif as whatif
    from topoplace.mapping.allocated import topology as topology
    from topoplace.mapping.parallelism import Transformer as Transformer
    from topoplace.mapping.parallelism import parallelism as parallelism
    from topoplace.model import Model as Model
    from topoplace.model import cubes as cubes
    from topoplace.model import graph as graph
    from topoplace.model import grid as grid
    from topoplace.model import hierarchy as hierarchy
    from topoplace.model import mesh as mesh
    from topoplace.model import objects as objects
    from topoplace.model import torus as torus
    from topoplace.model import tree as tree
    from topoplace.result import Result as Result
    from topoplace.result.base import Report as Report
    from topoplace.solving import Progress as Progress
    from topoplace.study.audit.run import Audit as Audit
    from topoplace.study.compare import Comparison as Comparison

_NAMES = {
    "errors": ("InputError", "TopoplaceError"),
    "front.checking": ("check",),
    "front.converting": ("convert",),
    "front.documents": ("load", "machines", "methods", "snapshots"),
    "front.exporting": ("export",),
    "front.live": ("live_snapshot",),
    "front.mapping": ("map", "phase_time", "recognise"),
    "front.placing": ("place",),
    "front.repacking": ("repack",),
    "front.studies": ("audit", "batch", "compare", "whatif"),
    "front.trading": ("frontier", "optima"),
    "mapping.allocated": ("topology",),
    "mapping.parallelism": ("Transformer", "parallelism"),
    "model": (
        *("Model", "cubes", "graph", "grid", "hierarchy", "mesh", "objects", "torus", "tree"),
    ),
    "result": ("Result",),
    "result.base": ("Report",),
    "solving": ("Progress",),
    "study.audit.run": ("Audit",),
    "study.compare": ("Comparison",),
}
"""The front door: which names are where; they are imported when they are first used."""

_PLACES = {name: place for place, names in _NAMES.items() for name in names}

__all__ = ["__version__", *_PLACES]  # noqa: PLE0604 - names of the table above


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module 'topoplace' has no attribute {name!r}")
    found = globals()[name] = getattr(imported(f"topoplace.{_PLACES[name]}"), name)
    return found


def __dir__() -> list[str]:
    return list(__all__)
