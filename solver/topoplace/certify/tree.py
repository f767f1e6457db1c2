"""The bound that a certificate proves (docs/proofs.md, "A tree of leaves")."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from topoplace.certify.bounds import Bounds, no_bounds
from topoplace.certify.instance import Instance
from topoplace.certify.leaf import read_prices
from topoplace.certify.pricing import Pricer
from topoplace.certify.report import RefusedError
from topoplace.result import Leaf, PlaceBranch, StartBranch
from topoplace.result.schema import CertificateNode

LARGEST_SUM = 1 << 24
"""Largest sum of all values for which level 1 is rounded to a sum of values."""


@dataclass(frozen=True)
class _Scope:
    """What the branches above a node fix: who must start or not, and where requests may go."""

    starts: dict[int, bool] = field(default_factory=dict)
    places: dict[int, Bounds] = field(default_factory=dict)


def tree_bound(
    instance: Instance,
    pricer: Pricer,
    root: CertificateNode,
    level_idx: int,
    earlier: Sequence[int],
) -> int | None:
    """Return the bound of a certificate in maximising sense, None if all its leaves are empty.

    Parameters
    ----------
    earlier
        Objectives V_1 .. V_{k-1} of the levels before, in maximising sense.

    Raises
    ------
    RefusedError
        If the tree or one of its leaves is not what proofs.md describes.
    """
    best: int | None = None
    todo: list[tuple[CertificateNode, _Scope]] = [(root, _Scope())]
    while todo:
        node, scope = todo.pop()
        if isinstance(node, StartBranch):
            todo += _split_start(instance, node, scope)
        elif isinstance(node, PlaceBranch):
            todo += _split_place(instance, node, scope)
        else:
            bound = _leaf_bound(instance, pricer, node, scope, level_idx=level_idx, earlier=earlier)
            if bound is not None:
                best = bound if best is None else max(best, bound)
    return best


def _request(instance: Instance, name: str) -> int:
    if name not in instance.by_id:
        raise RefusedError(f"a branch on {name}, which is no request")
    return instance.by_id[name]


def _split_start(
    instance: Instance, node: StartBranch, scope: _Scope
) -> list[tuple[CertificateNode, _Scope]]:
    idx = _request(instance, node.request)
    if idx in scope.starts:
        raise RefusedError(f"a second branch on whether {node.request} starts")
    return [
        (child, replace(scope, starts=scope.starts | {idx: starts}))
        for child, starts in ((node.out, False), (node.into, True))
    ]


def _split_place(
    instance: Instance, node: PlaceBranch, scope: _Scope
) -> list[tuple[CertificateNode, _Scope]]:
    idx = _request(instance, node.request)
    if not scope.starts.get(idx, False):
        raise RefusedError(f"a place branch on {node.request} outside an `into` of it")
    if node.dim >= instance.torus.num_dims:
        raise RefusedError(f"a place branch in dimension {node.dim}")
    bounds = scope.places.get(idx) or no_bounds(instance)
    at = min(node.at, instance.torus.shape[node.dim])  # beyond, nothing is left to split
    return [
        (
            child,
            replace(scope, places=scope.places | {idx: bounds.cut(node.what, node.dim, at, side)}),
        )
        for child, side in ((node.low, "low"), (node.high, "high"))
    ]


def _leaf_bound(
    instance: Instance,
    pricer: Pricer,
    leaf: Leaf,
    scope: _Scope,
    *,
    level_idx: int,
    earlier: Sequence[int],
) -> int | None:
    prices = read_prices(instance, leaf, level_idx)
    anywhere = no_bounds(instance)
    wanted = {
        idx: scope.places.get(idx, anywhere)
        for idx in range(len(instance.wishes))
        if scope.starts.get(idx, True)
    }
    side = prices.total - sum(m * v for m, v in zip(leaf.multipliers, earlier, strict=True))
    for idx, best in pricer.best(prices, wanted).items():
        if idx in scope.starts:
            if best is None:
                return None
            side += best
        elif best is not None:
            side += max(0, best)
    bound = side // leaf.scale
    if level_idx == 0 and sum(wish.value for wish in instance.wishes) <= LARGEST_SUM:
        return _largest_sum(instance, scope, bound)
    return bound


def _largest_sum(instance: Instance, scope: _Scope, limit: int) -> int | None:
    """Return the largest total value of a set of requests the scope admits, at most `limit`."""
    if limit < 0:
        return None
    sums = 1  # bit s: s is the total of some set
    for idx, wish in enumerate(instance.wishes):
        starts = scope.starts.get(idx)
        if starts is None:
            sums |= sums << wish.value
        elif starts:
            sums <<= wish.value
    return (sums & ((1 << (limit + 1)) - 1)).bit_length() - 1 if sums else None
