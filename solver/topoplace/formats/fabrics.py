"""Machines as others see them: ibnetdiscover's fabric, hwloc's cores, nodes by switch."""

from __future__ import annotations

import itertools
import re
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from topoplace.errors import InputError, blamed_on, number_of
from topoplace.formats.declared import table
from topoplace.formats.text import lines_of, name_of, text_of
from topoplace.machine.hostlist import format_host_list
from topoplace.snapshot.files import parse_object, read_bytes
from topoplace.snapshot.hierarchy_state import hierarchy_of
from topoplace.snapshot.schema import HierarchyModel, HostsModel, SwitchModel, TreeModel

File = str | Path
Made = tuple[TreeModel, tuple[str, ...]]

# ---- ibnetdiscover: switches, what is on their ports, and channel adapters -----------------------

DISCOVERED = table(
    "ibnetdiscover",
    """
    read Switch: a switch, by its GUID and its description
    read ports of a switch: the switches and adapters at their other ends
    read Ca: the description of an adapter, whose first word is the node
    neutral Rt, vendid, devid, sysimgguid, switchguid, caguid, lid, lmc, width, speed: no part of \
        the tree
    """,
)

_SECTION = re.compile(r'(Switch|Ca|Rt)\s+\d+\s+"([^"]+)"\s*#\s*"([^"]*)"')
_PORT = re.compile(r'\[\d+\](?:\[[^\]]*\])?\s*(?:\([^)]*\))?\s+"([SHR]-[^"]+)"\s*\[\d+\]')
_DESCRIBED = re.compile(r'#\s*(?:lid \d+ lmc \d+ )?"([^"]*)"')
_NO_HOST = re.compile(r"Technologies|Aggregation Node|^\s*$", re.IGNORECASE)
_MADE_SO = re.compile(r"^M[A-Z]+\d*;|:[A-Z]+\d\w*")


class _Fabric:
    """Switches and nodes as ibnetdiscover lists them.

    Attributes
    ----------
    switches
        The description of each switch.
    links
        The switches next to each switch.
    leaves_of
        The switches of each node, in the order of the file.
    """

    def __init__(self, path: File) -> None:
        self.switches: dict[str, str] = {}
        self.links: dict[str, dict[str, None]] = {}
        self.leaves_of: dict[str, dict[str, None]] = {}
        self.nameless: set[str] = set()
        adapters: dict[str, str] = {}
        ports: list[tuple[str, str]] = []
        here = ""
        for place, line in lines_of(path, "#"):
            section, port = _SECTION.match(line), _PORT.match(line)
            if section is not None:
                kind, here, about = section.groups()
                if kind == "Switch":
                    self.switches[here] = about
                elif kind == "Ca":
                    adapters[here] = about
            elif port is not None:
                if not here:
                    expected = "a line Switch or Ca before those of its ports"
                    raise InputError(expected, file=str(path), field=place, value=line)
                ports.append((here, port[1]))
                about_port = _DESCRIBED.search(line)
                if here in self.switches and about_port is not None:
                    adapters.setdefault(port[1], about_port[1])
        for one, other in ports:
            if one not in self.switches:
                continue
            if other in self.switches:
                self.links.setdefault(one, {})[other] = None
                self.links.setdefault(other, {})[one] = None
            elif other.startswith("H-"):
                self._attach(other, adapters.get(other, ""), one)

    def _attach(self, adapter: str, about: str, switch: str) -> None:
        if _NO_HOST.search(about):
            self.nameless.add(adapter)
            return
        name = re.sub(r"[^\w.-]+", "-", about.strip("' ").split()[0])
        self.leaves_of.setdefault(name, {})[switch] = None


def read_ibnetdiscover(path: File, without: Sequence[str] = ()) -> Made:
    """Read the output of ibnetdiscover as a switch tree.

    A node is named by the first word of the description of its adapters, all of which are one node.
    Leaves are switches with nodes. Those that share nodes with several adapters count as one, and
    so do all switches of a level that are connected below the next one.

    Parameters
    ----------
    without
        Patterns of nodes to leave out, such as ``oss*``.

    Raises
    ------
    InputError
        With the line at fault, or if no node is left.
    """
    fabric = _Fabric(path)
    kept = {
        node: [*leaves]
        for node, leaves in fabric.leaves_of.items()
        if not any(fnmatch(node, pattern) for pattern in without)
    }
    with blamed_on(path):
        if not kept:
            found = "none" if not fabric.leaves_of else "none but those left out"
            raise InputError("nodes on switches, as ibnetdiscover lists them", found=found)
        machine = _tree_of(fabric, kept, name_of(path))
        hierarchy_of(machine)
    counts = {
        "nodes left out by --without": len(fabric.leaves_of) - len(kept),
        "adapters left out that name no host": len(fabric.nameless),
        "nodes with adapters on several leaf switches, which count as one": sum(
            len(leaves) > 1 for leaves in kept.values()
        ),
    }
    leaves = len({leaf for own in kept.values() for leaf in own})
    about = f"{number_of(len(kept), 'node')} on {number_of(leaves, 'leaf switch')}"
    return machine, (about, *(f"{what}: {count}" for what, count in counts.items() if count))


def _tree_of(fabric: _Fabric, nodes: Mapping[str, Sequence[str]], name: str) -> TreeModel:
    with_nodes = {leaf for leaves in nodes.values() for leaf in leaves}
    rank = _ranks(fabric.links, [switch for switch in fabric.switches if switch in with_nodes])
    names = _names_of(fabric.switches)
    groups = _Groups(rank)
    for leaves in nodes.values():
        groups.join(leaves)
    hosts: dict[str, list[str]] = {}
    for node, leaves in nodes.items():
        hosts.setdefault(groups.of(leaves[0]), []).append(node)
    top = {leaf: names[leaf] for leaf in hosts}  # by leaf group, the switch above so far
    switches = [SwitchModel(name=names[k], nodes=format_host_list(own)) for k, own in hosts.items()]
    for level in range(2, max(2, *rank.values()) + 1):
        low = {switch for switch in rank if rank[switch] <= level}
        for one in low:
            groups.join([one, *(low & fabric.links.get(one, {}).keys())])
        below: dict[str, dict[str, None]] = {}
        for leaf in hosts:
            below.setdefault(groups.of(leaf), {})[top[leaf]] = None
        for group, children in below.items():
            if len(children) == 1:
                continue
            own = (s for s in rank if rank[s] == level and groups.of(s) == group)
            first = next((names[switch] for switch in own), f"above-{next(iter(children))}")
            switches.append(SwitchModel(name=first, switches=format_host_list(children)))
            top |= {leaf: first for leaf in hosts if groups.of(leaf) == group}
    return TreeModel(kind="tree", name=name, switches=switches, source="ibnetdiscover")


def _ranks(links: Mapping[str, Iterable[str]], leaves: Sequence[str]) -> dict[str, int]:
    """Return how many switches away from the nodes each switch is: 1 for a leaf."""
    rank, front = dict.fromkeys(leaves, 1), [*leaves]
    while front:
        new = dict.fromkeys(o for one in front for o in links.get(one, ()) if o not in rank)
        rank |= dict.fromkeys(new, rank[front[0]] + 1)
        front = [*new]
    return rank


class _Groups:
    """Things in groups, which are joined; a group is named by its first member."""

    def __init__(self, members: Iterable[str]) -> None:
        self._above = {one: one for one in members}
        self._order = {one: k for k, one in enumerate(self._above)}

    def of(self, one: str) -> str:
        """Return the group of a member."""
        while self._above[one] != one:
            self._above[one] = self._above[self._above[one]]
            one = self._above[one]
        return one

    def join(self, members: Iterable[str]) -> None:
        """Make the groups of some members one; who is no member does not count."""
        groups = {self.of(one) for one in members if one in self._above}
        first = min(groups, key=self._order.__getitem__, default=None)
        for group in groups:
            self._above[group] = first or group


def _names_of(switches: Mapping[str, str]) -> dict[str, str]:
    """Return a name for every switch: of its description, or its GUID if others have it too."""
    told = {}
    for guid, about in switches.items():
        plain = "" if _NO_HOST.search(about) else _MADE_SO.sub("", about)
        told[guid] = re.sub(r"[^\w.-]+", "-", plain).strip("-")
    counts = Counter(told.values())
    return {g: name if name and counts[name] == 1 else g for g, name in told.items()}


# ---- hwloc: the inside of a node -----------------------------------------------------------------

HWLOC = table(
    "hwloc's XML",
    """
    read Package, Socket, Die, NUMANode, L3Cache, L2Cache, Cache: the levels
    read Core, PU: the hosts
    read cpuset: which cores a NUMA node has
    neutral Machine, Group, L1Cache, L1iCache, Bridge, PCIDev, OSDev, Misc: no level
    """,
)

_DOMAINS = {"Package": "package", "Socket": "package", "Die": "die", "NUMANode": "numa"}
_CACHES = {"2": "l2", "3": "l3"}
_INSIDE = ("package", "numa", "die", "l3", "l2")


def read_hwloc(path: File) -> HierarchyModel:
    """Read what ``lstopo --of xml`` writes: cores in caches, NUMA nodes and packages.

    Levels are those that part the cores, and lie within each other.

    Raises
    ------
    InputError
        If it is no XML of hwloc, or has no cores.
    """
    text = text_of(path)
    with blamed_on(path):
        if "<!ENTITY" in text:
            raise InputError("XML without entities")
        try:
            root = ET.fromstring(text)
        except ET.ParseError as error:
            raise InputError(f"XML ({error})") from None
        found = [*_walked(root, {})]
        cores = [own for kind, own in found if kind == "Core"]
        cores = cores or [own for kind, own in found if kind == "PU"]
        if not cores:
            raise InputError("a topology of hwloc with cores", found="none")
        memory = [own for kind, own in found if kind == "NUMANode"]
        for core in cores:
            core["numa"] = next((k for k, n in enumerate(memory) if n["set"] & core["set"]), None)
    levels = _parting({name: [core.get(name) for core in cores] for name in _INSIDE})
    hosts: dict[tuple[str, ...], list[str]] = {}
    for idx in range(len(cores)):
        at = tuple(f"{name}{column[idx]}" for name, column in levels.items())
        hosts.setdefault(at, []).append(f"core{idx}")
    return HierarchyModel(
        kind="hierarchy",
        name=name_of(path),
        levels=[*levels, "core"],
        hosts=[HostsModel(hosts=format_host_list(own), domains=[*at]) for at, own in hosts.items()],
        source="hwloc",
    )


def _walked(
    element: ET.Element, inside: Mapping[str, Any], counts: Counter[str] | None = None
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield objects by type, with their set of processors and the domains that they are in."""
    counts = Counter() if counts is None else counts
    own = dict(inside)
    kind = element.get("type", "")
    if element.tag == "object":
        name = _DOMAINS.get(kind)
        if kind.endswith("Cache"):
            name = _CACHES.get(element.get("depth", kind[1:2]))
        if name is not None:
            own[name] = counts[name]
            counts[name] += 1
        words = re.findall(r"[0-9a-fA-F]+", element.get("cpuset", "0").replace("0x", ""))
        yield kind, {**own, "set": int("".join(word.zfill(8) for word in words) or "0", 16)}
    for child in element:
        yield from _walked(child, own, counts)


def _parting(columns: Mapping[str, Sequence[Hashable]]) -> dict[str, list[int]]:
    """Return the columns that part the rows into domains within domains, numbered from 0."""
    kept: dict[str, list[int]] = {}
    num = len(next(iter(columns.values())))
    for name in sorted(columns, key=lambda name: len({*columns[name]})):
        values = columns[name]
        above = [*kept.values()]
        seen = {*zip(*above, values, strict=True)}
        parts = len({*values})
        is_new = all(len({*column}) != parts for column in above)
        if None not in values and 1 < parts < num and len(seen) == parts and is_new:
            order = {value: k for k, value in enumerate(dict.fromkeys(values))}
            kept[name] = [order[value] for value in values]
    return kept


# ---- A node by its switch ------------------------------------------------------------------------


def read_node_switch(path: File) -> HierarchyModel:
    """Read ``{"n1": "s1", "n2": "s1"}``, or with domains from the top: ``{"n1": ["p0", "s1"]}``.

    There is a network above the switches.

    Raises
    ------
    InputError
        If nodes have different numbers of switches.
    """
    raw = parse_object(read_bytes(path), str(path))
    paths = {node: [at] if isinstance(at, str) else at for node, at in raw.items()}
    with blamed_on(path):
        depth = len(next(iter(paths.values())))
        for node, at in paths.items():
            if len(at) != depth or not at:
                expected = number_of(depth, "switch") if depth else "at least one switch"
                raise InputError(f"{expected}, as other nodes have", field=node, value=at)
        above = [f"switch{k}" for k in range(depth, 1, -1)]
        hosts = [
            HostsModel(hosts=format_host_list(node for node, _ in own), domains=at)
            for at, own in itertools.groupby(paths.items(), key=lambda pair: pair[1])
        ]
        levels = [*above, "switch", "node"]
        name = name_of(path)
        machine = HierarchyModel(kind="hierarchy", name=name, levels=levels, hosts=hosts)
        hierarchy_of(machine)
    return machine
