"""Ask what if, compare methods and results, and audit decisions of schedulers."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from topoplace.front.arguments import names_of, options_of, watched
from topoplace.front.documents import Instance
from topoplace.front.placing import prepared
from topoplace.kernels import compile_for
from topoplace.model import Model
from topoplace.snapshot.schema import Snapshot
from topoplace.solving import method_names
from topoplace.solving.outcome import Display, Watch
from topoplace.solving.solve import tree_objective
from topoplace.study.audit.cases import Source as Audited
from topoplace.study.audit.cases import counting
from topoplace.study.audit.live import cases_of
from topoplace.study.audit.run import Audit, ResultFiles, audit_cases, require_contract
from topoplace.study.case import File, load_cases
from topoplace.study.case import Source as Comparable
from topoplace.study.compare import Comparison, Keep
from topoplace.study.compare import compare as compare_cases
from topoplace.study.external.allocator import command_allocators
from topoplace.study.what_if import Changes, Scenario, WhatIf, what_if


def whatif(
    instance: Instance,
    changes: Sequence[Changes],
    method: str = "exact",
    *,
    worth: bool = False,
    time_limit: float | None = None,
    interference: str = "strict",
    objective: str | None = None,
    ignore: Sequence[str] = (),
    seed: int = 0,
    display: bool = False,
    callback: Watch | None = None,
    keep: Callable[[Scenario], None] | None = None,
    count: Callable[[int, int], None] | None = None,
) -> WhatIf:
    """Place an instance as it is and after changes, and say what each change can gain at most.

    Parameters
    ----------
    instance
        A `Model`, or whatever `load` takes for one.
    changes
        Scenarios, each a mapping or a list of pairs, from what is changed to how: ``add_down`` and
        ``free`` nodes (as text, such as ``0-3,8``), ``without_job`` (the id of one that runs or
        waits), ``with_request`` (its fields), ``weights`` of the shape score, and ``interference``.
    method
        A placement method. What changes can gain at most needs one that proves, as ``exact`` does.
    worth
        Whether to say for each running job what its release can gain at most, and on tori and
        meshes between what figures the first level is if a router goes down, or is freed.
    time_limit, interference, ignore, seed, display, callback
        As of `place`, for each solve; the rule is that of scenarios that do not change it.
    objective
        What counts on switch trees, as of `place`.
    keep
        Called with every scenario as soon as it is known.
    count
        Called with how many of how many running jobs and routers are looked at.

    Returns
    -------
    WhatIf
        Its `scenarios`, the base first, each with its `result`; `worth` and `routers`. Printed, it
        is tables.

    Raises
    ------
    InputError
        If an argument, a change or a field of the instance cannot be used.
    """
    options = options_of(time_limit, seed, interference)
    state = prepared(instance, None, ignore, options, tree_objective(objective))
    compile_for(state.kind, [method])
    with watched(options, display, callback) as options:
        return what_if(state, changes, method, options, worth=worth, keep=keep, count=count)


def compare(
    *sources: Model | Comparable,
    methods: Sequence[str] | None = None,
    time_limit: float | None = None,
    interference: str = "strict",
    thorough: bool = False,
    objective: str | None = None,
    ignore: Sequence[str] = (),
    seed: int = 0,
    commands: Sequence[str] = (),
    keep: Keep | None = None,
    display: bool = False,
    callback: Watch | None = None,
) -> Comparison:
    """Run methods on instances and hold all results of each against the best certified bound.

    Parameters
    ----------
    sources
        Instances and results of any problem, their files, and folders of these. A result stands
        for its method, which is not run again.
    methods
        Names of methods; by default all of ours that suit an instance, an empty list for none.
    ignore
        Options that hold no request of any instance (as of `place`), where it has them.
    time_limit, interference, thorough, seed, display, callback
        As of `place`, for each solve.
    commands
        Allocators of your own, as the `command` of `place`.
    keep
        Called with every row, its result and the instance: results are large, and not held.
    objective
        What counts on switch trees, as of `place`. Results say so themselves.

    Returns
    -------
    Comparison
        Its `rows`; printed, it is the table.

    Raises
    ------
    InputError
        If an argument or a field of an instance cannot be used, or there is nothing to compare.
    TopoplaceError
        If a conforming answer beats a proven bound: then one of the two is wrong.
    """
    given = [source.snapshot if isinstance(source, Model) else source for source in sources]
    methods = None if methods is None else names_of(methods)
    options = options_of(time_limit, seed, interference)
    options = replace(options, thorough=thorough)
    cases, skipped = load_cases(given, tree_objective(objective), names_of(ignore))
    kinds = dict.fromkeys(case.kind for case in cases)
    known = {kind: method_names(kind) for kind in kinds}
    ours = [name for names in known.values() for name in names]
    allocators = command_allocators(commands, [*ours, *(methods or ())])
    for kind, names in known.items():
        compile_for(kind, [name for name in names if methods is None or name in methods])
    with watched(options, display, callback) as options:
        found = compare_cases(cases, methods, options, keep, allocators)
    return replace(found, notes=(*skipped, *found.notes))


def audit(
    *sources: Audited | Model,
    after: File | Snapshot | Model | None = None,
    contract: str | None = None,
    levels: Sequence[str] | None = None,
    command: str | None = None,
    states: int | None = None,
    on: str | None = None,
    ignore: Sequence[str] = (),
    time_limit: float | None = None,
    seed: int = 0,
    results: str | Path | None = None,
    display: bool = False,
) -> Audit:
    """Hold decisions of schedulers against the rules and the proven optimum.

    Parameters
    ----------
    sources
        Files of recorded decisions, results on hierarchies, their files, and folders of these; or,
        with `after`, the snapshot before.
    after
        The snapshot after: what of the queue of the one before runs in it was started.
    contract
        What the scheduler promises requests beyond what these say: ``slurm-block``.
    levels
        Levels of the machine whose domains count; by default all, but of Slurm's topology/block
        the base blocks and the nodes.
    command
        A live allocator, as ``[NAME=]PROG ARGS``: it gets the states of recorded decisions as JSON
        lines on stdin and prints them with its answers. Then `sources` are files of such lines.
    states
        How many states to draw for `command`, instead of those of `sources`.
    on
        A pod of cubes to draw them on, such as ``cubes:64``; by default racks of hosts.
    ignore
        With `after`, options that hold no request of the snapshot before (as of `place`).
    time_limit
        Seconds of each solve.
    seed
        Of each solve, and of the states drawn.
    results
        A folder for the results that prove the optima.
    display
        Whether to show on stderr how many decisions are judged.

    Returns
    -------
    Audit
        Its `rows`; printed, it is tables. `exit_code` says what the command would end with.

    Raises
    ------
    InputError
        If an argument or a field of a decision cannot be used, or there is nothing to audit.
    TopoplaceError
        If the checker does not confirm an optimum, or a decision beats it: one is wrong then.
    """
    with Display() if display else contextlib.nullcontext() as shown:

        def progress(done: int, total: int) -> None:
            if shown is not None:
                shown.show(f"audit: {done:,} of {total:,}")

        found, _ = audited(
            sources,
            after=after,
            contract=contract,
            levels=levels,
            command=command,
            states=states,
            on=on,
            ignore=ignore,
            time_limit=time_limit,
            seed=seed,
            results=results,
            progress=progress,
        )
    return found


def audited(
    sources: Sequence[Audited | Model],
    *,
    after: File | Snapshot | Model | None,
    contract: str | None,
    levels: Sequence[str] | None,
    command: str | None,
    states: int | None,
    on: str | None,
    ignore: Sequence[str],
    time_limit: float | None,
    seed: int,
    results: str | Path | None,
    progress: Callable[[int, int], None],
) -> tuple[Audit, Mapping[tuple[int, str], Path]]:
    """Return what `audit` does, and its files by number of the decision and rules.

    `progress` is called with how many of how many decisions are judged.
    """
    options = options_of(time_limit, seed)
    require_contract(contract)
    given = [one.snapshot if isinstance(one, Model) else one for one in sources]
    later = after.snapshot if isinstance(after, Model) else after
    cases, notes = cases_of(given, later, command, states, seed, on, names_of(ignore))
    cases = [counting(case, None if levels is None else names_of(levels)) for case in cases]
    files = ResultFiles(None if results is None else Path(results))
    compile_for("hierarchy", ["exact"])
    found = audit_cases(
        cases,
        contract=contract,
        options=options,
        notes=notes,
        keep=files.keep,
        progress=progress,
    )
    return found, files.names
