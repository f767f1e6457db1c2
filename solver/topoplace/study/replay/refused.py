"""The end of a replay whose allocator gave an answer that does not count."""

from __future__ import annotations

from topoplace.snapshot.schema import Snapshot
from topoplace.study.external.trial import AnyTrial
from topoplace.study.external.verdict import Fault, VerdictError


class DecisionError(VerdictError):
    """An allocator that is not ours got a verdict on one of its decisions.

    Attributes
    ----------
    trial
        The run, with its verdict.
    snapshot
        What it was asked about, to try again.
    """

    def __init__(self, trial: AnyTrial, snapshot: Snapshot) -> None:
        assert trial.verdict is not None
        super().__init__(trial.snapshot, trial.allocator, trial.verdict, trial.stderr)
        self.trial = trial
        self.snapshot = snapshot


def require_answer(trial: AnyTrial, snapshot: Snapshot) -> None:
    """Raise `DecisionError` for a run whose answer does not count, unless time ran out on it."""
    if trial.verdict is not None and trial.verdict.fault is not Fault.TIME_OUT:
        raise DecisionError(trial, snapshot)
