"""Slurm's topology.conf: the switches of a tree or fat tree, read and written."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from topoplace.errors import InputError, blamed_on
from topoplace.formats.text import (
    name_of,
    require_once,
    text_of,
)
from topoplace.machine.hostlist import count_hosts, expand_host_list
from topoplace.snapshot.schema import SwitchModel, TreeModel
from topoplace.snapshot.tree_state import tree_of

_MAX_NAME = 128
# A value ends at a blank; one left empty must not take the next key for its value.
_SETTING = re.compile(r'\s*([A-Za-z]\w*)\s*=[ \t]*(?:"([^"]*)"|(?!\w+\s*=)(\S*))(?=\s|$)')


def read_topology_conf(path: str | Path, name: str | None = None) -> TreeModel:
    """Read a topology.conf and check that its switches make a tree or a fat tree.

    Keys are read whatever their case: ``SwitchName`` with ``Nodes`` or ``Switches``; others,
    such as ``LinkSpeed``, are ignored. ``#`` starts a comment, a backslash at the end of a line
    joins the next one.
    The machine is named as the file if not told otherwise.
    """
    with blamed_on(path):
        return tree_of_lines(conf_lines(text_of(path)), name or name_of(path))


def tree_of_lines(lines: Iterable[ConfLine], name: str) -> TreeModel:
    """Return the tree of lines of a topology.conf; errors name line and field."""
    place_of: dict[str, str] = {}
    switches: list[SwitchModel] = []
    for line in lines:
        with blamed_on(None, line.place):
            switch = _switch(line)
            field = f"switch {switch.name}"
            require_once(place_of, switch.name, line.place, "switch", field=field)
        switches.append(switch)
    if not switches:
        raise InputError("at least one line SwitchName=...")
    source = "a Slurm topology.conf"
    machine = TreeModel(kind="tree", name=name, switches=switches, source=source)
    try:
        tree_of(machine)
    except InputError as error:
        with blamed_on(None, place_of.get((error.field or "").removeprefix("switch "))):
            raise
    return machine


def topology_conf_of(machine: TreeModel) -> str:
    """Return a tree machine as the text of a topology.conf."""
    tree_of(machine)
    lines = [
        f"SwitchName={switch.name} "
        + (f"Switches={switch.switches}" if switch.nodes is None else f"Nodes={switch.nodes}")
        for switch in machine.switches
    ]
    return "\n".join(lines) + "\n"


def _joined_lines(text: str) -> Iterator[tuple[str, str]]:
    """Yield every line that says something, with the place of its first part."""
    joined, first = "", 0
    for number, line in enumerate([*text.splitlines(), ""], start=1):
        said = line.partition("#")[0].rstrip()
        first = first or number
        joined += said.removesuffix("\\")
        if not said.endswith("\\"):
            if joined.strip():
                yield f"line {first}", joined.strip()
            joined, first = "", 0


@dataclass(frozen=True)
class ConfLine:
    """A line of a file of settings: its place, its text, and its settings by lower-case key."""

    place: str
    text: str
    settings: dict[str, str]


def conf_lines(text: str) -> Iterator[ConfLine]:
    """Yield every line that says something, joined with those that go on with it."""
    for place, line in _joined_lines(text):
        with blamed_on(None, place):
            settings = _settings(line)
        yield ConfLine(place, line, settings)


def _settings(text: str) -> dict[str, str]:
    settings: dict[str, str] = {}
    at = 0
    while at < len(text):
        match = _SETTING.match(text, at)
        if match is None:
            raise InputError("settings such as SwitchName=s0 Nodes=n[0-7]", value=text[at:].strip())
        key = match[1].lower()
        if key in settings:
            raise InputError("each setting once", value=match[0].strip())
        settings[key] = match[2] if match[3] is None else match[3]
        at = match.end()
    return settings


def _switch(line: ConfLine) -> SwitchModel:
    settings, text = line.settings, line.text
    name = settings.get("switchname", "")
    if (
        count_hosts(name, "SwitchName") != 1
        or expand_host_list(name) != [name]
        or len(name) > _MAX_NAME
    ):
        raise InputError("SwitchName=, the name of one switch", value=name or text)
    field = f"switch {name}"
    below = {key: settings[key] for key in ("nodes", "switches") if key in settings}
    if settings.get("level", "0") != "0" and "switches" in below:
        below.pop("nodes", None)  # scontrol show topology tells of all nodes below a switch
    if len(below) != 1:
        raise InputError("either Nodes= or Switches=", field=field, value=text)
    for names in below.values():
        count_hosts(names, field)  # what it accepts fits the model, but for blanks
    return SwitchModel(name=name, **{key: "".join(text.split()) for key, text in below.items()})
