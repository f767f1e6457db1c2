"""What slurm.conf, or ``scontrol show config``, says that plans and memory depend on."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from topoplace.snapshot.files import read_bytes

_DAY = 1440
"""Minutes: Slurm's default of bf_window, also where what is given is out of its bounds."""

_MOST = 43_200


@dataclass(frozen=True)
class SlurmConfig:
    """Settings of a cluster; None for what is not said.

    Attributes
    ----------
    window
        Seconds from now within which backfill reserves nodes for jobs (``bf_window``).
    has_memory
        Whether jobs are given memory.
    """

    window: int | None = None
    has_memory: bool | None = None

    @property
    def seconds(self) -> int:
        """The window, or Slurm's default."""
        return 60 * _DAY if self.window is None else self.window


def read_slurm_config(path: str | Path) -> SlurmConfig:
    """Read slurm.conf, or what ``scontrol show config`` prints; what it includes is not read."""
    text = read_bytes(path, any_kind=True).decode(errors="replace")
    lines = [line.partition("#")[0] for line in text.splitlines()]
    pairs = (line.partition("=") for line in lines)
    settings = {key.strip().lower(): value.strip() for key, _, value in pairs}
    whole = not any(line.split()[:1] == ["include"] for line in map(str.lower, lines))
    found = re.search(r"\bbf_window=([0-9]{1,6})\b", settings.get("schedulerparameters", ""))
    minutes = int(found[1]) if found else 0
    known = whole or "schedulerparameters" in settings
    select = settings.get("selecttypeparameters")
    return SlurmConfig(
        60 * (minutes if 1 <= minutes <= _MOST else _DAY) if known else None,
        None if select is None else "MEMORY" in select.upper(),
    )
