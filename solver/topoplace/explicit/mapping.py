"""The model of a mapping: tasks on routers, and for each pair that talks a variable by two routers.

Its bound is proven by what each message costs at least, or around each task (docs/proofs/graphs.md,
"Star"); other certificates are not linear.
"""

from __future__ import annotations

import io
import math
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from topoplace.errors import InputError
from topoplace.explicit.model import Model, Sum
from topoplace.explicit.script import Script, conclude, numbers_of, written
from topoplace.explicit.search_proof import prove_by_search
from topoplace.mapping.mapped import Mapped
from topoplace.mapping.problem import MappingProblem, require_tasks, spread_over_nodes
from topoplace.result.mapping import StarCertificate
from topoplace.types import IntArray

if TYPE_CHECKING:
    from topoplace.explicit.chosen import Chosen

MOST_VARIABLES = 400_000
"""Most variables of a model of a mapping that is written."""

Pair = tuple[int, int]


@dataclass(frozen=True, eq=False)
class MappedModel:
    """A mapping of tasks and its model.

    Attributes
    ----------
    routers
        Those with room for tasks.
    at
        The variable of a task on a router.
    both
        By pair of tasks that talk, the variable of two routers for them.
    linked
        By pair, which of its tasks, and the router of that: the row that sums up `both`.
    """

    problem: MappingProblem
    routers: list[int]
    model: Model
    at: dict[Pair, int]
    both: dict[Pair, dict[Pair, int]]
    linked: dict[tuple[Pair, int, int], int]
    one: list[int]
    room: dict[int, int]

    @property
    def first(self) -> Mapped:
        """The tasks in their order."""
        return Mapped(self.problem.in_order)

    def solution(self, values: IntArray) -> Mapped:
        """Return the mapping that values of the variables stand for."""
        place = {t: r for (t, r), v in self.at.items() if values[v]}
        routers = np.array([place[t] for t in range(self.problem.num_tasks)], dtype=np.int64)
        return Mapped(spread_over_nodes(self.problem, routers))

    def prove(self, own: Chosen, write: Callable[[str], object]) -> None:
        """Write the proof of the bound of a result's level."""
        proof = io.StringIO()
        if _Proof(self, own, proof.write).run():
            write(proof.getvalue())
        else:
            prove_by_search(self.model, int(own.level.bound), write, own.level.certificate.kind)


def model_of(own: Chosen) -> MappedModel:
    """Return the model of a mapping, with the solution if a result has one."""
    problem = own.problem
    assert isinstance(problem, MappingProblem)
    require_tasks(problem)
    routers = np.flatnonzero(problem.capacity).tolist()
    pairs: dict[Pair, list[int]] = defaultdict(lambda: [0, 0])
    graph = problem.graph
    for i, k, size in zip(
        graph.sources.tolist(), graph.targets.tolist(), graph.bytes.tolist(), strict=True
    ):
        if i != k and size:
            pairs[min(i, k), max(i, k)][int(i > k)] += size
    num = problem.num_tasks * len(routers) + len(pairs) * len(routers) ** 2
    if num > MOST_VARIABLES:
        raise InputError(f"at most {MOST_VARIABLES} variables", field="export", value=num)
    model = Model([own.title])
    model.notes.append(model.told("hop-bytes"))
    at = {(t, r): model.variable(f"t{t}_r{r}") for t in range(problem.num_tasks) for r in routers}
    hops = problem.machine.hops(np.array(routers)[:, None], np.array(routers)[None, :])
    room = {r: int(problem.capacity[r]) for r in routers}
    both: dict[Pair, dict[Pair, int]] = {}
    costs: dict[int, int] = {}
    for (i, k), (there, back) in sorted(pairs.items()):
        own_pair = both[i, k] = {}
        for a, r in enumerate(routers):
            for b, s in enumerate(routers):
                if r != s or room[r] > 1:
                    v = own_pair[r, s] = model.variable(f"t{i}_r{r}_t{k}_r{s}")
                    costs[v] = there * int(hops[a, b]) + back * int(hops[b, a])
    one = [
        model.add(f"one_t{t}", {at[t, r]: 1 for r in routers}, "=", 1)
        for t in range(problem.num_tasks)
    ]
    rooms = {
        r: model.add(f"room_r{r}", {at[t, r]: 1 for t in range(problem.num_tasks)}, "<=", room[r])
        for r in routers
    }
    linked = {}
    for pair, variables in both.items():
        for side, task in enumerate(pair):
            for r in routers:
                terms = {v: 1 for two, v in variables.items() if two[side] == r}
                name = f"t{pair[0]}_t{pair[1]}_{task}_r{r}"
                linked[pair, side, r] = model.add(name, terms | {at[task, r]: -1}, "=", 0)
    model.objective = Sum.of(costs)
    if own.result is not None and own.result.solution is not None:
        place = problem.routers_of(np.array(own.result.solution.nodes)).tolist()
        model.solution = np.zeros(len(model.variables), dtype=np.int64)
        model.solution[[at[t, r] for t, r in enumerate(place)]] = 1
        model.solution[[own[place[i], place[k]] for (i, k), own in both.items()]] = 1
        model.require_solution()
    return MappedModel(problem, routers, model, at, both, linked, one, rooms)


class _Proof:
    """The proof of the bound of a mapping."""

    def __init__(self, mapped: MappedModel, own: Chosen, write: Callable[[str], object]) -> None:
        self.mapped, self.model, self.own = mapped, mapped.model, own
        self.rows, last = numbers_of(self.model)
        self.script = Script(write, last, self.model)
        self.bound = int(own.level.bound)
        every = dict(self.model.objective.terms())
        self.costs = {v: every.get(v, 0) for own in mapped.both.values() for v in own.values()}

    def run(self) -> bool:
        """Prove the bound by what each message costs, else around each task, if that suffices."""
        certificate = self.own.level.certificate
        total = sum(min(self.costs[v] for v in own.values()) for own in self.mapped.both.values())
        proven = self._total() if total >= self.bound else self._star(certificate)
        if proven is not None:
            conclude(self.script, self.model, self.bound, proven)
        return proven is not None

    def _total(self) -> int:
        parts: list[tuple[int | str, int]] = []
        for pair, own in self.mapped.both.items():
            least = min(self.costs[v] for v in own.values())
            for r in self.mapped.routers:
                parts.append((self.rows[self.mapped.linked[pair, 0, r]], least))
            parts.append((self.rows[self.mapped.one[pair[0]]], least))
        return self.script.total(parts)

    def _star(self, certificate: Any) -> int | None:
        """Prove the bound: each task's messages cost at least those to its nearest places.

        The prices are those of the certificate if it is a star, else 0. None where distances differ
        by direction, or the sum is too low.
        """
        mapped, names = self.mapped, self.model.variables
        hops = mapped.problem.machine.hops(
            np.array(mapped.routers)[:, None], np.array(mapped.routers)[None, :]
        )
        if not np.array_equal(hops, hops.T):
            return None
        distance = {
            (r, s): int(hops[a, b])
            for a, r in enumerate(mapped.routers)
            for b, s in enumerate(mapped.routers)
        }
        listed = certificate.prices if isinstance(certificate, StarCertificate) else []
        prices = {r: int(listed[r]) if listed else 0 for r in mapped.routers}
        twice = -sum(mapped.problem.capacity[r] * price for r, price in prices.items())
        partners: dict[int, dict[int, int]] = defaultdict(dict)
        for pair, own in mapped.both.items():
            sizes = {self.costs[v] // distance[two] for two, v in own.items() if distance[two]} or {
                0
            }
            (partners[pair[0]][pair[1]],) = sizes
            partners[pair[1]][pair[0]] = partners[pair[0]][pair[1]]
        terms: dict[str, int] = defaultdict(int)
        parts: list[tuple[int | str, int]] = []
        for task in range(mapped.problem.num_tasks):
            around = {
                r: self._around(task, r, partners[task], distance, parts, terms)
                for r in mapped.routers
            }
            least = min(around[r] + prices[r] for r in mapped.routers)
            twice += least
            parts.append((self.rows[mapped.one[task]], least))
            for r in mapped.routers:  # what is left of the task on a router
                parts.append((names[mapped.at[task, r]], around[r] + prices[r] - least))
        parts += [(self.rows[mapped.room[r]], price) for r, price in prices.items()]
        parts += [(name, -c) for name, c in terms.items() if c < 0]
        unit = math.gcd(*(size for own in partners.values() for size in own.values())) or 1
        if -(-twice // (2 * unit)) * unit < self.bound:
            return None
        doubled = self.script.total(parts)
        return self.script.step(f"pol {doubled} {2 * unit} d {unit} *")

    def _around(
        self,
        task: int,
        router: int,
        partners: dict[int, int],
        distance: dict[Pair, int],
        parts: list[tuple[int | str, int]],
        terms: dict[str, int],
    ) -> int:
        """Add what a task's messages cost on a router, and return it: a rearrangement's dual."""
        mapped, room = self.mapped, self.mapped.problem.capacity
        order = sorted(partners, key=lambda k: -partners[k])
        near = sorted(mapped.routers, key=lambda s: distance[router, s])
        places = [s for s in near for _ in range(int(room[s]) - (s == router))]
        sizes = [partners[k] for k in order]
        paid = [0] * (len(order) + 1)  # by place; those beyond the last one used are free
        for j in range(len(order) - 2, -1, -1):
            step = distance[router, places[j + 1]] - distance[router, places[j]]
            paid[j] = paid[j + 1] + sizes[j + 1] * step
        of_router = {s: paid[j] for j, s in list(enumerate(places[: len(order)]))[::-1]}
        value = 0
        for j, k in enumerate(order):
            price = sizes[j] * distance[router, places[j]] + paid[j]
            value += sizes[j] * distance[router, places[j]]
            pair, side = ((task, k), 0) if task < k else ((k, task), 1)
            parts.append((self.rows[mapped.linked[pair, side, router]], price))
            for two, v in mapped.both[pair].items():
                if two[side] == router:
                    terms[self.model.variables[v]] += price - of_router.get(two[1 - side], 0)
        for s, price in of_router.items():
            if price:
                parts.append((self._apart(task, router, s, order), price))
        return value

    def _apart(self, task: int, router: int, other: int, partners: list[int]) -> int:
        """Prove that a task on a router has no more partners on another than there is room."""
        mapped, names, script = self.mapped, self.model.variables, self.script
        room = int(mapped.problem.capacity[other]) - (router == other)
        own, sums = {names[mapped.at[task, router]]: room}, [(self.rows[mapped.room[other]], 1)]
        hints = []
        for k in partners:
            pair, side = ((task, k), 0) if task < k else ((k, task), 1)
            two = (router, other) if side == 0 else (other, router)
            own[names[mapped.both[pair][two]]] = -1
            hints.append(self.rows[mapped.linked[pair, side, router]] + 1)
            sums.append((self.rows[mapped.linked[pair, 1 - side, other]] + 1, 1))
        script.line(f"pbc {written(own, 0)} : subproof")
        script.last += 1
        negation = script.last
        added = script.total([(negation, 1), *sums])
        script.rup([], [negation, added, *hints])
        script.line("qed;")
        script.last += 1
        return script.last
