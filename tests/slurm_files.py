"""Small files as Slurm writes them, for tests."""

from __future__ import annotations

from pathlib import Path

TOPOLOGY = (
    "SwitchName=s0 Nodes=n[0-3]\nSwitchName=s1 Nodes=n[4-7]\nSwitchName=top Switches=s[0-1]\n"
)
HEADER = "JOBID|STATE|NODES|NODELIST|COMMENT|PRIORITY|TIME_LIMIT|START_TIME|SUBMIT_TIME"


def written(folder: Path, text: str, name: str = "file") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def job_line(**fields: object) -> str:
    known = {
        "id": 1,
        "state": "PENDING",
        "nodes": 2,
        "hosts": "",
        "comment": "(null)",
        "priority": 10,
        "limit": "UNLIMITED",
        "start": "N/A",
        "submitted": "2026-03-01T10:00:00",
    }
    return "|".join(str(value) for value in (known | fields).values())


def job_entry(**fields: object) -> dict[str, object]:
    known: dict[str, object] = {
        "job_id": 1,
        "job_state": "PENDING",
        "node_count": 2,
        "nodes": "",
        "comment": "",
        "priority": 10,
        "time_limit": None,
        "submit_time": 1_000_000,
    }
    return known | fields
