"""Build instances/machines and instances/snapshots from the code: same command, same bytes."""

from __future__ import annotations

import json
from pathlib import Path

from pydantic import BaseModel

from topoplace.snapshot.files import write_text
from topoplace.snapshot.generate import build_machines, generate_snapshot, load_workload

INSTANCES = Path(__file__).resolve().parent.parent / "instances"
BUSY_PERCENTS = (0, 20, 30, 40, 50, 60, 70, 80)
SEED = 20140500


def main() -> None:
    """Write every shipped machine and snapshot."""
    machines = build_machines()
    for name, machine in machines.items():
        _write(INSTANCES / "machines" / f"{name}.json", machine)
    workload = load_workload()
    for percent in BUSY_PERCENTS:
        snapshot = generate_snapshot(machines["blue_waters"], workload, percent, SEED + percent)
        _write(INSTANCES / "snapshots" / f"{snapshot.name}.json", snapshot)


def _write(path: Path, document: BaseModel) -> None:
    raw = document.model_dump(mode="json", exclude_none=True)
    write_text(path, json.dumps(raw, indent=1) + "\n")


if __name__ == "__main__":
    main()
