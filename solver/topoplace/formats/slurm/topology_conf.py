"""Slurm's topology.conf: the switches of a tree or fat tree, or blocks, read and written."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from topoplace.errors import InputError, blamed_on
from topoplace.formats.slurm.blocks import (
    MAX_NAME,
    MAX_SIZE,
    Block,
    blocks_of_machine,
    machine_of_blocks,
)
from topoplace.formats.text import integer, require_once
from topoplace.kinds import kind_of_machine
from topoplace.machine.hostlist import count_hosts, expand_host_list
from topoplace.snapshot.hierarchy_state import hierarchy_of
from topoplace.snapshot.schema import HierarchyModel, MachineModel, SwitchModel, TreeModel

# A value ends at a blank; one left empty must not take the next key for its value.
_SETTING = re.compile(r'\s*([A-Za-z]\w*)\s*=[ \t]*(?:"([^"]*)"|(?!\w+\s*=)(\S*))(?=\s|$)')
_OF_BLOCKS = {"blockname", "blocksizes", "aggregatedblock"}
_SOURCE = "a Slurm topology.conf"


def topology_of_text(text: str, name: str) -> TreeModel | HierarchyModel:
    """Return the machine of a topology.conf, or what scontrol prints; errors name line and field.

    Keys are read whatever their case: ``SwitchName`` with ``Nodes`` or ``Switches``, ``BlockName``
    with ``Nodes``, and ``BlockSizes``; others, such as ``LinkSpeed``, are ignored. ``#`` starts a
    comment, a backslash at the end of a line joins the next one. ``scontrol show topology`` tells
    the size of every block and group.

    Raises
    ------
    InputError
        If it has both switches and blocks, or either is malformed.
    """
    lines = [*_lines(text)]
    if not any(_OF_BLOCKS & line.settings.keys() for line in lines):
        return _tree_of(lines, name)
    for line in lines:
        if "switchname" in line.settings:
            expected = "blocks alone or switches alone"
            raise InputError(expected, field=line.place, value=line.text)
    return _blocks_of(lines, name)


FORM = "slurm-topology"
"""What `topoplace convert` and `Kind.written` call a topology.conf."""


def topology_conf_of(machine: MachineModel) -> str:
    """Return a switch tree, or a machine of blocks, as the text of a topology.conf.

    Raises
    ------
    InputError
        If it is neither.
    """
    kind = kind_of_machine(machine.kind)
    write = None if kind is None else kind.writer(FORM)
    if write is None:
        expected = "a tree machine, or one of blocks"
        raise InputError(expected, field="kind", value=machine.kind)
    return "\n".join(write(machine)) + "\n"


def blocks_written(machine: HierarchyModel) -> list[str]:
    """Return the lines of a topology.conf of blocks."""
    blocks = blocks_of_machine(machine)
    lines = [f"BlockName={block.name} Nodes={block.nodes}" for block in blocks]
    return [*lines, f"BlockSizes={','.join(map(str, machine.block_sizes or ()))}"]


def switches_written(machine: TreeModel) -> list[str]:
    """Return the lines of a topology.conf of switches."""
    hierarchy_of(machine)
    return [
        f"SwitchName={switch.name} "
        + (f"Switches={switch.switches}" if switch.nodes is None else f"Nodes={switch.nodes}")
        for switch in machine.switches
    ]


# ---- Lines of settings ---------------------------------------------------------------------------


@dataclass(frozen=True)
class _Line:
    """A line of a file of settings: its place, its text, and its settings by lower-case key."""

    place: str
    text: str
    settings: dict[str, str]

    def name(self, key: str, what: str) -> str:
        """Return the one name of a switch or block."""
        name = self.settings.get(key.lower(), "")
        if count_hosts(name, key) != 1 or expand_host_list(name) != [name] or len(name) > MAX_NAME:
            raise InputError(f"{key}=, the name of one {what}", value=name or self.text)
        return name


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


def _lines(text: str) -> Iterator[_Line]:
    """Yield every line that says something, joined with those that go on with it."""
    for place, line in _joined_lines(text):
        with blamed_on(place=place):
            settings = _settings(line)
        yield _Line(place, line, settings)


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


# ---- Switches, and blocks ------------------------------------------------------------------------


def _tree_of(lines: Sequence[_Line], name: str) -> TreeModel:
    place_of: dict[str, str] = {}
    switches: list[SwitchModel] = []
    for line in lines:
        with blamed_on(place=line.place):
            switch = _switch(line)
            field = f"switch {switch.name}"
            require_once(place_of, switch.name, line.place, "switch", field=field)
        switches.append(switch)
    if not switches:
        raise InputError("at least one line SwitchName=...")
    machine = TreeModel(kind="tree", name=name, switches=switches, source=_SOURCE)
    with _placed(place_of, "switch "):
        hierarchy_of(machine)
    return machine


def _switch(line: _Line) -> SwitchModel:
    settings, text = line.settings, line.text
    name = line.name("SwitchName", "switch")
    field = f"switch {name}"
    below = {key: settings[key] for key in ("nodes", "switches") if key in settings}
    if settings.get("level", "0") != "0" and "switches" in below:
        below.pop("nodes", None)  # scontrol show topology tells of all nodes below a switch
    if len(below) != 1:
        raise InputError("either Nodes= or Switches=", field=field, value=text)
    for names in below.values():
        count_hosts(names, field)  # what it accepts fits the model, but for blanks
    return SwitchModel(name=name, **{key: "".join(text.split()) for key, text in below.items()})


def _blocks_of(lines: Sequence[_Line], name: str) -> HierarchyModel:
    place_of: dict[str, str] = {}
    blocks: list[Block] = []
    sizes: list[int] = []
    for line in lines:
        settings = line.settings
        with blamed_on(place=line.place):
            if "blocksizes" in settings:
                require_once(place_of, "block sizes", line.place, "setting", field="BlockSizes")
                sizes = _sizes_in(settings["blocksizes"], "BlockSizes")
            elif "blocksize" in settings:
                sizes = sorted({*sizes, *_sizes_in(settings["blocksize"], "BlockSize")})
            if not settings.keys() & {"blocksizes", "aggregatedblock"} or "blockname" in settings:
                block = _block(line)
                key = f"block {block.name}"
                require_once(place_of, key, line.place, "block", field=key)
                blocks.append(block)
    with _placed(place_of):
        return machine_of_blocks(blocks, sizes or None, name, _SOURCE)


def _sizes_in(text: str, field: str) -> list[int]:
    return [integer(part.strip(), 1, MAX_SIZE, field=field) for part in text.split(",")]


def _block(line: _Line) -> Block:
    name = line.name("BlockName", "block")
    nodes = "".join(line.settings.get("nodes", "").split())
    count_hosts(nodes, f"block {name}")
    return Block(name, nodes)


@contextlib.contextmanager
def _placed(place_of: Mapping[str, str], prefix: str = "") -> Iterator[None]:
    """Name the place of the switch or block that an `InputError` of the block names."""
    try:
        yield
    except InputError as error:
        with blamed_on(place=place_of.get((error.field or "").removeprefix(prefix))):
            raise
