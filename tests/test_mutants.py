"""Correct results hold, and what breaks a rule is rejected though all figures of it are redone.

`test_checked_fields` changes every field of a result by itself; here several fit together. Rules
of placements are those of `brute_force`, by which a result that starts other jobs, or holds other
nodes, is told to be right or wrong.
"""

from __future__ import annotations

import itertools
import json
import math
import random
from collections import Counter
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
from pydantic import TypeAdapter

from bending import bent
from brute_force import Choice, Tiny, numbers
from few import few_of
from field_samples import refigured, solved, with_top
from solved_results import Case, explanations, nodes_of, rare_cases, solved_case
from topoplace.certify import Report, check_document
from topoplace.certify.packing import certified_bound
from topoplace.certify.report import RefusedError
from topoplace.certify.torus.instance import read_instance
from topoplace.certify.torus.oracle import TorusOracle
from topoplace.machine import format_node_set
from topoplace.result import Interference, Result
from topoplace.result.certificate import Certificate
from topoplace.snapshot.schema import Request

Document = dict[str, Any]

CERTIFICATE: TypeAdapter[Any] = TypeAdapter(Certificate)


@cache
def cases() -> list[Case]:
    return [*map(solved_case, range(60)), *rare_cases()]


def checked(name: str, document: Document) -> Report:
    """Check a document of the kind of a sample."""
    model = type(solved()[name])
    return check_document(model.model_validate_json(json.dumps(document)))


def first_failure(document: Document) -> str:
    """Return the claim of a placement that fails first, nothing if all hold."""
    report = checked("placements: leaf", document)
    return report.failures[0].name if report.failures else ""


def test_correct_results_hold() -> None:
    for number, case in enumerate(cases()):
        assert not first_failure(case.document), number


# ---- Figures ------------------------------------------------------------------------------------

OTHERS = {
    "status": ("optimal", "feasible", "infeasible", "unknown"),
    "proof": ("search", "none"),
    "gap": (None, 0.25),
    "certificate": (None,),
}
"""What a level may say as well, with the other figures left alone."""


def lies(document: Document) -> Iterator[tuple[str, Document]]:
    """Yield results of which a level claims what is not so, or not proven, by its name."""
    for at, level in enumerate(document["levels"]):
        if level["objective"] is None:
            continue
        where, tighter = f"levels[{at}]", -1 if level["sense"] == "max" else 1
        changes = [f"{where}.objective += {amount}" for amount in (-2, -1, 1, 2)]
        changes.append(f"{where}.objective = null")
        if level["bound"] is not None:
            beyond = f"{where}.bound = @{where}.objective & {where}.bound += {tighter}"
            changes += [beyond, f"{where}.bound = null"]
        yield from ((change, refigured(bent(document, change))) for change in changes)
        for field, others in OTHERS.items():
            for other in others:
                if other != level[field]:
                    change = f"{where}.{field} = {json.dumps(other)}"
                    yield change, with_top(bent(document, change))


@pytest.mark.parametrize("step", few_of((4, 1), 1))
def test_figures_that_fit_together_and_are_wrong(step: int) -> None:
    results = [(name, own) for name, own in solved().items() if isinstance(own, Result)]
    for number, (name, result) in enumerate(results):
        document = result.model_dump(mode="json")
        for change, mutant in itertools.islice(lies(document), number % step, None, step):
            assert not checked(name, mutant).holds, (name, change)


@pytest.mark.parametrize("level", range(3))
def test_no_bound_is_tighter_than_its_certificate(level: int) -> None:
    for number, case in enumerate(cases()):
        change = f"levels[{level}].bound += {-1 if level < 2 else 1}"
        mutant = refigured(bent(case.document, change))
        assert first_failure(mutant), number


# ---- Faults that are several, or need a result that admits them ---------------------------------

FAULTS = {
    "placements: outbid": (
        'explanations[0].jobs[+] = "stranger"',
        "del explanations[0].jobs[0]",
        "explanations[0].prism = null",
        'explanations[0].reason = "blocked"',
        "explanations[0].request = @solution.placements[0].request",
        "explanations[0].nodes_to_free += 1",
    ),
    "placements: blocked": (
        'explanations[0].reason = "outbid"',
        'explanations[0] = {"request": "job0", "reason": "no-shape", "text": "?"}',
        'explanations[+] = {"request": "stranger", "reason": "no-shape", "text": "?"}',
    ),
    "placements: geometry": (
        'solution.placements[0].nodes = "0-1,3"',  # past the first whole routers
        "solution.placements[0].prism.extents = [1, 2]",
        "solution.placements[+] = @solution.placements[0]",
        'instance.machine = "blue_waters"',
    ),
    "placements: mapped": (
        "solution.placements[0].mapping.hop_bytes += 1",
        "solution.placements[0].mapping.nodes[0] = 99",
        "del solution.placements[0].mapping.nodes[-1]",
        "del solution.placements[0].mapping",
        "levels[1].certificate.mappings[0].extents[0] += 100",
        "levels[1].certificate.mappings = []",
    ),
    "placements: first-fit": ("solution = null", "solution.placements[0].prism = null"),
    "mappings: rough": ('levels[0].certificate = {"kind": "total"}',),
    "mappings: pencils": (
        "solution.layout.axes = [2, 1, 0]",
        "solution.optimum.objective += -1 & solution.optimum.bound += -1",
        "solution.optimum.window_bound = @solution.optimum.bound"
        " & solution.optimum.window_bound += -1",
        "solution.optimum.flow.tails[+] = -1 & solution.optimum.flow.heads[+] = -2"
        " & solution.optimum.flow.flows[+] = 1",
    ),
    "mappings: star": ('levels[0].certificate = {"kind": "blocks", "families": []}',),
    "allocations: search": (
        *(f'solution.allocations[0].nodes[0] = "{name}"' for name in ("n0", "n9", "n15", "n16")),
        "solution.allocations[0].nodes[0] = @solution.allocations[0].nodes[1]",
        "solution.allocations[0].nodes[0] = @solution.allocations[1].nodes[0]",
        "del solution.allocations[0].nodes[0]",
        "solution.allocations[0].nodes[+] = @instance.running[1].nodes",
        'solution.allocations[0].request = "nobody"',
        "solution.allocations[+] = @solution.allocations[0]",
        "del solution.allocations[0]",
        "solution.allocations[0].cost += 1 & solution.cost += 1",
        "instance.queue[0].patterns[0].message_bytes += 1",
        "instance.queue[0].priority += 1",
        'instance.running[0].communication = "none"',
        'instance.running[1].nodes = "n0"',
        "instance.queue[+] = @instance.queue[0]",
        'instance.machine.switches[0].nodes = ""',
        'levels[1].proof = "certificate"',
        'levels[0].certificate = {"kind": "thresholds", "proofs": []}',
    ),
    "allocations: silent": (
        "solution.allocations[1].nodes[0] = @solution.allocations[0].nodes[0]",
        "solution.allocations[1].nodes[0] = @solution.allocations[1].nodes[1]",
        'solution.allocations[1].nodes[0] = "n0"',
    ),
    "allocations: thresholds": (
        "levels[1].certificate = @levels[0].certificate",
        "levels[1].certificate.proofs[+] = @levels[1].certificate.proofs[0]",
        "levels[1].certificate.proofs[0].bound += 1",
        "levels[1].certificate.proofs[0].nogoods = []",
    ),
    "allocations: partial": (
        'levels[0].certificate = {"kind": "leaf", "scale": 1, "prices": {}}',
        'instance.queue[+] = {"id": "more", "nodes": 1}',
    ),
    "allocations: domains": ('levels[0].certificate = {"kind": "leaf", "scale": 1, "prices": {}}',),
}
"""By sample: another value would be true, or be of another question, but these are not."""


@pytest.mark.parametrize("name", FAULTS)
def test_faults_of_a_sample(name: str) -> None:
    for change in FAULTS[name]:
        mutant = bent(solved()[name].model_dump(mode="json", by_alias=True), change)
        report = checked(name, mutant)
        assert not report.holds, change
        assert report.failures[0].detail


LEAF = '{"kind": "leaf", "scale": 1, "prices": {"routers": "9*48"}, "multipliers": %s}'
BEYOND = {
    "placements: random-nodes": f"levels[0].bound = 999 & levels[0].certificate = {LEAF % '[]'}",
    "placements: no solution": f"levels[1].bound = 999 & levels[1].certificate = {LEAF % '[0]'}",
}
"""Bounds of prisms where nodes are scattered, and of a level whose earlier ones have no value."""


@pytest.mark.parametrize("name", BEYOND)
def test_a_bound_needs_what_it_is_about(name: str) -> None:
    document = refigured(bent(solved()[name].model_dump(mode="json"), BEYOND[name]))
    for level in document["levels"]:
        level["proof"] = "certificate" if level["certificate"] else "none"
    failed = checked(name, with_top(document)).failures
    assert [claim.name.endswith(".bound") for claim in failed] == [True], failed


@pytest.mark.parametrize("node", ["@solution.nodes[-1]", "1", "16"])
def test_a_task_is_on_a_node_of_the_set_with_room(node: str) -> None:
    mutant = bent(
        solved()["mappings: rough"].model_dump(mode="json"), f"solution.nodes[0] = {node}"
    )
    assert checked("mappings: rough", mutant).failures[0].name == "solution"


# ---- Frontiers and optima ------------------------------------------------------------------------


def lies_of_several(document: Document) -> Iterator[str]:
    """Yield changes after which a frontier, or all optima, are false."""
    yield f"complete = {json.dumps(not document['complete'])}"
    if not document["complete"]:  # less may be claimed
        return
    yield from ("del points[0]", "points[+] = @points[0]", "steps = []")
    first = document["points"][0]
    yield from (
        f"points[0].values[{k}] += {by}" for k in range(len(first["values"])) for by in (-1, 1)
    )
    if "traded" not in document:
        if len(document["points"]) > 1:
            yield f"asked = {len(document['points']) - 1}"
        yield 'equal[+] = ["a", "stranger"]'
        if document["rest"] is not None:
            yield from ("rest = null", f"rest.bound += -{10**6}")
        return
    box = [None] * len(document["traded"])
    yield f"open[+] = {json.dumps({'worst': box, 'best': box})}"
    signs = {level["name"]: -1 if level["sense"] == "max" else 1 for level in document["levels"]}
    for k, step in enumerate(document["steps"]):
        yield f"steps[{k}].bound += {signs[step['level']]}"
    for k, point in enumerate(document["points"]):
        if point["solution"].get("moves"):
            where = f"points[{k}].solution"
            yield from (f"del {where}.moves[-1]", f"del {where}.steps[-1]")
            yield f"instance.most = {point['values'][1] - 1}"


@pytest.mark.parametrize("kind", ["frontiers", "optima"])
def test_frontiers_and_optima_that_are_false(kind: str) -> None:
    num = told = 0
    for name, result in solved().items():
        if name.startswith(kind):
            document = result.model_dump(mode="json")
            for change in lies_of_several(document):
                assert not checked(name, bent(document, change)).holds, (name, change)
                num += 1
            for k, step in enumerate(document["steps"]):  # some prove as much without prices
                if (step["certificate"] or {}).get("kind") == "leaf":
                    change = f"steps[{k}].certificate.prices = {{}}"
                    told += not checked(name, bent(document, change)).holds
    assert num > 40
    assert told > 1


# ---- The rules of placements --------------------------------------------------------------------


RULES = ("placements", "exclusive", "links")


def request_of(case: Case, name: str) -> Request:
    return next(r for r in case.snapshot.queue if r.id == name)


def lawless(case: Case) -> Tiny:
    """Return the machine without its running jobs' routers and links, and without regions."""
    queue = [request.model_copy(update={"region": None}) for request in case.snapshot.queue]
    tiny = Tiny(case.snapshot.model_copy(update={"queue": queue}), case.mode)
    tiny.held, tiny.jobs = set(), []
    return tiny


def broken_by(case: Case, name: str, choice: Choice) -> tuple[str, ...]:
    """Return the claims that may say what is wrong with a job in a place, none if nothing is."""
    request = request_of(case, name)
    if choice.box not in [own.box for own in case.tiny.choices(request)]:
        return ("placements",)
    others = [own for key, own in case.chosen.items() if key != name]
    if any(choice.routers & own.routers for own in others):
        return ("exclusive",)
    return ("links", "exclusive") if any(map(choice.meets, others)) else ()


@pytest.mark.parametrize("most", few_of((2, 8), 1))
def test_jobs_start_where_the_rules_let_them(most: int) -> None:
    seen: Counter[tuple[str, ...]] = Counter()
    for number, case in enumerate(cases()):
        tiny = lawless(case)
        every = [(r.id, choice) for r in tiny.snapshot.queue for choice in tiny.choices(r)]
        tried: Counter[tuple[str, ...]] = Counter()
        for name, choice in random.Random(number).sample(every, len(every)):
            expected = broken_by(case, name, choice)
            tried[expected] += 1
            if tried[expected] > most:
                continue
            document = case.document_of(case.chosen | {name: choice})
            found = first_failure(document)
            if expected:
                assert found in expected, (number, name, choice.box)
                document["solution"] |= {"num_shared_links": 0, "conforming": True}
                assert first_failure(document), (number, name, choice.box)
            else:  # where less is reached, less is proven of the levels below
                assert found not in RULES, (number, name, choice.box)
                values = [level["objective"] for level in document["levels"]]
                best = [*case.best[:2], -case.best[2]]
                assert not found or values != best, (number, name, choice.box)
        seen += tried
    assert min(seen.values()) > 20, seen
    assert len(seen) == 4


def test_jobs_hold_free_nodes_of_their_class_inside_their_prisms() -> None:
    seen: Counter[bool] = Counter()
    for number, case in enumerate(cases()):
        tiny, rng = case.tiny, random.Random(number)
        for at, placement in enumerate(case.document["solution"]["placements"]):
            own, request = numbers(placement["nodes"]), request_of(case, placement["request"])
            routers = case.chosen[request.id].routers
            every = sorted({*range(len(tiny.all_routers) * tiny.per_router)} - own)
            inside = [node for node in every if tiny.router_of(node) in routers]
            outside = len(tiny.all_routers) * tiny.per_router
            for node in [outside, *inside, *rng.sample(every, min(6, len(every)))]:
                left = own - {rng.choice(sorted(own))}
                wanted = request.node_class or tiny.default_class
                is_right = tiny.class_of.get(node) == wanted and node in inside
                if is_right and request.shapes and ":maxz=" in request.shapes:
                    continue  # of the whole routers some may not count
                sets = ((left | {node}, is_right), (left, False), (own | {node}, False))
                for some, right in sets:
                    change = f'solution.placements[{at}].nodes = "{format_node_set(some)}"'
                    found = first_failure(bent(case.document, f"{change} & explanations = []"))
                    assert found == ("" if right else "placements"), (number, change)
                    seen[right] += 1
    assert min(seen[True], seen[False]) > 30, seen


def test_explanations_name_what_is_nearest_to_free() -> None:
    wrong = 0
    for number, case in enumerate(cases()):
        true = {e["request"]: e for e in case.document["explanations"] if e["prism"]}
        rng, nodes = random.Random(number), nodes_of(case.document)
        for false in explanations(rng, case.tiny, case.chosen, nodes, farthest=True):
            if false.prism is None or false.request not in true:
                continue
            at = case.document["explanations"].index(true[false.request])
            old = true[false.request]
            nearest = old["nodes_to_free"], math.prod(old["prism"]["extents"])
            if (false.nodes_to_free, math.prod(false.prism.extents)) == nearest:
                continue
            change = f"explanations[{at}] = {false.model_dump_json()}"
            assert first_failure(bent(case.document, change)) == "explanations", number
            wrong += 1
    assert wrong > 20


# ---- What certificates of a machine may speak of ------------------------------------------------


def refused(case: Case, certificate: Document) -> bool:
    oracle = TorusOracle(read_instance(case.snapshot, case.mode))
    try:
        certified_bound(oracle, CERTIFICATE.validate_python(certificate), [])
    except RefusedError:
        return True
    return False


def test_only_tolerant_requests_have_links_of_their_own() -> None:
    seen: Counter[bool] = Counter()
    for case in cases():
        num = len(case.tiny.shape) * len(case.tiny.all_routers)
        of = {r.id: case.tiny.kind(r.communication.value) for r in case.snapshot.queue}
        rows = {f"links of {name}": kind == "tolerant" for name, kind in of.items()}
        rows |= dict.fromkeys(("stranger", "links of stranger", "links of ", "Routers"), False)
        for row, is_one in (rows | {"links": case.mode is not Interference.OFF}).items():
            leaf = {"kind": "leaf", "scale": 1, "prices": {row: f"0*{num}"}}
            assert refused(case, leaf) != is_one, row
            seen[is_one] += 1
    assert min(seen.values()) > 20


def test_only_requests_of_one_kind_are_alike() -> None:
    seen: Counter[bool] = Counter()
    for case in cases():
        tiny = case.tiny
        kinds = {
            r.id: (r.node_class or tiny.default_class, r.region, tiny.kind(r.communication.value))
            for r in case.snapshot.queue
        }
        shaped = {r.id: (r.nodes, r.shapes) for r in case.snapshot.queue if r.shapes}
        leaf = {"kind": "leaf", "scale": 1}
        for group in itertools.combinations(kinds, 2):
            shared = {"kind": "shared", "leaves": [], "tree": leaf, "alike": [[*group]]}
            are_alike = len({kinds[name] for name in group}) == 1
            if shaped.keys() & {*group}:
                are_alike &= len({shaped.get(name) for name in group}) == 1
            assert refused(case, shared) != are_alike, group
            seen[are_alike] += 1
    assert min(seen.values()) > 20
