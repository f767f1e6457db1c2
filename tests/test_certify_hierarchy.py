"""The checker of hierarchies: its oracle, random certificates, and results that are bent."""

from __future__ import annotations

import itertools
import json
import random
from functools import cache
from typing import Any

import pytest

from bending import bent
from random_certificates import best_gain
from soundness.results import hold_bent
from tiny_hierarchies import (
    Place,
    freeing,
    is_legal,
    lively_hierarchy,
    num_placements,
    on_levels,
    outcomes,
    packing_of,
    places_of,
    prepared,
    with_free,
    worth_of,
)
from topoplace.certify.hierarchy import oracle as oracle_module
from topoplace.certify.hierarchy.instance import (
    read_instance,
    require_place,
    require_room,
    worth,
)
from topoplace.certify.hierarchy.oracle import HierarchyOracle, joined
from topoplace.certify.hierarchy.rows import Rows
from topoplace.certify.packing import Covers, Prices
from topoplace.certify.report import RefusedError
from topoplace.errors import InputError
from topoplace.machine.hostlist import expand_host_list, format_host_list
from topoplace.placement.hierarchy.outcome import shares_of
from topoplace.result.placement import HierarchyResult
from topoplace.snapshot.hierarchy_state import HierarchyState
from topoplace.snapshot.machines import resolve_machine
from topoplace.snapshot.schema import Snapshot
from topoplace.solving import Options, solve

Document = dict[str, Any]


@cache
def tiny(number: int) -> Document:
    return lively_hierarchy(f"certify-{number}", 2_000)


def oracle_of(document: Document) -> HierarchyOracle:
    instance = read_instance(Snapshot.model_validate(document))
    return HierarchyOracle(Rows(instance), instance.queue)


# ---- The oracle ---------------------------------------------------------------------------------


def regular(blocks: int, queue: list[Document]) -> HierarchyOracle:
    """Return the oracle of a machine of blocks of 8 racks of 16 hosts, all of them alike."""
    document = {"machine": f"hierarchy:{blocks}x8x16:4", "queue": queue}
    document |= {"schema": "topoplace.snapshot/1", "name": "regular"}
    return oracle_of(resolve_machine(Snapshot.model_validate(document)).model_dump(mode="json"))


def test_domains_that_are_alike_are_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each domain by itself, a frontier on 8,192 hosts took a minute for every second of solve."""
    calls: list[int] = []

    def counting(*tables: Any) -> Any:
        calls[-1] += 1
        return joined(*tables)

    monkeypatch.setattr(oracle_module, "joined", counting)
    for blocks, sizes in ((2, [20]), (64, [20]), (64, range(1, 21))):
        calls.append(0)
        oracle = regular(blocks, [{"id": f"q{n}", "nodes": n} for n in sizes])
        oracle.best(Prices({}, 0, (1, 1, 1, 1, 1)), dict.fromkeys(range(len(sizes)), Covers()))
    assert calls[1] <= calls[0] + 10
    assert calls[2] == calls[1], "requests that differ in units alone have one table"


def test_the_work_of_a_document_is_limited_over_all_its_certificates(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    oracle, prices = regular(2, [{"id": "q", "nodes": 20}]), Prices({}, 0, (1, 1, 1, 1, 1))
    oracle.best(prices, {0: Covers()})
    one = oracle_module._MOST_WORK - oracle.work.left
    monkeypatch.setattr(oracle_module, "_MOST_WORK", 2 * one)
    oracle = regular(2, [{"id": "q", "nodes": 20}])
    for _ in range(2):
        oracle.among([(0, 0)]).best(prices, {0: Covers()})
    with pytest.raises(RefusedError, match="additions for the document"):
        oracle.best(prices, {0: Covers()})


def test_who_wants_a_domain_alone_takes_nothing_of_what_it_has_none_of() -> None:
    """A cover that keeps it off a row without capacity keeps it off nothing."""
    host = {"hosts": "a", "domains": ["b", "r"], "capacity": {"gpus": 1}}
    other = host | {"hosts": "c", "capacity": {"gpus": 1, "gb": 1}}
    queue = [
        {"id": "e", "nodes": 1, "takes": GPU, "exclusive": "host"},
        {"id": "m", "nodes": 1, "takes": {"gb": 1}},
    ]
    for hosts in ([host, other], [host]):
        machine = BASE["machine"] | {"hosts": [*hosts, other | {"hosts": "d"}]}
        document = BASE | {"machine": machine, "running": [], "down": "d", "queue": queue}
        packing, oracle = packing_of(document), oracle_of(document)
        for row in range(packing.coverable):
            for inside in (False, True):
                covers = Covers().split(row, inside=inside)
                found = oracle.best(Prices({}, 0, (1, 1, 1, 1)), {0: covers})
                assert found[0] == best_gain(packing, "e", {}, (1, 1, 1, 1), covers), row


def test_an_empty_queue_has_rows_and_a_verified_result() -> None:
    result = solve(prepared(BASE | {"queue": []}), "exact")
    assert [level.objective for level in result.levels] == [0] * 5
    assert result.check().verified


def test_places_are_worth_what_brute_force_says() -> None:
    for seed in range(60):
        state, instance = prepared(tiny(seed)), read_instance(Snapshot.model_validate(tiny(seed)))
        signs = [1 if sense == "max" else -1 for _, sense in instance.levels]
        for request, asked in zip(state.requests, instance.queue, strict=True):
            for place in itertools.islice(places_of(state, request), 20):
                found = zip(signs, worth(instance, asked, place), strict=True)
                values = on_levels(state, worth_of(state, request, place))
                assert tuple(sign * value for sign, value in found) == values, (seed, place)


# ---- Results ------------------------------------------------------------------------------------


@cache
def solved(number: int, free: bool = False) -> HierarchyResult:
    document = freeing(random.Random(number), tiny(number)) if free else tiny(number)
    return solve(prepared(document), "exact", Options(time_limit=20))


@cache
def outcomes_of(instance: str) -> set[tuple[int, ...]]:
    return outcomes(prepared(json.loads(instance)))


def placed_in(document: Document) -> tuple[HierarchyState, list[tuple[Any, Place]]] | None:
    """Return the machine of a result, and what it starts; None if that is no place."""
    state = prepared(document["instance"])
    of = {request.id: request for request in state.requests}
    numbers = {name: host for host, name in enumerate(state.machine.host_names)}
    placed: list[tuple[Any, Place]] = []
    for own in document["solution"]["placements"]:
        request = of.pop(own["request"], None)
        if request is None or [p["part"] for p in own["parts"]] != [p.name for p in request.parts]:
            return None
        place = []
        for part in own["parts"]:
            units: dict[int, int] = {}
            for share in part["shares"]:
                for name in expand_host_list(share["hosts"], "hosts"):
                    if name not in numbers or numbers[name] in units:
                        return None
                    units[numbers[name]] = share["units"]
            place.append(units)
        if not any(tuple(place) == other for other in places_of(state, request)):
            return None
        placed.append((request, tuple(place)))
    return (state, placed) if is_legal(state, placed) else None


def is_right(document: Document) -> bool:
    """Tell by brute force whether a result keeps all rules, and all its figures are true."""
    try:
        found = placed_in(document)
    except InputError:
        return False
    if found is None:
        return False
    state, placed = found
    worths = [worth_of(state, request, place) for request, place in placed]
    zero = [0] * (state.machine.num_levels + 4)
    values = on_levels(state, [sum(column) for column in zip(zero, *worths, strict=True)])
    values = with_free(state, placed, values)
    signs = [1 if level["sense"] == "max" else -1 for level in document["levels"]]
    told = [s * level["objective"] for s, level in zip(signs, document["levels"], strict=True)]
    if (*told,) != values:
        return False
    every = outcomes_of(json.dumps(document["instance"]))
    for k, (sign, level) in enumerate(zip(signs, document["levels"], strict=True)):
        as_good = (o for o in every if all(a >= b for a, b in zip(o, values[:k], strict=False)))
        if level["bound"] is not None and sign * level["bound"] < max(o[k] for o in as_good):
            return False
    return True


def moved(rng: random.Random, mutant: Document) -> None:
    """Put a request anywhere."""
    placement, state = rng.choice(mutant["solution"]["placements"]), prepared(mutant["instance"])
    request = next(r for r in state.requests if r.id == placement["request"])
    place = rng.choice(list(places_of(state, request)))
    for part, units in zip(placement["parts"], place, strict=True):
        shares = shares_of(units, state.machine.host_names)
        part["shares"] = [share.model_dump() for share in shares]
    with_nodes(placement)


def with_nodes(placement: Document) -> None:
    """Name the nodes of a placement as its parts have them, so that nothing else is wrong."""
    hosts = [share["hosts"] for part in placement["parts"] for share in part["shares"]]
    placement["nodes"] = format_host_list(sorted({*expand_host_list(",".join(hosts))}))


@pytest.mark.parametrize("tries", [400, pytest.param(4_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("free", [False, True])
def test_bent_results_are_refused_or_right(tries: int, free: bool) -> None:
    many = [k for k in range(60) if num_placements(prepared(tiny(k))) > 8]
    hold_bent([solved(number, free) for number in many[:20]], moved, is_right, tries)


# ---- The rules, one by one ----------------------------------------------------------------------

HOSTS = [
    {"hosts": "a[0-2]", "domains": ["b0", "r0"], "capacity": {"gpus": 4, "gb": 8}},
    {"hosts": "b[0-1]", "domains": ["b0", "r1"], "capacity": {"gpus": 4}},
    {"hosts": "c[0-1]", "domains": ["b1", "r0"], "capacity": {"gpus": 4, "gb": 4}},
]
GPU = {"gpus": 1}
GROUPED: Document = {"group": "g", "required": "block", "exclusive": "rack"}
APART: Document = {"level": "rack", "name": "x"}
BASE: Document = {
    "schema": "topoplace.snapshot/1",
    "name": "base",
    "machine": {
        "kind": "hierarchy",
        "name": "m",
        "levels": ["block", "rack", "host"],
        "hosts": HOSTS,
    },
    "down": "c1",
    "running": [{"id": "old", "nodes": "a0", "takes": GPU, "apart": [APART]}],
    "queue": [
        {"id": "s", "nodes": 4, "takes": GPU, "segments": [{"size": 2, "level": "rack"}]},
        {"id": "w", "nodes": 2, "takes": GPU, "spread": {"size": 1, "level": "host"}},
        {"id": "m", "nodes": 3, "takes": GPU, "at_most": {"size": 2, "level": "rack"}},
        {"id": "r", "nodes": 2, "takes": {"gb": 2}, "required": "rack"},
        {
            "id": "p",
            "nodes": 3,
            "parts": [
                {"id": "x", "nodes": 1, "takes": GPU, **GROUPED},
                {"id": "y", "nodes": 2, "takes": {"gb": 1}, **GROUPED},
            ],
        },
        {"id": "e", "nodes": 2, "takes": GPU, "exclusive": "host"},
        {
            "id": "t",
            "nodes": 2,
            "parts": [
                {"id": "x", "nodes": 1, "takes": GPU, "group": "g", "required": "rack"},
                {"id": "y", "nodes": 1, "takes": GPU, "group": "h", "required": "rack"},
            ],
        },
        {"id": "u", "nodes": 2, "takes": GPU, "apart": [APART, APART | {"name": "y"}]},
        {"id": "v", "nodes": 1, "takes": GPU, "apart": [APART]},
    ],
}

CONTRADICTIONS = {
    'machine = "xt3"': "expected a machine that is written out",
    'queue[0].id = "old"': "id is used twice",
    'queue[1].id = "s"': "id is used twice",
    'machine.levels = ["block", "block", "host"]': "a level twice",
    'machine.levels = ["nodes", "rack", "host"]': "called as those of objectives",
    'machine.levels = ["block", "rack", "stranded"]': "called as those of objectives",
    'machine.levels = ["block", "balance", "host"]': "called as those of objectives",
    'machine.hosts[1].hosts = "a[1-3]"': "a host or a level twice",
    'machine.hosts[0].domains = ["b0"]': "domain of every level",
    'machine.hosts[0].domains = ["b0", "r0", "s0"]': "domain of every level",
    'running[0].nodes = ""': "old runs on no hosts",
    'running[0].nodes = "a0,a0"': "a host twice",
    'running[0].nodes = "z0"': "others than there are",
    'running[0].takes = {"gpus": 5}': "more than a0 has",
    'running[0].takes = {"fpgas": 1}': "resources of the machine",
    'running[+] = {"id": "more", "nodes": "a0"}': "more than a0 has",
    'running[0].prism = {"origin": [0], "extents": [1]}': "old has prism",
    'running[0].patterns = [{"pattern": "ring"}]': "old has patterns",
    'down = "z0"': "is none",
    'down = "c1,c1"': "down twice",
    'regions = {"r": [{"origin": [0], "extents": [1]}]}': "regions",
    'queue[0].takes = {"fpgas": 1}': "resources of the machine",
    'queue[0].takes = {"gpus": 0}': "take nothing",
    "del queue[0].takes": "resources of the machine",
    'queue[0].segments[0].level = "row"': "row is no level",
    "queue[0].segments[0].size = 3": "do not go into each other",
    'queue[0].segments[+] = {"size": 4, "level": "rack"}': "at no higher level",
    'queue[0].segments[+] = {"size": 4, "level": "host"}': "at no higher level",
    'queue[0].required = "row"': "row is no level",
    'queue[0].exclusive = "row"': "row is no level",
    'queue[0].balance = "row"': "row is no level",
    'queue[7].apart[1].level = "row"': "row is no level",
    'running[0].apart[0].level = "row"': "row is no level",
    'queue[1].spread.level = "row"': "row is no level",
    'queue[2].at_most.level = "row"': "row is no level",
    'queue[0].class = "gpu"': "s has node_class",
    'queue[0].shapes = "2x2"': "s has shapes",
    'queue[0].region = "r"': "s has region",
    'queue[0].patterns = [{"pattern": "ring"}]': "s has patterns",
    "queue[4].nodes = 4": "as all parts have",
    'queue[4].parts[1].id = "x"': "a part twice",
    "queue[4].parts[1].required = null": "differ in their levels",
    'queue[4].parts[1].required = "rack"': "differ in their levels",
    "queue[4].parts[1].exclusive = null": "differ in their levels",
    'queue[4].at_most = {"size": 1, "level": "rack"}': "p has at_most",
    'queue[4].spread = {"size": 1, "level": "rack"}': "p has spread",
    'queue[4].takes = {"gpus": 1}': "p has takes",
    "queue[4].segments = []": "p has segments",
    'queue[4].required = "block"': "p has required",
    'queue[4].exclusive = "rack"': "p has exclusive",
    "queue[4].apart = []": "p has apart",
    'queue[4].parts[1].apart = [{"level": "rack", "name": "x"}]': "differ in their levels",
    'queue[4].balance = "rack"': "p has balance",
}


@pytest.mark.parametrize("change", CONTRADICTIONS)
def test_instances_that_contradict_themselves_are_refused(change: str) -> None:
    read_instance(Snapshot.model_validate(BASE))
    snapshot = Snapshot.model_validate(bent(BASE, change))
    with pytest.raises((RefusedError, InputError), match=CONTRADICTIONS[change]):
        read_instance(snapshot)


BROKEN: dict[str, tuple[dict[str, list[Document]], str]] = {
    "all right": (
        {
            "s": [{"a0": 2, "b0": 2}],
            "w": [{"b0": 1, "b1": 1}],
            "m": [{"a1": 2, "b1": 1}],
            "r": [{"a0": 1, "a1": 1}],
            "p": [{"c0": 1}, {"c0": 2}],
        },
        "",
    ),
    "two groups apart": ({"t": [{"b0": 1}, {"c0": 1}]}, ""),
    "alone": ({"e": [{"a1": 1, "a2": 1}], "w": [{"b0": 1, "b1": 1}]}, ""),
    "apart": ({"u": [{"b0": 1, "b1": 1}], "v": [{"c0": 1}]}, ""),
    "near each other": ({"u": [{"b0": 1, "c0": 1}], "v": [{"b1": 1}]}, "v shares a rack with"),
    "near a job": ({"v": [{"a1": 1}]}, "a1 is none of the hosts it may have"),
    "too few": ({"s": [{"a1": 2}]}, "2 units placed of 4"),
    "too many": ({"s": [{"a1": 4, "a2": 2}]}, "6 units placed of 4"),
    "a segment in two racks": ({"s": [{"a1": 3, "b0": 1}]}, "without a multiple of 2"),
    "not spread": ({"w": [{"b0": 2}]}, "more than 1 unit"),
    "in three racks": ({"m": [{"a1": 1, "b0": 1, "c0": 1}]}, "more than 2 racks"),
    "in two racks": ({"r": [{"a1": 1, "c0": 1}]}, "several rack"),
    "a group in two blocks": ({"p": [{"c0": 1}, {"a1": 2}]}, "several block"),
    "beside a job": ({"s": [{"a0": 4}]}, "4 gpus of a0, 3 are free"),
    "on what is down": ({"s": [{"c1": 4}]}, "4 gpus of c1, 0 are free"),
    "without memory": ({"r": [{"b0": 2}]}, "4 gb of b0, 0 are free"),
    "together too many": ({"s": [{"a1": 4}], "w": [{"a1": 1, "a2": 1}]}, "5 gpus of a1"),
    "in a rack of a job": ({"p": [{"b0": 1}, {"a1": 2}]}, "p shares a rack"),
    "in a host of a job": ({"e": [{"a0": 1, "a1": 1}]}, "e shares a host"),
    "in a host of another": ({"e": [{"a1": 2}], "w": [{"a1": 1, "a2": 1}]}, "e shares a host"),
    "in a rack of another": ({"p": [{"c0": 1}, {"c0": 2}], "w": [{"c0": 1, "b0": 1}]}, "p shares"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_places_that_break_a_rule_are_refused(name: str) -> None:
    placed, expected = BROKEN[name]
    instance = read_instance(Snapshot.model_validate(BASE))
    of = {asked.id: asked for asked in instance.queue}
    started = [
        (of[request], [{instance.numbers[host]: n for host, n in part.items()} for part in parts])
        for request, parts in placed.items()
    ]

    def required() -> None:
        for asked, place in started:
            require_place(instance, asked, place)
        require_room(instance, started)

    if expected:
        with pytest.raises(RefusedError, match=expected):
            required()
    else:
        required()
