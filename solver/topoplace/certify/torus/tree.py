"""The bound that a certificate proves (docs/proofs.md, "A tree of leaves")."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from topoplace.certify.report import RefusedError
from topoplace.certify.torus.instance import Instance, Wish
from topoplace.certify.torus.leaf import ANYWHERE, Covers, best_candidates, read_prices
from topoplace.result import CoverBranch, Leaf, LeafRef, Parts, SharedLeaves, StartBranch
from topoplace.result.certificate import Certificate, CertificateNode, WholeTree

LARGEST_SUM = 1 << 24
"""Largest sum of all values for which level 1 is rounded to a sum of values."""


@dataclass(frozen=True)
class _Scope:
    """What the branches above a node fix.

    Attributes
    ----------
    starts
        Who must start or must not, by a branch or since others do or do not.
    named
        Those that a branch names.
    places
        Where requests may go.
    path
        The sides taken so far, in words.
    """

    starts: dict[int, bool] = field(default_factory=dict)
    named: frozenset[int] = frozenset()
    places: dict[int, Covers] = field(default_factory=dict)
    path: tuple[str, ...] = ()

    @property
    def where(self) -> str:
        """Which leaf it is, for the reason of a refusal."""
        return f" at the leaf {', '.join(self.path)}" if self.path else ""


@dataclass(frozen=True)
class Proven:
    """A bound in maximising sense, and the leaf that decides it, in words."""

    value: int
    where: str = ""


def certified_bound(
    instance: Instance, certificate: Certificate, earlier: Sequence[int]
) -> Proven | None:
    """Return the bound of a certificate in maximising sense, None if it leaves no placement.

    Parameters
    ----------
    earlier
        Objectives V_1 .. V_{k-1} of the levels before level k, in maximising sense.

    Raises
    ------
    RefusedError
        If the certificate is not what proofs.md describes.
    """
    if not isinstance(certificate, Parts):
        return tree_bound(instance, certificate, earlier)
    if earlier:
        raise RefusedError("the queue comes in parts on the first level only")
    bounds = [tree_bound(part, tree, []) for part, tree in _parts_of(instance, certificate)]
    known = [bound.value for bound in bounds if bound is not None]
    if len(known) < len(bounds):
        return None
    return Proven(sum(known), f" in parts: {' + '.join(map(str, known))}")


def tree_bound(instance: Instance, root: WholeTree, earlier: Sequence[int]) -> Proven | None:
    """Return the bound of a tree, None if all its leaves are empty (see `certified_bound`)."""
    level_idx = len(earlier)
    shared: list[_Priced] = []
    alike: list[frozenset[int]] = []
    best: Proven | None = None
    if isinstance(root, SharedLeaves):
        if root.alike:
            if earlier:
                raise RefusedError("requests are alike on the first level only")
            instance = _with_alike(instance, root.alike)
            alike = [frozenset(instance.by_id[name] for name in names) for names in root.alike]
        shared = [_Priced(instance, leaf, level_idx, again=True) for leaf in root.leaves]
    todo: list[tuple[CertificateNode, _Scope]]
    todo = [(root.tree if isinstance(root, SharedLeaves) else root, _Scope())]
    while todo:
        node, scope = todo.pop()
        try:
            if isinstance(node, StartBranch):
                todo += _split_start(instance, node, scope, level_idx)
                continue
            if isinstance(node, CoverBranch):
                todo += _split_cover(instance, node, scope, alike)
                continue
            if isinstance(node, LeafRef):
                if earlier:
                    raise RefusedError("leaves are shared on the first level only")
                if node.leaf >= len(shared):
                    raise RefusedError(f"there is no shared leaf {node.leaf}")
                leaf = shared[node.leaf]
                bound = _leaf_bound(leaf, scope, [], times=node.times, over=node.over)
            else:
                leaf = _Priced(instance, node, level_idx, again=False)
                bound = _leaf_bound(leaf, scope, earlier)
        except RefusedError as error:
            raise RefusedError(f"{error}{scope.where}") from None
        if bound is not None and (best is None or bound > best.value):
            best = Proven(bound, scope.where)
    return best


def _request(instance: Instance, name: str) -> int:
    if name not in instance.by_id:
        raise RefusedError(f"a branch on {name}, which is no request")
    return instance.by_id[name]


def _split_start(
    instance: Instance, node: StartBranch, scope: _Scope, level_idx: int
) -> list[tuple[CertificateNode, _Scope]]:
    idx = _request(instance, node.request)
    if idx in scope.named:
        raise RefusedError(f"a second branch on whether {node.request} starts")
    children = []
    for child, starts in ((node.out, False), (node.into, True)):
        fixed = {idx} if level_idx else _followers(instance, idx, starts) | {idx}
        if all(scope.starts.get(q, starts) == starts for q in fixed):
            within = scope.starts | dict.fromkeys(fixed, starts)
            path = (*scope.path, f"{node.request} {'in' if starts else 'out'}")
            narrowed = replace(scope, starts=within, named=scope.named | {idx}, path=path)
            children.append((child, narrowed))
    return children


def _followers(instance: Instance, idx: int, starts: bool) -> set[int]:
    """Return who starts, too, if a request does, or who does not, either, if it does not."""
    pairs = ((q, (q, idx) if starts else (idx, q)) for q in range(len(instance.wishes)))
    return {q for q, pair in pairs if _preferred(instance.wishes, *pair)}


def _preferred(wishes: Sequence[Wish], at: int, below: int) -> bool:
    """Tell whether a request can take any place of another, for at least its value."""
    better, worse = wishes[at], wishes[below]
    if better.kind != worse.kind or better.geometries or worse.geometries:
        return False
    rank, other = (-better.value, better.nodes, at), (-worse.value, worse.nodes, below)
    return better.nodes <= worse.nodes and better.value >= worse.value and rank < other


def _split_cover(
    instance: Instance, node: CoverBranch, scope: _Scope, alike: Sequence[frozenset[int]]
) -> list[tuple[CertificateNode, _Scope]]:
    idx = _request(instance, node.request)
    if not scope.starts.get(idx, False):
        raise RefusedError(f"a cover branch on {node.request} outside an `into` of it")
    if node.row >= instance.torus.num_routers:
        raise RefusedError(f"a cover branch on router {node.row}, which is none")
    covers = scope.places.get(idx, ANYWHERE)
    others = [
        q
        for group in alike
        if idx in group
        for q in group
        if scope.starts.get(q, False) and scope.places.get(q, ANYWHERE) == covers
    ]
    children = []
    for child, inside, whose in ((node.inside, True, {idx}), (node.outside, False, {idx, *others})):
        places = scope.places | dict.fromkeys(whose, covers.split(node.row, inside=inside))
        path = (*scope.path, f"{node.request} {'on' if inside else 'off'} {node.row}")
        children.append((child, replace(scope, places=places, path=path)))
    return children


class _Priced:
    """The prices of a leaf, and best(q) as far as it was asked for.

    A leaf that is referred to again and again finds best(q) of every request at once.
    """

    def __init__(self, instance: Instance, leaf: Leaf, level_idx: int, *, again: bool) -> None:
        self.prices = read_prices(instance, leaf, level_idx)
        self.multipliers = leaf.multipliers
        self.instance = instance
        self._again = again
        self._best: dict[tuple[int, Covers], int | None] = {}

    def best(self, scope: _Scope) -> dict[int, int | None]:
        """Return best(q) of the requests that may start, where they may go."""
        every = {q: scope.places.get(q, ANYWHERE) for q in range(len(self.instance.wishes))}
        wanted = {q: covers for q, covers in every.items() if scope.starts.get(q, True)}
        if self._again and not self._best:
            self._ask(every)
        self._ask({q: covers for q, covers in wanted.items() if (q, covers) not in self._best})
        return {q: self._best[q, covers] for q, covers in wanted.items()}

    def _ask(self, wanted: dict[int, Covers]) -> None:
        if wanted:
            found = best_candidates(self.instance, self.prices, wanted)
            self._best |= {(q, covers): found[q] for q, covers in wanted.items()}


def _leaf_bound(
    leaf: _Priced, scope: _Scope, earlier: Sequence[int], *, times: int = 1, over: int = 1
) -> int | None:
    """Return the bound of a leaf at prices that are multiplied by ``times / over``.

    Other factors than 1 come on the first level only, where no multipliers are: there a
    candidate's value is the request's, so that the cheapest candidate stays the best.
    """
    prices, wishes = leaf.prices, leaf.instance.wishes
    # `over` times the scale makes all of it true units
    side = times * prices.total - sum(m * v for m, v in zip(leaf.multipliers, earlier, strict=True))
    for idx, best in leaf.best(scope).items():
        if best is None:
            if idx in scope.starts:
                return None
            continue
        gain = times * best + (over - times) * prices.scale * wishes[idx].value
        side += gain if idx in scope.starts else max(0, gain)
    bound, most = side // (over * prices.scale), sum(wish.value for wish in wishes)
    if not earlier and most <= LARGEST_SUM:
        return _largest_sum(leaf.instance, scope, min(bound, most))
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


def _parts_of(instance: Instance, certificate: Parts) -> Iterator[tuple[Instance, WholeTree]]:
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


def _with_alike(instance: Instance, groups: Sequence[Sequence[str]]) -> Instance:
    """Return the instance in which requests need the fewest nodes of their group.

    Raises
    ------
    RefusedError
        If the members of a group differ in more than nodes and priority, or are no requests, or a
        request is in two.
    """
    wishes = list(instance.wishes)
    grouped: set[int] = set()
    for names in groups:
        members = []
        for name in names:
            if name not in instance.by_id:
                raise RefusedError(f"{name} among alike requests, which is no request")
            if (idx := instance.by_id[name]) in grouped:
                raise RefusedError(f"{name} twice among alike requests")
            grouped.add(idx)
            members.append(idx)
        if len({wishes[i].kind for i in members}) > 1 or any(wishes[i].geometries for i in members):
            raise RefusedError(f"requests {', '.join(names)} are not alike")
        fewest = min((wishes[i].nodes for i in members), default=0)
        for i in members:
            wishes[i] = replace(wishes[i], nodes=fewest, value=wishes[i].value)
    return replace(instance, wishes=tuple(wishes))
