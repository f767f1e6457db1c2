"""Tiny mapping problems with their least hop-bytes, and certificates of every kind for them.

The truth is that of all mappings or selections, by the instance as the solver reads it: the checker
has a reading of its own. Certificates are the solver's, which prove much, with faults in them.
"""

from __future__ import annotations

import base64
import itertools
import json
import math
import random
import zlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Annotated, Any

import numpy as np
import pytest
from numpy.typing import NDArray
from pydantic import Field, TypeAdapter, ValidationError

from baseline_instances import optimum_of, problem_on
from level_cases import random_levels
from link_cases import least_load, ways_of_tasks
from pencil_cases import SINK, SOURCE, least_hop_bytes
from soundness.attack import Json, Number, Target, faulty, number
from tiny_instances import MOST_MAPPINGS, graph_of, random_grid, random_problem
from tiny_objects import brute_force, tiny_objects
from topoplace.certify.mapping.check import VALUES
from topoplace.certify.mapping.instance import read_instance
from topoplace.certify.mapping.links import link_load
from topoplace.certify.mapping.pencils import check_layout, window_value
from topoplace.certify.report import RefusedError
from topoplace.errors import InputError
from topoplace.machine import Torus, format_node_set
from topoplace.mapping import symmetry
from topoplace.mapping.bounds import distance_classes, pairs
from topoplace.mapping.bounds.blocks import blocks_bound
from topoplace.mapping.bounds.cuts import cuts_bound
from topoplace.mapping.bounds.levels import levels_bound
from topoplace.mapping.bounds.pairs import pairs_bound
from topoplace.mapping.bounds.recognised import bound_through
from topoplace.mapping.bounds.routes import routes_bound
from topoplace.mapping.bounds.star import star_bound
from topoplace.mapping.exact import branch
from topoplace.mapping.exact.branch import small_problem
from topoplace.mapping.layouts import cells
from topoplace.mapping.link_bounds import (
    bisected,
    inside_bound,
    loaded,
    mean_bound,
    reachable,
    task_bound,
)
from topoplace.mapping.pencils import network
from topoplace.mapping.pencils.network import cut_selection, threshold_network
from topoplace.mapping.pencils.search import layout_model, nodes_of
from topoplace.mapping.pencils.space import (
    CellTerms,
    PencilWindow,
    admissible_layouts,
    cell_terms,
    window_at,
)
from topoplace.mapping.problem import MappingProblem, prepare_mapping
from topoplace.result import certificate as packing
from topoplace.result.mapping import (
    CutLoad,
    FlowCertificate,
    MappingCertificate,
    MeanLoad,
    TaskLoad,
)
from topoplace.snapshot.schema import GraphApplication, GridApplication
from topoplace.solving import Bound
from topoplace.types import IntArray

Random = random.Random
CERTIFICATE: TypeAdapter[Any] = TypeAdapter(MappingCertificate)
LINKS: TypeAdapter[Any] = TypeAdapter(
    Annotated[MeanLoad | TaskLoad | CutLoad, Field(discriminator="kind")]
)
MOST_SELECTIONS = 20_000
FLOW = ("tails", "heads", "flows")


def proven_by(value: Callable[[], Number]) -> Number | None:
    """Return what the checker says is proven, None if it is refused; pass other errors on."""
    try:
        return value()
    except (RefusedError, InputError, OverflowError, ValidationError):
        return None


def reclassed(rng: Random, certificate: Json) -> Json:
    """Return a certificate of distance classes with two of them merged, or one of them split."""
    classes, filters, rows = (list(certificate[key]) for key in ("classes", "filters", "rows"))
    num = len(rows)
    if rng.random() < 0.5 and num > 2:
        kept, gone = rng.sample(range(1, num), 2)
        classes = [kept if d == gone else d for d in classes]
        classes = [d - (d > gone) for d in classes]
        filters = [[*f[: gone + 1], *f[gone + 2 :]] for f in filters]
        rows.pop(gone)
    else:
        at = rng.randrange(len(classes))
        d, classes[at] = classes[at], num
        if rng.random() < 0.5:  # in a ring the opposite goes with it
            classes[-at % len(classes)] = num
        filters = [[*f, f[d + 1]] for f in filters]
        rows.append(rows[d])
    return certificate | {"classes": classes, "filters": filters, "rows": rows}


def drawn_from(certificate: Json, share: float) -> Callable[[Random], Json]:
    """Return what draws a certificate, a share of which has some faults."""

    def draw(rng: Random) -> Json:
        drawn = certificate
        if drawn["kind"] == "distance-classes" and rng.random() < 0.3:
            drawn = reclassed(rng, drawn)
        return faulty(rng, drawn, rng.choice((1, 1, 2, 3)) if rng.random() < share else 0)

    return draw


PACKED = ("costs", "nodes", "corners", "amounts", "lengths", "sizes", "times")
"""Parts of certificates that are packed into a text; their numbers are changed, not the text."""


def opened(certificate: Json) -> Json:
    """Return a certificate with lists of numbers in the place of texts."""
    return _changed(certificate, unpacked)


def _changed(certificate: Json, change: Callable[[Any], Any]) -> Json:
    """Return a certificate with a change to all parts that are packed, those of parts as well."""
    prices = ("prices",) if certificate.get("kind") in ("cuts", "spectral") else ()
    lists = {key: change(certificate[key]) for key in (*PACKED, *prices) if key in certificate}
    for part in ("triangles", "crossing"):
        if certificate.get(part):
            lists[part] = _changed(certificate[part], change)
    for name in {"levels", "rounds"} & set(certificate):
        lists[name] = [_changed(part, change) for part in certificate[name]]
    return certificate | lists


def unpacked(document: Json) -> list[int]:
    """Return the numbers of a text, however many there are."""
    size = len(zlib.decompress(base64.b64decode(document["text"])))
    count = size // document["width"]
    numbers: list[int] = packing.unpacked(packing.Packed(**document), count, "text").tolist()
    return numbers


def closed(certificate: Json) -> Json:
    """Return a certificate with texts again; no number may have more than 64 bits."""
    return _changed(certificate, text_of)


def text_of(numbers: list[int]) -> Json:
    """Return numbers as a text; none may have more than 64 bits."""
    most = (1 << 62) - 1
    if not all(-most <= number <= most for number in numbers):
        raise OverflowError
    return packing.packed(np.array(numbers, dtype=np.int64)).model_dump(mode="json")


def target_of(
    problem: MappingProblem,
    certificate: Json,
    value: Number | None = None,
    share: float = 0.6,
    least: int | None = None,
) -> Target:
    """Return a problem with a certificate, which proves what the solver says, and faults of it."""
    instance = read_instance(problem.instance)
    least = optimum_of(problem) if least is None else least

    def proven(document: Json) -> Number | None:
        def value() -> int:
            read = CERTIFICATE.validate_json(json.dumps(closed(document)))
            return VALUES[read.kind](instance, read)

        return proven_by(value)

    right = opened(certificate)
    if value is not None:  # of many bytes the solver may round its figure down, by very little
        most = proven(right)
        assert most is not None, certificate
        assert 0 <= most - value <= abs(value) / 2**32, certificate
    return Target(least, False, drawn_from(right, share), proven)


def bounded_target(kind: str, rng: Random) -> Target | None:
    """Return a problem with the solver's certificate of a kind."""
    problem = random_problem(rng, kind)
    bounds = {
        "star": star_bound,
        "blocks": blocks_bound,
        "cuts": cuts_bound,
        "distance-classes": distance_classes.distance_classes_bound,
        "pairs": pairs_bound,
        "routes": routes_bound,
        "tree": partial(tree_bound, rng),
    }
    bound = bounds[kind](problem)
    if bound is None:
        return None
    certificate: Json = bound.certificate.model_dump(mode="json")
    value = None if kind in ("star", "tree") else bound.value
    if kind == "star":
        prices = certificate["prices"] or [0] * len(problem.capacity)
        assert VALUES["star"](read_instance(problem.instance), bound.certificate) == bound.value
        # the same price on every place changes nothing where all are taken
        lift = rng.choice((0, abs(number(rng, 1, 1 << 59, (1 << 61) - 1 - max(prices)))))
        certificate["prices"] = [price + lift for price in prices]
    return target_of(problem, certificate, value, 0.3 if kind == "cuts" else 0.6)


def loaded_target(kind: str, rng: Random) -> Target | None:
    """Return objects with loads, some of them fixed or with trees, and a bound of theirs."""
    try:
        problem = tiny_objects(rng.randrange(1 << 30), trees=rng.random() < 0.3)
    except InputError:
        return None
    of = cuts_bound if kind == "loaded cuts" else routes_bound
    best, bound = brute_force(problem), of(problem)
    if best is None or bound is None:
        return None
    certificate: Json = bound.certificate.model_dump(mode="json")
    return target_of(problem, certificate, bound.value, 0.3, best[0])


def levels_target(_: str, rng: Random) -> Target | None:
    """Return a problem on a tree or hierarchy, and its certificate, some parts of another kind."""
    problem = random_levels(rng)
    bound = levels_bound(problem, target=0 if rng.random() < 0.7 else None)
    if bound is None:
        return None
    return target_of(problem, bound.certificate.model_dump(mode="json"), bound.value)


def recognised_target(kind: str, rng: Random) -> Target | None:
    """Return a graph with the bytes of a grid and some more, and the certificate through that."""
    problem = random_problem(rng, "blocks")
    application, num = problem.instance.application, problem.num_tasks
    if not isinstance(application, GridApplication):
        return None
    places = int(problem.capacity.sum())
    silent = rng.randint(0, min(1, places - num))
    if math.perm(places, num + silent) > MOST_MAPPINGS:
        return None
    tasks = rng.sample(range(num + silent), num)
    extra = [
        (*rng.sample(range(num + silent), 2), rng.choice((1, 2, 7)))
        for _ in range(rng.choice((0, 0, 1, 3)))
        if num + silent > 1
    ]
    own = problem.graph
    sent = zip(own.sources.tolist(), own.targets.tolist(), own.bytes.tolist(), strict=True)
    ends = [*((tasks[a], tasks[b], size) for a, b, size in sent), *extra]
    graph = GraphApplication(
        num_tasks=num + silent,
        sources=[a for a, _, _ in ends],
        targets=[b for _, b, _ in ends],
        bytes=[size for _, _, size in ends],
    )
    instance = problem.instance.model_copy(update={"application": graph})
    try:
        read_instance(instance)
        whole = prepare_mapping(instance)
    except (InputError, RefusedError, OverflowError):
        return None
    bound = bound_through(whole, application, np.array(tasks, dtype=np.int64))
    if bound is None:
        return None
    return target_of(whole, bound.certificate.model_dump(mode="json"), bound.value, share=0.5)


def tree_bound(rng: Random, problem: MappingProblem) -> Bound | None:
    """Return a tree that is to prove the least hop-bytes or more, some by false symmetries."""
    small, least = small_problem(problem), optimum_of(problem)
    if small is None:
        return None

    def with_false(matrix: IntArray, colour: IntArray) -> NDArray[np.int16]:
        """Return symmetries and a few exchanges that may be none."""
        turn = np.arange(len(matrix), dtype=np.int16)
        one, other = rng.choices(range(len(turn)), k=2)
        turn[[one, other]] = other, one
        return np.concatenate([symmetry.symmetries(matrix, colour), turn[None, :]])

    with pytest.MonkeyPatch.context() as patch:
        if rng.random() < 0.25:
            patch.setattr(branch, "symmetries", with_false)
        goal = least + small.unit * rng.choice((0, 0, 1, 4))
        certificate = branch.proof_tree(small, goal)
    return None if certificate is None else Bound(least, certificate)


def link_target(_: str, rng: Random) -> Target | None:
    """Return a problem with a bound on its link loads, of any kind that applies."""
    problem = random_problem(rng, rng.choice(("blocks", "cuts", "cuts")))
    ways = ways_of_tasks(problem) if isinstance(problem.machine, Torus) else []
    view, hops = loaded(problem), star_bound(problem)
    if not ways or view is None or hops is None:
        return None
    bounds = [mean_bound(view, hops), task_bound(view), inside_bound(view), bisected(problem)]
    bound = rng.choice([one for one in bounds if one is not None])
    assert bound.certificate is not None
    certificate: Json = bound.certificate.model_dump(mode="json")
    instance, least = read_instance(problem.instance), int(hops.value)

    def proven(document: Json) -> Number | None:
        def value() -> Fraction:
            read = LINKS.validate_json(json.dumps(closed(document)))
            return link_load(instance, read, lambda: least)

        return proven_by(value)

    value = reachable(view, Fraction(bound.value))
    assert max(Fraction(0), value) == max(Fraction(0), proven(opened(certificate)) or Fraction(0))
    truth = least_load(problem.torus, problem.graph, ways)
    assert truth is not None
    return Target(truth, False, drawn_from(opened(certificate), 0.5), proven)


def total_target(kind: str, rng: Random) -> Target | None:
    """Return a problem that total certificates may hold for; embedded if so asked."""
    problem = random_problem(rng, "total")
    if problem.capacity.max() > 1 and rng.random() < 0.8:
        return None
    if kind == "embedding":
        places = problem.routers_of(np.repeat(problem.nodes, problem.tasks_per_node))
        at = rng.sample(places.tolist(), problem.num_tasks)
        pairs = itertools.permutations(range(problem.num_tasks), 2)
        near = [(a, b) for a, b in pairs if problem.machine.hops(at[a], at[b]) <= 1]
        application = graph_of(rng, len(at), rng.choices(near, k=2 * len(near)) if near else [])
        instance = problem.instance.model_copy(update={"application": application})
        try:
            read_instance(instance)
            problem = prepare_mapping(instance)
        except (InputError, RefusedError, OverflowError):
            return None
    return target_of(problem, {"kind": "total"})


def with_arcs(rng: Random, window: PencilWindow, terms: CellTerms) -> network.Network:
    """Return the network of a window, mostly with arcs of one sort that it need not have."""
    found = threshold_network(window, terms)
    free, steps = np.flatnonzero(found.state[:-2] >= 2), window.depth - 1
    if not len(free) or rng.random() < 0.3:
        return found
    tails = np.array(rng.choices(free.tolist(), k=rng.randint(1, len(free))))
    heads = tails + rng.choice((1, 1, 1, steps + 1, steps, -1))
    sort = rng.choice(("source", "sink", *["between"] * 4))
    if sort == "source":
        tails, heads = np.full_like(tails, SOURCE), tails
    elif sort == "sink":
        heads = np.full_like(tails, SINK)
    else:
        inside = np.isin(heads, free)
        tails, heads = tails[inside], heads[inside]
    room = np.full(len(tails), rng.choice((1, found.infinite // 2)))
    return replace(
        found,
        tails=np.concatenate((found.tails, tails)),
        heads=np.concatenate((found.heads, heads)),
        capacities=np.concatenate((found.capacities, room)),
    )


def flow_target(_: str, rng: Random) -> Target | None:
    """Return a window of a layout with few selections, and the flow of its minimum cut.

    It is the checker that has to refuse windows with pairs that may be nearer either way round.
    """
    shape = [*rng.choices((1, 2, 2, 3), k=rng.randint(0, 2)), rng.randint(2, 9)]
    per_router, holes = rng.choice((1, 1, 2)), rng.choice((0, 0.1, 0.2))
    nodes = [node for node in range(math.prod(shape) * per_router) if rng.random() >= holes]
    try:
        problem = problem_on(
            random_grid(rng, most_tasks=rng.choice((6, 24, 48))),
            shape,
            tasks_per_node=rng.choice((1, 1, 2, 4)),
            wrap=[rng.random() < 0.5 for _ in shape],
            nodes_per_router=per_router,
            nodes=format_node_set(nodes),
        )
        instance = read_instance(problem.instance)
        layout = rng.choice(admissible_layouts(problem))
    except (InputError, RefusedError, OverflowError):
        return None
    torus, pencil = problem.torus, rng.randrange(len(shape))
    levels = layout.extents[pencil]
    depth = min(shape[pencil], levels + rng.choice((0, 1, 2, 3, 3, 4)))
    box = [depth if d == pencil else n for d, n in enumerate(layout.extents)]
    ends = [n if w else n - k + 1 for n, k, w in zip(shape, box, torus.wrap, strict=True)]
    origin = tuple(map(rng.randrange, ends))
    window = window_at(torus, problem.whole_routers, layout.extents, pencil, origin, depth)
    selections = math.prod(math.comb(free, levels) for free in window.usable.sum(axis=1).tolist())
    if not rng.choice((1, 20, 20)) < selections <= MOST_SELECTIONS:
        return None
    assert problem.grid is not None
    terms = cell_terms(torus, problem.graph, cells(layout, problem.grid), layout.extents, pencil)
    try:
        cut = cut_selection(window, terms)
    except InputError:  # more bytes than a flow holds exactly
        return None
    at = nodes_of(problem, layout, pencil, window, cut.selection)
    read = check_layout(instance, at, layout_model(layout, pencil, origin, depth))

    def draw(rng: Random) -> Json:
        """Draw a flow as a list of arcs: the window's, or of a network that is not quite this."""
        ring = terms.ring and terms.ring - rng.choice((0, 2 * window.slack))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(network, "threshold_network", partial(with_arcs, rng))
            lies = replace(terms, ring=ring)
            cuts = [cut_selection(window, lies) for _ in range(rng.choice((1, 8)))]
        flow = max(cuts, key=lambda cut: cut.value).certificate()
        arcs = [list(arc) for arc in zip(flow.tails, flow.heads, flow.flows, strict=True)]
        if rng.random() < 0.2:
            arcs.append([*rng.choices((SOURCE, SINK, 0, 1), k=2), number(rng, -1, 1, 0)])
        return faulty(rng, arcs, rng.choice((0, 0, 1, 2)))

    def proven(document: Json) -> Number | None:
        def value() -> int:
            if any(len(arc) != len(FLOW) for arc in document):
                raise RefusedError("an arc has two ends and a flow")
            lists = {key: [arc[k] for arc in document] for k, key in enumerate(FLOW)}
            flow = FlowCertificate.model_validate_json(json.dumps(lists))
            return window_value(instance, read, flow)

        return proven_by(value)

    if terms.mixed(window.slack).any():
        assert proven(draw(rng)) is None
    return Target(least_hop_bytes(window, terms), False, draw, proven)


KINDS: dict[str, Callable[[str, Random], Target | None]] = {
    "total": total_target,
    "embedding": total_target,
    **dict.fromkeys(
        ("blocks", "star", "distance-classes", "cuts", "pairs", "routes", "tree"), bounded_target
    ),
    **dict.fromkeys(("loaded cuts", "loaded routes"), loaded_target),
    "recognised": recognised_target,
    "levels": levels_target,
    "links": link_target,
    "flow": flow_target,
}


def targets(kind: str, seed: int) -> Iterator[Target]:
    """Yield problems for one kind of certificate without end, few of which cost nothing."""
    rng = Random(f"targets-{kind}-{seed}")
    with pytest.MonkeyPatch.context() as patch:
        # what semidefinite bounds prove is valid at any step
        patch.setattr(distance_classes, "MAX_STEPS", 50)
        patch.setattr(pairs, "STEPS", 60)
        patch.setattr(distance_classes, "MAX_PLACES", 16)
        while True:
            target = KINDS[kind](kind, rng)
            if target is not None and (target.truth or rng.random() < 0.02):
                yield target
