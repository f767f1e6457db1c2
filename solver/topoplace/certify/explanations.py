"""Whether the explanations of requests that did not start are true."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from topoplace.certify.instance import Instance, Job, Wish, prism_of, read_instance
from topoplace.certify.report import RefusedError
from topoplace.certify.solution import Start, is_candidate, routers_of
from topoplace.machine import Prism, prism_links
from topoplace.result import Explanation
from topoplace.snapshot.schema import Communication


def check_explanations(
    instance: Instance, starts: list[Start], explanations: list[Explanation]
) -> None:
    """Raise unless every explanation is of another request that waits, and is true.

    That no prism is nearer to free, and that an earlier reason does not apply, is not checked
    (docs/proofs.md, "Explanations").
    """
    started = {start.wish.id for start in starts}
    explained: set[str] = set()
    for explanation in explanations:
        name = explanation.request
        if name not in instance.by_id or name in started or name in explained:
            raise RefusedError(f"{name} is no request that waits, or is explained twice")
        explained.add(name)
        wish = instance.wishes[instance.by_id[name]]
        try:
            _check(instance, starts, wish, explanation)
        except RefusedError as error:
            raise RefusedError(f"{name}: {error}") from None


def _check(instance: Instance, starts: list[Start], wish: Wish, explanation: Explanation) -> None:
    if explanation.reason == "no-shape":
        if explanation.prism is not None or explanation.jobs or explanation.nodes_to_free:
            raise RefusedError("no shape fits, yet a prism, jobs or nodes are named")
        return
    if explanation.prism is None:
        raise RefusedError("the prism is missing")
    prism = prism_of(instance.torus, explanation.prism)
    others: list[Job] | list[Start]
    if explanation.reason == "outbid":
        others, setting = starts, instance
    else:
        others = list(instance.jobs)
        idle = instance.snapshot.model_copy(update={"running": []})
        setting = read_instance(idle, instance.interference)
    if not is_candidate(setting, wish, prism):
        raise RefusedError(f"{prism.text} could not hold the request if it were free")
    names, held = _standing(instance, wish, prism, others)
    if explanation.reason == "blocked" and not names:
        raise RefusedError(f"nothing blocks {prism.text}")
    if sorted(explanation.jobs) != sorted(names):
        raise RefusedError(f"jobs are {explanation.jobs}, not {names}")
    if explanation.nodes_to_free != held:
        raise RefusedError(f"nodes_to_free is {explanation.nodes_to_free}, not {held}")


def _standing(
    instance: Instance, wish: Wish, prism: Prism, others: Sequence[Job | Start]
) -> tuple[list[str], int]:
    """Return which of the others are in the way, and the nodes they have in the prism."""
    torus = instance.torus
    inside = np.zeros(torus.num_routers, dtype=bool)
    inside[prism.routers(torus)] = True
    used = np.zeros(torus.num_links, dtype=bool)
    if wish.sharing is not Communication.NONE:
        used[prism_links(torus, prism)] = True
    names, held = [], 0
    for other in others:
        sharing = other.sharing if isinstance(other, Job) else other.wish.sharing
        both_tolerant = sharing is wish.sharing is Communication.TOLERANT
        routers = other.routers if isinstance(other, Job) else routers_of(instance, other)
        if inside[routers].any() or (not both_tolerant and used[other.links].any()):
            names.append(other.id if isinstance(other, Job) else other.wish.id)
        held += int(inside[other.nodes // torus.nodes_per_router].sum())
    return names, held
