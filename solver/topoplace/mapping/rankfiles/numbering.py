"""Node ids and host names of a site, and our node numbers."""

from __future__ import annotations

import re
from collections.abc import Mapping

from topoplace.errors import InputError

_HOST = re.compile(r"nid(\d{1,18})")


class Numbering:
    """The node ids (nids) of a site's files.

    Parameters
    ----------
    node_of_nid
        Our node number (``router * nodes_per_router + k``) of every nid, such as
        `CrayTable.router_of_nid` of a machine with one node per router. Without it a nid is our
        node number.

    Raises
    ------
    InputError
        If two nids stand for one node.
    """

    def __init__(self, node_of_nid: Mapping[int, int] | None = None) -> None:
        self._nodes = None if node_of_nid is None else dict(node_of_nid)
        self._nids = {node: nid for nid, node in (self._nodes or {}).items()}
        if self._nodes is not None and len(self._nids) < len(self._nodes):
            raise InputError("one nid for each node", field="node_of_nid")

    def nid(self, node: int) -> int:
        """Return the nid of a node."""
        if self._nodes is None:
            return node
        if node not in self._nids:
            raise InputError("a nid for every node of the mapping", field="node", value=node)
        return self._nids[node]

    def node(self, nid: int, *, file: str, field: str) -> int:
        """Return the node of a nid."""
        if self._nodes is None:
            return nid
        if nid not in self._nodes:
            raise InputError("a nid of the machine", file=file, field=field, value=nid)
        return self._nodes[nid]

    def host(self, node: int) -> str:
        """Return the host name of a node, such as ``nid00012``."""
        return f"nid{self.nid(node):05d}"

    def node_of_host(self, host: str, *, file: str, field: str) -> int:
        """Return the node of a host name."""
        match = _HOST.fullmatch(host)
        if match is None:
            raise InputError("a host name such as nid00012", file=file, field=field, value=host)
        return self.node(int(match[1]), file=file, field=field)
