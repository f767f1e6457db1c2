"""What topoplace ships besides kinds of problems, by name: a table instead of imports.

`--help` lists it and a shell completes it without loading anything. A test holds the names of files
against those there are.
"""

from __future__ import annotations

MACHINES = ("blue_waters", "bluegene_8x8x16", "bluegene_8x8x8", "tpu_v4", "tpu_v4_pod", "xt3")
"""Names of the shipped machines."""

SNAPSHOTS = (
    *(f"blue_waters_{busy}" for busy in (20, 30, 40, 50, 60, 70, 80, "empty")),
    "tiny_features",
)
"""Names of the shipped snapshots."""

FORMATS = (
    *("snapshot", "cray-neighbours", "swf", "slurm", "slurm-topology", "machine", "kubernetes"),
    *("topograph", "ibnetdiscover", "hwloc", "node-switch", "slice-packer", "rfold"),
    *("codes", "sst"),
)
"""Formats that `topoplace convert` reads."""

WRITTEN = ("snapshot", "machine", "dragonfly", "slurm-topology", "slurm-yaml")
"""What `topoplace convert` writes."""

EXPORTS = ("opb", "mps", "lp", "cp-sat", "minizinc", "veripb")
"""Formats that `topoplace export` writes."""
