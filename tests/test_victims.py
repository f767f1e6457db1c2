"""Audits of who was ended: a greedy rule on drawn machines, against the fewest possible victims."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from typing import Any

import pytest

import topoplace as tp

Document = dict[str, Any]
RACKS, HOSTS, GPUS = 3, 2, 8


class Drawn:
    """A machine full of low jobs, and one of high priority that waits for hosts of a rack."""

    def __init__(self, seed: int) -> None:
        rng = random.Random(f"victims-{seed}")
        self.jobs: dict[str, list[tuple[int, int]]] = {}  # hosts and GPUs
        self.priority: dict[str, int] = {}
        self.free = [GPUS] * (RACKS * HOSTS)
        for k in range(rng.randint(6, 14)):
            num = rng.choice((1, 1, 2))
            gpus = rng.choice((1, 2, 4, 8))
            hosts = [h for h, left in enumerate(self.free) if left >= gpus]
            if len(hosts) >= num:
                own = [(h, gpus) for h in rng.sample(hosts, num)]
                self.jobs[f"j{k}"], self.priority[f"j{k}"] = own, rng.choice((1, 1, 1, 9))
                for h, gpus in own:
                    self.free[h] -= gpus
        self.units, self.gpus = rng.choice(((1, 8), (2, 4), (2, 8), (3, 4)))

    def may_end(self) -> list[str]:
        return [name for name, priority in self.priority.items() if priority < 5]

    def place(self, ended: Any) -> list[int] | None:
        """Return units by host in a rack where the request fits once some have ended."""
        free = [*self.free]
        for name in ended:
            for host, gpus in self.jobs[name]:
                free[host] += gpus
        for rack in range(RACKS):
            hosts = range(rack * HOSTS, rack * HOSTS + HOSTS)
            if sum(free[h] // self.gpus for h in hosts) >= self.units:
                return [h for h in hosts for _ in range(free[h] // self.gpus)][: self.units]
        return None

    def greedy(self) -> list[str] | None:
        """Return who ends by the rule of those of fewest pods first, as many as are needed."""
        ended: list[str] = []
        for name in sorted(self.may_end(), key=lambda name: (len(self.jobs[name]), name)):
            if self.place(ended) is not None:
                break
            ended.append(name)
        return ended if self.place(ended) is not None else None

    def fewest(self) -> int:
        names = self.may_end()
        sizes = range(len(names) + 1)
        return next(
            k for k in sizes if any(self.place(s) for s in itertools.combinations(names, k))
        )

    def snapshots(self, ended: list[str]) -> tuple[Document, Document]:
        """Return the machine before, and after some have ended for the request."""
        request = {
            "id": "high",
            "nodes": self.units,
            "takes": {"gpus": self.gpus},
            "required": "rack",
            "rank": 5,
        }
        machine = {
            "kind": "hierarchy",
            "name": "m",
            "levels": ["rack", "host"],
            "hosts": [
                {"hosts": f"h{h}", "domains": [f"r{h // HOSTS}"], "capacity": {"gpus": GPUS}}
                for h in range(RACKS * HOSTS)
            ],
        }
        running = {
            name: {
                "id": name,
                "nodes": ",".join(f"h{h}" for h, _ in own),
                "takes": {"gpus": own[0][1]},
                "priority": self.priority[name],
            }
            for name, own in self.jobs.items()
        }
        place = Counter(self.place(ended) or ())
        started = [
            {"id": f"high/{h}", "nodes": f"h{h}", "takes": {"gpus": n * self.gpus}}
            for h, n in place.items()
        ]
        waits = [
            {"id": n, "nodes": len(own), "takes": {"gpus": own[0][1]}}
            for n, own in self.jobs.items()
        ]
        whole = {"schema": "topoplace.snapshot/1", "name": "drawn", "machine": machine}
        left = [job for name, job in running.items() if name not in ended]
        before = whole | {"running": [*running.values()], "queue": [request]}
        queue = [one for one in waits if one["id"] in ended]
        return before, whole | {"running": [*left, *started], "queue": queue}


@pytest.mark.parametrize(
    "number", [12, pytest.param(200, marks=pytest.mark.slow)], ids=["some", "many"]
)
def test_victims_are_held_against_the_fewest_possible(tmp_path: Any, number: int) -> None:
    verdicts: Counter[str] = Counter()
    regret = judged = 0
    for seed in itertools.count():
        drawn = Drawn(seed)
        ended = drawn.greedy()
        if not ended:
            continue
        before, after = drawn.snapshots(ended)
        folder = tmp_path / str(seed)
        audit = tp.audit(tp.load(before), after=tp.load(after), victims="lower", results=folder)
        (row,) = audit.rows
        assert row.free.jobs == tuple(sorted(ended))
        assert (row.free.used, row.free.fewest) == (len(ended), drawn.fewest()), seed
        [proof] = folder.glob("*.json")
        assert tp.check(proof).verified
        verdicts[row.verdict] += 1
        regret += row.free.regret or 0
        judged += 1
        if judged == number:
            break
    assert {*verdicts} == {"optimal", "suboptimal"}
    assert regret >= verdicts["suboptimal"] >= number // 5


def test_who_may_not_be_ended_makes_a_decision_invalid() -> None:
    drawn = next(d for d in map(Drawn, itertools.count()) if d.greedy())
    ended = drawn.greedy() or []
    before, after = drawn.snapshots(ended)
    others = [name for name in drawn.jobs if name not in ended]
    (row,) = tp.audit(tp.load(before), after=tp.load(after), victims=others).rows
    assert row.verdict == "invalid"
    assert "was ended, and may not be" in row.why
    with pytest.raises(tp.InputError, match="--after with it"):
        tp.audit(tp.load(before), victims="all")
    with pytest.raises(tp.InputError, match="run before and wait afterwards"):
        tp.audit(tp.load(before), after=tp.load(before), victims="all")
