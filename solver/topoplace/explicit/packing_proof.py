"""The certificate of a packing as a proof for VeriPB 3.0 (docs/proofs/veripb.md).

For a tree with the bound B, a new variable `over` stands for an objective of more than B. At every
leaf, its prices add rows up to a constraint that the branches above contradict if `over` holds: so
one of the branches is the other way, or `over` does not hold. Such clauses are resolved up to the
root, where `over` is false. Exchanges of requests are proven by redundance.
"""

from __future__ import annotations

import io
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from topoplace.certify.packing import CheckingOracle, certified_bound, read_prices
from topoplace.errors import InputError
from topoplace.explicit.chosen import Chosen
from topoplace.explicit.packing import PackedModel, model_of
from topoplace.explicit.script import Script, conclude, negated, numbers_of, written
from topoplace.explicit.search_proof import prove_by_search
from topoplace.kinds import kind_named
from topoplace.result.certificate import (
    CoverBranch,
    Leaf,
    LeafRef,
    Parts,
    SharedLeaves,
    StartBranch,
)
from topoplace.types import BoolArray, IntArray


@dataclass(frozen=True)
class _Scope:
    """What the branches above a node say: literals that are true, requests and rows decided."""

    path: tuple[str, ...] = ()
    starts: Mapping[int, bool] = field(default_factory=dict)
    covers: Mapping[int, tuple[tuple[int, bool], ...]] = field(default_factory=dict)
    hints: tuple[int, ...] = ()


class _Tree:
    """The proof of one tree: what bounds the packings of some requests.

    Parameters
    ----------
    requests
        Those of the tree, in the order of its queue.
    bound
        What is proven, maximised: at least what the tree proves.
    """

    def __init__(
        self,
        script: Script,
        packed: PackedModel,
        oracle: CheckingOracle,
        requests: Sequence[int],
        certificate: Any,
        bound: int,
    ) -> None:
        self.script, self.packed, self.oracle = script, packed, oracle
        self.requests, self.bound = list(requests), bound
        self.leaves: list[Leaf] = []
        self.groups: list[list[int]] = []
        self.root = certificate
        if isinstance(certificate, SharedLeaves):
            number = {name: q for q, name in enumerate(packed.packing.names)}
            self.leaves, self.root = certificate.leaves, certificate.tree
            self.groups = [[number[name] for name in group] for group in certificate.alike]
        self.rows, _ = numbers_of(packed.model)
        self.values: list[int] = np.asarray(packed.packing.values).tolist()
        among = frozenset(self.requests)
        better = packed.packing.earlier_of_kind if packed.level else packed.packing.dominating
        self._better = better(among)
        self._covers: dict[tuple[int, int], tuple[str, int, int]] = {}
        self._reified: dict[tuple[int, int], int] = {}
        self._sums: dict[tuple[int, int], tuple[str, int, int]] = {}
        self._prices: dict[int, tuple[Any, IntArray]] = {}
        self._steps: dict[tuple[tuple[int, int], tuple[int, int]], int] = {}

    # ---- the requests that come before others

    def preferred(self, one: int, other: int) -> bool:
        """Return whether a request can take any place of another, and comes before it."""
        return one in self._better.get(other, ())

    def exchanges(self) -> dict[tuple[int, int], int]:
        """Prove that no request starts without those preferred to it, as far as branches need it.

        Returns
        -------
        dict
            By request, and one preferred to it, the constraint.
        """
        named = set(self._branches(self.root))
        pairs = {(a, b) for a in self.requests for b in named if self.preferred(b, a)}
        pairs |= {(a, b) for a in named for b in self.requests if self.preferred(b, a)}
        while True:
            more = {(a, d) for a, b in pairs for c, d in pairs if b == c} - pairs
            if not more:
                break
            pairs |= more
        before = {q: sum(self.preferred(b, q) for b in self.requests) for q in self.requests}
        order = sorted(pairs, key=lambda pair: before[pair[1]] - before[pair[0]])
        return {(a, b): self.exchange(a, b) for a, b in order}

    def _branches(self, node: Any) -> Iterator[int]:
        if isinstance(node, StartBranch):
            yield list(self.packed.packing.names).index(node.request)
            yield from self._branches(node.out)
            yield from self._branches(node.into)
        elif isinstance(node, CoverBranch):
            yield from self._branches(node.inside)
            yield from self._branches(node.outside)

    def swap(self, a: int, b: int, starts: bool = True) -> str:
        """Return the substitution that exchanges two requests in all places of the first one."""
        packed = self.packed
        places: dict[tuple[Any, ...], list[str]] = defaultdict(
            list
        )  # several may have the same rows
        for k in packed.of(b).tolist():
            places[self._key(k)].append(packed.variable(k))
        pairs = [(packed.start(a), packed.start(b))] if starts else []
        for k in packed.of(a).tolist():
            others = places[self._key(k)]
            if not others:
                names = packed.packing.names
                expected = f"a place of {names[b]} for each of {names[a]} in the model"
                raise InputError(expected, field="certificate", value=packed.variable(k))
            pairs.append((packed.variable(k), others.pop(0)))
        return " ".join(f"{x} -> {y} {y} -> {x}" for x, y in pairs)

    def _key(self, k: int) -> tuple[Any, ...]:
        """Return the values of a candidate, and its rows; those of its request alone by place."""
        packed, amounts = self.packed, self.packed.amounts
        name = packed.packing.names[packed.request[k]]
        mine = packed.packing.families.get(f"links of {name}", slice(0, 0))
        a, b = amounts.indptr[k : k + 2]
        rows = amounts.indices[a:b].tolist()
        of_all = [
            r - mine.start - packed.packing.num_rows if r in range(mine.start, mine.stop) else r
            for r in rows
        ]
        own = sorted(zip(of_all, amounts.data[a:b].tolist(), strict=True))
        return *own, *packed.values[k, 1:].tolist()

    def exchange(self, a: int, b: int) -> int:
        """Prove that a request does not start without one that can take its place."""
        packed, script = self.packed, self.script
        clause = written({f"~{packed.start(a)}": 1, packed.start(b): 1}, 1)
        one, other = self.rows[packed.one[a]] + 1, self.rows[packed.one[b]] + 1
        script.line(f"red {clause} : {self.swap(a, b)} : subproof")
        script.last += 1  # its negation
        if len(packed.of(a)) < len(packed.of(b)):  # otherwise it is the other equation
            script.line(f"proofgoal {other}")
            script.last += 1
            script.step(f"pol -1 {one} + {other} +")
            script.step("rup >= 1")
            script.line("qed;")
        script.line("qed;")
        script.last += 1
        return script.last

    # ---- the tree

    def prove(self) -> int:
        """Prove the bound, and return the constraint that says so."""
        script = self.script
        self.order = self.exchanges()
        objective = self._objective()
        self.over, self._if_over, if_not = script.reified("over", objective, self.bound + 1)
        self._sums[len(self.requests), self.bound + 1] = self.over, self._if_over, if_not
        clause = self._node(self.root, _Scope())
        most = sum(max(0, c) for c in objective.values())
        return script.total([(if_not, 1), (clause, max(0, most - self.bound))])

    def _objective(self) -> dict[str, int]:
        """Return the value of the level, of the requests of this tree."""
        packed, own = self.packed, set(self.requests)
        if packed.level == 0:
            return {packed.start(q): self.values[q] for q in self.requests if self.values[q]}
        return {
            packed.variable(k): v
            for k, (q, v) in enumerate(
                zip(packed.request.tolist(), packed.values[:, -1].tolist(), strict=True)
            )
            if v and q in own
        }

    def _node(self, node: Any, scope: _Scope) -> int:
        """Prove that a branch above is the other way, or `over` is false."""
        if isinstance(node, Leaf | LeafRef):
            return self._leaf(node, scope)
        sides = self._starting if isinstance(node, StartBranch) else self._covering
        clauses = [self._node(child, below) for child, below in sides(node, scope)]
        hints = [*clauses, *scope.hints]
        if len(clauses) < 2:  # the other side contradicts what exchanges say
            hints += [number for _, number in self.order.items()]
        return self._clause(scope, hints)

    def _clause(self, scope: _Scope, hints: Iterable[int]) -> int:
        return self.script.rup([f"~{self.over}", *map(negated, scope.path)], hints)

    def _starting(self, node: StartBranch, scope: _Scope) -> Iterator[tuple[Any, _Scope]]:
        q = list(self.packed.packing.names).index(node.request)
        for child, starts in ((node.out, False), (node.into, True)):
            pairs = [(q, b) if starts else (b, q) for b in self.requests]
            followers = {b: (a, b) for (a, b) in pairs if starts and (a, b) in self.order} | {
                a: (a, b) for (a, b) in pairs if not starts and (a, b) in self.order
            }
            fixed = {q, *followers}
            if all(scope.starts.get(other, starts) == starts for other in fixed):
                literal = self.packed.start(q) if starts else f"~{self.packed.start(q)}"
                hints = (*scope.hints, *(self.order[pair] for pair in followers.values()))
                yield (
                    child,
                    replace(
                        scope,
                        path=(*scope.path, literal),
                        starts={**scope.starts, **dict.fromkeys(fixed, starts)},
                        hints=hints,
                    ),
                )

    def _covering(self, node: CoverBranch, scope: _Scope) -> Iterator[tuple[Any, _Scope]]:
        q = list(self.packed.packing.names).index(node.request)
        variable, _, _ = self._cover(q, node.row)
        own = scope.covers.get(q, ())
        alike = [
            other
            for group in self.groups
            if q in group
            for other in group
            if other != q
            and scope.starts.get(other, True)
            and set(scope.covers.get(other, ())) == set(own)
        ]
        same = tuple(self._alike(q, other, node.row, scope) for other in alike)
        inside = {**scope.covers, q: (*own, (node.row, True))}
        yield node.inside, replace(scope, path=(*scope.path, variable), covers=inside)
        outside = {**scope.covers, **dict.fromkeys([q, *alike], (*own, (node.row, False)))}
        hints = scope.hints + same
        path = (*scope.path, f"~{variable}")
        yield node.outside, replace(scope, path=path, covers=outside, hints=hints)

    def _taking(self, q: int, row: int) -> BoolArray:
        own = self.packed.of(q)
        return np.asarray(self.packed.amounts[own][:, [row]].toarray().ravel() > 0)

    def _cover(self, q: int, row: int) -> tuple[str, int, int]:
        """Return a variable for a candidate of a request on a row.

        With it come the constraints that candidates on the row are none without it, and that those
        off the row are none with it.
        """
        if (q, row) not in self._covers:
            packed, script = self.packed, self.script
            own, taking = packed.of(q), self._taking(q, row)
            on = {packed.variable(k): 1 for k in own[taking].tolist()}
            variable, if_on, without = script.reified(f"on_{row}", on, 1)
            none = self.rows[packed.one[q]] + 1, f"~{packed.start(q)}"  # at most one candidate
            if len(on) > 1:  # so the variable need not be multiplied by their number
                words = [f"{without} {none[0]} {none[1]} +"]
                words += [f"{packed.variable(k)} +" for k in own[~taking].tolist()]
                without = script.step(f"pol {' '.join(words)} {len(on) - 1} * + {len(on)} d")
            off = script.total([(none[0], 1), (if_on, 1), (none[1], 1)])
            self._covers[q, row] = variable, without, off
            self._reified[q, row] = if_on
        return self._covers[q, row]

    def _alike(self, q: int, other: int, row: int, scope: _Scope) -> int:
        """Prove that of two alike requests that start, the other one is on a row only if one is.

        Else they exchange their candidates. Both start, so that only places change.
        """
        packed, script = self.packed, self.script
        if len(packed.of(q)) != len(packed.of(other)):
            names = packed.packing.names
            expected = "alike requests with the same candidates"
            raise InputError(expected, field="certificate", value=f"{names[q]}, {names[other]}")
        rows = {r for request, r in self._covers if request in (q, other)} | {row}
        pairs = [(self._cover(q, r)[0], self._cover(other, r)[0]) for r in sorted(rows)]
        swap = " ".join([self.swap(q, other, False), *(f"{x} -> {y} {y} -> {x}" for x, y in pairs)])
        mine, others = self._cover(q, row), self._cover(other, row)
        clause = [*map(negated, scope.path), mine[0], negated(others[0])]
        both = [f"~{packed.start(q)}", f"~{packed.start(other)}"]
        literals = dict.fromkeys([*clause, *both], 1)
        script.line(f"red {written(literals, 1)} : {swap} : subproof")
        script.last += 1
        ones = [self.rows[packed.one[request]] + 1 for request in (q, other)]
        for one, its in (ones, ones[::-1]):
            script.line(f"proofgoal {one}")
            script.last += 1
            script.step(f"pol -1 {its} +")
            script.step("rup >= 1")
            script.line("qed;")
        script.line("qed;")
        script.last += 1
        starts = script.total([(ones[1], 1), (self._reified[other, row], 1)])
        return script.rup(clause, [*scope.hints, script.last - 1, starts])

    # ---- leaves

    def _leaf(self, node: Leaf | LeafRef, scope: _Scope) -> int:
        packed, script = self.packed, self.script
        if isinstance(node, LeafRef):
            leaf, times, over = self.leaves[node.leaf], node.times, node.over
        else:
            leaf, times, over = node, 1, 1
        *multipliers, scale = (*leaf.multipliers, leaf.scale)
        prices, paid = self._priced(leaf)
        weights = np.array([*multipliers, scale], dtype=np.int64)
        parts: list[tuple[int | str, int]] = []
        limit = 0  # what the value times the scale may be at most
        capacities = packed.packing.capacities
        for row in np.flatnonzero((prices > 0) & (packed.row >= 0)).tolist():
            parts.append((self.rows[packed.row[row]], times * int(prices[row])))
            limit += times * int(prices[row]) * int(capacities[row])
        for kept, m, v in zip(packed.kept, multipliers, packed.earlier, strict=True):
            if m and kept is not None and v is not None:
                parts.append((self.rows[kept], m))
                limit -= m * v
        hints: list[int] = []
        for q in self.requests:
            own = packed.of(q)
            first = (multipliers[0] if packed.level else over * scale) * self.values[q]
            gains = packed.values[own, 1:] @ weights[1:] - paid[own]
            limit += self._request(q, own, gains, times, first, scope, parts, hints)
        size = over * scale
        if size * (self.bound + 1) > limit:
            parts.append((self._if_over, size))
        else:
            least, clause = self._next_sum(scope)
            if least is None:
                return clause
            if size * least <= limit:
                raise InputError("leaves that prove the bound by these rules", field="certificate")
            parts.append((self._sum(len(self.requests), least)[1], size))
            hints.append(clause)
        total = script.total(parts)
        clause = self._clause(scope, [*scope.hints, *hints, total])
        script.delete(total)
        return clause

    def _priced(self, leaf: Leaf) -> tuple[IntArray, IntArray]:
        """Return the price of every row, and what every candidate pays."""
        if id(leaf) not in self._prices:
            packed = self.packed
            prices = np.zeros(packed.packing.num_rows, dtype=np.int64)
            read = read_prices(self.oracle, leaf, packed.level)
            for family, own in read.rows.items():
                prices[packed.packing.families[family]] = own
            self._prices[id(leaf)] = prices, packed.amounts @ prices
        return self._prices[id(leaf)]

    def _request(
        self,
        q: int,
        own: IntArray,
        gains: IntArray,
        times: int,
        first: int,
        scope: _Scope,
        parts: list[tuple[int | str, int]],
        hints: list[int],
    ) -> int:
        """Add what bounds the gain of a request, and return that bound."""
        packed, one = self.packed, self.rows[self.packed.one[q]]
        covers = [(row, inside, self._taking(q, row)) for row, inside in scope.covers.get(q, ())]
        allowed = np.ones(len(own), dtype=bool)
        for _, inside, taking in covers:
            allowed &= taking == inside
        starts = scope.starts.get(q)
        for row, _, _ in covers:
            hints += self._cover(q, row)[1:]
        if covers:
            hints += [one, one + 1]
        if not allowed.any():
            hints += [one, one + 1]
            return 0
        most = times * int(gains[allowed].max())
        if most > 0:
            parts.append((one + 1, most))
        elif most < 0:
            parts.append((one, -most))
        best = first + most
        for row, inside, taking in covers:
            outside = gains[taking != inside]
            excess = times * int(outside.max()) - most if len(outside) else 0
            if excess > 0:
                _, without, off = self._cover(q, row)
                parts.append((off if inside else without, excess))
        if starts is not False and best > 0:
            parts.append((f"~{packed.start(q)}", best))
            return best
        return best if starts else 0

    # ---- sums of values have gaps

    def _next_sum(self, scope: _Scope) -> tuple[int | None, int]:
        """Return the least sum of values beyond the bound that a scope allows; None if none.

        With it comes the clause that a branch of the scope is the other way, or the objective
        reaches that sum if it is beyond the bound.
        """
        sums = [1]  # by number of first requests, bit s: s is the sum of values of some of them
        for q in self.requests:
            starts, value = scope.starts.get(q), self.values[q]
            before = sums[-1]
            sums.append(
                before | before << value if starts is None else before << value * bool(starts)
            )
        self._gaps: dict[tuple[int, int | None, int | None], int] = {}
        below, above = _around(sums[-1], self.bound, self.bound + 1)
        return above, self._gap(len(self.requests), below, above, sums, scope)

    def _gap(
        self, i: int, below: int | None, above: int | None, sums: list[int], scope: _Scope
    ) -> int:
        """Prove that the sum of the first requests is not between two sums that are next."""
        if (i, below, above) in self._gaps:
            return self._gaps[i, below, above]
        hints = [*scope.hints]
        clause = [*map(negated, scope.path)]
        if below is not None:
            known = self._sum(i, self.bound + 1 if i == len(self.requests) else below + 1)
            clause.append(negated(known[0]))
            hints += [known[1]] if above is None else []
        if above is not None:
            known = self._sum(i, above)
            clause.append(known[0])
            hints += [known[2]] if below is None else []
        if below is not None and above is not None:
            q = self.requests[i - 1]
            variable, value = self.packed.start(q), self.values[q]
            for starts in (False, True):
                if scope.starts.get(q, starts) == starts:
                    less = value if starts else 0
                    literal = f"~{variable}" if starts else variable
                    own = _around(sums[i - 1], below - less, above - less)
                    steps = [self._gap(i - 1, *own, sums, scope), *scope.hints]
                    limit = self.bound + 1 if i == len(self.requests) else below + 1
                    if own[0] is not None:
                        steps.append(self._implied((i, limit), (i - 1, own[0] + 1)))
                    if own[1] is not None:
                        steps.append(self._implied((i - 1, own[1]), (i, above)))
                    hints.append(self.script.rup([*clause, literal], steps))
        self._gaps[i, below, above] = self.script.rup(clause, hints)
        return self._gaps[i, below, above]

    def _sum(self, i: int, least: int) -> tuple[str, int, int]:
        """Return a variable for: the first requests have a value of at least so much."""
        if (i, least) not in self._sums:
            terms = {self.packed.start(q): self.values[q] for q in self.requests[:i]}
            self._sums[i, least] = self.script.reified(f"sum_{i}_{least}", terms, least)
        return self._sums[i, least]

    def _implied(self, one: tuple[int, int], other: tuple[int, int]) -> int:
        """Add up what follows if one sum is reached, and if another one is not."""
        if (one, other) not in self._steps:
            parts = [(self._sum(*one)[1], 1), (self._sum(*other)[2], 1)]
            self._steps[one, other] = self.script.total(parts)
        return self._steps[one, other]


def _around(sums: int, below: int, above: int) -> tuple[int | None, int | None]:
    """Return the largest sum that is at most one number, and the least that is at least another."""
    least = sums & ((1 << below + 1) - 1) if below >= 0 else 0
    most = sums >> max(0, above)
    return (
        least.bit_length() - 1 if least else None,
        max(0, above) + (most & -most).bit_length() - 1 if most else None,
    )


def prove_packing(
    packed: PackedModel,
    oracle: CheckingOracle,
    certificate: Any,
    write: Callable[[str], object],
) -> None:
    """Write the proof that a level of a packing is at most a bound, and of its solution.

    Raises
    ------
    InputError
        If the certificate has something that is not expressed.
    """
    _, last = numbers_of(packed.model)
    script = Script(write, last, packed.model)
    number = {name: q for q, name in enumerate(packed.packing.names)}
    if isinstance(certificate, Parts):
        trees = [
            ([number[n] for n in part.requests], part.certificate) for part in certificate.parts
        ]
    else:
        trees = [([*number.values()], certificate)]
    parts: list[tuple[int | str, int]] = []
    bound = 0
    for requests, tree in trees:
        own = oracle if len(trees) == 1 else oracle.among([(q, q) for q in requests])
        found = certified_bound(own, tree, packed.earlier)
        if found is None:
            raise InputError("a certificate that leaves a placement", field="certificate")
        bound += found.value
        parts.append((_Tree(script, packed, oracle, requests, tree, found.value).prove(), 1))
    proven = script.total(parts)
    conclude(script, packed.model, -bound, proven)


class ProvedPacking:
    """The model of a level of a packing, and the proof of its bound."""

    def __init__(self, packed: PackedModel) -> None:
        self.packed, self.model = packed, packed.model
        self.first, self.solution = packed.first, packed.solution

    def prove(self, own: Chosen, write: Callable[[str], object]) -> None:
        """Write the proof of the bound of a result's level, from the certificate if it suffices."""
        level = own.level
        proof = io.StringIO()
        try:
            if level.certificate is None:
                raise InputError("a certificate", field="certificate", found="none")
            problem = kind_named(own.result.problem).get("checker")(own.result)
            problem.read()
            prove_packing(self.packed, problem.oracle, level.certificate, proof.write)
        except InputError as error:
            bound = self.packed.packing.reported(own.number, int(level.bound))
            prove_by_search(self.model, -bound, write, str(error))
        else:
            write(proof.getvalue())


def explicit_of(own: Chosen) -> ProvedPacking:
    """Return the model of a level of a placement whose candidates are listed."""
    return ProvedPacking(model_of(own))
