"""The options of `topoplace replay` turned into what a replay needs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from topoplace.errors import InputError

if TYPE_CHECKING:
    from topoplace.snapshot.schema import PatternUse
    from topoplace.snapshot.state import SnapshotState
    from topoplace.snapshot.tree_state import TreeState
    from topoplace.study.replay import SnapshotWriter

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
            raise InputError("either --mix or --pattern", field="--mix", value=mix)
        if pattern not in list(Pattern):
            raise InputError(f"one of {', '.join(Pattern)}", field="--pattern", value=pattern)
        return (PatternUse(pattern=Pattern(pattern), share=100 if share is None else share),)
    if share is not None:
        raise InputError("--pattern beside it", field="--share", value=share)
    mix = DEFAULT_MIX if mix is None else mix
    if mix not in MIXES:
        raise InputError(f"one of {', '.join(MIXES)}", field="--mix", value=mix)
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


def methods_to_run(state: TreeState | SnapshotState, method: str, against: str | None) -> list[str]:
    """Return the methods of a replay, each once, the one that others are compared with first.

    Raises
    ------
    InputError
        If the machine has no such method.
    """
    from topoplace.placement.tree.solve import tree_method  # noqa: PLC0415 - heavy
    from topoplace.snapshot import TreeState  # noqa: PLC0415 - heavy
    from topoplace.study.replay import placement_method  # noqa: PLC0415 - heavy

    on_tree = isinstance(state, TreeState)
    names = list(dict.fromkeys([against or ("default" if on_tree else method), method]))
    for name in names:
        if on_tree:
            tree_method(name)
        else:
            placement_method(name)
    return names


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
        raise InputError("--every or --at beside it", field="--snapshots", value=str(folder))
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
