"""What topoplace ships: folders, and snapshots by name."""

from __future__ import annotations

from pathlib import Path

from topoplace.errors import InputError


def data_folder(name: str) -> Path:
    """Return a shipped folder (`instances` or `models`): the wheel's, else the checkout's."""
    package = Path(__file__).resolve().parent.parent
    for folder in (package / name, package.parent.parent / name):
        if folder.is_dir():
            return folder
    raise InputError(f"an installation with its {name} folder")


def machine_names() -> list[str]:
    """Return the names of the shipped machines."""
    return _names("machines")


def snapshot_names() -> list[str]:
    """Return the names of the shipped snapshots."""
    return _names("snapshots")


def file_meant(path: str | Path) -> Path:
    """Return the file that a path or the name of a shipped snapshot stands for; files go first."""
    if not Path(path).exists() and str(path) in snapshot_names():
        return data_folder("instances") / "snapshots" / f"{path}.json"
    return Path(path)


def _names(folder: str) -> list[str]:
    return sorted(p.stem for p in (data_folder("instances") / folder).glob("*.json"))
