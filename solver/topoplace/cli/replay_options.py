"""The options of `topoplace replay` turned into what a replay needs."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from topoplace.cli.external import require_one
from topoplace.errors import InputError, unknown_name

if TYPE_CHECKING:
    from topoplace.snapshot.schema import PatternUse
    from topoplace.snapshot.state import SnapshotState
    from topoplace.snapshot.tree_state import TreeState
    from topoplace.study.external.allocator import Allocator
    from topoplace.study.replay import LogJob, MethodRun, SnapshotWriter

DEFAULT_MIX = "B"


def patterns_of(mix: str | None, pattern: str | None, share: int | None) -> tuple[PatternUse, ...]:
    """Return the patterns of the jobs that communicate.

    Raises
    ------
    InputError
        Naming the option that is unknown or goes with none of the others.
    """
    from topoplace.snapshot.schema import Pattern, PatternUse  # noqa: PLC0415 - heavy
    from topoplace.study.replay import MIXES  # noqa: PLC0415 - heavy

    if pattern is not None:
        if mix is not None:
            raise InputError("either --mix or --pattern", field="--mix", found="both")
        if pattern not in list(Pattern):
            raise unknown_name(pattern, Pattern, field="--pattern")
        return (PatternUse(pattern=Pattern(pattern), share=100 if share is None else share),)
    if share is not None:
        raise InputError("--pattern beside it", field="--share", value=share)
    mix = DEFAULT_MIX if mix is None else mix
    if mix not in MIXES:
        raise unknown_name(mix, MIXES, field="--mix")
    return MIXES[mix]


def empty_machine(spec: str) -> TreeState | SnapshotState:
    """Return a machine on which nothing runs.

    Raises
    ------
    InputError
        If there is no such machine.
    """
    from topoplace.snapshot import Snapshot, load_machine, prepare_any  # noqa: PLC0415 - heavy

    machine = load_machine(spec)
    return prepare_any(
        Snapshot(schema_version="topoplace.snapshot/1", name=machine.name, machine=machine)
    )


def methods_to_run(
    state: TreeState | SnapshotState,
    method: str | None,
    command: str | None,
    against: str | None,
    *,
    in_prisms: bool,
) -> list[str | Allocator]:
    """Return who places in a replay, each once, the one that others are compared with first.

    Raises
    ------
    InputError
        If the machine has no such method, or an option goes with none of the others.
    """
    from topoplace.snapshot import TreeState  # noqa: PLC0415 - heavy
    from topoplace.solving import method_names, method_of  # noqa: PLC0415 - heavy
    from topoplace.study.external.allocator import chosen  # noqa: PLC0415 - heavy

    require_one(method, command)
    if method is None and command is None:
        raise InputError("--method NAME or --command TEXT", field="--method", found="neither")
    on_tree = isinstance(state, TreeState)
    known = method_names("allocation" if on_tree else "placement")
    main = chosen(method or "", command, known)
    if in_prisms:
        if isinstance(main, str) or on_tree:
            raise InputError("an allocator that is not ours, on a torus", field="--prisms")
        main = dataclasses.replace(main, in_prisms=True)
    if on_tree:  # its costs are what others' run times are reckoned with
        method_of("allocation", against or "default")
        found = [against or "default", main]
    else:
        found = [main if against is None else chosen(against, None, known), main]
    return found[1:] if found[0] == main else found


def require_options_of(
    state: TreeState | SnapshotState, protocol: str, interference: str, fill_interior: bool
) -> None:
    """Raise `InputError` for an option that machines of this kind do not have."""
    from topoplace.snapshot import TreeState  # noqa: PLC0415 - heavy

    if not isinstance(state, TreeState):
        if protocol == "individual":
            raise InputError("a tree machine beside it", field="--protocol", value=protocol)
        return
    if fill_interior:
        raise InputError("a torus, whose jobs have prisms", field="--fill-interior")
    if interference != "strict":
        raise InputError("a torus to share links on", field="--interference", value=interference)


def require_started(runs: Sequence[MethodRun], jobs: Sequence[LogJob], log: Path) -> None:
    """Raise `InputError` if the machine had room for no job: there is nothing to report."""
    if not any(run.records for run in runs):
        least = min(job.nodes for job in jobs)
        raise InputError(
            "at least one job that fits the machine",
            file=str(log),
            found=f"none of {len(jobs)}, the smallest of {least} nodes",
        )


def snapshot_writer(
    folder: Path | None, every: int | None, at: str | None, log: Path
) -> SnapshotWriter | None:
    """Return what writes the snapshots, None if none is wanted; makes their folder.

    Raises
    ------
    InputError
        If the folder cannot be made, or an option goes with none of the others.
    """
    from topoplace.snapshot.readers.lines import integer, name_of  # noqa: PLC0415 - heavy
    from topoplace.study.replay import SnapshotWriter  # noqa: PLC0415 - heavy

    if folder is None:
        for option, value in (("--every", every), ("--at", at)):
            if value is not None:
                raise InputError("--snapshots beside it", field=option, value=value)
        return None
    if every is None and at is None:
        raise InputError("--every or --at beside it", field="--snapshots", found="neither")
    times = [] if at is None else [integer(text.strip(), 0, field="--at") for text in at.split(",")]
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise InputError(
            f"a folder that can be made ({error.strerror})",
            field="--snapshots",
            value=str(folder),
        ) from None
    return SnapshotWriter(folder, name_of(log), every, times)
