"""A batch: every instance solved once, whatever happens on the way."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import ValidationError

from topoplace import __version__
from topoplace.errors import ExitCode, InputError
from topoplace.interrupts import Interrupted, heeded
from topoplace.study.batch.cluster import Cluster
from topoplace.study.batch.pool import Pool
from topoplace.study.batch.store import (
    Instance,
    Store,
    find_files,
    key_of,
    opened,
    read_instance,
    read_result,
)
from topoplace.study.batch.table import AnyResult, Row, failure_row, result_row, table_csv
from topoplace.study.batch.task import (
    Ending,
    Failure,
    FailureStatus,
    Limits,
    Problem,
    Settings,
    Task,
)
from topoplace.study.external.allocator import fingerprint

SOLVER = "topoplace.study.batch.solving:solve_task"

Executor = Pool | Cluster
Progress = Callable[[int, int], None]
"""Told how many of how many instances are done; those of earlier runs do not count."""


@dataclass(frozen=True)
class Batch:
    """What a finished batch has.

    Attributes
    ----------
    rows
        A row per instance file, by path.
    table
        The CSV file.
    num_solved, num_kept, num_left
        Instances that this run worked on, that earlier runs had done, and that a signal left out.
    """

    rows: list[Row]
    table: Path
    num_solved: int
    num_kept: int
    num_left: int
    seconds: float

    @property
    def counts(self) -> dict[str, int]:
        """How many files ended with which status, by name."""
        return dict(sorted(Counter(row.status for row in self.rows).items()))

    @property
    def exit_code(self) -> ExitCode:
        """The lowest exit code but 0 that an instance alone would have ended with, else 0."""
        codes = {row.exit_code for row in self.rows} - {ExitCode.DONE}
        return min(codes, default=ExitCode.DONE)


def run_batch(
    sources: Sequence[Path],
    outdir: Path,
    settings: Settings | None = None,
    *,
    executor: Executor | None = None,
    retry_failed: bool = False,
    progress: Progress | None = None,
    prepare: Callable[[str, str], None] | None = None,
) -> Batch:
    """Solve instance files that have no result yet and write the table of all.

    Parameters
    ----------
    sources
        Snapshots, mapping instances, and folders of them.
    outdir
        Folder of the results; what is there from earlier runs is not done again.
    executor
        What runs the tasks, closed in the end; default a process per core without limits.
    retry_failed
        Try again what failed in earlier runs.
    prepare
        Called for every kind of problem that there is to solve, with its method, before any is.

    Raises
    ------
    InputError
        If there are no files, the folder cannot be used, or no instance can take the settings.
        What is wrong with single files is in their rows.
    """
    began = time.perf_counter()
    with (
        closing(executor or Pool(SOLVER, num_cores(), Limits())) as running,
        nullcontext(find_files(sources, outdir)) as files,  # before there is a folder
        heeded(),
        opened(outdir) as store,
    ):
        settings = settings or Settings()
        source = fingerprint(settings.method, settings.command)
        run = _Run(store, replace(settings, source=source), retry_failed)
        for path in files:
            run.plan(path)
        if prepare is not None:
            for problem, method in run.solvers():
                prepare(problem.value, method)
        run.solve(running, progress)
        rows = run.rows()
        left = len(run.left)
        if left and not rows:
            raise Interrupted
        table = store.write_table(table_csv(rows))
        done, kept = len(run.todo) - left, run.num_kept
    return Batch(rows, table, done, kept, left, round(time.perf_counter() - began, 3))


def num_cores() -> int:
    """Return the number of cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class _Run:
    """A batch under way: which files have which keys, and the rows of the keys done."""

    def __init__(self, store: Store, settings: Settings, retry_failed: bool) -> None:
        self.todo: dict[str, Path] = {}  # by key
        self.num_kept = 0
        self._store, self._settings, self._retry_failed = store, settings, retry_failed
        self._keys: list[tuple[Path, str]] = []
        self._names: dict[str, tuple[str, Problem]] = {}
        self._rows: dict[str, Row] = {}
        self._unreadable: dict[Path, Row] = {}
        self._checked: set[Problem] = set()

    def plan(self, path: Path) -> None:
        """Read a file, and see whether it is done or has to be."""
        try:
            instance = read_instance(path)
        except InputError as error:
            failure = Failure(FailureStatus.BAD_INPUT, error.brief)
            self._unreadable[path] = replace(failure_row(failure), seconds=None)
            return
        key = key_of(instance, self._settings)
        self._keys.append((path, key))
        if key in self._names:
            return  # a copy of an earlier file
        self._names[key] = instance.name, instance.problem
        if self._done_before(key, instance):
            self.num_kept += 1
        else:
            self._require_settings(instance.problem, path)
            self.todo[key] = path

    def solve(self, executor: Executor, progress: Progress | None) -> None:
        """Run what is left to do, storing every outcome as it comes."""
        if progress is not None:
            progress(0, len(self.todo))
        for done, (task, outcome) in enumerate(executor.outcomes(self._tasks()), start=1):
            self._save(task, self.todo[task.key].stem, outcome)
            if progress is not None:
                progress(done, len(self.todo))

    def solvers(self) -> list[tuple[Problem, str]]:
        """Return the kinds of problems that are left to solve, each with its method."""
        return [(problem, self._settings.method_for(problem)) for problem in sorted(self._checked)]

    @property
    def left(self) -> list[str]:
        """The keys of what was not solved, as a signal came before."""
        return [key for key in self.todo if key not in self._rows]

    def rows(self) -> list[Row]:
        """Return the rows of all files that are done, sorted by path."""
        rows = dict(self._unreadable)
        rows |= {path: self._rows[key] for path, key in self._keys if key in self._rows}
        return [replace(rows[path], file=path.as_posix()) for path in sorted(rows)]

    def _done_before(self, key: str, instance: Instance) -> bool:
        result = self._store.result(key, instance)
        if result is not None:
            self._rows[key] = self._solved(key, result)
            return True
        failure = None if self._retry_failed else self._store.failure(key)
        if failure is None:
            return False
        self._rows[key] = self._failed(key, failure)
        return True

    def _require_settings(self, problem: Problem, path: Path) -> None:
        """Refuse settings that no instance of the kind takes, before any is solved."""
        if problem not in self._checked:
            from topoplace.study.batch.solving import require_settings  # noqa: PLC0415 - heavy

            require_settings(problem, self._settings, path)
            self._checked.add(problem)

    def _tasks(self) -> Iterator[Task]:
        """Yield what to do, reading each file again: thousands would not fit into memory."""
        for key, path in self.todo.items():
            try:
                instance = read_instance(path)
                changed = key_of(instance, self._settings) != key
            except InputError:
                changed = True
            if changed:
                failure = Failure(FailureStatus.BAD_INPUT, "changed while the batch ran")
                self._rows[key] = self._failed(key, failure)
                continue
            yield Task(key, instance.problem, instance.document, self._settings, __version__)

    def _save(self, task: Task, stem: str, outcome: Ending) -> None:
        if not isinstance(outcome, Failure):
            try:
                result = read_result(outcome.result, task.problem)
            except ValidationError as error:
                text = " ".join(str(error).split())[:200]
                outcome = Failure(FailureStatus.ERROR, f"the method returned no result: {text}")
        if isinstance(outcome, Failure):
            self._store.save_failure(task.key, stem, outcome)
            self._rows[task.key] = self._failed(task.key, outcome)
        else:
            self._store.save_result(task.key, stem, outcome.result)
            self._rows[task.key] = self._solved(task.key, result)

    def _solved(self, key: str, result: AnyResult) -> Row:
        return replace(result_row(result), key=key, result=self._store.result_file(key))

    def _failed(self, key: str, failure: Failure) -> Row:
        name, problem = self._names[key]
        method = self._settings.method_for(problem)
        return replace(failure_row(failure), name=name, problem=problem, method=method, key=key)
