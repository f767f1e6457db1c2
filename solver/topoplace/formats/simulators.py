"""Dragonflies as simulators of networks have them: configurations of CODES, and JSON of SST."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from topoplace.errors import InputError, blamed_on, number_of
from topoplace.formats.declared import table
from topoplace.formats.text import name_of, text_of
from topoplace.result.dragonfly import MAX_GROUPS, MAX_PORTS, DragonflyModel, network_of
from topoplace.snapshot.files import parse_object, read_bytes

CODES = table(
    "Dragonflies of CODES",
    """
    read num_routers: the routers of a group, each joined to all others
    read num_router_rows, num_router_cols: the rows and columns of a group (dragonfly_custom)
    read num_groups, num_cns_per_router, num_global_channels: the groups, the nodes of a router, \
        and its global links
    read num_planes, num_rails: 1 alone
    neutral intra-group-connections, inter-group-connections: binary files; global links are laid \
        out by the absolute arrangement
    """,
)

SST = table(
    "Dragonflies of SST's merlin",
    """
    read num_groups, routers_per_group, hosts_per_router: groups, routers and nodes
    read intergroup_links: the global links between any two groups
    read global_routes, global_link_map: which router has which of them
    neutral algorithm, adaptive_threshold: routing
    """,
)

_NETWORK = re.compile(r"modelnet_(dragonfly(?:_[a-z]+)*?)(?:_router)?")
_PAIR = re.compile(r'([\w-]+)\s*=\s*"([^"]*)"')
_NUMBER = re.compile(r"0*[1-9][0-9]{0,6}")


def read_codes(path: str | Path) -> DragonflyModel:
    """Read a configuration of CODES: its networks dragonfly, dragonfly_custom or dragonfly_dally.

    In the first one routers have half as many nodes and global links as a group has routers, and
    any two groups have one link between them.

    Raises
    ------
    InputError
        If there is none of these, or a parameter is missing or no number.
    """
    given = dict(_PAIR.findall(re.sub(r"#.*", "", text_of(path))))
    named = sorted({match[1] for match in map(_NETWORK.fullmatch, given) if match})
    with blamed_on(path):
        if named not in (["dragonfly"], ["dragonfly_custom"], ["dragonfly_dally"]):
            expected = "a network dragonfly, dragonfly_custom or dragonfly_dally"
            raise InputError(expected, field="LPGROUPS", found=", ".join(named) or "none")
        for name in ("num_planes", "num_rails"):
            if given.get(name, "1") != "1":
                raise InputError("1, others are not read", field=name, value=given[name])
        rows = ["num_router_rows", "num_router_cols"]
        routers = [_number(given, name) for name in (rows if "custom" in named[0] else rows[:0])]
        routers = routers or [_number(given, "num_routers")]
        if named == ["dragonfly"]:
            nodes = ports = max(1, routers[0] // 2)
            groups = routers[0] * nodes + 1
        else:
            groups = _number(given, "num_groups")
            nodes = _number(given, "num_cns_per_router")
            ports = _number(given, "num_global_channels")
        return _checked(path, groups, routers, nodes, global_ports=ports)


def read_sst(path: str | Path) -> DragonflyModel:
    """Read the dragonfly of merlin in what ``sst --output-json`` writes, with its global links.

    Raises
    ------
    InputError
        If there is none, or several that differ, or a parameter is missing or no number.
    """
    given: dict[str, str] = {}
    names = [field.name for field in SST.fields if field.use == "read"]
    with blamed_on(path):
        for own in _objects(parse_object(read_bytes(path), str(path))):
            for name in names:
                text = str(own.get(name, own.get(f"dragonfly:{name}", "")))
                if text and given.setdefault(name, text) != text:
                    raise InputError("one dragonfly", field=name, found="several")
        sizes = [_number(given, name) for name in names[:4]]
        groups, routers, nodes, links = sizes
        total = (groups - 1) * links
        if groups > MAX_GROUPS or total * groups > MAX_PORTS:
            expected = f"at most {MAX_GROUPS} groups and {MAX_PORTS} ports of all routers"
            raise InputError(expected, field="num_groups", value=groups)
        each = -(-total // routers)
        least = total - (each - 1) * routers  # routers of which all ports have a link
        at = dict(enumerate(r for r in range(routers) for _ in range(each - (r >= least))))
        if "global_link_map" in given:
            ports = enumerate(map(int, re.findall(r"-?\d{1,7}", given["global_link_map"])))
            at = {link: port // each for port, link in ports if link >= 0}
            if at.keys() != {*range(total)} or max(at.values(), default=0) >= routers:
                on = f"the {each} ports of {number_of(routers, 'router')}"
                expected = f"the links 0 to {total - 1} on {on}"
                raise InputError(expected, field="global_link_map", found="others")
        relative = given.get("global_routes", "absolute") == "relative"

        def end(g: int, h: int, k: int) -> int:
            """Return the router of a group at the end of its k-th link to another."""
            other = (h - g - 1) % groups if relative else h - (h > g)
            return g * routers + at[k * (groups - 1) + other]

        pairs = ((g, h, k) for g in range(groups) for h in range(g) for k in range(links))
        ends = [[end(h, g, k), end(g, h, k)] for g, h, k in pairs]
        return _checked(path, groups, [routers], nodes, links=ends)


def _objects(value: Any) -> Iterator[Mapping[str, Any]]:
    """Yield all objects in a JSON document."""
    if isinstance(value, dict):
        yield value
    for inside in value.values() if isinstance(value, dict) else value:
        if isinstance(inside, dict | list):
            yield from _objects(inside)


def _number(given: Mapping[str, str], name: str) -> int:
    value = given.get(name, "")
    if _NUMBER.fullmatch(value) is None:
        raise InputError("a number, 1 or more", field=name, value=value or None)
    return int(value)


def _checked(
    path: str | Path, groups: int, routers: list[int], nodes: int, **links: Any
) -> DragonflyModel:
    model = DragonflyModel(
        kind="dragonfly",
        name=name_of(path),
        groups=groups,
        routers=routers,
        nodes=nodes,
        **links,
    )
    network_of(model)
    return model
