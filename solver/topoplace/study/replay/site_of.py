"""The site of a replay by the kind of its machine."""

from __future__ import annotations

from topoplace.snapshot import SnapshotState
from topoplace.snapshot.tree_state import TreeState
from topoplace.solving import Options
from topoplace.study.external.allocator import Allocator
from topoplace.study.replay.site import Site
from topoplace.study.replay.torus_site import TorusSite
from topoplace.study.replay.tree_site import TreeSite


def site_of(
    state: TreeState | SnapshotState,
    method: str | Allocator,
    options: Options | None,
    against: str,
) -> Site:
    """Return a machine with its method; `against` is for trees only.

    Raises
    ------
    InputError
        If there is no such method.
    """
    options = options or Options()
    if isinstance(state, TreeState):
        return TreeSite(state, method, options, against)
    return TorusSite(state, method, options)
