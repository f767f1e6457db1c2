"""Whether the explanations of requests that did not start are true."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from functools import cached_property

import numpy as np

from topoplace.certify.report import RefusedError
from topoplace.certify.torus.instance import Instance, Job, Request, prism_of, read_instance
from topoplace.certify.torus.shapes import Box
from topoplace.certify.torus.solution import Start, why_no_candidate
from topoplace.machine import Prism, prism_links
from topoplace.result import Explanation
from topoplace.snapshot.schema import Communication

MOST_ROUTERS = 200
"""Of machines on which explanations are held against all prisms."""


def check_explanations(
    instance: Instance, starts: list[Start], explanations: list[Explanation]
) -> str:
    """Raise unless every explanation is of another request that waits, and is true.

    That its reason is the first that applies and no prism is nearer to free is found by going
    through all prisms, on small machines (docs/proofs.md, "Explanations").

    Returns
    -------
    str
        A summary for the report.
    """
    started = {start.id for start in starts}
    explained: set[str] = set()
    settings = _Settings(instance, starts)
    for explanation in explanations:
        name = explanation.request
        if name not in instance.by_id or name in started or name in explained:
            raise RefusedError(f"{name} is no request that waits, or is explained twice")
        explained.add(name)
        request = instance.by_id[name]
        try:
            _check(settings, request, explanation)
        except RefusedError as error:
            raise RefusedError(f"{name}: {error}") from None
    summary = f"{len(explanations)} requests explained"
    if explanations and not settings.are_small:
        summary += "; on a machine of this size, that no prism is nearer is not repeated"
    return summary


class _Settings:
    """What a request that waits may be compared with: the machine as it is, and idle."""

    def __init__(self, instance: Instance, starts: list[Start]) -> None:
        self.instance, self.starts = instance, starts
        self.are_small = instance.torus.num_routers <= MOST_ROUTERS

    @cached_property
    def idle(self) -> Instance:
        snapshot = self.instance.snapshot.model_copy(update={"running": []})
        return read_instance(snapshot, self.instance.interference)

    def of(self, reason: str) -> tuple[Instance, Sequence[Job]]:
        """Return the setting that a reason speaks of, and the jobs that stand in it."""
        if reason == "outbid":
            return self.instance, self.starts
        return self.idle, self.instance.jobs

    def nearest(self, request: Request) -> tuple[str, tuple[int, int] | None]:
        """Return the first reason that applies, on a small machine.

        With it come nodes of others and volume of a prism nearest to free, if there is one.
        """
        torus = self.instance.torus
        for reason in ("outbid", "blocked"):
            setting, others = self.of(reason)
            held = np.zeros(torus.num_routers, dtype=np.int64)
            for other in others:
                np.add.at(held, other.nodes // torus.nodes_per_router, 1)
            found = []
            for extents in itertools.product(*(range(1, n + 1) for n in torus.shape)):
                box = Box(setting, extents)
                good = box.candidates(request)
                if good.any():
                    found.append((int(box.sums(held)[good].min()), math.prod(extents)))
            if found:
                return reason, min(found)
        return "no-shape", None


def _check(settings: _Settings, request: Request, explanation: Explanation) -> None:
    instance, reason = settings.instance, explanation.reason
    nearest: tuple[int, int] | None = None
    if settings.are_small:
        first, nearest = settings.nearest(request)
        if reason != first:
            raise RefusedError(f"the reason is {reason}, not {first}")
    if reason == "no-shape":
        named = explanation.prism, explanation.nodes_to_free
        if named != (None, None) or explanation.jobs:
            raise RefusedError("no shape fits, yet a prism, jobs or nodes are named")
        return
    if explanation.prism is None:
        raise RefusedError("the prism is missing")
    prism = prism_of(instance.torus, explanation.prism)
    setting, others = settings.of(reason)
    if why_no_candidate(setting, request, prism):
        raise RefusedError(f"{prism.text} could not hold the request if it were free")
    names, held = _standing(instance, request, prism, others)
    if reason == "blocked" and not names:
        raise RefusedError(f"nothing blocks {prism.text}")
    if sorted(explanation.jobs) != sorted(names):
        raise RefusedError(f"jobs are {explanation.jobs}, not {names}")
    if explanation.nodes_to_free != held:
        raise RefusedError(f"nodes_to_free is {explanation.nodes_to_free}, not {held}")
    if nearest not in (None, (held, prism.volume)):
        raise RefusedError(
            f"{prism.text} holds {held} nodes of others in {prism.volume} routers, "
            f"one nearer to free {nearest[0]} in {nearest[1]}"
        )


def _standing(
    instance: Instance, request: Request, prism: Prism, others: Sequence[Job]
) -> tuple[list[str], int]:
    """Return which of the others are in the way, and the nodes they have in the prism."""
    torus = instance.torus
    inside = np.zeros(torus.num_routers, dtype=bool)
    inside[prism.routers(torus)] = True
    used = np.zeros(torus.num_links, dtype=bool)
    if request.sharing is not Communication.NONE:
        used[prism_links(torus, prism)] = True
    names, held = [], 0
    for other in others:
        both_tolerant = other.sharing is request.sharing is Communication.TOLERANT
        if inside[other.routers].any() or (not both_tolerant and used[other.links].any()):
            names.append(other.id)
        held += int(inside[other.nodes // torus.nodes_per_router].sum())
    return names, held
