"""The queue in parts, which certificates may bound one by one (docs/proofs.md, "Parts")."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from topoplace.certify.instance import Instance
from topoplace.certify.report import RefusedError
from topoplace.result import Parts
from topoplace.result.placement import WholeTree


def instances_of(instance: Instance, certificate: Parts) -> Iterator[tuple[Instance, WholeTree]]:
    """Yield for every part the instance with its requests alone, and its certificate.

    Raises
    ------
    RefusedError
        If a request is in no part or twice in parts, or a part names what is no request.
    """
    named = Counter(name for part in certificate.parts for name in part.requests)
    for name in named:
        if name not in instance.by_id:
            raise RefusedError(f"{name} in a part of the queue, which is no request")
    for name in instance.by_id:
        if named[name] != 1:
            raise RefusedError(f"{name} is {named[name]} times in parts of the queue, not once")
    for part in certificate.parts:
        wishes = tuple(instance.wishes[instance.by_id[name]] for name in part.requests)
        by_id = {wish.id: idx for idx, wish in enumerate(wishes)}
        yield replace(instance, wishes=wishes, by_id=by_id), part.certificate
