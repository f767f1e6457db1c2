"""Ask what if, compare methods and results, solve thousands, and audit decisions of schedulers."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from topoplace import options
from topoplace.errors import InputError
from topoplace.front.documents import choices_of, options_of, require_one, watched
from topoplace.front.placing import prepared
from topoplace.kernels import compile_for, num_cores
from topoplace.model import Model
from topoplace.options import names_of, takes, takes_many
from topoplace.snapshot.schema import Snapshot
from topoplace.solving import Options, method_names
from topoplace.solving.outcome import Display
from topoplace.solving.solve import tree_objective
from topoplace.study.audit.cases import Source, counting, pair_of
from topoplace.study.audit.judging import AnyResult
from topoplace.study.audit.live import cases_of
from topoplace.study.audit.run import Audit, ResultFiles, audit_cases, require_contract
from topoplace.study.audit.victims import Evict, judge_victims
from topoplace.study.batch.pool import Cluster, Pool
from topoplace.study.batch.run import SOLVER, Batch, run_batch
from topoplace.study.batch.task import Limits, Settings
from topoplace.study.case import load_cases
from topoplace.study.compare import Comparison
from topoplace.study.compare import compare as compare_cases
from topoplace.study.external.allocator import command_allocators, function_allocator
from topoplace.study.what_if import WhatIf, what_if

SPARE_SECONDS = 60.0
"""What an instance of a batch gets beyond twice its time limit before its process is killed."""


@takes(options.WhatIf)
def whatif(asked: options.WhatIf) -> WhatIf:
    """Place an instance as it is and after changes, and say what each change can gain at most.

    Returns
    -------
    WhatIf
        Has `scenarios` (the base first, each with its `result`), `worth` and `routers`. `print`
        shows tables.
    """
    settings = options_of(asked)
    state = prepared(asked, settings, tree_objective(asked.objective, free=True))
    compile_for(state.kind, [asked.method])
    with watched(settings, asked) as settings:
        return what_if(
            state,
            asked.changes,
            asked.method,
            settings,
            worth=asked.worth,
            keep=asked.keep,
            count=asked.count,
        )


@takes_many(options.Compare)
def compare(asked: options.Compare) -> Comparison:
    """Run methods on instances and hold all results of each against the best certified bound.

    Returns
    -------
    Comparison
        Its `rows`; printed, it is the table.

    Raises
    ------
    TopoplaceError
        If a conforming answer beats a proven bound: then one of the two is wrong.
    """
    given = [source.snapshot if isinstance(source, Model) else source for source in asked.sources]
    named = None if asked.methods is None else names_of(asked.methods)
    settings = options_of(asked)
    cases, skipped = load_cases(given, tree_objective(asked.objective), choices_of(asked))
    kinds = dict.fromkeys(case.kind for case in cases)
    known = {kind: method_names(kind) for kind in kinds}
    ours = [name for names in known.values() for name in names]
    functions = [function_allocator(one, ours) for one in named or () if callable(one)]
    methods = None if named is None else [one for one in named if not callable(one)]
    others = [*ours, *(methods or ()), *(one.name for one in functions)]
    if len({one.name for one in functions}) < len(functions):
        raise InputError("functions of different names", field="methods", value=others[-1])
    allocators = [*functions, *command_allocators(asked.commands, others)]
    for kind, names in known.items():
        compile_for(kind, [name for name in names if methods is None or name in methods])
    with watched(settings, asked) as settings:
        found = compare_cases(cases, methods, settings, asked.keep, allocators, asked.begin)
    return replace(found, notes=(*skipped, *found.notes))


@contextlib.contextmanager
def _counted(label: str, display: bool) -> Iterator[Callable[[int, int], None]]:
    """Yield what shows on stderr how many of how many are done, if it is to be shown."""
    with Display() if display else contextlib.nullcontext() as shown:

        def progress(done: int, total: int) -> None:
            if shown is not None:
                shown.show(f"{label}: {done:,} of {total:,}")

        yield progress


@takes_many(options.Batch)
def batch(asked: options.Batch) -> Batch:
    """Solve every instance that has no result in a folder yet; killed, it goes on when run again.

    Processes of their own solve, so that a script guards what it runs by
    ``if __name__ == "__main__":``.

    Returns
    -------
    Batch
        Its `rows`, a file each; printed, it is how many came to what. The results are in `output`.
    """
    with _counted("batch", asked.display) as progress:
        return batched(asked, progress)


def batched(asked: options.Batch, progress: Callable[[int, int], None]) -> Batch:
    """Do what `batch` does, telling how many of how many instances are done."""
    options_of(asked)  # checks them
    tree_objective(asked.objective)  # checks it
    require_one(asked.method, asked.command)
    if asked.dask is not None and asked.jobs is not None:
        raise InputError("either --jobs or --dask", field="--jobs", found="both")
    kill_after = asked.kill_after
    if kill_after is None and asked.time_limit is not None:
        kill_after = 2 * asked.time_limit + SPARE_SECONDS
    limits = Limits(kill_after, None if asked.memory is None else int(asked.memory * 2**30))
    executor = Pool(SOLVER, asked.jobs or num_cores(), limits)
    if asked.dask:
        executor = Cluster(asked.dask, SOLVER, limits)
    settings = Settings(
        asked.method, asked.time_limit, asked.interference, asked.seed, asked.command,
        first_level=asked.first_level, objective=asked.objective,
    )  # fmt: skip
    return run_batch(
        asked.sources,
        asked.output,
        settings,
        executor=executor,
        retry_failed=asked.retry_failed,
        choices=choices_of(asked),
        progress=progress,
        # Workers on other machines compile what they miss.
        prepare=None if asked.dask else lambda problem, method: compile_for(problem, [method]),
    )


@takes_many(options.Audit)
def audit(asked: options.Audit) -> Audit:
    """Hold decisions of schedulers against the rules and the proven optimum.

    Returns
    -------
    Audit
        Its `rows`; printed, it is tables. `exit_code` says what the command would end with.

    Raises
    ------
    TopoplaceError
        If the checker does not confirm an optimum, or a decision beats it: one is wrong then.
    """
    with _counted("audit", asked.display) as progress:
        return audited(asked, progress)[0]


def _victims(
    asked: options.Audit,
    evict: Evict,
    given: Sequence[Source],
    later: Path | str | Snapshot | None,
    settings: Options,
) -> tuple[Audit, Mapping[tuple[int, str], Path]]:
    """Return what an audit of victims finds, and its files."""
    for name in ("contract", "order", "command", "states"):
        if getattr(asked, name) is not None:
            raise InputError("no victims beside it", field=name, value=getattr(asked, name))
    if later is None:
        raise InputError("--after with it", field="victims", value=str(evict))
    compile_for("repack", ["exact"])
    files = ResultFiles(None if asked.results is None else Path(asked.results))
    results: list[tuple[str, AnyResult]] = []
    before, after = pair_of(given, later, choices_of(asked))
    row, notes = judge_victims(before, after, evict, settings, results.append)
    files.keep(1, row, results)
    return Audit((row,), notes=tuple(notes)), files.names


def audited(
    asked: options.Audit, progress: Callable[[int, int], None]
) -> tuple[Audit, Mapping[tuple[int, str], Path]]:
    """Return what `audit` does, and its files by number of the decision and rules.

    `progress` is called with how many of how many decisions are judged.
    """
    settings = options_of(asked)
    require_contract(asked.contract)
    if asked.value is not None and asked.after is None:
        raise InputError("--after with it", field="value", value=asked.value)
    given = [one.snapshot if isinstance(one, Model) else one for one in asked.sources]
    later = asked.after.snapshot if isinstance(asked.after, Model) else asked.after
    if asked.victims is not None:
        return _victims(asked, asked.victims, given, later, settings)
    drawn = (asked.command, asked.states, asked.seed, asked.on)
    cases, notes = cases_of(given, later, *drawn, choices_of(asked))
    levels = None if asked.levels is None else names_of(asked.levels)
    cases = [counting(case, levels) for case in cases]
    files = ResultFiles(None if asked.results is None else Path(asked.results))
    compile_for("hierarchy", ["exact"])
    found = audit_cases(
        cases,
        contract=asked.contract,
        options=settings,
        notes=notes,
        keep=files.keep,
        progress=progress,
        order=asked.order,
    )
    return found, files.names
