"""From an application document (arrays, rules of messages) to a graph (docs/guide/objects.md)."""

from __future__ import annotations

import logging
import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np

from topoplace.errors import InputError, number_of, unknown_name
from topoplace.mapping.machines import machine_of
from topoplace.mapping.onto import Places, problem_on
from topoplace.mapping.problem import MappingProblem
from topoplace.snapshot.files import data_folder, read_bytes, read_document
from topoplace.snapshot.objects import (
    APPLICATION_SCHEMA,
    ListedMessages,
    ObjectArray,
    ObjectsApplication,
    RuleMessages,
)
from topoplace.snapshot.schema import (
    MAX_TASKS,
    AnyApplication,
    FixedObject,
    MessageTree,
    NamedArray,
    ObjectsGraph,
    TreeKind,
)
from topoplace.types import IntArray

log = logging.getLogger("topoplace")

BALANCE = "1.1"
"""Most load of a node as a multiple of the average, by default."""

MOST_MESSAGES = 1 << 24
"""Most messages of one application."""

RULES = re.compile(r";(?![^()]*\))")
SIDE = re.compile(r"\s*([^\s(),;]+)\(([^()]*)\)\s*")
INDEX = re.compile(r"\s*(?:(\*)|(\d{1,7})|([A-Za-z]\w*)\s*(?:([-+/])\s*(\d{1,7}))?)\s*")
FORM = "a rule such as G(s,*) -> R(s,*), X(i,j) <-> X(i+1,j) or G(s,p) -> P(s/32,*,p)"


@dataclass(frozen=True)
class Index:
    """One index of a side: all (no `name`, no `number`), a number, or a name with ``op number``."""

    name: str | None
    op: str = ""
    number: int | None = None


@dataclass(frozen=True)
class Side:
    """One side of a rule: an array and its indices."""

    array: str
    indices: tuple[Index, ...]


def read_application(path: str | Path) -> ObjectsApplication:
    """Read an application document, or a shipped one by its name.

    `InputError` names the file and the fields at fault.
    """
    if not Path(path).exists() and str(path) in application_names():
        path = data_folder("instances") / "applications" / f"{path}.json"
    return read_document(path, ObjectsApplication, APPLICATION_SCHEMA)


def application_names() -> list[str]:
    """Return the names of the shipped applications."""
    return sorted(p.stem for p in (data_folder("instances") / "applications").glob("*.json"))


def expanded(application: ObjectsApplication) -> ObjectsGraph:
    """Return an application as a graph; objects are numbered array by array, row-major.

    Raises
    ------
    InputError
        With the field at fault: a wrong number of loads, a rule that cannot be read or names no
        array, or too many objects or messages.
    """
    numbers, loads = _objects(application.arrays)
    parts: list[tuple[IntArray, IntArray, IntArray]] = []
    trees: list[MessageTree] = []
    for k, messages in enumerate(application.messages):
        field = f"messages[{k}]"
        if isinstance(messages, RuleMessages):
            part = _by_rule(numbers, messages, trees, f"{field}.rule")
        else:
            part = _listed(numbers, messages, field)
        total = sum(len(one[0]) for one in parts) + sum(len(one.members) for one in trees)
        total += len(part[0])
        if total > MOST_MESSAGES:
            raise InputError(f"at most {MOST_MESSAGES} messages", field=field, value=total)
        parts.append(part)
    sources, targets, sizes = (
        np.concatenate([part[k] for part in parts]) if parts else np.zeros(0, dtype=np.int64)
        for k in range(3)
    )
    kept = (sources != targets) & (sizes > 0)
    lists = (array[kept].tolist() for array in (sources, targets, sizes))
    sent = dict(zip(("sources", "targets", "bytes"), lists, strict=True))
    arrays = [NamedArray(name=a.name, shape=a.shape) for a in application.arrays]
    return ObjectsGraph(loads=loads, trees=trees, arrays=arrays, **sent)


def _objects(arrays: list[ObjectArray]) -> tuple[dict[str, IntArray], list[int]]:
    """Return the numbers of the elements of every array in its shape, and all loads."""
    numbers: dict[str, IntArray] = {}
    loads: list[int] = []
    begin = 0
    for k, one in enumerate(arrays):
        size = math.prod(one.shape)
        if one.name in numbers:
            raise InputError("another name", field=f"arrays[{k}].name", value=one.name)
        if begin + size > MAX_TASKS:
            raise InputError(f"at most {MAX_TASKS} objects", field=f"arrays[{k}].shape", value=size)
        if one.loads is not None and len(one.loads) != size:
            expected = f"{number_of(size, 'load')}, one for each element"
            raise InputError(expected, field=f"arrays[{k}].loads", value=len(one.loads))
        numbers[one.name] = np.arange(begin, begin + size).reshape(one.shape)
        loads += one.loads or [one.load] * size
        begin += size
    return numbers, loads


def _by_rule(
    numbers: dict[str, IntArray], messages: RuleMessages, trees: list[MessageTree], field: str
) -> tuple[IntArray, IntArray, IntArray]:
    """Return the messages of a rule: senders, receivers, bytes; its trees join the others."""
    cases = [
        _case(numbers, rule, field, periodic=messages.periodic)
        for rule in RULES.split(messages.rule)
    ]
    arrow = cases[0][0]
    if any(other != arrow for other, _, _ in cases):
        raise InputError("the same arrow in all rules", field=field, value=messages.rule)
    senders, receivers = (np.concatenate([case[k] for case in cases]) for k in (1, 2))
    cost: TreeKind | None = None if messages.cost == "hops" else messages.cost
    if messages.once == "node":
        cost = cost or "multicast"
    if cost is not None:
        way = 1 if cost == "multicast" else -1
        both: tuple[TreeKind, ...] = ("multicast", "reduction")
        kinds = both if arrow == "<->" else (cost,)
        alone, joined = _by_root(*(senders, receivers)[::way])
        senders, receivers = alone[::way]
        trees += [
            MessageTree(
                kind=kind, root=root, members=members, bytes=messages.bytes, once=messages.once
            )
            for root, members in (joined if messages.bytes else ())
            for kind in kinds
        ]
    if arrow == "<->":
        senders, receivers = (
            np.concatenate([senders, receivers]),
            np.concatenate([receivers, senders]),
        )
    return senders, receivers, np.full(len(senders), messages.bytes, dtype=np.int64)


def _case(
    numbers: dict[str, IntArray], rule: str, field: str, *, periodic: bool
) -> tuple[str, IntArray, IntArray]:
    """Return the arrow of a single rule, and the two sides of everything that it joins."""
    halves = re.split(r"(<?->)", rule)
    if len(halves) != 3:
        raise InputError(FORM, field=field, value=rule)
    left, right = (_side(half, numbers, field, rule) for half in (halves[0], halves[2]))
    if any(index.op in ("+", "-", "/") for index in left.indices):
        raise InputError("names, numbers or * on the left", field=field, value=rule)
    known = [index.name for index in left.indices if index.name]
    strange = [i.name for i in right.indices if i.name and i.name not in known]
    if strange or len(set(known)) < len(known):
        expected = "every name once on the left, and none on the right alone"
        raise InputError(expected, field=field, value=rule)
    return halves[1], *_pairs(numbers, left, right, periodic=periodic)


def _by_root(
    roots: IntArray, members: IntArray
) -> tuple[tuple[IntArray, IntArray], list[tuple[int, list[int]]]]:
    """Return the roots that have one member, with these, and all others, each with its members."""
    apart = roots != members
    ends = np.unique([roots[apart], members[apart]], axis=1)
    heads, begins, counts = np.unique(ends[0], return_index=True, return_counts=True)
    lone = begins[counts == 1]
    several = [
        (head, ends[1, begin : begin + count].tolist())
        for head, begin, count in zip(heads.tolist(), begins, counts, strict=True)
        if count > 1
    ]
    return (ends[0, lone], ends[1, lone]), several


def _side(text: str, numbers: dict[str, IntArray], field: str, rule: str) -> Side:
    match = SIDE.fullmatch(text)
    if match is None:
        raise InputError(FORM, field=field, value=rule)
    name, indices = match[1], match[2].split(",")
    if name not in numbers:
        raise unknown_name(name, numbers, field=field)
    found = [INDEX.fullmatch(index) for index in indices]
    shape = numbers[name].shape
    if any(one is None for one in found) or len(found) != len(shape):
        expected = (
            f"{number_of(len(shape), 'index')} of {name}: *, a number, or a name such as i, "
            "i+1, i/2"
        )
        raise InputError(expected, field=field, value=rule)
    return Side(name, tuple(_index(one) for one in found if one is not None))


def _index(match: re.Match[str]) -> Index:
    if match[2] is not None:
        return Index(None, "=", int(match[2]))
    return Index(match[3], match[4] or "", None if match[5] is None else int(match[5]))


def _pairs(
    numbers: dict[str, IntArray], left: Side, right: Side, *, periodic: bool
) -> tuple[IntArray, IntArray]:
    """Return senders and receivers of a rule.

    The space of all cases has a dimension for every index of the left side, and one for every *
    of the right side.
    """
    shape, goal = numbers[left.array].shape, numbers[right.array].shape
    stars = [d for d, index in enumerate(right.indices) if index.name is None and not index.op]
    sizes = [*shape, *(goal[d] for d in stars)]
    if math.prod(sizes) > MOST_MESSAGES:
        raise InputError(f"at most {MOST_MESSAGES} messages", value=math.prod(sizes), field="rule")
    cases = np.indices(sizes).reshape(len(sizes), -1)
    valid = np.ones(cases.shape[1], dtype=bool)
    values: dict[str, IntArray] = {}
    for d, index in enumerate(left.indices):
        if index.name is not None:
            values[index.name] = cases[d]
        elif index.number is not None:
            valid &= cases[d] == index.number
    ends = []
    for d, index in enumerate(right.indices):
        at = _value(index, values, cases, len(shape) + stars.index(d) if d in stars else -1)
        at = at % goal[d] if periodic and index.op in ("+", "-") else at
        valid &= (at >= 0) & (at < goal[d])
        ends.append(at)
    senders = numbers[left.array][tuple(cases[: len(shape), valid])]
    return senders, numbers[right.array][tuple(end[valid] for end in ends)]


def _value(index: Index, values: dict[str, IntArray], cases: IntArray, star: int) -> IntArray:
    """Return an index of the right side in every case."""
    if star >= 0:
        every: IntArray = cases[star]
        return every
    number = index.number or 0
    if index.name is None:
        return np.full(cases.shape[1], number, dtype=np.int64)
    at = values[index.name]
    if index.op == "/":
        return at // max(1, number)
    return at - number if index.op == "-" else at + number


def _listed(
    numbers: dict[str, IntArray], messages: ListedMessages, field: str
) -> tuple[IntArray, IntArray, IntArray]:
    ends = []
    pairs = np.array(messages.pairs, dtype=np.int64).reshape(-1, 2)
    if len(messages.bytes) != len(pairs):
        expected = f"bytes for {number_of(len(pairs), 'pair')}"
        raise InputError(expected, field=f"{field}.bytes", value=len(messages.bytes))
    for k, name in enumerate((messages.sender, messages.receiver)):
        if name not in numbers:
            raise unknown_name(name, numbers, field=f"{field}.{('sender', 'receiver')[k]}")
        flat = numbers[name].ravel()
        if len(pairs) and int(pairs[:, k].max()) >= len(flat):
            expected = f"elements of {name}, below {len(flat)}"
            raise InputError(expected, field=f"{field}.pairs", value=int(pairs[:, k].max()))
        ends.append(flat[pairs[:, k]])
    return ends[0], ends[1], np.array(messages.bytes, dtype=np.int64)


# ---- From an application and places to the problem -----------------------------------------------


def problem_of(
    application: ObjectsApplication | AnyApplication,
    places: Places,
    balance: str = BALANCE,
    *,
    pooled: bool = False,
    fixed: Iterable[tuple[int, int]] = (),
    name: str | None = None,
) -> MappingProblem:
    """Return the problem of mapping an application; the tasks of a graph have a load of 1 each.

    Parameters
    ----------
    balance
        Most load of a node, as a multiple of the average, such as ``1.1``.
    pooled
        Whether the nodes of a router share their caps.
    fixed
        Fixed objects, each with its node.

    Raises
    ------
    InputError
        If the application or an argument cannot be used.
    """
    room, largest = 1, 1
    graph: AnyApplication | ObjectsGraph
    if isinstance(application, ObjectsApplication):
        graph, name = expanded(application), name or application.name
        total, largest = sum(graph.loads), max(graph.loads)
    else:
        graph, total = application, application.num_tasks
    if pooled:
        counts = np.bincount(places.nodes // machine_of(places.machine).nodes_per_router)
        room = int(counts.max())
    cap = cap_of(total, largest, len(places.nodes), balance, room)
    stay = [FixedObject(object=one, node=node) for one, node in fixed]
    own = {"name": name or "objects"}
    return problem_on(places, graph, None, **own, cap=cap, pooled=pooled, fixed=stay)


def cap_of(total: int, largest: int, num_nodes: int, balance: str, pooled: int = 1) -> int:
    """Return the most load of a node at `balance` times the average, rounded down.

    It is no less than the average rounded up, below which nodes cannot hold all loads: where that
    is more, a warning says what is used. All loads together are `total`, `largest` is the largest
    one, and at most `pooled` nodes share their caps.

    Raises `InputError` if that is no number of at least 1, or below the largest load.
    """
    try:
        factor = Fraction(balance)
    except (ValueError, ZeroDivisionError):
        factor = Fraction(0)
    if factor < 1:
        raise InputError("a number from 1 on, such as 1.1", field="--balance", value=balance)
    cap = max(math.floor(factor * total / num_nodes), -(-total // num_nodes))
    if cap * pooled < largest:
        least = math.ceil(Fraction(100 * largest * num_nodes, pooled * max(1, total))) / 100
        expected = f"at least {least:g}: the largest object has a load of {largest}"
        raise InputError(expected, field="--balance", value=balance)
    if cap > factor * total / num_nodes:
        told = f"at most {cap} on a node, {cap * num_nodes / total:.3g} averages"
        log.warning("--balance %s: %s, the least that can hold all loads", balance, told)
    return cap


def read_fixed(path: str | Path) -> list[tuple[int, int]]:
    """Read the node of every fixed object from a CSV file of the columns object and node."""
    import csv  # noqa: PLC0415 - only here
    import io  # noqa: PLC0415 - only here

    lines = csv.reader(io.StringIO(read_bytes(path).decode("utf-8", errors="replace")))
    rows = [[cell.strip() for cell in row] for row in lines if row]
    if not rows or rows[0] != ["object", "node"]:
        raise InputError(
            "a first line object,node", file=str(path), found=",".join((rows or [[]])[0])
        )
    found = []
    for number, row in enumerate(rows[1:], start=2):
        if len(row) != 2 or not all(cell.isdecimal() for cell in row):
            expected = "two numbers, an object and its node"
            raise InputError(expected, file=str(path), field=f"line {number}", value=",".join(row))
        found.append((int(row[0]), int(row[1])))
    return found
