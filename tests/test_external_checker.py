"""The rules for external allocators say no more and no less than the checker."""

from __future__ import annotations

import random

import numpy as np

from small_snapshot import small_document
from topoplace.certify.report import RefusedError
from topoplace.certify.torus.instance import read_instance
from topoplace.certify.torus.solution import check_exclusive, count_shared_links, read_starts
from topoplace.errors import InputError
from topoplace.machine import Prism, format_node_set
from topoplace.result import Interference, Placement, Solution
from topoplace.snapshot import Snapshot
from topoplace.study.external.schema import PlacedJob, Placements
from topoplace.study.external.torus_rules import torus_breaches


def test_nothing_is_called_a_breach_that_the_checker_accepts() -> None:
    document = small_document()
    document["queue"][1] |= {"communication": "tolerant", "region": "half"}
    document["queue"][2] |= {"communication": "none"}
    document["regions"] = {"half": [{"origin": [0, 0, 0], "extents": [4, 2, 3]}]}
    snapshot = Snapshot.model_validate(document)
    seen = set()
    for seed in range(300):
        rng = random.Random(seed)
        answer = _random_answer(rng, snapshot)
        rule = rng.choice(list(Interference))
        accepted = not torus_breaches(snapshot, rule, answer)
        assert accepted == _checker_accepts(snapshot, rule, answer), answer
        seen.add((accepted, any(p.prism is not None for p in answer.placements)))
    assert len(seen) == 4


def _random_answer(rng: random.Random, snapshot: Snapshot) -> Placements:
    """Return placements that often keep the rules: few, in prisms with their usual nodes."""
    instance = read_instance(snapshot, Interference.STRICT)
    torus, jobs = instance.torus, []
    for request in rng.sample(instance.wishes, rng.randint(1, 3)):
        prism = Prism(
            *zip(*[(rng.randrange(n), rng.randint(1, n - 1)) for n in torus.shape], strict=True)
        )
        per = torus.nodes_per_router
        inside = (prism.routers(torus)[:, None] * per + np.arange(per)).ravel()
        if rng.random() < 0.9:
            of_class = instance.node_class[inside] == request.class_idx
            inside = inside[of_class & instance.usable[inside]]
        model = {"origin": list(prism.origin), "extents": list(prism.extents)}
        jobs.append(
            PlacedJob(
                request=request.id,
                nodes=format_node_set(inside[: request.nodes].tolist()),
                prism=model if rng.random() < 0.6 else None,
            )
        )
    return Placements(schema_version="topoplace.placements/1", placements=jobs)


def _checker_accepts(snapshot: Snapshot, rule: Interference, answer: Placements) -> bool:
    """Ask the checker; of links that started jobs share it speaks only if all have prisms."""
    instance = read_instance(snapshot, rule)
    placements = [Placement(**p.model_dump()) for p in answer.placements]
    solution = Solution(placements=placements, num_shared_links=0, conforming=True)
    try:
        starts = read_starts(instance, solution)
        check_exclusive(instance, starts)
    except (RefusedError, InputError):
        return False
    on_prisms = [start for start in starts if start.prism is not None]
    return count_shared_links(instance, on_prisms) == 0
