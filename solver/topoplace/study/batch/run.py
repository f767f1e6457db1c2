"""A batch: every instance is solved once, even after crashes and interruptions."""

from __future__ import annotations

import dataclasses
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from topoplace.errors import ExitCode, InputError
from topoplace.interrupts import Interrupted, heeded
from topoplace.kernels import num_cores
from topoplace.result import Status
from topoplace.result.reading import AnyResult
from topoplace.shown import Tabled
from topoplace.snapshot.files import csv_of, write_text
from topoplace.snapshot.held import AS_IS, Choices
from topoplace.solving import method_names
from topoplace.solving.solve import frame_of
from topoplace.study.batch.pool import Pool
from topoplace.study.batch.store import (
    TABLE,
    Instance,
    Store,
    find_files,
    key_of,
    opened,
    read_instance,
    read_result,
)
from topoplace.study.batch.task import Ending, Failure, FailureStatus, Limits, Settings, Task
from topoplace.study.external.allocator import entry_point_names, fingerprint
from topoplace.study.ranking import exact
from topoplace.version import __version__

SOLVER = "topoplace.study.batch.solving:solve_task"

Progress = Callable[[int, int], None]
"""Called with the number of instances done and of all; those of earlier runs do not count."""

_EXIT_CODES: dict[str, ExitCode] = {
    FailureStatus.BAD_INPUT: ExitCode.BAD_INPUT,
    FailureStatus.ERROR: ExitCode.INTERNAL,
    FailureStatus.CRASH: ExitCode.INTERNAL,
    FailureStatus.OUT_OF_MEMORY: ExitCode.INTERNAL,
    FailureStatus.TIMEOUT: ExitCode.NO_SOLUTION,
    FailureStatus.BREACH: ExitCode.CHECK_FAILED,
    FailureStatus.BAD_OUTPUT: ExitCode.CHECK_FAILED,
    FailureStatus.FAILED: ExitCode.CHECK_FAILED,
    Status.INFEASIBLE: ExitCode.INFEASIBLE,
    Status.UNKNOWN: ExitCode.NO_SOLUTION,
}


@dataclass(frozen=True)
class Row:
    """One instance file and its outcome (docs/guide/batch.md, "The table").

    `problem` is empty if the file could not be read; `status` is that of the result, or a
    `FailureStatus`. Rationals are texts such as ``37/4``. Times come last.
    """

    file: str = ""
    name: str = ""
    problem: str = ""
    method: str = ""
    status: str = ""
    objective: str = ""
    bound: str = ""
    gap: float | None = None
    proof: str = ""
    objective_2: str = ""
    bound_2: str = ""
    objective_3: str = ""
    bound_3: str = ""
    started: int | None = None
    queued: int | None = None
    held: int | None = None
    ignored: str = ""
    shared_links: int | None = None
    key: str = ""
    result: str = ""
    message: str = ""
    seconds: float | None = None

    @property
    def failed(self) -> bool:
        """Whether there is no result."""
        return self.status in list(FailureStatus)

    @property
    def exit_code(self) -> ExitCode:
        """The exit code that the instance alone would have ended with."""
        return _EXIT_CODES.get(self.status, ExitCode.DONE)


@dataclass(frozen=True, repr=False)
class Batch(Tabled):
    """A finished batch: a row per instance file, by path, and the CSV file of all.

    `num_solved`, `num_kept` and `num_left` are the instances that this run worked on, that earlier
    runs had done, and that a signal left out.
    """

    rows: list[Row]
    table: Path
    num_solved: int
    num_kept: int
    num_left: int
    seconds: float

    @property
    def counts(self) -> dict[str, int]:
        """The number of files by status."""
        return dict(sorted(Counter(row.status for row in self.rows).items()))

    @property
    def num_held(self) -> int:
        """How many requests of all files are held."""
        return sum(row.held or 0 for row in self.rows)

    @property
    def exit_code(self) -> ExitCode:
        """The lowest nonzero exit code that an instance alone would have ended with, else 0."""
        codes = {row.exit_code for row in self.rows} - {ExitCode.DONE}
        return min(codes, default=ExitCode.DONE)


def run_batch(
    sources: Sequence[Path],
    outdir: Path,
    settings: Settings | None = None,
    *,
    executor: Pool | None = None,
    retry_failed: bool = False,
    choices: Choices = AS_IS,
    progress: Progress | None = None,
    prepare: Callable[[str, str], object] | None = None,
) -> Batch:
    """Solve instance files that have no result yet and write the table of all.

    Parameters
    ----------
    sources
        Snapshots, mapping instances, and folders of them.
    outdir
        Folder of the results; instances done by earlier runs are not solved again.
    executor
        Runs the tasks and is closed at the end; by default a process per core without limits.
    retry_failed
        Try instances again that failed in earlier runs.
    choices
        What is chosen in addition to every snapshot.
    prepare
        Called for every kind of problem to be solved, with its method, before the first solve.

    Raises
    ------
    InputError
        If there are no files, the folder cannot be used, or no instance can take the settings.
        Errors of single files are in their rows.
    """
    began = time.perf_counter()
    with (
        closing(executor or Pool(SOLVER, num_cores(), Limits())) as running,
        nullcontext(find_files(sources, outdir)) as files,  # before the folder is made
        heeded(),
        opened(outdir) as store,
    ):
        settings = settings or Settings()
        source = fingerprint(settings.method, settings.command)
        run = _Run(store, replace(settings, source=source), retry_failed, choices)
        for path in files:
            run.plan(path)
        if prepare is not None:
            for problem in sorted(run.checked):
                prepare(problem, run.settings.method_for(problem))
        run.solve(running, progress)
        rows = run.rows()
        if run.num_left and not rows:
            raise Interrupted
        names = [field.name for field in dataclasses.fields(Row)]
        write_text(outdir / TABLE, csv_of(names, map(dataclasses.astuple, rows)))
    done, seconds = len(run.todo) - run.num_left, round(time.perf_counter() - began, 3)
    return Batch(rows, outdir / TABLE, done, run.num_kept, run.num_left, seconds)


def _require_settings(problem: str, settings: Settings, path: Path) -> None:
    """Raise `InputError` for settings that do not apply to the instances of a problem."""
    if problem == "mapping" and settings.command is not None:
        text = f"snapshots, which files such as {path} are not"
        raise InputError(text, field="--command", value=settings.command)
    known = method_names(problem)
    method = settings.method_for(problem)
    # External allocators take only snapshots.
    foreign = settings.source is not None and problem != "mapping"
    if method not in known and not foreign:
        known = known if problem == "mapping" else [*known, *entry_point_names()]
        text = f"one of {', '.join(known)}, for files such as {path}"
        raise InputError(text, field="--method", value=method, known=known)
    if problem != "placement" and settings.interference != "strict":
        text = f"no interference rule, for files such as {path}"
        raise InputError(text, field="--interference", value=settings.interference)


class _Run:
    """A batch under way: the keys of files, and the rows of the keys done."""

    def __init__(
        self, store: Store, settings: Settings, retry_failed: bool, choices: Choices
    ) -> None:
        self.settings = settings
        self._choices = choices
        self.todo: dict[str, Path] = {}  # by key
        self.checked: set[str] = set()  # kinds of problems that there are to solve
        self.num_kept = 0
        self._store, self._retry_failed = store, retry_failed
        self._keys: list[tuple[Path, str]] = []
        self._named: dict[str, Row] = {}
        self._rows: dict[str, Row] = {}

    def plan(self, path: Path) -> None:
        """Read a file, and check whether it is already done."""
        try:
            instance = read_instance(path, self.settings, self._choices)
        except InputError as error:
            key = str(path)
            self._rows[key] = Row(status=FailureStatus.BAD_INPUT, message=error.brief)
            self._keys.append((path, key))
            return
        key, problem = key_of(instance, self.settings), instance.problem
        self._keys.append((path, key))
        if key in self._named:
            return  # a copy of an earlier file
        method = self.settings.method_for(problem)
        self._named[key] = Row(name=instance.name, problem=problem, method=method, key=key)
        if self._done_before(key, instance):
            self.num_kept += 1
            return
        if problem not in self.checked:  # before any is solved
            _require_settings(problem, self.settings, path)
            self.checked.add(problem)
        self.todo[key] = path

    def solve(self, executor: Pool, progress: Progress | None) -> None:
        """Run the remaining tasks, storing every outcome as it comes."""
        if progress is not None:
            progress(0, len(self.todo))
        for done, (task, outcome) in enumerate(executor.outcomes(self._tasks()), start=1):
            self._save(task, self.todo[task.key].stem, outcome)
            if progress is not None:
                progress(done, len(self.todo))

    @property
    def num_left(self) -> int:
        """How many were not solved because of a signal."""
        return sum(key not in self._rows for key in self.todo)

    def rows(self) -> list[Row]:
        """Return the rows of all files that are done, sorted by path."""
        done = [(path, self._rows[key]) for path, key in self._keys if key in self._rows]
        return [replace(row, file=path.as_posix()) for path, row in done]

    def _done_before(self, key: str, instance: Instance) -> bool:
        result = self._store.result(key, instance)
        failure = None if self._retry_failed else self._store.failure(key)
        if result is not None:
            self._solved(key, result)
        elif failure is not None:
            self._failed(key, failure)
        return key in self._rows

    def _tasks(self) -> Iterator[Task]:
        """Yield the tasks, reading each file again: thousands would not fit into memory."""
        for key, path in self.todo.items():
            try:
                instance = read_instance(path, self.settings, self._choices)
                changed = key_of(instance, self.settings) != key
            except InputError:
                changed = True
            if changed:
                self._failed(key, Failure(FailureStatus.BAD_INPUT, "changed while the batch ran"))
                continue
            yield Task(key, instance.problem, instance.document, self.settings, __version__)

    def _save(self, task: Task, stem: str, outcome: Ending) -> None:
        if isinstance(outcome, str):
            try:
                result = read_result(outcome, task.problem)
            except ValidationError as error:
                text = " ".join(str(error).split())[:200]
                outcome = Failure(FailureStatus.ERROR, f"the method returned no result: {text}")
        if isinstance(outcome, Failure):
            self._store.save_failure(task.key, stem, outcome)
            self._failed(task.key, outcome)
        else:
            self._store.save_result(task.key, stem, outcome)
            self._solved(task.key, result)

    def _solved(self, key: str, result: AnyResult) -> None:
        levels: Sequence[Any] = result.levels
        found = {
            name + tail: "" if value is None else str(exact(value))
            for level, tail in zip(levels, ("", "_2", "_3"), strict=False)
            for name, value in (("objective", level.objective), ("bound", level.bound))
        }
        facts = frame_of(result.problem).facts(result)
        self._rows[key] = replace(
            self._named[key],
            status=result.status,
            gap=result.gap,
            proof=result.proof,
            started=facts.get("started"),
            queued=facts.get("queued"),
            held=facts.get("held"),
            ignored=" ".join(getattr(result.instance, "ignored", ())),
            shared_links=facts.get("shared"),
            result=self._store.result_file(key),
            seconds=result.seconds,
            **found,
        )

    def _failed(self, key: str, failure: Failure) -> None:
        self._rows[key] = replace(
            self._named[key],
            status=failure.status,
            message=failure.message,
            seconds=failure.seconds,
        )
