"""External allocators on the command line: their options, verdicts and stderr."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, overload

import typer

from topoplace.cli.output import print_json, say
from topoplace.errors import InputError

if TYPE_CHECKING:
    from topoplace.result import PlacementResult
    from topoplace.result.tree import AllocationResult
    from topoplace.snapshot import SnapshotState
    from topoplace.snapshot.tree_state import TreeState
    from topoplace.solving import Options
    from topoplace.study.external.trial import Trial
    from topoplace.study.external.verdict import VerdictError

DEFAULT_METHOD = "exact"
_MOST_SHOWN = 10

COMMAND_HELP = (
    "An allocator of your own, '[NAME=]PROG ARGS': snapshot on stdin, placements on stdout."
)
Stderr = Annotated[
    Path | None, typer.Option(metavar="F", help="Keep what allocators of your own say here.")
]


@dataclass(frozen=True)
class Choice:
    """Who is to place a queue: a method, an installed allocator or a command, as asked for."""

    method: str | None
    command: str | None
    stderr: Path | None
    as_json: bool


def require_one(method: str | None, command: str | None) -> None:
    """Raise `InputError` if both a method and a command are given."""
    if method is not None and command is not None:
        raise InputError("either --method or --command", field="--command", found="both")


@overload
def placed(state: SnapshotState, choice: Choice, options: Options) -> PlacementResult: ...
@overload
def placed(state: TreeState, choice: Choice, options: Options) -> AllocationResult: ...
def placed(
    state: SnapshotState | TreeState, choice: Choice, options: Options
) -> PlacementResult | AllocationResult:
    """Place the queue of a snapshot by whatever was chosen.

    Raises
    ------
    InputError
        If there is no such method, or both options are given.
    VerdictError
        If it is an external allocator and its answer does not count.
    """
    from topoplace.kernels.ahead import compile_for  # noqa: PLC0415 - heavy
    from topoplace.snapshot import SnapshotState  # noqa: PLC0415 - heavy
    from topoplace.solving import method_names, solve  # noqa: PLC0415 - heavy
    from topoplace.study.external.allocator import chosen  # noqa: PLC0415 - heavy

    require_one(choice.method, choice.command)
    problem = "placement" if isinstance(state, SnapshotState) else "allocation"
    who = chosen(choice.method or DEFAULT_METHOD, choice.command, method_names(problem))
    if isinstance(who, str):
        compile_for(problem, [who])
        return solve(state, who, options)
    from topoplace.study.external.trial import try_on  # noqa: PLC0415 - heavy

    trial = try_on(state, who, options)
    _tell(trial, choice.as_json)
    keep_stderr([trial], choice.stderr)
    if trial.refusal is not None:
        if choice.as_json:
            print_json(trial.refusal.document)
        raise trial.refusal
    return trial.result


def tell_verdicts(trials: Sequence[Trial], *, as_json: bool) -> None:
    """Say which answers do not count and why, and the last words of the others' allocators."""
    for trial in trials:
        if trial.refusal is not None:
            say(str(trial.refusal), as_json=as_json)
        _tell(trial, as_json)


def _tell(trial: Trial, as_json: bool) -> None:
    """Say what the line of a verdict leaves out, or what an allocator said beside its answer."""
    from topoplace.study.external.verdict import last_words  # noqa: PLC0415 - heavy

    if trial.refusal is not None:
        _tell_breaches(trial.refusal, as_json)
    elif trial.stderr:
        text = f"{trial.snapshot}: {trial.allocator} said: {last_words(trial.stderr)}"
        say(text, as_json=as_json)


def _tell_breaches(refused: VerdictError, as_json: bool) -> None:
    from topoplace.study.external.verdict import printable  # noqa: PLC0415 - heavy

    for breach in refused.breaches[1:_MOST_SHOWN]:
        say(f"  {printable(breach.text)}", as_json=as_json)


def tell_refused(refused: VerdictError, folder: Path | None, *, as_json: bool) -> None:
    """Say what ended a replay, and write the snapshot of that decision if there is a folder."""
    from topoplace.snapshot.files import write_document  # noqa: PLC0415 - heavy

    _tell_breaches(refused, as_json)
    if folder is not None:
        path = folder / f"{refused.snapshot.name}-refused.json"
        write_document(path, refused.snapshot)
        say(f"snapshot: {path}", as_json=as_json)
    if as_json:
        print_json(refused.document)


def keep_stderr(trials: Sequence[Trial], path: Path | None) -> None:
    """Write what the allocators wrote to stderr into a file, if one is wanted."""
    from topoplace.snapshot.files import write_text  # noqa: PLC0415 - heavy

    if path is not None:
        parts = [f"== {trial.allocator} on {trial.snapshot}\n{trial.stderr}" for trial in trials]
        write_text(path, "\n".join(parts))


def verdict_documents(trials: Sequence[Trial]) -> list[dict[str, object]]:
    """Return the verdicts of those trials that got one, ready for JSON."""
    return [trial.refusal.document for trial in trials if trial.refusal is not None]
