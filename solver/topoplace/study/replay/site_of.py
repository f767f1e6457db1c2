"""The site of a replay by the kind of its machine."""

from __future__ import annotations

from topoplace.placement.problem import Options
from topoplace.placement.tree.problem import TreeOptions
from topoplace.snapshot import SnapshotState
from topoplace.snapshot.tree_state import TreeState
from topoplace.study.external.allocator import Allocator
from topoplace.study.replay.site import Site
from topoplace.study.replay.torus_site import TorusSite
from topoplace.study.replay.tree_site import TreeSite


def site_of(
    state: TreeState | SnapshotState,
    method: str | Allocator,
    options: TreeOptions | Options | None,
    against: str,
) -> Site:
    """Return a machine with its method; `against` is for trees only.

    Raises
    ------
    InputError
        If there is no such method.
    """
    options = options or TreeOptions()
    if isinstance(state, TreeState):
        return TreeSite(state, method, TreeOptions(options.time_limit, options.seed), against)
    if isinstance(options, TreeOptions):
        options = Options(options.time_limit, seed=options.seed)
    return TorusSite(state, method, options)
