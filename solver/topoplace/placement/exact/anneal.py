"""Simulated annealing over refills: drop some jobs, refill with the best-packed prisms."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Event

import numpy as np

from topoplace import clock
from topoplace.machine import Prism
from topoplace.placement.exact._refill import anneal
from topoplace.placement.exact.forms import Forms, forms_of, passes
from topoplace.placement.problem import Candidate, PlacementProblem

_STEPS = 50  # between looks at the clock: some tenths of a second on a 24^3 machine
_SMOOTH = 0.3  # nodes a pair of neighbours, one free and one not, is worth

STRICT, TOLERANT, NO_LINKS = 0, 1, 2


class Annealer:
    """Improves first-level placements.

    A refill looks at every form of a request and every place that holds it, and takes the one
    that leaves fewest nodes idle in it and fewest free routers at its faces, with weights drawn
    anew for each refill.
    """

    def __init__(self, problem: PlacementProblem) -> None:
        self.problem = problem
        self.forms: Forms = forms_of(problem)
        requests = problem.requests
        self._values = np.array([r.value for r in requests], dtype=np.int64)
        self._kinds = np.array(
            [
                NO_LINKS
                if not problem.uses_links(r.communication)
                else (TOLERANT if problem.is_tolerant(r.communication) else STRICT)
                for r in requests
            ],
            dtype=np.int64,
        )

    def run(
        self,
        start: Sequence[Candidate],
        deadline: float,
        temperature: float,
        seed: int,
        stop: Event | None = None,
    ) -> list[Candidate]:
        """Return the best placement met; releases the interpreter lock.

        Parameters
        ----------
        temperature
            Initial temperature, in units of the objective; falls linearly to 0 at the deadline.
        stop
            Ends the run before the deadline once set.
        """
        torus, forms = self.problem.torus, self.forms
        num = len(self.problem.requests)
        form_of = np.full(num, -1, dtype=np.int64)
        origin_of = np.zeros(num, dtype=np.int64)
        # the prisms of the start get forms of their own, that no request takes again
        own = np.array([c.prism.extents for c in start], dtype=np.int64)
        extents = np.concatenate([forms.extents, own.reshape(-1, torus.num_dims)])
        passing = np.concatenate(
            [forms.passing, np.array([passes(torus, c.prism.extents) for c in start], np.uint8)]
        )
        for k, candidate in enumerate(start):
            form_of[candidate.request_idx] = len(forms.extents) + k
            origin_of[candidate.request_idx] = torus.router(candidate.prism.origin)
        best_form, best_origin = form_of.copy(), origin_of.copy()
        step_form, step_origin = form_of.copy(), origin_of.copy()
        best = int(self._values[form_of >= 0].sum())
        rng = np.array([(seed + 1) * 0x9E3779B97F4A7C15 % (1 << 64)], dtype=np.uint64)
        began = clock.now()
        span = max(1e-9, deadline - began)
        while len(forms.extents) and (now := clock.now()) < deadline:
            if stop is not None and stop.is_set():
                break
            heat = temperature * (deadline - now) / span
            value = anneal(
                np.array(torus.shape), np.array(torus.strides), np.array(torus.wrap),
                forms.first, extents, forms.waste, passing, self._kinds, self._values,
                forms.volumes, (~self.problem.state.occupied).astype(np.uint8),
                form_of, origin_of, step_form, step_origin, _STEPS, heat, _SMOOTH, rng,
            )  # fmt: skip
            if value > best:
                best = value
                best_form, best_origin = step_form.copy(), step_origin.copy()
        return [
            Candidate(
                q, Prism(torus.coords(int(best_origin[q])), tuple(extents[best_form[q]].tolist()))
            )
            for q in range(num)
            if best_form[q] >= 0
        ]
