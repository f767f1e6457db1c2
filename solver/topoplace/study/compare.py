"""Methods and existing results on the same instances, each compared with the best bound."""

from __future__ import annotations

import dataclasses
import json
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from topoplace import kinds
from topoplace.errors import InputError, TopoplaceError
from topoplace.interrupts import Interrupted, heeded, is_asked
from topoplace.result import Proof, level_label
from topoplace.result.reading import AnyResult
from topoplace.shown import Picture, Tabled, work
from topoplace.snapshot.held import left_out_text
from topoplace.snapshot.schema import Snapshot
from topoplace.solving import Options, method_names, method_of, solve
from topoplace.solving.solve import frame_of, problem_of
from topoplace.study.case import Case, State
from topoplace.study.external.allocator import Allocator, VerdictError, chosen
from topoplace.study.external.mapping import mapping_method
from topoplace.study.external.trial import Trial, try_on
from topoplace.study.ranking import (
    Exact,
    Figure,
    Row,
    by_instance,
    exact,
    ranks,
    ratios,
    summaries,
)

COMPARISON_SCHEMA = "topoplace.comparison/2"

ONLY_BY_NAME = ("cp-sat", "minizinc", "auto", "given", "scotch")
"""Methods run only if named: a model for small instances, a choice of others, other programs."""

EXACT_SECONDS = 60.0
"""Time limit of `exact` without another: of mappings it goes on until the optimum is proven."""

UNSUITED = "unsuited"
"""Status of a method that is not made for an instance, such as a fold of a cube."""

Keep = Callable[[Row, AnyResult, State], None]
"""Takes every row with the result behind it, before the next instance is begun."""


@dataclass(frozen=True, repr=False)
class Comparison(Tabled):
    """The result of a comparison: a row per result, and per method not made for its instance.

    Notes are remarks on the rows, such as how to get a bound where there is none; there is a trial
    per run of an external allocator.
    """

    rows: tuple[Row, ...]
    notes: tuple[str, ...] = ()
    trials: tuple[Trial, ...] = ()
    interrupted: bool = False

    @property
    def by_problem(self) -> list[list[Row]]:
        """The rows of each problem, in the order in which these first occur."""
        kinds = dict.fromkeys(row.problem for row in self.rows)
        return [[row for row in self.rows if row.problem == kind] for kind in kinds]

    def plot(self, what: str = "gaps") -> Picture:
        """Draw the certified ``gaps`` of each method, its ``seconds``, or its ``profile``.

        They are the plots of the page of `topoplace compare --html`. A profile says on which share
        of its instances a method is within a factor of the best one (Dolan and More 2002).
        """
        return Picture(work("svg", self)(self, what))

    def document(self) -> dict[str, Any]:
        """Return it ready for JSON; figures that are not integers are texts such as ``37/4``."""
        found = {
            "schema": COMPARISON_SCHEMA,
            "rows": [dataclasses.asdict(row) for row in self.rows],
            "methods": [dataclasses.asdict(summary) for summary in summaries(self.rows)],
            "notes": self.notes,
            "interrupted": self.interrupted,
        }
        return dict(json.loads(json.dumps(found, default=str)))


@heeded()
def compare(
    cases: Iterable[Case],
    methods: Sequence[str] | None = None,
    options: Options | None = None,
    keep: Keep | None = None,
    allocators: Sequence[Allocator] = (),
    begin: Callable[[str], None] | None = None,
) -> Comparison:
    """Run methods on instances and compare all results of each with the best certified bound.

    A signal ends the current solve with its best answer, and no other is begun.

    Parameters
    ----------
    cases
        Instances, and existing results. Cases of the same instance are one, no matter where they
        come from. A result stands for its method, which is not run again; that of a placement only
        if it was computed under the same interference rule. Results under other rules are compared
        with each other.
    methods
        Names of registered methods and installed allocators; each runs on all instances of its
        kind. By default all that suit the machine except those of `ONLY_BY_NAME`, and for
        applications that are not grids all except those that need one; empty for none.
    options
        Time limit for each solve (of method exact `EXACT_SECONDS` without one), interference rule
        and seed.
    keep
        Called with every row and its result: results are large, and not kept here.
    allocators
        More external allocators.
    begin
        Called before each method with a line that says which one of how many it is.

    Raises
    ------
    InputError
        If a method does not exist or is named twice, or there is nothing to compare.
    TopoplaceError
        If a conforming answer beats a proven bound: then one of the two is wrong.
    """
    options = options or Options()
    merged = _merged(cases)
    own, others = _chosen(methods, [case.kind for case in merged], allocators)
    rows: list[Row] = []
    trials: list[Trial] = []
    notes = {f"left out {case.sha256}": text for case in merged for text in _left_out(case)}
    for case in merged:
        name, rule = case.instance.name, _rule_of(case, options)
        results, unsuited = _solved(case, own, options, others, begin)
        for method, why in unsuited.items():
            notes.setdefault(method, f"{name}: {method}: {why}")
        tried = [] if is_asked() else _tried(case, others, options)
        trials += tried
        results += [trial.result for trial in tried]
        functions = {one.name for one in others if one.function is not None}
        refused = [one for one in tried if one.refusal and one.allocator in functions]
        notes |= {f"{case.sha256} {one.allocator}": str(one.refusal) for one in refused}
        if is_asked():
            notes["interrupted"] = "interrupted: what is missing was not run"
        elif not results:
            notes[case.sha256] = f"{name}: no result, and no method that ran on it"
        for each in dict.fromkeys([*map(_rule, results), *(rule for _ in unsuited)]):
            ruled = [result for result in results if _rule(result) == each]
            found = _rows(case, each, ruled, list(unsuited) if each == rule else [])
            rows += found
            if keep is not None:
                for row, result in zip(found, ruled, strict=False):  # rows of unsuited ones last
                    keep(row, result, case.state)
        if is_asked():
            break
    if not rows:
        if is_asked():
            raise Interrupted
        raise InputError("methods to run, or results", field="methods", found="neither")
    lines = (*notes.values(), *_without_bound(rows))
    return Comparison(tuple(rows), lines, tuple(trials), is_asked())


def _left_out(case: Case) -> list[str]:
    """Return a line on the options that hold requests of an instance, if there are any."""
    text = left_out_text(case.instance) if isinstance(case.instance, Snapshot) else None
    return [] if text is None else [f"{case.instance.name}: {text}"]


def _merged(cases: Iterable[Case]) -> list[Case]:
    """Return a case per instance and problem, with all results of it, each once."""
    found: dict[tuple[str, str], Case] = {}
    for case in cases:
        key = case.sha256, case.kind
        known = found.get(key, case).results
        more = [result for result in case.results if result not in known]
        found[key] = dataclasses.replace(case, results=(*known, *more))
    return list(found.values())


def _chosen(
    methods: Sequence[str] | None, kinds: Sequence[str], allocators: Sequence[Allocator]
) -> tuple[list[str] | None, list[Allocator]]:
    """Return our own methods by name, None for the default, and all allocators to run."""
    own, others = None, list(allocators)
    if methods is not None:
        ours = [name for kind in dict.fromkeys(kinds) for name in method_names(kind)]
        who = {name: chosen(name, None, ours) for name in methods}
        if len(who) < len(methods):
            twice = next(name for name in methods if methods.count(name) > 1)
            raise InputError("each method once", field="methods", value=twice)
        own = [one for one in who.values() if isinstance(one, str)]
        others = [*(one for one in who.values() if isinstance(one, Allocator)), *others]
    if any(one.function is None for one in others) and set(kinds) == {"mapping"}:
        raise InputError("snapshots: mappings are no placements", field="command")
    return own, others


def _tried(case: Case, allocators: Sequence[Allocator], options: Options) -> list[Trial]:
    """Return what comes of allocators on a snapshot."""
    if not isinstance(case.state, kinds.State):
        return []
    return [try_on(case.state, allocator, options) for allocator in allocators]


def _solved(
    case: Case,
    own: Sequence[str] | None,
    options: Options,
    others: Sequence[Allocator],
    begin: Callable[[str], None] | None,
) -> tuple[list[AnyResult], dict[str, str]]:
    """Return the results of a case, old and new, and why methods refuse it.

    Of other allocators, functions map too.
    """
    results, unsuited, rule = list(case.results), {}, _rule_of(case, options)
    here = [result.method for result in results if _rule(result) == rule]
    known = method_names(case.kind)
    named = _by_default(case, known) if own is None else own
    to_run = [method_of(case.kind, name) for name in named if name in known and name not in here]
    if case.kind == "mapping":
        to_run += [mapping_method(one.function) for one in others if one.function is not None]
    for number, method in enumerate(to_run, 1):
        if is_asked():
            continue
        limit = options.time_limit
        if limit is None and method.name == "exact":
            limit = EXACT_SECONDS
        if begin is not None:
            most = "" if limit is None else f", {limit:g} s at most"
            begin(f"{case.instance.name}: {method.name}, {number} of {len(to_run)}{most}")
        try:
            problem = problem_of(case.state, options)
            by_first = not frame_of(case.kind).decisive(problem)  # what decides is proven alone
            asked = dataclasses.replace(options, time_limit=limit, first_level=by_first)
            results.append(solve(problem, method, asked))
        except InputError as error:
            unsuited[method.name] = error.brief
        except VerdictError as error:
            unsuited[method.name] = f"{error.document['fault']}: {error.document['text']}"
        except Interrupted:
            break
    return results, unsuited


def _by_default(case: Case, known: Sequence[str]) -> list[str]:
    left_out = set(ONLY_BY_NAME)
    if not getattr(case.state, "anchored", ()):
        left_out.add("slurm-torus3d")  # only for machines with anchored prisms
    names = [name for name in known if name not in left_out]
    takes = getattr(case.state, "takes", lambda method: True)
    return [name for name in names if takes(method_of(case.kind, name))]


def _rule_of(case: Case, options: Options) -> str | None:
    return options.interference if case.kind == "placement" else None


def _rule(result: AnyResult) -> str | None:
    """Return the interference rule of a result; None if there is none."""
    return getattr(result.limits, "interference", None)


def _rows(
    case: Case, rule: str | None, results: Sequence[AnyResult], unsuited: Sequence[str]
) -> list[Row]:
    """Return the rows of one instance under one rule: those of results, then of methods refused."""
    frame, problem = frame_of(case.kind), case.problem
    decisive = frame.decisive(problem)
    rows: list[Row] = []
    numbers: Counter[str] = Counter()
    refused: list[tuple[str, AnyResult | None]] = [(method, None) for method in unsuited]
    for method, result in [*((result.method, result) for result in results), *refused]:
        numbers[method] += 1
        status, conforming = UNSUITED, False
        if result is not None:
            status = result.levels[decisive].status
            conforming = getattr(result.solution, "conforming", result.solution is not None)
        row = Row(
            problem=case.kind,
            instance=case.instance.name,
            sha256=case.sha256,
            interference=rule,
            method=method if numbers[method] == 1 else f"{method} #{numbers[method]}",
            status=status,
            seconds=None if result is None else result.seconds,
            conforming=conforming,
            levels=_figures(frame.levels(problem), result, results),
            decisive=decisive,
            facts={} if result is None else dict(frame.facts(result)),
            weighted=level_label(case.instance, "nodes").startswith("weighted"),
            value=str(getattr(case.instance, "value", "nodes")),
        )
        for level in row.levels if conforming else ():
            if (level.gap or 0) < 0:
                raise TopoplaceError(
                    f"{row.label}: {row.method} reaches {level.objective} "
                    f"{level_label(case.instance, level.name)}, better "
                    f"than a bound of {level.bound} that a method claims to have proved; "
                    "please report this"
                )
        rows.append(row)
    return _ranked(rows)


Levels = Sequence[tuple[str, str]]


def _figures(
    levels: Levels, result: AnyResult | None, results: Sequence[AnyResult]
) -> tuple[Figure, ...]:
    """Return the levels of a result, each with the best valid bound of all results.

    That is the best one with a certificate, or if there is none, the best one found by search; or
    its own, if that is better and found by search. A bound holds among the solutions whose earlier
    levels are at least as good as in its result, so it is shared among results that are equal
    there.
    """
    objectives = [None] * len(levels) if result is None else _objectives(result)
    figures = []
    for k, (name, sense) in enumerate(levels):
        sign, value = -1 if sense == "max" else 1, objectives[k]  # times sign, less is better
        known = [
            (sign * bound, other.levels[k].proof is Proof.CERTIFICATE, other is result)
            for other in results
            for bound in [exact(other.levels[k].bound)]
            if bound is not None
            and other.levels[k].proof is not Proof.NONE
            and _objectives(other)[:k] == objectives[:k]
        ]
        certified = any(by_certificate for _, by_certificate, _ in known)
        best = max((x for x in known if x[1] or x[2] or not certified), default=None)
        bound, proof, gap = None, Proof.NONE, None
        if best is not None:
            bound, proof = sign * best[0], Proof.CERTIFICATE if best[1] else Proof.SEARCH
            if value is not None:
                gap = float((sign * value - best[0]) / max(Fraction(1), abs(Fraction(value))))
        figures.append(Figure(name, sense, value, bound, gap, proof))
    return tuple(figures)


def _ranked(rows: Sequence[Row]) -> list[Row]:
    """Return the rows of one instance with ranks, by all levels that decide, and ratios."""
    losses = [row.loss for row in rows]
    ahead = min((loss[:-1] for loss in losses if loss is not None), default=())
    values = [
        row.decider.objective if loss is not None and loss[:-1] == ahead else None
        for row, loss in zip(rows, losses, strict=True)
    ]
    found = ratios(values, larger_is_better=rows[0].decider.sense == "max")
    return [
        dataclasses.replace(row, rank=rank, ratio=ratio)
        for row, rank, ratio in zip(rows, ranks(losses), found, strict=True)
    ]


def _without_bound(rows: Sequence[Row]) -> list[str]:
    """Return a line that says how to get a bound for the instances that have none."""
    groups = [group for group in by_instance(rows) if all(r.decider.bound is None for r in group)]
    if not groups:
        return []
    tried = all(any(row.method == "exact" for row in group) for group in groups)
    advice = (
        "give the method exact more time" if tried else "add the method exact, or a result of it"
    )
    return [f"no bound for {', '.join(group[0].label for group in groups)}: {advice}"]


def _objectives(result: AnyResult) -> list[Exact | None]:
    return [exact(level.objective) for level in result.levels]
