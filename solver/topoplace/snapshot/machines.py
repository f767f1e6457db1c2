"""Machines by file, shipped name or shorthand such as ``torus:4x4x4``; snapshots by file."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path

from pydantic import ValidationError

from topoplace import kinds
from topoplace.errors import InputError
from topoplace.machine.hostlist import MAX_HOSTS
from topoplace.snapshot.cubes_state import CubesState
from topoplace.snapshot.faults import faults_of, kind_of_document, require_suited
from topoplace.snapshot.files import (
    data_folder,
    likely_meant,
    machine_names,
    parse_document,
    parse_object,
    read_bytes,
    validated,
)
from topoplace.snapshot.held import ignoring, require_known
from topoplace.snapshot.hierarchy_state import HierarchyState
from topoplace.snapshot.readers.forms import other_machine, other_snapshot
from topoplace.snapshot.schema import (
    SNAPSHOT_SCHEMA,
    CubesModel,
    HierarchyModel,
    HostsModel,
    MachineModel,
    Snapshot,
    SwitchModel,
    TorusModel,
    TreeModel,
    TreeObjective,
)
from topoplace.snapshot.state import SnapshotState
from topoplace.snapshot.tree_state import MAX_LEAVES, TreeState

# ---- Regular switch trees, from the shorthand ``tree:4x6x16`` ------------------------------------

_MAX_LEVELS = 16


def regular_tree(sizes: Sequence[int], spec: str) -> TreeModel:
    """Return the tree with these numbers of children at every level, from the root down.

    The last number is the nodes of a leaf: ``[24, 16]`` has 24 leaves of 16 nodes below a root.
    Switch ``s2-0`` is the first of level 2 (leaves are level 1), node ``n0`` the first of leaf
    ``s1-0``.
    The shorthand `spec` names the machine, and stands in errors.
    """
    num_leaves = math.prod(sizes[:-1])
    if min(sizes) < 1 or len(sizes) > _MAX_LEVELS:
        raise InputError(f"1 to {_MAX_LEVELS} numbers from 1", field="machine", value=spec)
    if num_leaves > MAX_LEAVES or num_leaves * sizes[-1] > MAX_HOSTS // 2:
        expected = f"at most {MAX_LEAVES} leaves and {MAX_HOSTS // 2} nodes"
        raise InputError(expected, field="machine", value=spec)
    switches: list[SwitchModel] = []
    for level, size in enumerate(reversed(sizes), start=1):
        for k in range(math.prod(sizes[: len(sizes) - level])):
            below = f"[{k * size}-{(k + 1) * size - 1}]"
            children = (
                {"nodes": f"n{below}"} if level == 1 else {"switches": f"s{level - 1}-{below}"}
            )
            switches.append(SwitchModel(name=f"s{level}-{k}", **children))
    return TreeModel(kind="tree", name=spec.replace(":", "-"), switches=switches)


# ---- Regular hierarchies, from the shorthand ``hierarchy:4x8x18:4`` ------------------------------

LEVELS = ("zone", "block", "rack", "host")
"""Names of the levels of a shorthand, from the last number up."""


def regular_hierarchy(
    sizes: Mapping[str, int], capacity: Mapping[str, int], name: str
) -> HierarchyModel:
    """Return the hierarchy with these numbers of domains in every domain of the level above.

    The last level is that of the hosts, which are called ``h0``, ``h1``, ...; the third domain in
    its parent of a level ``rack`` is ``rack2``.

    Raises
    ------
    InputError
        If a number is below 1 or there are too many hosts.
    """
    numbers = list(sizes.values())
    if min(numbers, default=0) < 1 or math.prod(numbers) > MAX_HOSTS // 2:
        expected = f"numbers from 1, and at most {MAX_HOSTS // 2} hosts"
        raise InputError(expected, field="machine", value=name)
    *above, last = numbers
    levels, hosts = list(sizes), []
    for k, at in enumerate(itertools.product(*map(range, above))):
        first = k * last
        domains = [f"{level}{n}" for level, n in zip(levels, at, strict=False)]
        own = f"h[{first}-{first + last - 1}]"
        hosts.append(HostsModel(hosts=own, domains=domains, capacity=dict(capacity)))
    return HierarchyModel(kind="hierarchy", name=name, levels=levels, hosts=hosts)


_SHORTHAND = re.compile(r"(torus|mesh|tree|hierarchy):(\d{1,7}(?:x\d{1,7})*)(?::(\d{1,4}))?")
_CUBES = re.compile(r"cubes:(\d{1,7})(?::(\d{1,7}(?:x\d{1,7})*))?")
_LIKELY = re.compile(r"(torus|mesh|tree|hierarchy|cubes)\W?\d[^.]*$", re.IGNORECASE)


def is_machine(text: str) -> bool:
    """Tell whether a text is the name of a shipped machine or a shorthand for one."""
    is_shorthand = _SHORTHAND.fullmatch(text) or _CUBES.fullmatch(text)
    return is_shorthand is not None or text in machine_names()


@lru_cache(maxsize=16)
def load_machine(spec: str) -> MachineModel:
    """Return the machine of a file, a shipped name or a shorthand.

    A file is a machine document, or another tool's (docs/formats.md); ``topology.yaml:NAME`` is one
    of the topologies of such a file. ``tree:4x6x16`` is a root with 4 switches, each with 6 leaves
    of 16 nodes; ``torus:8x8x8:2`` has two nodes on every router, ``hierarchy:4x8x18:4`` four blocks
    of 8 racks of 18 hosts with four slots each, and ``cubes:64`` or ``cubes:64:4x4x4`` 64 cubes of
    64 chips.

    Raises
    ------
    InputError
        If there is no such machine or its file is bad.
    """
    found = _of_shorthand(spec)
    if found is not None:
        return found
    if spec in machine_names():
        return _machine_of_file(str(data_folder("instances") / "machines" / f"{spec}.json"))
    if Path(spec).exists():
        return _machine_of_file(spec)
    file, _, part = spec.rpartition(":")
    if file and part and Path(file).is_file():
        return _machine_of_file(file, part)
    raise _no_machine(spec)


def _of_shorthand(spec: str) -> MachineModel | None:
    """Return the machine that a shorthand stands for; None of another text."""
    pod, match = _CUBES.fullmatch(spec), _SHORTHAND.fullmatch(spec)
    if pod is not None:
        return _pod(int(pod[1]), [int(n) for n in (pod[2] or "4x4x4").split("x")], spec)
    if match is None:
        return None
    kind, sizes = match[1], [int(n) for n in match[2].split("x")]
    if kind == "hierarchy" and len(sizes) <= len(LEVELS):
        named = dict(zip(LEVELS[-len(sizes) :], sizes, strict=True))
        return regular_hierarchy(named, {"slots": int(match[3] or 1)}, spec.replace(":", "-"))
    if kind in ("torus", "mesh"):
        return _regular_torus(sizes, kind == "torus", int(match[3] or 1), spec)
    if kind == "tree" and not match[3]:
        return regular_tree(sizes, spec)
    raise _no_machine(spec)


def load_torus(spec: str) -> TorusModel:
    """Return a machine as `load_machine` does, where only a torus or mesh will do."""
    machine = load_machine(spec)
    if not isinstance(machine, TorusModel):
        expected = f"a torus or mesh machine, not a {machine.kind}"
        raise InputError(expected, field="machine", value=spec)
    return machine


def _no_machine(spec: str) -> InputError:
    """Return the error of a text that begins as a shorthand, or of one that does not."""
    likely = _LIKELY.match(spec)
    if likely is not None:
        kind = likely[1].lower()
        usual = {"tree": "tree:24x16", "hierarchy": "hierarchy:4x8x18", "cubes": "cubes:64"}
        expected = f"a shorthand such as {usual.get(kind, f'{kind}:8x8x8')}"
        near = f"{kind}:" + "x".join(re.findall(r"\d+", spec))  # that of the same numbers
        meant = near if near != spec and _SHORTHAND.fullmatch(near) else None
    else:
        names = machine_names()
        shorthand = "a file, a shorthand such as torus:4x4x4, tree:24x16 or hierarchy:4x8x18"
        expected, meant = f"{shorthand}, or one of {', '.join(names)}", likely_meant(spec, names)
    return InputError(expected, field="machine", value=spec, meant=meant)


def _machine_of_file(path: str, part: str | None = None) -> MachineModel:
    text = read_bytes(path)
    machine = other_machine(path, text, part)
    if machine is not None:
        return machine
    raw = parse_object(text, path)
    if "schema" in raw:
        found = kind_of_document(raw)
        raise InputError("a machine", file=path, field="schema", value=raw["schema"], found=found)
    models: dict[object, type[MachineModel]] = {
        "tree": TreeModel,
        "hierarchy": HierarchyModel,
        "cubes": CubesModel,
    }
    return validated(text, raw, models.get(raw.get("kind"), TorusModel), path)


def _regular_torus(shape: list[int], wraps: bool, nodes: int, spec: str) -> TorusModel:
    name = spec.replace(":", "-")
    try:
        return TorusModel(name=name, shape=shape, wrap=[wraps] * len(shape), nodes_per_router=nodes)
    except ValidationError as error:
        fault = faults_of(error, TorusModel, {"shape": shape, "nodes_per_router": nodes})
        expected = f"a shorthand such as torus:8x8x8, its {fault.field} {fault.expected}"
        raise InputError(expected, field="machine", value=spec) from None


def _pod(cubes: int, side: list[int], spec: str) -> CubesModel:
    name = spec.replace(":", "-")
    try:
        return CubesModel(kind="cubes", name=name, cubes=cubes, side=side)
    except ValidationError as error:
        fault = faults_of(error, CubesModel, {"cubes": cubes, "side": side})
        expected = f"a shorthand such as cubes:64:4x4x4, its {fault.field} {fault.expected}"
        raise InputError(expected, field="machine", value=spec) from None


def resolve_machine(snapshot: Snapshot) -> Snapshot:
    """Return the snapshot with its machine written out, if all else in it may be about that."""
    if not isinstance(snapshot.machine, str):
        return snapshot
    machine = load_machine(snapshot.machine)
    require_suited(snapshot, machine)
    return snapshot.model_copy(update={"machine": machine})


# ---- Snapshots, checked and ready to solve -------------------------------------------------------

AnyState = SnapshotState | TreeState | HierarchyState | CubesState


def problem_named(snapshot: Snapshot, objective: TreeObjective | None = None) -> str:
    """Return the same of a snapshot whose machine is resolved; only trees have an objective."""
    assert not isinstance(snapshot.machine, str), "its machine is resolved"
    if objective_of(snapshot, objective) is TreeObjective.DOMAINS:
        return "hierarchy"
    machine = snapshot.machine.kind
    return next(kind.name for kind in kinds.placing() if kind.machine == machine)


def objective_of(snapshot: Snapshot, wanted: TreeObjective | None = None) -> TreeObjective | None:
    """Return what counts on the switch tree of a snapshot: what is wanted, or the default.

    That is contention if a request has patterns, else domains. It is None on other machines.

    Raises
    ------
    InputError
        If an objective is wanted on another machine.
    """
    machine = snapshot.machine
    kind = machine if isinstance(machine, str) else machine.kind
    if kind != "tree":
        if wanted is not None:
            raise InputError(f"a switch tree for {wanted}", field="objective", found=f"a {kind}")
        return None
    by_patterns = any(request.patterns for request in snapshot.queue)
    default = TreeObjective.CONTENTION if by_patterns else TreeObjective.DOMAINS
    return default if wanted is None else wanted


def load_any(
    path: str | Path, objective: TreeObjective | None = None, ignore: Sequence[str] = ()
) -> AnyState:
    """Read a snapshot file of any machine and check it against it.

    A file is a snapshot document, or what kubectl prints (docs/formats.md).

    Parameters
    ----------
    path
        The file, or the name of a shipped snapshot.
    objective
        What counts on a switch tree; see `objective_of`.
    ignore
        Options that hold no request (`topoplace.snapshot.held.ignoring`).

    Raises
    ------
    InputError
        Naming the file, the field and the value at fault.
    """
    text = read_bytes(path)
    snapshot = other_snapshot(path, text) or parse_document(
        text, Snapshot, SNAPSHOT_SCHEMA, str(path)
    )
    try:
        return prepare_any(ignoring(resolve_machine(snapshot), ignore), objective)
    except InputError as error:
        raise error.located(str(path)) from None


def load_snapshot(path: str | Path) -> SnapshotState:
    """Read a snapshot as `load_any` does, where only a torus or mesh will do."""
    state = load_any(path)
    if not isinstance(state, SnapshotState):
        assert not isinstance(state.snapshot.machine, str), "a snapshot read has its machine"
        kind = state.snapshot.machine.kind
        expected = "a torus or mesh machine"
        raise InputError(expected, file=str(path), field="machine.kind", value=kind)
    return state


def prepare_any(snapshot: Snapshot, objective: TreeObjective | None = None) -> AnyState:
    """Check a snapshot whose machine is resolved, by the kind of the machine.

    A switch tree of which domains count is prepared as a hierarchy (`objective_of`).

    Raises
    ------
    InputError
        With the field at fault.
    """
    require_known(snapshot)
    return _prepared(snapshot, problem_named(snapshot, objective))


def _prepared(snapshot: Snapshot, kind: str) -> AnyState:
    state: AnyState = kinds.kind_named(kind).get("prepare")(snapshot)
    return state


def prepare_again(snapshot: Snapshot, state: AnyState) -> AnyState:
    """Check a snapshot and prepare it as another one was: what counts on a tree stays."""
    require_known(snapshot)
    return _prepared(snapshot, state.kind)


def prepare_empty(machine: MachineModel) -> AnyState:
    """Return a machine on which nothing runs; of a switch tree, with what contention takes."""
    nothing = Snapshot(schema_version=SNAPSHOT_SCHEMA, name=machine.name, machine=machine)
    return prepare_any(nothing, TreeObjective.CONTENTION if machine.kind == "tree" else None)
