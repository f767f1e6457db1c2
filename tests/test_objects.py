"""Objects with loads: methods, bounds and the checker against all mappings, and applications."""

from __future__ import annotations

import contextlib
import json
import random
import time
from collections.abc import Iterator
from dataclasses import replace
from itertools import count, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import topoplace as tp
from few import few_of
from field_samples import refigured
from tiny_objects import brute_force, tiny_objects
from topoplace import clock
from topoplace.certify.check import check_document
from topoplace.certify.mapping.graphs import cuts_value
from topoplace.certify.mapping.instance import read_instance
from topoplace.certify.mapping.objects import shares_value
from topoplace.certify.report import RefusedError
from topoplace.cli import run
from topoplace.errors import InputError
from topoplace.mapping import halving
from topoplace.mapping.bounds import bisection
from topoplace.mapping.bounds.cuts import cuts_bound
from topoplace.mapping.evaluate import worth_of
from topoplace.mapping.local_search import Annealing
from topoplace.mapping.mapped import Keeper
from topoplace.mapping.methods.papers import parts_of
from topoplace.mapping.objects import search, settled
from topoplace.mapping.objects.applications import (
    cap_of,
    expanded,
    problem_of,
    read_application,
)
from topoplace.mapping.objects.bounds import load_bound, shares_bound
from topoplace.mapping.objects.builders import BUILDERS, mesh, milc, namd, openatom
from topoplace.mapping.objects.search import consecutive
from topoplace.mapping.onto import load_places
from topoplace.mapping.problem import MappingProblem
from topoplace.result.certificate import Packed, packed, unpacked
from topoplace.result.mapping import (
    MappingResult,
    RecognisedCertificate,
    RoutesCertificate,
    SharesCertificate,
    Triangles,
)
from topoplace.snapshot.objects import ObjectsApplication
from topoplace.snapshot.schema import MatrixModel
from topoplace.solving import Incumbent, Options, solve

Document = dict[str, Any]

SMALL_NAMD = namd((3, 3, 3), once=False, name="small")
SMALL_PROXIES = namd((3, 3, 3), name="small")
SMALL_OPENATOM = openatom(16, 8, 6, 8, loads=(4, 3, 5), name="small")


def problems(
    seeds: range, *, trees: bool = False, once: bool = False
) -> list[tuple[int, MappingProblem]]:
    """Return tiny instances; a few draws fix objects where there is no room for them."""
    found = []
    for seed in seeds:
        with contextlib.suppress(InputError):
            found.append((seed, tiny_objects(seed, trees=trees or once, once=once)))
    return found


# ---- What is proven, against all mappings --------------------------------------------------------


def require_exact(seed: int, problem: MappingProblem) -> None:
    best = brute_force(problem)
    result = solve(problem, "exact", Options(seed=seed))
    report = check_document(result)
    assert report.verified, (seed, report)
    if best is None:
        assert result.solution is None, seed
        return
    assert tuple(level.objective for level in result.levels) == best, seed
    assert all(level.status == "optimal" for level in result.levels), (seed, result)


def require_bounds(seed: int, problem: MappingProblem) -> None:
    best, instance = brute_force(problem), read_instance(problem.instance)
    if best is None:
        return
    first = shares_bound(problem)
    assert first is not None
    assert first.value == shares_value(instance, first.certificate) <= best[0], seed
    second = cuts_bound(problem, seed=seed)
    if second is not None:
        assert second.value == cuts_value(instance, second.certificate) <= best[0], seed


def test_exact_is_the_least_of_all_mappings() -> None:
    for seed, problem in problems(range(40)):
        require_exact(seed, problem)


@pytest.mark.parametrize("seeds", few_of([range(k, k + 30) for k in range(4000, 4330, 30)], 1))
def test_trees_agree_with_all_mappings(seeds: range) -> None:
    for seed, problem in problems(seeds, trees=True):
        require_exact(seed, problem)
        require_bounds(seed, problem)


@pytest.mark.parametrize("seeds", few_of([range(k, k + 34) for k in range(6000, 6340, 34)], 1))
def test_messages_once_per_node_agree_with_all_mappings(seeds: range) -> None:
    for seed, problem in problems(seeds, once=True):
        require_exact(seed, problem)
        require_bounds(seed, problem)


def test_annealing_counts_the_links_of_trees() -> None:
    rules = {"A(*,p) -> B(*,p)": 3, "B(*,p) -> A(*,p)": 2, "A(i,p) <-> A(i+1,p)": 1}
    costs = {"A(*,p) -> B(*,p)": "multicast", "B(*,p) -> A(*,p)": "reduction"}
    made = tp.objects({"A": (6, 4), "B": (5, 4)}, rules, costs=costs)
    problem = problem_of(made, load_places("torus:2x3x4"), "2")
    keeper = Keeper(problem, Options(seed=3))
    keeper.offer_cells(consecutive(problem), "in order")
    annealing = Annealing(keeper, problem, 100_000)
    before = annealing.cost
    for temperature in (0.0, 40.0, 8.0):
        annealing.run(temperature)
        nodes = problem.nodes_of(annealing.state.cell)
        assert annealing.cost == worth_of(problem, nodes)[0]
    assert annealing.cost < before
    result = solve(problem, "search", Options(time_limit=0.5))
    assert check_document(result).holds
    assert tp.phase_time(result) > 0


def test_no_bound_is_above_the_least_of_all_mappings() -> None:
    for seed, problem in problems(range(40, 90)):
        require_bounds(seed, problem)


@pytest.mark.slow
def test_agreement_with_all_mappings() -> None:
    found = problems(range(1000, 1330))
    assert len(found) >= 300
    for seed, problem in found:
        require_exact(seed, problem)
        require_bounds(seed, problem)


def test_methods_keep_the_caps_and_are_never_below_a_bound() -> None:
    for seed, problem in problems(range(100, 112)):
        for method in ("in-order", "oblivious", "bisection", "search"):
            result = solve(problem, method, Options(seed=seed))
            report = check_document(result)
            assert report.holds, (seed, method, report)
            if result.solution is not None and problem.instance.fixed:
                one = problem.instance.fixed[0]
                assert result.solution.nodes[one.object] == one.node


def test_bounds_bite() -> None:
    """Two heavy pairs on two nodes: no object may be with its partner, which stars see at once."""
    document = {"name": "A", "shape": [4], "load": 3}
    rules = [{"rule": "A(i) -> A(i+1)", "bytes": 5, "periodic": True}]
    problem = problem_of(application([document], rules), load_places("torus:4"), "1")
    result = solve(problem, "exact")
    assert (result.objective, result.bound) == (20, 20)
    first = shares_bound(problem)
    assert first is not None
    assert first.value == 20


def test_cuts_see_what_stars_do_not() -> None:
    """A random graph of many light objects: every star fits on a node, the whole does not."""
    rng = random.Random(5)
    pairs = [[a, b] for a in range(64) for b in rng.sample(range(64), 5)]
    listed = {"sender": "A", "receiver": "A", "pairs": pairs, "bytes": [1] * len(pairs)}
    problem = problem_of(
        application([{"name": "A", "shape": [64]}], [listed]), load_places("torus:2x2"), "1"
    )
    stars, cuts = shares_bound(problem), cuts_bound(problem)
    assert stars is not None
    assert cuts is not None
    assert stars.value == 0 < cuts.value


def test_triangles_raise_a_bound_by_cuts(monkeypatch: pytest.MonkeyPatch) -> None:
    """A compute lies between two patches: without triangles little of their messages crosses."""
    problem = problem_of(namd((3, 3, 4)), load_places("torus:4x4x4"), "1.2")
    instance = read_instance(problem.instance)
    best = cuts_bound(problem)
    assert best is not None
    assert best.certificate.triangles is not None
    assert best.value == cuts_value(instance, best.certificate)
    monkeypatch.setattr(bisection, "STEPS", 0)
    plain = cuts_bound(problem)
    assert plain is not None
    assert plain.certificate.triangles is None
    assert 1.2 * plain.value < best.value


def test_cuts_end_in_time_or_are_none() -> None:
    """A test of 2,160 objects takes about a second; what a limit has no time for is left out."""
    problem = problem_of(read_application("namd_apoa1"), load_places("torus:8x8x8"))
    began = time.process_time()
    assert cuts_bound(problem, time_limit=0.5) is None
    few = cuts_bound(problem_of(SMALL_NAMD, load_places("torus:4x4x4"), "1.2"), 5.0)
    assert few is not None
    assert few.value > 0
    assert time.process_time() - began < 6  # with what the limits allow
    result = solve(problem, "search", Options(time_limit=0.6))
    assert isinstance(result.levels[0].certificate, SharesCertificate | RoutesCertificate)


def test_objects_of_load_1_have_what_tasks_have() -> None:
    """A periodic grid has the bound of its grid, which the checker confirms of tasks alone."""
    problem = problem_of(milc((4, 4, 4, 4)), load_places("torus:4x4x4"), "1")
    assert problem.of_tasks
    assert problem.tasks_per_node == 4
    result = solve(problem, "auto", Options(time_limit=5))
    level = result.levels[0]
    assert isinstance(level.certificate, RecognisedCertificate)
    star, bound, objective = shares_bound(problem), level.bound, level.objective
    assert star is not None
    assert bound is not None
    assert objective is not None
    assert star.value < bound <= objective
    report = check_document(result)
    assert report.verified, report
    instance = read_instance(problem.instance)
    for more in ({"loads": instance.loads + 1}, {"fixed": {0: 0}}):
        with pytest.raises(RefusedError, match="more than tasks"):
            _ = replace(instance, **more).capacity  # type: ignore[arg-type]


# ---- Mutants -------------------------------------------------------------------------------------


def mutants(document: Document, rng: random.Random) -> list[tuple[str, Document]]:
    """Return results that claim what is not so, with figures that fit together."""

    def changed(what: str, change: Any) -> tuple[str, Document]:
        copy = json.loads(json.dumps(document))
        change(copy)
        return what, refigured(copy)

    levels, nodes = document["levels"], document["solution"]["nodes"]
    found = []
    for k, level in enumerate(levels):

        def beyond(copy: Document, at: int = k) -> None:
            copy["levels"][at]["bound"] += 1
            copy["levels"][at]["objective"] = max(
                copy["levels"][at]["objective"], copy["levels"][at]["bound"]
            )

        found.append(changed(f"bound of level {k}", beyond))
        if level["certificate"]["kind"] == "enumeration":

            def lied(copy: Document, at: int = k) -> None:
                copy["levels"][at]["bound"] = copy["levels"][at]["objective"] = 1 << 40

            found.append(changed(f"objective of level {k}", lied))
    one = rng.randrange(len(nodes))
    found.append(
        changed("a node", lambda copy: copy["solution"]["nodes"].__setitem__(one, 1 << 20))
    )
    instance = document["instance"]
    if sum(instance["application"]["loads"]) > instance["cap"] * instance["machine"].get(
        "nodes_per_router", 1
    ):

        def crowded(copy: Document) -> None:
            copy["solution"]["nodes"] = [nodes[one]] * len(nodes)

        found.append(changed("all on one node", crowded))
    for name in ("largest_load", "hop_bytes", "used_nodes"):
        found.append(
            changed(
                name,
                lambda copy, name=name: copy["solution"]["figures"].__setitem__(
                    name, copy["solution"]["figures"][name] + rng.choice((-1, 1))
                ),
            )
        )
    return found


def require_rejected(seeds: range, *, trees: bool = False, once: bool = False) -> int:
    rng, count = random.Random(7), 0
    for seed, problem in problems(seeds, trees=trees, once=once):
        result = solve(problem, "exact", Options(seed=seed))
        if result.solution is None:
            continue
        for what, document in mutants(result.model_dump(mode="json"), rng):
            bent = MappingResult.model_validate_json(json.dumps(document))
            assert not check_document(bent).holds, (seed, what)
            count += 1
    return count


def test_mutants_are_rejected() -> None:
    assert require_rejected(range(200, 220)) >= 100
    assert require_rejected(range(220, 224), trees=True) >= 15
    assert require_rejected(range(224, 228), once=True) >= 15


@pytest.mark.slow
def test_a_thousand_mutants_are_rejected() -> None:
    assert require_rejected(range(2000, 2180)) >= 1000
    assert require_rejected(range(2200, 2380), trees=True) >= 1000
    assert require_rejected(range(2400, 2580), once=True) >= 1000


def test_certificates_that_prove_less_are_rejected() -> None:
    problem = problem_of(SMALL_NAMD, load_places("torus:3x3x3"), "1.2")
    shares, cuts = shares_bound(problem), cuts_bound(problem)
    assert shares is not None
    assert cuts is not None
    instance = read_instance(problem.instance)

    def refuse_triangles(triangles: Triangles, change: dict[str, Packed], why: str) -> None:
        changed = triangles.model_copy(update=change)
        certificate = cuts.certificate.model_copy(update={"triangles": changed})
        with pytest.raises(RefusedError, match=why):
            cuts_value(instance, certificate)

    num = len(instance.volumes.tasks) // 2
    values = unpacked(shares.certificate.shares, num, "shares")
    for wrong in (values + 1, values - 300):
        text = shares.certificate.model_copy(update={"shares": packed(wrong)})
        with pytest.raises(Exception, match="share"):
            shares_value(instance, text)
    triangles = cuts.certificate.triangles
    amounts = unpacked(triangles.amounts, triangles.number, "amounts")
    corners = unpacked(triangles.corners, 3 * triangles.number, "corners")
    refuse_triangles(triangles, {"amounts": packed(2 * amounts)}, "matrix of the cuts")
    refuse_triangles(triangles, {"amounts": packed(amounts - int(amounts.max()))}, "negative")
    refuse_triangles(triangles, {"amounts": packed(amounts << 12)}, "amounts of triangles")
    refuse_triangles(triangles, {"corners": packed(corners + 1)}, "corner of a triangle")
    refuse_triangles(triangles, {"corners": packed(corners[::-1])}, "matrix of the cuts")
    prices = unpacked(cuts.certificate.prices, problem.num_tasks, "prices")
    lower = prices - abs(int(prices.min())) // 2
    text = cuts.certificate.model_copy(update={"prices": packed(lower)})
    with pytest.raises(Exception, match="matrix of the cuts"):
        cuts_value(instance, text)


# ---- Applications: rules against loops, and faults -----------------------------------------------


def application(arrays: list[Document], messages: list[Document]) -> ObjectsApplication:
    return ObjectsApplication.model_validate(
        {
            "schema": "topoplace.application/1",
            "name": "made",
            "arrays": arrays,
            "messages": messages,
        }
    )


def pairs_of(rule: str, *, periodic: bool = False) -> set[tuple[int, int]]:
    arrays = [
        {"name": "G", "shape": [4, 3]},
        {"name": "R", "shape": [4, 2]},
        {"name": "P", "shape": [2, 2, 3]},
    ]
    graph = expanded(application(arrays, [{"rule": rule, "bytes": 1, "periodic": periodic}]))
    return set(zip(graph.sources, graph.targets, strict=True))


def g(s: int, p: int) -> int:
    return 3 * s + p


def r(s: int, q: int) -> int:
    return 12 + 2 * s + q


def pair(a: int, b: int, p: int) -> int:
    return 20 + 6 * a + 3 * b + p


def test_rules_are_what_loops_say() -> None:
    states, planes = range(4), range(3)
    assert pairs_of("G(s,*) -> R(s,*)") == {
        (g(s, p), r(s, q)) for s in states for p in planes for q in range(2)
    }
    assert pairs_of("G(s,p)->P(s/2, *, p)") == {
        (g(s, p), pair(s // 2, b, p)) for s in states for p in planes for b in range(2)
    }
    assert pairs_of("G(s,p) <-> G(s+1,p)") == {
        ends
        for s, p in product(range(3), planes)
        for ends in ((g(s, p), g(s + 1, p)), (g(s + 1, p), g(s, p)))
    }
    assert pairs_of("G(s,p) -> G(s-1,p)", periodic=True) == {
        (g(s, p), g((s - 1) % 4, p)) for s in states for p in planes
    }
    assert pairs_of("G(2,p) -> R(0,*)") == {(g(2, p), r(0, q)) for p in planes for q in range(2)}
    assert pairs_of("G(*,p) -> G(*,p)") == {
        (g(s, p), g(t, p)) for s in states for t in states for p in planes if s != t
    }


@pytest.mark.parametrize(
    ("rule", "told"),
    [
        ("G(s,*) R(s,*)", "a rule such as"),
        ("G(s) -> R(s,*)", "2 indices of G"),
        ("G(s,*) -> Q(s,*)", "one of G, R, P"),
        ("G(s,*) -> R(t,*)", "every name once"),
        ("G(s+1,*) -> R(s,*)", "on the left"),
        ("G(s,*) -> R(s;*)", "2 indices of R"),
    ],
)
def test_rules_that_cannot_be_read(rule: str, told: str) -> None:
    with pytest.raises(InputError, match=told):
        pairs_of(rule)


def test_computes_have_the_two_patches_of_their_pair() -> None:
    found = expanded(SMALL_NAMD)
    partners: dict[int, set[int]] = {}
    for a, b in zip(found.sources, found.targets, strict=True):
        if a < 27:
            partners.setdefault(b, set()).add(a)
    pairs = [frozenset(mine) for mine in partners.values()]
    assert len(pairs) == len(set(pairs)) == 27 * 14
    assert {frozenset((a, b)) for a in range(27) for b in range(27)} == set(pairs)


def test_shipped_applications_are_those_of_the_builders() -> None:
    for name, build in BUILDERS.items():
        assert read_application(name) == build()


def test_a_mesh_is_symmetric() -> None:
    graph = expanded(mesh(60, seed=3))
    rows = list(zip(graph.sources, graph.targets, graph.bytes, strict=True))
    assert sorted(rows) == sorted((b, a, size) for a, b, size in rows)


def test_trees_of_rules() -> None:
    """As multicasts all messages of a sender are one tree; a single one stays a message."""
    arrays = {"G": (2, 3), "P": (2,)}
    for rule, cost, found in (
        ("G(s,*) -> P(*)", "multicast", [("multicast", g, [6, 7]) for g in range(6)]),
        ("G(s,*) -> P(s)", "reduction", [("reduction", 6, [0, 1, 2]), ("reduction", 7, [3, 4, 5])]),
        (
            "P(s) <-> G(s,*)",
            "multicast",
            [
                (kind, 6 + s, [3 * s, 3 * s + 1, 3 * s + 2])
                for s in range(2)
                for kind in ("multicast", "reduction")
            ],
        ),
        ("P(*) -> P(*)", "reduction", []),
    ):
        made = expanded(tp.objects(arrays, {rule: 4}, costs={rule: cost}))
        assert [(t.kind, t.root, t.members) for t in made.trees] == found, rule
        messages = [(6, 7), (7, 6)] if not found else []
        ends = zip(made.sources, made.targets, strict=True)
        assert sorted(ends) == messages
    with pytest.raises(InputError, match="costs"):
        tp.objects(arrays, {"G(s,*) -> P(*)": 4}, costs={"G(s,*) -> P(s)": "multicast"})
    with pytest.raises(InputError, match="one of hops, multicast, reduction"):
        tp.objects(arrays, {"G(s,*) -> P(*)": 4}, costs={"G(s,*) -> P(*)": "tree"})


def test_rules_of_messages_once_per_node_are_joined() -> None:
    arrays = {"G": (2,), "P": (2, 2)}
    rule = "G(s) <-> P(s,*); G(s) <-> P(*,0)"
    made = expanded(tp.objects(arrays, {rule: 4}, costs={rule: "node"}))
    found = [(t.kind, t.once, t.root, t.members) for t in made.trees]
    assert found == [
        (kind, "node", root, members)
        for root, members in ((0, [2, 3, 4]), (1, [2, 4, 5]))
        for kind in ("multicast", "reduction")
    ]
    with pytest.raises(InputError, match="the same arrow"):
        expanded(tp.objects(arrays, {"G(s) -> P(s,0); G(s) <-> P(s,1)": 4}))


def test_messages_once_per_node_by_hand() -> None:
    """The two examples of docs/proofs/objects.md; the second on distances alone."""
    made = tp.objects({"A": (5,)}, {"A(0) -> A(*)": 6}, costs={"A(0) -> A(*)": "node"})
    found = tp.map(made, "torus:5", "exact", balance=1)
    assert (found.objective, found.status) == (36, "optimal")
    shares = shares_bound(problem_of(made, load_places("torus:5"), "1"))
    assert shares is not None
    assert shares.value == 36
    triangle = MatrixModel(kind="matrix", name="m", distances=[[0, 1, 1], [1, 0, 1], [1, 1, 0]])
    found = tp.map(made, triangle, "exact", balance=1.2)
    assert (found.objective, found.status) == (12, "optimal")
    assert found.check().holds


def test_objects_without_loads_need_no_room() -> None:
    made = tp.objects({"A": (5,)}, {"A(0) -> A(*)": 7}, loads={"A": 0})
    found = tp.map(made, "torus:3", fixed={0: 0, 1: 1}, time_limit=0.3)
    assert found.objective == 7
    assert found.check().holds


def test_trees_want_links() -> None:
    made = tp.objects({"A": (3,)}, {"A(0) -> A(*)": 4}, costs={"A(0) -> A(*)": "multicast"})
    with pytest.raises(InputError, match="a torus or mesh"):
        tp.map(made, MatrixModel(kind="matrix", name="m", distances=[[0, 1], [1, 0]]), balance=2)


def test_a_tree_by_hand() -> None:
    """From a corner of a 3x3 mesh: along x to 3 and 6, along y from 0, 3 and 6, two links each."""
    made = tp.objects({"A": (5,)}, {"A(0) -> A(*)": 7}, costs={"A(0) -> A(*)": "multicast"})
    fixed = dict(enumerate((0, 2, 6, 8, 5)))
    found = tp.map(made, "mesh:3x3", "in-order", balance=3, fixed=fixed)
    assert isinstance(found, MappingResult)
    assert "multicasts and reductions: 1" in str(found)
    assert found.solution is not None
    assert found.solution.figures.hop_bytes == 7 * 8
    load = found.solution.figures.max_link_load
    assert load is not None
    assert (load.numerator, load.denominator) == (7, 1)
    assert found.check().holds


# ---- The papers' mappings ------------------------------------------------------------------------


def test_parts_cover_a_box_once() -> None:
    parts = parts_of(((0, 5), (0, 4), (0, 3)), 7)
    cells = [at for box in parts for at in product(*(range(*side) for side in box))]
    assert len(parts) == 7
    assert len(cells) == len(set(cells)) == 60


def test_planes_of_gspace_have_prisms_of_their_own() -> None:
    problem = problem_of(SMALL_OPENATOM, load_places("torus:4x4x4"), "3")
    result = solve(problem, "prisms")
    assert result.solution is not None
    assert check_document(result).holds
    at = problem.machine.coordinates[np.array(result.solution.nodes)][:, :]
    numbers, _ = problem.array("GSpace") or (np.zeros(0), ())
    # along one dimension all planes are spread alike; across it, no two planes meet
    assert any(
        all(
            not set(map(tuple, np.delete(at[numbers[:, p]], axis, 1).tolist()))
            & set(map(tuple, np.delete(at[numbers[:, q]], axis, 1).tolist()))
            for p in range(8)
            for q in range(p)
        )
        for axis in range(3)
    )


def test_computes_are_in_their_brick_or_with_proxies() -> None:
    """With room everywhere, whoever is not between its patches is where both have a compute."""
    problem = problem_of(SMALL_NAMD, load_places("torus:6x6x6"), "40")
    result = solve(problem, "bricks")
    assert result.solution is not None
    nodes, graph = result.solution.nodes, problem.graph
    ends: dict[int, list[int]] = {}
    for a, b in zip(graph.sources.tolist(), graph.targets.tolist(), strict=True):
        if a < 27:
            ends.setdefault(b, []).append(a)
    outside = 0
    for compute, patches in ends.items():
        one, other = (nodes[patch] for patch in (patches[0], patches[-1]))
        away = [int(problem.machine.distances_from(h)[nodes[compute]]) for h in (one, other)]
        if sum(away) > int(problem.machine.distances_from(one)[other]):
            outside += 1
            here = {p for c, mine in ends.items() if nodes[c] == nodes[compute] for p in mine}
            here |= {patch for patch in range(27) if nodes[patch] == nodes[compute]}
            assert set(patches) <= here
    assert outside < len(ends) / 10


PAPERS = {
    "namd, once": (SMALL_PROXIES, ("proxies", "patches", "bricks")),
    "namd": (SMALL_NAMD, ("bricks",)),
    "openatom": (SMALL_OPENATOM, ("prisms",)),
}


@pytest.mark.parametrize("name", few_of(PAPERS, 1))
def test_ours_is_never_above_the_papers(name: str) -> None:
    application, methods = PAPERS[name]
    problem = problem_of(application, load_places("torus:4x4x4"), "2")
    ours = solve(problem, "search", Options(time_limit=1.0))
    assert check_document(ours).holds
    assert ours.objective is not None
    for method in methods:
        paper = solve(problem, method)
        assert paper.objective is not None
        assert ours.objective <= paper.objective, method


def test_papers_methods_say_what_they_need() -> None:
    problem = problem_of(milc((2, 2, 2, 2)), load_places("torus:2x2x2"), "2")
    with pytest.raises(InputError, match="an array GSpace"):
        solve(problem, "prisms")
    with pytest.raises(InputError, match="an array Patches"):
        solve(problem, "bricks")


# ---- The command and the front door --------------------------------------------------------------


def test_the_command_maps_objects(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, fixed, nodes = tmp_path / "r.json", tmp_path / "fixed.csv", tmp_path / "nodes.csv"
    fixed.write_text("object,node\n0,3\n")
    words = "map --objects matmul_8x8x8 --on torus:4x4x4 --balance 1.5 --method bisection"
    assert run([*words.split(), "--fixed", str(fixed), "-o", str(out), "--csv", str(nodes)]) == 0
    told = capsys.readouterr().out
    assert "512 objects, 1 fixed (Chares 8x8x8) of load 512" in told
    assert "at most 12 per node" in told
    assert run(["check", str(out)]) == 0
    assert nodes.read_text().splitlines()[:2] == ["object,node", "0,3"]
    assert run(["show", str(out), "--png", str(tmp_path / "r.png")]) == 0
    frame = tp.load(out).to_frame()
    assert list(frame.columns[:3]) == ["object", "load", "node"]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("--objects namd_apoa", "namd_apoa"),
        ("--objects namd_apoa1 --balance 0.9", "--balance"),
        ("--objects namd_apoa1 --on xt3", "at least 2.22"),
        ("--objects namd_apoa1 --grid 4x4", "--grid"),
        ("--grid 4x4 --pooled", "--pooled"),
        ("--objects namd_apoa1 --tasks-per-node 2", "--tasks-per-node"),
        ("--objects matmul_8x8x8 --method prisms", "GSpace"),
    ],
)
def test_wrong_input_is_told(words: str, told: str, capsys: pytest.CaptureFixture[str]) -> None:
    on = [] if "--on" in words else ["--on", "torus:4x4x4"]
    assert run(["map", *words.split(), *on]) == 2
    said = capsys.readouterr().err
    assert told in said
    assert len(said.strip().splitlines()) == 1


@pytest.mark.parametrize(
    ("messages", "told"),
    [
        ({"rule": "A(i) -> A(i+1)", "bytes": 1, "cost": "multi"}, "messages[0].cost: expected one"),
        ({"rule": "A(i) -> A(i+1)", "bytes": -1}, "messages[0].bytes: expected an integer"),
        ({"sender": "A", "receiver": "A", "pairs": [[0, 1]], "bytes": [-1]}, "bytes[0]: expected"),
    ],
)
def test_faults_of_messages_are_those_of_their_form_alone(
    messages: dict[str, object], told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "a.json"
    whole = {"schema": "topoplace.application/1", "name": "a", "messages": [messages]}
    file.write_text(json.dumps(whole | {"arrays": [{"name": "A", "shape": [4]}]}))
    assert run(["map", "--objects", str(file), "--on", "torus:2x2"]) == 2
    said = capsys.readouterr().err
    assert told in said
    assert len(said.strip().splitlines()) == 1


def test_the_front_door_takes_applications_and_graphs() -> None:
    shipped = tp.map("milc_8x8x8x16", "torus:4x4", "in-order", balance=1.2, time_limit=0.1)
    assert isinstance(shipped, MappingResult)
    assert shipped.check().holds
    made = tp.objects({"A": (4, 4)}, {"A(i,*) -> A(i,*)": 3}, loads={"A": 2}, name="rows")
    assert sum(expanded(made).loads) == 32
    assert sum(expanded(made).bytes) == 3 * 48
    with pytest.raises(InputError, match="did you mean 'A'"):
        tp.objects({"A": (4,)}, {}, loads={"a": 2})
    found = tp.map(made, "torus:2x2", "in-order", balance=1.2)
    assert isinstance(found, MappingResult)
    again = tp.map(found.instance, method="oblivious")
    assert again.levels[1].status == "optimal"
    light = tp.map(tp.grid(4, 4), "torus:2x2", balance=2, time_limit=0.3)
    assert isinstance(light, MappingResult)
    assert light.instance.cap == 8
    pooled = tp.map(tp.grid(4, 4), "torus:2x2:2", "bisection", balance="1", pooled=True)
    assert pooled.check().holds


# ---- Time limits ---------------------------------------------------------------------------------


@pytest.fixture
def ticking(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let ten seconds go by with every look at the clock, and look as often as can be."""
    ticks = count(step=10)
    monkeypatch.setattr(clock, "now", lambda: float(next(ticks)))
    monkeypatch.setattr(clock, "deadline", lambda limit: clock.now() + (limit or 0.0))
    for module, name in ((halving, "HALVING_WORK"), (settled, "SETTLE_WORK"), (search, "TRIES")):
        monkeypatch.setattr(module, name, 1)
    yield
    assert next(ticks) < 20_000


def called(monkeypatch: pytest.MonkeyPatch, module: object, name: str) -> list[Any]:
    """Return a list that takes the last argument of every call of a function."""
    calls, plain = [], getattr(module, name)

    def noted(*given: Any) -> Any:
        calls.append(given[-1])
        return plain(*given)

    monkeypatch.setattr(module, name, noted)
    return calls


def test_bisection_and_settling_end_by_the_clock(
    ticking: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = problem_of(SMALL_NAMD, load_places("torus:4x4x4"), "1.3")
    regions = called(monkeypatch, halving, "descend")
    cells = search.halved(problem, 0, clock.deadline(50))
    assert cells is not None
    assert (problem.filled(cells) <= problem.cells.room).all()
    assert regions[:4] == [False] * 4
    assert len(regions) > 20
    assert all(regions[4:])
    rounds = called(monkeypatch, settled, "settle")
    cells = consecutive(problem, clock.deadline(50))
    assert cells is not None
    assert (problem.filled(cells) <= problem.cells.room).all()
    assert len(rounds) == 4


@pytest.mark.parametrize("limit", [10, 90, 400])
@pytest.mark.parametrize(
    ("application", "method"),
    [(SMALL_OPENATOM, "prisms"), (SMALL_NAMD, "bricks")]
    + [(one, name) for one in (SMALL_OPENATOM, SMALL_NAMD) for name in ("in-order", "search")],
)
def test_a_small_budget_ends_every_phase_with_a_mapping(
    ticking: None, application: ObjectsApplication, method: str, limit: int
) -> None:
    problem = problem_of(application, load_places("torus:4x4x4"), "1.5")
    result = solve(problem, method, Options(time_limit=limit))
    assert result.limits.hit
    assert check_document(result).holds
    assert None not in (result.objective, result.bound, result.levels[1].bound)


@pytest.mark.parametrize("method", ["search", "exact"])
def test_there_is_a_mapping_before_any_bound_is_looked_for(
    method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What ends the solve there finds both levels, and the bound of the second."""
    problem = problem_of(SMALL_NAMD, load_places("torus:4x4x4"), "1.3")

    def interrupted(*given: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("topoplace.mapping.outcome.shares_bound", interrupted)
    incumbent = Incumbent((("hop-bytes", "min"), ("largest-load", "min")))
    with pytest.raises(KeyboardInterrupt):
        solve(problem, method, Options(incumbent=incumbent))
    assert incumbent.outcome is not None
    assert incumbent.outcome.bounds[1] == load_bound(problem)


@pytest.mark.parametrize("fullest", [False, True])
def test_objects_go_to_the_emptiest_cell_or_the_fullest_that_they_fit(fullest: bool) -> None:
    """Against a look at all cells, those of pooled routers of one to three nodes."""
    for seed in range(40):
        rng = random.Random(seed)
        loads = {"A": [rng.randint(0, 9) for _ in range(30)]}
        made = tp.objects({"A": (30,)}, {"A(i) -> A(i+1)": 1}, loads=loads)
        nodes = ",".join(str(n) for n in sorted(rng.sample(range(24), 11)))
        problem = problem_of(made, load_places("torus:2x4:3").only(nodes), "1.1", pooled=True)
        known, left = np.full(30, -1, dtype=np.int64), problem.cells.room.copy()
        expected: list[int] | None = [-1] * 30
        for one in np.argsort(-problem.loads, kind="stable").tolist():
            fits = np.flatnonzero(left >= problem.loads[one])
            if not len(fits):
                expected = None
                break
            share = (left / problem.cells.width)[fits]
            expected[one] = int(fits[share.argmin() if fullest else share.argmax()])
            left[expected[one]] -= problem.loads[one]
        found = settled.one_by_one(problem, known, fullest=fullest)
        assert (None if found is None else found.tolist()) == expected, seed


def test_the_cap_that_is_used_is_said_where_it_is_not_the_one_asked_for(caplog):
    assert (cap_of(7, 1, 6, "1.1"), cap_of(12, 1, 6, "1.5")) == (2, 3)
    said = "--balance 1.1: at most 2 on a node, 1.71 averages, the least that can hold all loads"
    assert caplog.messages == [said]
