"""Who starts in an order: priority and backfill, against brute force, and forged proofs."""

from __future__ import annotations

import json
import random
import signal
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import topoplace as tp
from anchored_cases import AnchoredTiny, random_anchored
from brute_force import Choice, Tiny
from few import few_of
from tiny_cubes import places, random_pod, taken_at_first
from tiny_fattrees import random_tree
from tiny_hierarchies import Place, is_apart, places_of, prepared, random_hierarchy
from tiny_instances import tiny_placement, with_sets
from topoplace import clock
from topoplace.cli import run
from topoplace.errors import ExitCode, InputError
from topoplace.placement.order import InOrderSearch
from topoplace.report.view import view_of
from topoplace.result import Interference
from topoplace.snapshot.hierarchy_state import HierarchyRequest, HierarchyState
from topoplace.snapshot.schema import Order, Request, Snapshot
from topoplace.solving import Options
from topoplace.study.audit.cases import case_of_pair
from topoplace.study.audit.run import audit_cases

ORDERS = ("priority", "backfill")


def timed(rng: random.Random, order: str) -> dict[str, Any]:
    """Return a tiny hierarchy whose jobs end, and whose requests start in an order."""
    document = random_hierarchy(rng)
    document.pop("value", None)
    held = {job["nodes"] for job in document["running"]} | {*document["down"].split(",")}
    for host in document["machine"]["hosts"]:
        if order == "backfill" and host["hosts"] not in held and rng.random() < 0.4:
            document["running"].append({"id": f"t{host['hosts']}", "nodes": host["hosts"]})
    for job in document["running"]:
        if rng.random() < 0.8:
            job["ends"] = rng.randint(1, 4)
    for request in document["queue"]:
        if rng.random() < 0.8:
            request["walltime"] = rng.randint(0, 4)
        for part in request.get("parts", [request]):
            part.pop("balance", None)
    if order == "backfill" and rng.random() < 0.4:
        document["window"] = rng.randint(0, 3)
    return document | {"order": order}


class Brute:
    """All placements of a document, by the times at which jobs run."""

    def __init__(self, document: dict[str, Any]) -> None:
        self.document, self.state = document, prepared(document)
        self.now = {r.id: list(places_of(self.state, r)) for r in self.state.requests}
        self.requests = {r.id: r for r in self.state.requests}
        self.lasts = {
            r["id"]: None if r.get("walltime") is None else max(1, r["walltime"])
            for r in document["queue"]
        }

    def at(self, at: float) -> HierarchyState:
        lasting = [j for j in self.document["running"] if j.get("ends", 9) > at]
        return prepared(self.document | {"running": lasting})

    def together(self, started: Sequence[str], first: str | None = None, at: float = 0) -> bool:
        """Return whether some start now, and one, if given, after so many seconds."""
        now, later = self.state.free.tolist(), self.at(at)
        then = later.free.tolist() if first else None
        every = list(places_of(later, self.requests[first])) if first else []

        def take(free: list[list[int]], request: HierarchyRequest, place: Place) -> bool:
            for part, units in zip(request.parts, place, strict=True):
                for host, n in units.items():
                    for r, each in enumerate(part.takes):
                        free[host][r] -= n * each
            return all(amount >= 0 for own in free for amount in own)

        def place(k: int, now: Any, then: Any, users: list[Any]) -> bool:
            if k == len(started):
                lasting = [(r, p) for r, p in users if self.lasts_until(r.id, at)]
                return first is None or any(
                    take([list(own) for own in then], self.requests[first], own)
                    and self.alone(later, [*lasting, (self.requests[first], own)])
                    for own in every
                )
            name = started[k]
            lasts = self.lasts_until(name, at)
            for own in self.now[name]:
                here = [list(amounts) for amounts in now]
                there = None if then is None else [list(amounts) for amounts in then]
                if not take(here, self.requests[name], own):
                    continue
                if there is not None and lasts and not take(there, self.requests[name], own):
                    continue
                more = [*users, (self.requests[name], own)]
                if self.alone(self.state, more) and place(k + 1, here, there, more):
                    return True
            return False

        return place(0, now, then, [])

    def lasts_until(self, name: str, at: float) -> bool:
        lasts = self.lasts[name]
        return lasts is None or lasts > at

    @staticmethod
    def alone(state: HierarchyState, placed: list[tuple[HierarchyRequest, Place]]) -> bool:
        users = [{h for units in place for h in units} for _, place in placed]
        for k, (request, _) in enumerate(placed):
            level = request.parts[0].exclusive
            if level is not None:
                of = state.machine.domain_of[level]
                own = {int(of[h]) for h in users[k]}
                others = set().union(*(u for j, u in enumerate(users) if j != k))
                if own & {int(of[h]) for h in others}:
                    return False
        return is_apart(state, placed)

    def order(self) -> list[str]:
        queue = self.document["queue"]
        return [r["id"] for r in sorted(queue, key=lambda r: -r.get("priority", 1))]

    def answer(self) -> tuple[set[str], tuple[str, int] | None]:
        """Return who starts, and the reservation with its time."""
        started: list[str] = []
        reserved: tuple[str, int] | None = None
        for name in self.order():
            held = (None, 0) if reserved is None else reserved
            if self.together([*started, name], *held):
                started.append(name)
            elif self.document["order"] == "backfill" and reserved is None:
                ends = {j["ends"] for j in self.document["running"] if "ends" in j}
                ends |= {self.lasts[o] for o in started if self.lasts[o] is not None}
                last = self.document.get("window", 9)
                times = [t for t in sorted(ends) if t <= last and self.together(started, name, t)]
                reserved = (name, times[0]) if times else None
        return set(started), reserved


def solved(document: dict[str, Any]) -> Any:
    return tp.place(tp.load(document))


def agrees(document: dict[str, Any]) -> Counter[str]:
    found = solved(document)
    started, reserved = Brute(document).answer()
    report = found.check()
    assert report.holds, f"{report}\n{json.dumps(document)}"
    assert {p.request for p in found.solution.placements} == started, json.dumps(document)
    own = found.levels[0].certificate.reserved
    assert (None if own is None else (own.request, own.at)) == reserved, json.dumps(document)
    assert found.status == "optimal", json.dumps(document)
    waits = len(document["queue"]) - len(started)
    return Counter(waiting=bool(waits), reserved=own is not None)


@pytest.mark.parametrize("order", ["priority", "backfill"])
@pytest.mark.parametrize("chunk", range(5))
def test_who_starts_is_as_brute_force_has_it(order: str, chunk: int) -> None:
    seen: Counter[str] = Counter()
    for k in range(30):
        seen += agrees(timed(random.Random(f"{order}-{chunk}-{k}"), order))
    assert seen["waiting"] >= 5
    assert order == "priority" or seen["reserved"] >= 2


def test_bounds_hold_where_the_best_placement_leaves_no_room_for_the_reservation() -> None:
    found = solved(timed(random.Random("exclusive-70"), "backfill"))
    rack, host = found.levels[2:4]
    assert rack.objective > rack.bound
    assert host.bound is None
    assert found.check().holds, found.check()


@pytest.mark.parametrize(
    ("kind", "draw"), [("torus", tiny_placement), ("pod", lambda k: random_pod(random.Random(k)))]
)
def test_tori_and_pods_take_the_order_too(kind: str, draw: Callable[[str], Snapshot]) -> None:
    waits = 0
    for k in range(25):
        snapshot = draw(f"order-{kind}-{k}")
        if any(request.tasks for request in snapshot.queue):
            continue
        plain = {"order": "value", "left_out": []}
        started: list[str] = []
        for request in sorted(snapshot.queue, key=lambda request: -request.priority):
            queue = [one for one in snapshot.queue if one.id in {*started, request.id}]
            alone = tp.place(snapshot.model_copy(update=plain | {"queue": queue}))
            if alone.objective == sum(one.nodes * one.priority for one in queue):
                started.append(request.id)
        found = tp.place(snapshot, order="priority")
        assert {placed.request for placed in found.solution.placements} == {*started}, k
        assert found.check().verified, found.check()
        assert found.status == "optimal"
        waits += len(started) < len(snapshot.queue)
    assert waits > 5


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"order": "fifo"}, "order: expected one of value, priority, backfill, found 'fifo'"),
        ({"order": "priority", "method": "first-fit"}, "order: expected value for anything but"),
        ({"order": "priority", "required": {"nodes": 1}}, "order: expected value for anything but"),
    ],
)
def test_what_has_no_order_says_so(more: dict[str, Any], message: str) -> None:
    document = timed(random.Random("fault"), "value")
    with pytest.raises(InputError, match=message):
        tp.place(tp.load(document), **more)


def with_times(rng: random.Random, snapshot: Snapshot) -> Snapshot:
    """Return a snapshot whose jobs end, in the order backfill."""

    def some(low: int) -> int | None:
        return rng.randint(low, 4) if rng.random() < 0.8 else None

    running = [job.model_copy(update={"ends": some(1)}) for job in snapshot.running]
    queue = [one.model_copy(update={"walltime": some(0)}) for one in snapshot.queue]
    update = {"running": running, "queue": queue, "order": Order.BACKFILL, "left_out": []}
    return snapshot.model_copy(update=update)


def timed_torus(seed: str) -> Snapshot:
    return with_times(random.Random(seed), tiny_placement(seed))


def timed_sets(seed: str) -> Snapshot:
    rng = random.Random(f"{seed}-sets")
    return with_times(rng, with_sets(rng, tiny_placement(seed)))


def timed_anchored(seed: str) -> Snapshot:
    rng = random.Random(f"{seed}-anchored")
    snapshot = random_anchored(seed, 12, segmented=rng.random() < 0.4)
    return with_times(rng, with_sets(rng, snapshot) if rng.random() < 0.4 else snapshot)


def timed_pod(seed: str) -> Snapshot:
    rng = random.Random(f"{seed}-pod")
    return with_times(rng, random_pod(rng))


class TinyPod:
    """Where requests of a tiny pod of cubes fit."""

    def __init__(self, snapshot: Snapshot, rule: Interference) -> None:
        self.snapshot, self.taken = snapshot, taken_at_first(snapshot)

    def choices(self, request: Request) -> list[Choice]:
        found = []
        for place in places(self.snapshot, request):
            if not any(self.taken[cube] & bits for cube, bits in place.items()):
                chips = {(c, k) for c, bits in place.items() for k in range(64) if bits >> k & 1}
                found.append(Choice("none", frozenset(chips), frozenset(), ((), ()), (0, 0, 0)))
        return found


class BruteRows:
    """All placements of a snapshot of a torus or a pod, by the times at which jobs run."""

    def __init__(self, snapshot: Snapshot, rule: Interference, tiny: Any = Tiny) -> None:
        self.snapshot, self.rule, self.tiny = snapshot, rule, tiny
        self.requests = {one.id: one for one in snapshot.queue}
        self.now = {one.id: tiny(snapshot, rule).choices(one) for one in snapshot.queue}
        self.lasts = {
            one.id: None if one.walltime is None else max(1, one.walltime) for one in snapshot.queue
        }

    def together(self, started: Sequence[str], first: str | None = None, at: int = 0) -> bool:
        """Return whether some start now, and one, if given, after so many seconds."""
        lasting = [j for j in self.snapshot.running if j.ends is None or j.ends > at]
        later = self.tiny(self.snapshot.model_copy(update={"running": lasting}), self.rule)
        then = [] if first is None else later.choices(self.requests[first])

        def place(k: int, chosen: list[Any], lasting: list[Any]) -> bool:
            if k == len(started):
                return first is None or any(
                    not any(own.meets(other) for other in lasting) for own in then
                )
            ends = self.lasts[started[k]]
            for own in self.now[started[k]]:
                if any(own.meets(other) for other in chosen):
                    continue
                more = [own] if ends is None or ends > at else []
                if place(k + 1, [*chosen, own], [*lasting, *more]):
                    return True
            return False

        return place(0, [], [])

    def answer(self, *, reserves: bool = True) -> tuple[set[str], tuple[str, int] | None]:
        """Return who starts, and the reservation with its time."""
        started: list[str] = []
        reserved: tuple[str, int] | None = None
        for request in sorted(self.snapshot.queue, key=lambda request: -request.priority):
            name, held = request.id, (None, 0) if reserved is None else reserved
            if self.together([*started, name], *held):
                started.append(name)
            elif reserved is None and reserves:
                ends = {job.ends for job in self.snapshot.running}
                ends = (ends | {self.lasts[o] for o in started}) - {None}
                times = [t for t in sorted(ends) if self.together(started, name, t)]
                reserved = (name, times[0]) if times else None
        return {*started}, reserved


DRAWN = {
    "torus": (timed_torus, Tiny),
    "sets": (timed_sets, Tiny),
    "anchored": (timed_anchored, AnchoredTiny),
    "pod": (timed_pod, TinyPod),
}
"""By kind of machine what draws one whose jobs end, and its places."""


@pytest.mark.parametrize("chunk", few_of(range(20), 1))
@pytest.mark.parametrize("kind", DRAWN)
def test_machines_of_rows_have_reservations(kind: str, chunk: int) -> None:
    draw, tiny = DRAWN[kind]
    seen: Counter[str] = Counter()
    for k in range(15 * chunk, 15 * chunk + 15):
        rule = [Interference.STRICT, Interference.TOLERANT, Interference.OFF][k % 3]
        snapshot = draw(f"later-{k}")
        if any(request.tasks for request in snapshot.queue):
            continue
        started, reserved = BruteRows(snapshot, rule, tiny).answer()
        more = {} if kind == "pod" else {"interference": rule.value}
        found = tp.place(snapshot, **more)
        assert found.check().holds, (k, found.check())
        assert {p.request for p in found.solution.placements} == started, k
        own = found.levels[0].certificate.reserved
        assert (None if own is None else (own.request, own.at)) == reserved, k
        assert found.levels[0].status == "optimal", k
        assert own is None or "reserved: " in view_of(found).waits[own.request]
        seen += Counter(waiting=len(started) < len(snapshot.queue), reserved=own is not None)
    assert seen["waiting"] >= 2
    assert seen["reserved"] >= 1


def test_fat_trees_have_no_reservations() -> None:
    with pytest.raises(InputError, match="order: expected value or priority where jobs have links"):
        tp.place(random_tree(random.Random(1)), order="backfill")


def test_no_more_than_one_placement_and_no_moves_in_an_order() -> None:
    document = timed(random.Random("fault"), "priority")
    with pytest.raises(InputError, match="order: expected value for more than one placement"):
        tp.optima(tp.load(document))


def test_all_placements_refuse_an_order(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["place", "tiny_features", "--order", "priority", "--all", "3"]) == 2
    said = "--order: expected no other than -o and --png with --all, found 'priority'"
    assert capsys.readouterr().err == f"topoplace: error: {said}\n"


# ---- Forged proofs -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "rule", [{"apart": [{"level": "rack", "name": "u"}]}, {"exclusive": "rack"}]
)
def test_a_reservation_in_a_domain_that_is_not_its_own_is_refused(rule: dict[str, Any]) -> None:
    hosts = [{"hosts": f"{r}[0-1]", "domains": [r], "capacity": {"slots": 1}} for r in "ab"]
    document = {
        "schema": "topoplace.snapshot/1",
        "name": "apart",
        "machine": {"kind": "hierarchy", "name": "m", "levels": ["rack", "host"], "hosts": hosts},
        "running": [{"id": "r", "nodes": "b[0-1]", "ends": 10}],
        "queue": [
            {"id": "first", "nodes": 1, "walltime": 100, **rule},
            {"id": "next", "nodes": 1, **rule},
        ],
        "order": "backfill",
    }
    result = solved(document).model_dump(mode="json")
    assert tp.check(result).verified
    reserved = result["levels"][0]["certificate"]["reserved"]
    assert (reserved["request"], reserved["at"]) == ("next", 10)
    [placed] = result["solution"]["placements"]
    other = {"a0": "a1", "a1": "a0"}[placed["nodes"]]
    reserved["parts"][0]["shares"][0]["hosts"] = other
    assert not tp.check(result).holds


def test_a_reservation_after_the_window_is_none() -> None:
    hosts = [{"hosts": "a[0-3]", "domains": ["a"]}]
    document = {
        "schema": "topoplace.snapshot/1",
        "name": "window",
        "machine": {"kind": "hierarchy", "name": "m", "levels": ["rack", "host"], "hosts": hosts},
        "running": [{"id": "r", "nodes": "a0", "ends": 60}, {"id": "s", "nodes": "a1", "ends": 90}],
        "queue": [
            {"id": "large", "nodes": 4},
            {"id": "next", "nodes": 3},
            {"id": "long", "nodes": 2},
        ],
        "order": "backfill",
    }
    found = {window: solved(document | {"window": window}) for window in (None, 90, 89, 59)}
    reserved = {window: own.levels[0].certificate.reserved for window, own in found.items()}
    assert [own and (own.request, own.at) for own in reserved.values()] == [
        ("large", 90),
        ("large", 90),
        ("next", 60),
        None,
    ]
    assert [[p.request for p in own.placements] for own in found.values()] == [[], [], [], ["long"]]
    assert all(own.check().verified for own in found.values())
    line = "backfill: no reservation, as none could begin within 89 s: large"
    assert line in str(found[89]).splitlines()
    for window in (89, 59):
        for made, said in ((None, window), (window, None)):
            forged = found[made].model_dump(mode="json", by_alias=True)
            forged["instance"]["window"] = said
            assert not tp.check(forged).holds


def forgeries(result: dict[str, Any], rng: random.Random) -> Iterator[dict[str, Any]]:
    """Yield results that claim to be optimal on changed evidence, or of others who start."""
    proof = result["levels"][0]["certificate"]
    waits, own, placements = (
        proof["waits"],
        proof["reserved"],
        result["solution"]["placements"],
    )
    leaf = {"kind": "leaf", "scale": 1, "prices": {}, "multipliers": []}

    def changed() -> tuple[dict[str, Any], dict[str, Any]]:
        other = json.loads(json.dumps(result))
        return other, other["levels"][0]["certificate"]

    for k in range(len(waits)):
        other, forged = changed()
        del forged["waits"][k]
        yield other
        for key, value in (("certificate", leaf), ("beside", []), ("ever", True)):
            other, forged = changed()
            forged["waits"][k][key] = value
            yield other
        other, forged = changed()
        forged["waits"][k]["certificate"] = rng.choice(waits)["certificate"]
        yield other
    for k, placed in enumerate(placements):  # one that starts is said to wait
        for proofs in [wait | {"request": placed["request"]} for wait in waits] + [
            {"request": placed["request"], "beside": [], "ever": False, "certificate": leaf}
        ]:
            other, forged = changed()
            del other["solution"]["placements"][k]
            forged["waits"].append(proofs)
            yield other
    if own is not None:
        for at in {1, own["at"] - 1, own["at"] + 1} - {0}:
            other, forged = changed()
            forged["reserved"]["at"] = at
            yield other
            forged["reserved"]["before"] = None
            yield other
        for key, value in (("now", own["now"] | {"certificate": leaf}), ("before", None)):
            other, forged = changed()
            forged["reserved"][key] = value
            yield other
        other, forged = changed()
        forged["waits"].append({"request": own["request"], "ever": False} | own["now"])
        forged["reserved"] = None
        yield other
    other, forged = changed()
    other["instance"]["order"] = rng.choice(["value", "priority", "backfill"])
    yield other


def with_values(result: dict[str, Any], document: dict[str, Any]) -> dict[str, Any]:
    """Return a result whose figures of the first level are those of its solution."""
    value = {r["id"]: r["nodes"] * r.get("priority", 1) for r in document["queue"]}
    total = sum(value[p["request"]] for p in result["solution"]["placements"])
    first = result["levels"][0]
    first |= {"objective": total, "bound": total}
    levels = [first] + [
        level | {"bound": None, "gap": None, "proof": "none", "certificate": None}
        for level in result["levels"][1:]
    ]
    return result | {"levels": levels, "objective": total, "bound": total}


@pytest.mark.parametrize("order", ["priority", "backfill"])
def test_no_forged_proof_is_taken(order: str) -> None:
    forged = refused = 0
    for k in range(60):
        rng = random.Random(f"forged-{order}-{k}")
        document = timed(rng, order)
        truths = {o: Brute(document | {"order": o}).answer() for o in ("priority", "backfill")}
        for other in forgeries(solved(document).model_dump(mode="json"), rng):
            forged += 1
            report = tp.check(with_values(other, document))
            failed = {claim.name for claim in report.failures}
            started = {p["request"] for p in other["solution"]["placements"]}
            own = other["levels"][0]["certificate"]["reserved"]
            told = started, None if own is None else (own["request"], own["at"])
            right = told == truths.get(other["instance"].get("order", "value"))
            refused += not right
            assert right or failed & {"nodes", "nodes.bound", "instance", "placements", "hosts"}, (
                json.dumps(other)
            )
    assert forged > 400
    assert refused > 100


@pytest.mark.parametrize("chunk", few_of(range(4), 1))
@pytest.mark.parametrize("kind", DRAWN)
def test_no_forged_reservation_on_rows_is_taken(kind: str, chunk: int) -> None:
    draw, tiny = DRAWN[kind]
    forged = refused = 0
    for k in range(15 * chunk, 15 * chunk + 15):
        rng, snapshot = random.Random(f"prism-{k}"), draw(f"forged-{k}")
        document = snapshot.model_dump(mode="json", by_alias=True)
        found = tp.place(snapshot)
        if found.levels[0].certificate.reserved is None:
            continue
        orders = {o: snapshot.model_copy(update={"order": Order(o)}) for o in ORDERS}
        truths = {
            o: BruteRows(own, Interference.STRICT, tiny).answer(reserves=o == "backfill")
            for o, own in orders.items()
        }
        result = found.model_dump(mode="json")
        for other in forgeries(result, rng):
            forged += 1
            report = tp.check(with_values(other, document))
            started = {p["request"] for p in other["solution"]["placements"]}
            own = other["levels"][0]["certificate"]["reserved"]
            told = started, None if own is None else (own["request"], own["at"])
            right = told == truths.get(other["instance"].get("order", "value"))
            refused += not right
            assert right or not report.holds, json.dumps(other)
    assert forged > 10
    assert refused > 2


def line_of(*queue: dict[str, Any]) -> dict[str, Any]:
    """Return four nodes in a line, two of them busy for 10 s."""
    return {
        "schema": "topoplace.snapshot/1",
        "name": "line",
        "machine": {"name": "m", "shape": [4], "wrap": [False]},
        "running": [{"id": "r", "nodes": "2-3", "ends": 10}],
        "queue": list(queue),
        "order": "backfill",
    }


def test_a_reservation_on_nodes_of_what_lasts_is_refused() -> None:
    queue = [{"id": name, "nodes": 2, "communication": "none"} for name in ("first", "next")]
    found = solved(line_of(*queue))
    result = found.model_dump(mode="json")
    [placed] = result["solution"]["placements"]
    reserved = result["levels"][0]["certificate"]["reserved"]
    assert tp.check(result).verified
    assert (reserved["request"], reserved["at"]) == ("next", 10)
    reserved["prism"] = placed["prism"]
    reserved["parts"][0]["shares"][0]["hosts"] = placed["nodes"]
    assert not tp.check(result).holds


def test_a_reservation_on_links_of_what_lasts_is_refused() -> None:
    def ring(walltime: int) -> dict[str, Any]:
        return {
            "schema": "topoplace.snapshot/1",
            "name": "ring",
            "machine": {"name": "m", "shape": [6]},
            "running": [{"id": "r", "nodes": "4-5", "ends": 10, "communication": "none"}],
            "queue": [
                {"id": "first", "nodes": 4, "walltime": walltime},
                {"id": "next", "nodes": 2, "walltime": 5},
            ],
            "order": "backfill",
        }

    result = solved(ring(10)).model_dump(mode="json")
    reserved = result["levels"][0]["certificate"]["reserved"]
    reserved["prism"] = {"origin": [4], "extents": [2]}
    reserved["parts"][0]["shares"][0]["hosts"] = "4-5"
    assert tp.check(result).verified
    assert not tp.check(result | {"instance": ring(11)}).holds
    assert solved(ring(11)).levels[0].certificate.reserved.at == 11


def test_a_request_that_has_ended_by_then_is_in_nobodys_way() -> None:
    large = {"id": "large", "nodes": 4}
    long, short = ({"id": "q", "nodes": 2, "walltime": seconds} for seconds in (11, 10))
    result = solved(line_of(large, long)).model_dump(mode="json")
    assert tp.check(result).verified
    assert not result["solution"]["placements"]
    other = result | {"instance": line_of(large, short)}
    [failed] = {claim.name for claim in tp.check(other).failures} & {"nodes.bound", "instance"}
    assert failed == "nodes.bound"
    assert solved(line_of(large, short)).objective == 2


# ---- Why requests wait in an order ---------------------------------------------------------------


def delayed(**more: Any) -> dict[str, Any]:
    """Return three hosts, one of them busy for 10 s, with a request that wants all of them."""
    queue = [("all", 3, 5), ("long", 1, 60), ("short", 2, 5), ("never", 2, 60)]
    return {
        "schema": "topoplace.snapshot/1",
        "name": "delayed",
        "machine": {
            "kind": "hierarchy",
            "name": "m",
            "levels": ["host"],
            "hosts": [{"hosts": "n[0-2]"}],
        },
        "running": [{"id": "r", "nodes": "n0", "ends": 10}],
        "queue": [
            {"id": name, "nodes": nodes, "takes": {"slots": 1}, "walltime": seconds}
            for name, nodes, seconds in queue
        ],
        "order": "backfill",
    } | more


def test_who_would_delay_a_reservation_is_said_so() -> None:
    result = tp.place(delayed())
    assert [start.request for start in result.placements] == ["short"]
    assert result.check().verified
    assert view_of(result).waits == {
        "all": "reserved: n[0-2] in 10 s at the latest",
        "long": "it would delay all, which is reserved",
        "never": "it does not fit alongside those before it and all, which is reserved",
    }
    plain = tp.place(delayed(order="priority"))
    text = "it does not fit alongside those before it in the order"
    assert view_of(plain).waits["never"] == text


def test_who_is_not_decided_is_not_said_to_wait() -> None:
    result = tp.place(delayed())
    level = result.levels[0]
    open_ = level.certificate.model_copy(update={"waits": []})
    levels = [level.model_copy(update={"certificate": open_}), *result.levels[1:]]
    texts = view_of(result.model_copy(update={"levels": levels})).waits
    assert texts["long"] == texts["never"] == "not decided in the time"


def test_an_audit_in_an_order_ends_in_words(tmp_path: Path) -> None:
    before = delayed()
    started = {"id": "short", "nodes": "n[1-2]", "takes": {"slots": 1}}
    queue = [one for one in before["queue"] if one["id"] != "short"]
    after = before | {"running": [*before["running"], started], "queue": queue}
    files = []
    for name, document in (("before", before), ("after", after)):
        files.append(tmp_path / f"{name}.json")
        files[-1].write_text(json.dumps(document))
    found = tp.audit(files[0], after=files[1], order="backfill")
    said = str(found)
    assert said.splitlines()[-1] == "1 rightly started, 3 rightly waiting, all proven"
    assert "fewest" not in said
    assert "all proven" not in str(replace(found, num_left=1))


@pytest.mark.parametrize("limit", [None, 9.0])
def test_a_round_that_is_cut_short_says_what_is_not_judged(
    limit: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = delayed(left_out=[{"request": "never", "option": "partition", "value": "acc"}])
    case, _ = case_of_pair(tp.load(before).snapshot, tp.load(before).snapshot)
    late = clock.ticks() + 10.0

    class Begun(InOrderSearch):
        def __init__(self, *given: Any) -> None:
            if limit is None:
                signal.raise_signal(signal.SIGINT)
            else:
                monkeypatch.setattr(clock, "ticks", lambda: late)
            super().__init__(*given)

    monkeypatch.setattr("topoplace.study.audit.in_order.InOrderSearch", Begun)
    found = audit_cases([case], order="priority", options=Options(time_limit=limit))
    why = f"not judged: {'interrupted' if limit is None else 'time'}"
    assert [row.why for row in found.rows] == [*[why] * 3, "held: partition acc"]
    assert found.exit_code() == ExitCode.REGRET


def test_a_window_on_a_mesh() -> None:
    document = {
        "schema": "topoplace.snapshot/1",
        "name": "line",
        "machine": {"name": "line", "shape": [4], "wrap": [False]},
        "running": [{"id": "r", "nodes": "2-3", "ends": 60}],
        "queue": [{"id": f"q{n}", "nodes": n, "walltime": 90} for n in (4, 2)],
        "order": "backfill",
    }
    for window, starts in ((60, []), (59, ["q2"])):
        found = solved(document | {"window": window})
        assert found.check().verified
        assert [p.request for p in found.placements] == starts
        own = found.levels[0].certificate.reserved
        assert (own and own.request) == (None if starts else "q4")
