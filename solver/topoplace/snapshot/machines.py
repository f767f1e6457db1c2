"""Machines by file, by shipped name, or by shorthand such as ``torus:4x4x4``."""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path

from pydantic import ValidationError

from topoplace.errors import InputError
from topoplace.snapshot.files import MAX_DOCUMENT_BYTES, read_bytes
from topoplace.snapshot.schema import Snapshot, TorusModel

_SHORTHAND = re.compile(r"(torus|mesh):(\d{1,7}(?:x\d{1,7})*)")


def data_folder(name: str) -> Path:
    """Return a shipped folder (`instances` or `models`): the wheel's, else the checkout's."""
    package = Path(__file__).resolve().parent.parent
    for folder in (package / name, package.parent.parent / name):
        if folder.is_dir():
            return folder
    raise InputError(f"an installation with its {name} folder")


def machine_names() -> list[str]:
    """Return the names of the shipped machines."""
    return sorted(p.stem for p in (data_folder("instances") / "machines").glob("*.json"))


@lru_cache(maxsize=16)
def load_machine(spec: str) -> TorusModel:
    """Return the machine of a file, a shipped name or a shorthand.

    Raises
    ------
    InputError
        If there is no such machine or its file is bad.
    """
    match = _SHORTHAND.fullmatch(spec)
    if match is not None:
        shape = [int(n) for n in match[2].split("x")]
        name = spec.replace(":", "-")
        wraps = match[1] == "torus"
        return _validated({"name": name, "shape": shape, "wrap": [wraps] * len(shape)}, spec)
    if spec in machine_names():
        spec = str(data_folder("instances") / "machines" / f"{spec}.json")
    elif not Path(spec).exists():
        raise InputError(
            f"a file, a shorthand such as torus:4x4x4, or one of {', '.join(machine_names())}",
            field="machine",
            value=spec,
        )
    text = read_bytes(spec)
    assert len(text) <= MAX_DOCUMENT_BYTES
    try:
        return TorusModel.model_validate_json(text)
    except ValidationError as error:
        problem = error.errors(include_url=False)[0]
        field = ".".join(map(str, problem["loc"]))
        raise InputError(
            problem["msg"], file=spec, field=field, value=problem.get("input")
        ) from None


def _validated(raw: dict[str, object], spec: str) -> TorusModel:
    try:
        return TorusModel.model_validate(raw)
    except ValidationError as error:
        raise InputError(error.errors()[0]["msg"], field="machine", value=spec) from None


def resolve_machine(snapshot: Snapshot) -> Snapshot:
    """Return the snapshot with its machine written out, where it names a shipped one."""
    if isinstance(snapshot.machine, str):
        return snapshot.model_copy(update={"machine": load_machine(snapshot.machine)})
    return snapshot
