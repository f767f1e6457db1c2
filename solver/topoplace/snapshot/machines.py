"""Machines by file, by shipped name, or by shorthand such as ``torus:4x4x4``."""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path

from pydantic import ValidationError

from topoplace.errors import InputError
from topoplace.snapshot.files import parse_object, read_bytes
from topoplace.snapshot.readers.slurm import read_topology_conf
from topoplace.snapshot.regular_tree import regular_tree
from topoplace.snapshot.schema import Snapshot, TorusModel, TreeModel

_SHORTHAND = re.compile(r"(torus|mesh|tree):(\d{1,7}(?:x\d{1,7})*)(?::(\d{1,4}))?")
_TOPOLOGY_CONF = re.compile(rb"\s*(#|SwitchName\b)", re.IGNORECASE)  # no JSON begins so


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
def load_machine(spec: str) -> TorusModel | TreeModel:
    """Return the machine of a file, a shipped name or a shorthand.

    A file is a machine document or a Slurm topology.conf. ``tree:4x6x16`` is a root with 4
    switches, each with 6 leaves of 16 nodes; ``torus:8x8x8:2`` has two nodes on every router.

    Raises
    ------
    InputError
        If there is no such machine or its file is bad.
    """
    match = _SHORTHAND.fullmatch(spec)
    if match is not None:
        sizes = [int(n) for n in match[2].split("x")]
        if match[1] == "tree":
            if match[3]:
                raise InputError("a tree such as tree:24x16", field="machine", value=spec)
            return regular_tree(sizes, spec)
        return _regular_torus(sizes, match[1] == "torus", int(match[3] or 1), spec)
    if spec in machine_names():
        spec = str(data_folder("instances") / "machines" / f"{spec}.json")
    elif not Path(spec).exists():
        raise InputError(
            "a file, a shorthand such as torus:4x4x4 or tree:24x16, "
            f"or one of {', '.join(machine_names())}",
            field="machine",
            value=spec,
        )
    return _machine_of_file(spec)


def load_torus(spec: str) -> TorusModel:
    """Return a machine as `load_machine` does, where only a torus or mesh will do.

    Raises
    ------
    InputError
        If there is no such machine, its file is bad, or it is a tree.
    """
    machine = load_machine(spec)
    if not isinstance(machine, TorusModel):
        raise InputError("a torus or mesh machine, not a tree", field="machine", value=spec)
    return machine


def _machine_of_file(path: str) -> TorusModel | TreeModel:
    text = read_bytes(path)
    if _TOPOLOGY_CONF.match(text):
        return read_topology_conf(path)
    is_tree = parse_object(text, path).get("kind") == "tree"
    model: type[TorusModel] | type[TreeModel] = TreeModel if is_tree else TorusModel
    try:
        return model.model_validate_json(text)
    except ValidationError as error:
        problem = error.errors(include_url=False)[0]
        field = ".".join(map(str, problem["loc"]))
        raise InputError(
            problem["msg"], file=path, field=field, value=problem.get("input")
        ) from None


def _regular_torus(shape: list[int], wraps: bool, nodes: int, spec: str) -> TorusModel:
    name = spec.replace(":", "-")
    try:
        return TorusModel(name=name, shape=shape, wrap=[wraps] * len(shape), nodes_per_router=nodes)
    except ValidationError as error:
        raise InputError(error.errors()[0]["msg"], field="machine", value=spec) from None


def resolve_machine(snapshot: Snapshot) -> Snapshot:
    """Return the snapshot with its machine written out, where it names a shipped one."""
    if isinstance(snapshot.machine, str):
        return snapshot.model_copy(update={"machine": load_machine(snapshot.machine)})
    return snapshot
