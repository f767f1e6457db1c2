"""Machines by file, shipped name or shorthand such as ``torus:4x4x4``; snapshots by file."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from topoplace import kinds
from topoplace.errors import InputError, blamed_on, closest
from topoplace.machine.hostlist import MAX_HOSTS
from topoplace.snapshot.cubes_state import CubesState
from topoplace.snapshot.faults import (
    faults_of,
    kind_of_document,
    listed_keys,
    require_suited,
)
from topoplace.snapshot.files import (
    data_folder,
    likely_meant,
    machine_names,
    parse_object,
    read_bytes,
    read_document,
    validated,
)
from topoplace.snapshot.held import AS_IS, Choices, require_known
from topoplace.snapshot.hierarchy_state import MAX_LEAVES, HierarchyState
from topoplace.snapshot.reading import other_machine, other_snapshot, parted
from topoplace.snapshot.schema import (
    SNAPSHOT_SCHEMA,
    CubesModel,
    HierarchyModel,
    HostsModel,
    MachineDocument,
    MachineModel,
    Snapshot,
    SwitchModel,
    TorusModel,
    TreeModel,
    TreeObjective,
)
from topoplace.snapshot.state import SnapshotState

_SHORTHAND = re.compile(r"([a-z]+):(\d{1,7}(?:x\d{1,7})*)(?::(\d{1,7}(?:x\d{1,7})*))?")
_LIKELY = re.compile(r"([a-z]+)\W?\d[^.]*$", re.IGNORECASE)


def is_machine(text: str) -> bool:
    """Return whether a text is the name of a shipped machine or a shorthand for one."""
    match = _SHORTHAND.fullmatch(text)
    return (match is not None and _kind_of(match[1]) is not None) or text in machine_names()


def _kind_of(prefix: str) -> kinds.Kind | None:
    """Return the kind of machines whose shorthands begin so."""
    return next((kind for kind in kinds.placing() if prefix in kind.shorthands), None)


def load_machine(spec: str) -> MachineModel:
    """Return the machine of a file, a shipped name or a shorthand.

    A file is a machine document, or another tool's (docs/reference/formats.md);
    ``topology.yaml:NAME`` is one of the topologies of such a file. ``tree:4x6x16`` is a root with 4
    switches, each with 6 leaves of 16 nodes; ``torus:8x8x8:2`` has two nodes on every router,
    ``hierarchy:4x8x18:4`` four blocks of 8 racks of 18 hosts with four slots each, and ``cubes:64``
    or ``cubes:64:4x4x4`` 64 cubes of 64 chips.

    Raises
    ------
    InputError
        If there is no such machine or its file is bad.
    """
    if is_machine(spec):
        return _named_machine(spec)
    file, part = parted(spec)
    if Path(file).exists():  # read again each time: it may have changed
        return _machine_of_file(str(file), part)
    raise _no_machine(spec)


@lru_cache(maxsize=16)
def _named_machine(spec: str) -> MachineModel:
    """Return the machine of a shipped name or a shorthand, which is always the same."""
    found = _of_shorthand(spec)
    if found is not None:
        return found
    return _machine_of_file(str(data_folder("instances") / "machines" / f"{spec}.json"))


def _of_shorthand(spec: str) -> MachineModel | None:
    """Return the machine that a shorthand stands for; None of another text."""
    match = _SHORTHAND.fullmatch(spec)
    kind = None if match is None else _kind_of(match[1])
    if match is None or kind is None:
        return None
    sizes, after = ([int(n) for n in match[k].split("x")] if match[k] else None for k in (2, 3))
    found: MachineModel | None = kind.get("shorthand")(match[1], sizes, after, spec)
    if found is None:
        raise _no_machine(spec)
    return found


def load_torus(spec: str) -> TorusModel:
    """Return a machine as `load_machine` does, where only a torus or mesh will do."""
    machine = load_machine(spec)
    expected = f"a torus or mesh machine, not a {machine.kind}"
    return machine.only(TorusModel, expected, field="machine", value=spec)


def _no_machine(spec: str) -> InputError:
    """Return the error of a text that begins as a shorthand, or of one that does not."""
    likely = _LIKELY.match(spec)
    prefix = "" if likely is None else likely[1].lower()
    kind = _kind_of(prefix)
    if kind is not None:
        expected = f"a shorthand such as {kind.shorthands[prefix]}"
        near = f"{prefix}:" + "x".join(re.findall(r"\d+", spec))  # that of the same numbers
        meant = near if near != spec and _SHORTHAND.fullmatch(near) else None
    else:
        names = machine_names()
        shorthand = "a file, a shorthand such as torus:4x4x4, tree:24x16 or hierarchy:4x8x18"
        expected, meant = f"{shorthand}, or one of {', '.join(names)}", likely_meant(spec, names)
        alike = closest(prefix, [name for kind in kinds.placing() for name in kind.shorthands])
        if alike is not None and ":" in spec:
            meant = f"{alike}:{spec.partition(':')[2]}"
    return InputError(expected, field="machine", value=spec, meant=meant)


def _machine_of_file(path: str, part: str | None = None) -> MachineModel:
    machine = other_machine(path, part)
    if machine is not None:
        return machine
    text = read_bytes(path)
    raw = parse_object(text, path)
    if "schema" in raw:
        found = kind_of_document(raw)
        raise InputError("a machine", file=path, field="schema", value=raw["schema"], found=found)
    if not {"kind", "shape"} & raw.keys():
        expected = "a machine, with a kind or a shape"
        raise InputError(expected, file=path, found=f"an object of {listed_keys(raw)}")
    kind = kinds.kind_of_machine(str(raw.get("kind"))) or kinds.kind_named("placement")
    model: type[MachineModel] = kind.get("model")
    return validated(text, raw, model, path)


# ---- Snapshots, checked and ready to solve -------------------------------------------------------


def resolve_machine(snapshot: Snapshot) -> Snapshot:
    """Return the snapshot with its machine written out, if all else in it may be about that."""
    if not isinstance(snapshot.machine, str):
        return snapshot
    machine = load_machine(snapshot.machine)
    require_suited(snapshot, machine)
    return snapshot.model_copy(update={"machine": machine})


AnyState = SnapshotState | HierarchyState | CubesState


def problem_named(snapshot: Snapshot, objective: TreeObjective | None = None) -> str:
    """Return the same of a snapshot whose machine is resolved; only trees have an objective."""
    if objective_of(snapshot, objective) is TreeObjective.DOMAINS:
        return "hierarchy"
    machine = snapshot.written.kind
    return next(kind.name for kind in kinds.placing() if kind.machine == machine)


def objective_of(snapshot: Snapshot, wanted: TreeObjective | None = None) -> TreeObjective | None:
    """Return what counts on the switch tree of a snapshot: what is wanted, or the default.

    That is contention if a request has patterns, else domains. It is None on other machines.

    Raises
    ------
    InputError
        If an objective is wanted on another machine.
    """
    machine = snapshot.written
    if not machine.has_contention:
        if wanted is not None:
            found = f"a {machine.kind}"
            raise InputError(f"a switch tree for {wanted}", field="objective", found=found)
        return None
    by_patterns = any(request.patterns for request in snapshot.queue)
    by_patterns &= snapshot.free is None
    default = TreeObjective.CONTENTION if by_patterns else TreeObjective.DOMAINS
    return default if wanted is None else wanted


def read_snapshot(path: str | Path) -> Snapshot:
    """Read a snapshot without checking it.

    Parameters
    ----------
    path
        A snapshot document, the name of a shipped one, or what another tool writes: a file of
        kubectl, a folder of Slurm's listings (`other_snapshot`).
    """
    return other_snapshot(path) or read_document(path, Snapshot, SNAPSHOT_SCHEMA)


def load_any(
    path: str | Path, objective: TreeObjective | None = None, choices: Choices = AS_IS
) -> AnyState:
    """Read a snapshot file of any machine and check it against it.

    Parameters
    ----------
    path
        As of `read_snapshot`.
    objective
        What counts on a switch tree; see `objective_of`.
    choices
        What is chosen beside it.

    Raises
    ------
    InputError
        Naming the file, the field and the value at fault.
    """
    snapshot = read_snapshot(path)
    with blamed_on(path):
        return prepare_any(choices.of(resolve_machine(snapshot)), objective)


def load_snapshot(path: str | Path) -> SnapshotState:
    """Read a snapshot as `load_any` does, where only a torus or mesh will do."""
    state = load_any(path)
    with blamed_on(path):
        state.snapshot.on(TorusModel, "a torus or mesh machine")
    found: SnapshotState = state  # type: ignore[assignment]  # that of such a machine
    return found


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
    return prepare_any(nothing, TreeObjective.CONTENTION if machine.has_contention else None)


# ---- Regular machines of shorthands --------------------------------------------------------------


_MAX_LEVELS = 16

Made = TypeVar("Made", bound=MachineDocument)


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


def tree_of(
    prefix: str, sizes: Sequence[int], after: Sequence[int] | None, spec: str
) -> TreeModel | None:
    """Return the tree of a shorthand."""
    return regular_tree(sizes, spec) if after is None else None


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


def hierarchy_of(
    prefix: str, sizes: Sequence[int], after: Sequence[int] | None, spec: str
) -> HierarchyModel | None:
    """Return the hierarchy of a shorthand, ``hierarchy:4x8x18:4`` with four slots on a host."""
    slots = after or [1]
    if len(slots) > 1 or len(sizes) > len(LEVELS):
        return None
    named = dict(zip(LEVELS[-len(sizes) :], sizes, strict=True))
    return regular_hierarchy(named, {"slots": slots[0]}, spec.replace(":", "-"))


def torus_of(
    prefix: str, shape: Sequence[int], after: Sequence[int] | None, spec: str
) -> TorusModel | None:
    """Return the torus or mesh of a shorthand, ``torus:8x8x8:2`` with two nodes on a router."""
    nodes, wraps = after or [1], prefix == "torus"
    if len(nodes) > 1:
        return None
    fields = {"shape": [*shape], "nodes_per_router": nodes[0]}
    return made(TorusModel, "torus:8x8x8", spec, fields, wrap=[wraps] * len(shape))


def pod_of(
    prefix: str, cubes: Sequence[int], after: Sequence[int] | None, spec: str
) -> CubesModel | None:
    """Return the pod of a shorthand, ``cubes:64:4x4x4`` with 64 cubes of 64 chips."""
    side = [*(after or (4, 4, 4))]
    if len(cubes) > 1:
        return None
    fields = {"cubes": cubes[0], "side": side}
    return made(CubesModel, "cubes:64:4x4x4", spec, fields, kind="cubes")


def made(
    model: type[Made], example: str, spec: str, fields: Mapping[str, Any], **more: Any
) -> Made:
    """Return a machine of fields that a shorthand has; what is wrong with one is said of that."""
    try:
        return model.model_validate({"name": spec.replace(":", "-"), **fields, **more})
    except ValidationError as error:
        fault = faults_of(error, model, fields)
        expected = f"a shorthand such as {example}, its {fault.field} {fault.expected}"
        raise InputError(expected, field="machine", value=spec) from None
