"""Slurm's topology.conf: the switches of a tree or fat tree, read and written."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from topoplace.errors import InputError
from topoplace.machine.hostlist import expand_host_list
from topoplace.snapshot.readers.lines import name_of, text_of
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

    Parameters
    ----------
    path
        The file.
    name
        Name of the machine, by default the file's, without spaces.

    Raises
    ------
    InputError
        Naming file, line, switch and value.
    """
    file = str(path)
    line_of: dict[str, int] = {}
    switches: list[SwitchModel] = []
    for line, text in _joined_lines(text_of(path)):
        try:
            switch = _switch(text)
            if switch.name in line_of:
                raise InputError(
                    f"each switch once (it stands at line {line_of[switch.name]} too)",
                    field=f"switch {switch.name}",
                    value=switch.name,
                )
        except InputError as error:
            raise _at(error, file, line) from None
        line_of[switch.name] = line
        switches.append(switch)
    if not switches:
        raise InputError("at least one line SwitchName=...", file=file)
    machine = TreeModel(
        kind="tree",
        name=name or name_of(path),
        switches=switches,
        source="a Slurm topology.conf",
    )
    try:
        tree_of(machine)
    except InputError as error:
        raise _at(error, file, line_of.get((error.field or "").removeprefix("switch "))) from None
    return machine


def topology_conf_of(machine: TreeModel) -> str:
    """Return a tree machine as the text of a topology.conf.

    Raises
    ------
    InputError
        If the machine is no tree.
    """
    tree_of(machine)
    lines = [
        f"SwitchName={switch.name} "
        + (f"Switches={switch.switches}" if switch.nodes is None else f"Nodes={switch.nodes}")
        for switch in machine.switches
    ]
    return "\n".join(lines) + "\n"


def _joined_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield every line that says something with the number of its first part."""
    parts: list[str] = []
    first = 0
    for number, line in enumerate([*text.splitlines(), ""], start=1):
        said = line.partition("#")[0].rstrip()
        if not parts:
            first = number
        parts.append(said.removesuffix("\\"))
        if said.endswith("\\"):
            continue
        joined = "".join(parts).strip()
        parts = []
        if joined:
            yield first, joined


def _switch(text: str) -> SwitchModel:
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
    name = settings.get("switchname", "")
    if expand_host_list(name, "SwitchName") != [name] or len(name) > _MAX_NAME:
        raise InputError("SwitchName=, the name of one switch", value=name or text)
    field = f"switch {name}"
    below = {key: settings[key] for key in ("nodes", "switches") if key in settings}
    if len(below) != 1:
        raise InputError("either Nodes= or Switches=", field=field, value=text)
    for names in below.values():
        expand_host_list(names, field)  # what it accepts fits the model, but for blanks
    return SwitchModel(name=name, **{key: "".join(text.split()) for key, text in below.items()})


def _at(error: InputError, file: str, line: int | None) -> InputError:
    places = [f"line {line}" if line else None, error.field]
    field = ", ".join(place for place in places if place)
    return error.at(field).located(file)
