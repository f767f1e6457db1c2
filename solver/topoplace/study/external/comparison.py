"""External allocators beside our own methods in a comparison."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from topoplace.solving import Options
from topoplace.study.external.allocator import Allocator, command_allocators, split_methods
from topoplace.study.external.trial import AnyTrial, try_on_torus, try_on_tree
from topoplace.study.subject import Subject, TreeSubject, load_subject, load_tree_subject


class Rivals:
    """The external allocators of a comparison, and what came of every run of theirs.

    Parameters
    ----------
    names
        The methods asked for, ours and installed allocators; None for all of ours.
    commands
        Command lines of more allocators.
    ours
        Names of all our methods for this kind of machine.

    Attributes
    ----------
    own
        Those of the names that are ours; None if all of them are to run.
    trials
        One per run so far.

    Raises
    ------
    InputError
        If a name is unknown or given twice, or a command line makes no sense.
    """

    def __init__(
        self, names: Sequence[str] | None, commands: Sequence[str], ours: Collection[str]
    ) -> None:
        self.own: list[str] | None = None
        self.trials: list[AnyTrial] = []
        self._allocators: list[Allocator] = []
        if names is not None:
            self.own, self._allocators = split_methods(names, ours)
        taken = [*ours, *(allocator.name for allocator in self._allocators)]
        self._allocators += command_allocators(commands, taken)

    def on_tori(self, paths: Sequence[str | Path], options: Options) -> Iterator[Subject]:
        """Yield snapshots of tori one by one, each with what the allocators made of it."""
        for subject in [load_subject(path) for path in paths]:
            found = [try_on_torus(subject.state, one, options) for one in self._allocators]
            self.trials += found
            yield dataclasses.replace(subject, others=tuple(trial.result for trial in found))

    def on_trees(self, paths: Sequence[str | Path], options: Options) -> Iterator[TreeSubject]:
        """Yield snapshots of trees one by one, each with what the allocators made of it."""
        for subject in [load_tree_subject(path) for path in paths]:
            found = [try_on_tree(subject.state, one, options) for one in self._allocators]
            self.trials += found
            yield dataclasses.replace(subject, others=tuple(trial.result for trial in found))
