"""Fabrics and nodes as other tools see them: ibnetdiscover, hwloc, a node by its switch."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import topoplace as tp
from mistakes import lines_said
from topoplace.cli import run
from topoplace.formats.fabrics import read_hwloc, read_ibnetdiscover, read_node_switch
from topoplace.snapshot.hierarchy_state import hierarchy_of
from topoplace.snapshot.machines import load_machine


def fabric(cables: dict[str, list[str]], names: dict[str, str] | None = None) -> str:
    """Return what ibnetdiscover prints of switches, each with the far ends of its ports.

    An end is another switch, or an adapter as ``node/adapter``.
    """
    told = names or {}
    ends = dict.fromkeys(end for own in cables.values() for end in own if "/" in end)
    guid = {name: f"{100 + k:016x}" for k, name in enumerate([*cables, *ends])}

    def end_of(end: str) -> str:
        if end in cables:
            return f'"S-{guid[end]}"[9] \t\t# "{told.get(end, end)}" lid 1 4xHDR'
        return f'"H-{guid[end]}"[1]({guid[end]}) \t\t# "{end.replace("/", " ")}" lid 2 4xHDR'

    parts = ["#\n# Topology file: generated on Mon Jan  5 10:00:00 2026\n#\n"]
    for name, own in cables.items():
        head = f'switchguid=0x{guid[name]}({guid[name]})\nSwitch\t41 "S-{guid[name]}"'
        ports = "".join(f"[{k}]\t{end_of(end)}\n" for k, end in enumerate(own, 1))
        parts.append(f'vendid=0x2c9\n{head}\t\t# "{told.get(name, name)}" base port 0\n{ports}\n')
    for end in ends:
        about = end.replace("/", " ")
        home = next(name for name, own in cables.items() if end in own)
        port = f'[1]({guid[end]}) \t"S-{guid[home]}"[1]\t\t# lid 2 lmc 0 "{home}" lid 1 4xHDR'
        parts.append(f'caguid=0x{guid[end]}\nCa\t1 "H-{guid[end]}"\t\t# "{about}"\n{port}\n\n')
    return "".join(parts)


TREE = {
    "leaf1": ["a1/HCA-1", "a2/HCA-1", "spine1", "spine2", "oss1/HCA-1"],
    "leaf2": ["a3/HCA-1", "a4/HCA-1", "spine1", "spine2"],
    "leaf3": ["b1/HCA-1", "b2/HCA-1", "spine3"],
    "leaf4": ["b3/HCA-1", "spine3"],
    "spine1": ["leaf1", "leaf2", "core"],
    "spine2": ["leaf1", "leaf2", "core"],
    "spine3": ["leaf3", "leaf4", "core"],
    "core": ["spine1", "spine2", "spine3", "Mellanox Technologies Aggregation Node/x"],
}


def written(folder: Path, text: str, name: str = "ib.txt") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_a_fat_tree(tmp_path: Path) -> None:
    """Spines with the same leaves are one domain; a node of the switch's own is no host."""
    path = written(tmp_path, fabric(TREE))
    machine, notes = read_ibnetdiscover(path, ["oss*"])
    tree = hierarchy_of(machine)
    assert tree.host_names == ("a1", "a2", "a3", "a4", "b1", "b2", "b3")
    below = {one.name: one.nodes or one.switches for one in machine.switches}
    assert below == {
        "leaf1": "a[1-2]", "leaf2": "a[3-4]", "leaf3": "b[1-2]", "leaf4": "b3",
        "spine1": "leaf[1-2]", "spine3": "leaf[3-4]", "core": "spine[1,3]",
    }  # fmt: skip
    assert notes == (
        "7 nodes on 4 leaf switches",
        "nodes left out by --without: 1",
        "adapters left out that name no host: 1",
    )


def test_several_adapters_of_a_node(tmp_path: Path) -> None:
    """Rails: leaves that share nodes are one place, and two adapters are one node."""
    rails = {
        f"r{group}{rail}": [f"{n}/mlx5_{rail}" for n in nodes] + ["s"]
        for group, nodes in {"x": ["n1", "n2"], "y": ["n3", "n4"]}.items()
        for rail in (0, 1)
    }
    machine, notes = read_ibnetdiscover(written(tmp_path, fabric(rails | {"s": [*rails]})))
    assert {s.name: s.nodes or s.switches for s in machine.switches} == {
        "rx0": "n[1-2]", "ry0": "n[3-4]", "s": "rx0,ry0",
    }  # fmt: skip
    said = "nodes with adapters on several leaf switches, which count as one: 4"
    assert notes == ("4 nodes on 4 leaf switches", said)


def test_names_of_switches(tmp_path: Path) -> None:
    """A switch is called as in its description; where several have the same, by its GUID."""
    names = {
        "a": "MF0;sw-a:MQM8700/U1",
        "b": "Quantum Mellanox Technologies",
        "c": "dup",
        "d": "dup",
    }
    cables = {"a": ["n1/h", "b"], "b": ["a", "c", "d"], "c": ["n2/h", "b"], "d": ["n3/h", "b"]}
    machine, _ = read_ibnetdiscover(written(tmp_path, fabric(cables, names)))
    own = {switch.name for switch in machine.switches}
    assert own == {"sw-a-U1", *(f"S-{guid:016x}" for guid in (101, 102, 103))}


def test_switches_without_a_core(tmp_path: Path) -> None:
    """Leaves that are wired to each other are together below one switch; others are apart."""
    cables = {"a": ["n1/h", "b"], "b": ["n2/h", "a"], "c": ["n3/h"]}
    machine, _ = read_ibnetdiscover(written(tmp_path, fabric(cables)))
    tops = {s.name: s.switches for s in machine.switches if s.switches}
    assert tops == {"above-a": "a,b"}
    assert hierarchy_of(machine).fabrics


def test_commands_take_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    written(tmp_path, fabric(TREE))
    convert = ["convert", "ib.txt", "--from", "ibnetdiscover", "--without", "oss*,b3"]
    assert run([*convert, "-o", "machine.json"]) == 0
    assert hierarchy_of(load_machine("machine.json")).num_hosts == 6
    assert hierarchy_of(load_machine("ib.txt")).num_hosts == 8
    mapped = ["map", "--grid", "4", "--on", "machine.json", "--subset", "a[1-2],b[1-2]"]
    assert run([*mapped, "--csv", "where.csv"]) == 0
    assert Path("where.csv").read_text().startswith("task,host\n0,")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[1] "S-01"[1] # "x" lid 1\nSwitch 8 "S-01" # "x"\n', "line 1: expected a line Switch or"),
        ('Switch 8 "S-01" # "x" base\n', "expected nodes on switches, as ibnetdiscover lists them"),
    ],
)
def test_bad_fabrics(text: str, said: str, tmp_path: Path) -> None:
    path = written(tmp_path, text)
    assert lines_said(read_ibnetdiscover, path)[0].startswith(f"{path}: {said}")


# ---- hwloc ---------------------------------------------------------------------------------------


def hwloc(packages: int, caches: int, cores: int, *, version: str = "2.0") -> str:
    """Return hwloc's XML of packages with a NUMA node each, of caches, of cores with two PUs."""
    old = version == "1.0"
    pu = 0
    parts = ['<?xml version="1.0"?>\n<!DOCTYPE topology SYSTEM "hwloc2.dtd">\n<topology>']
    everything = (1 << (2 * packages * caches * cores)) - 1
    parts.append(f'<object type="Machine" cpuset="0x{everything:08x}">')
    for _ in range(packages):
        num = 2 * caches * cores
        own = ((1 << num) - 1) << pu
        words = f"0x{own >> 32:08x},0x{own & 0xFFFFFFFF:08x}"
        kind = "Socket" if old else "Package"
        memory = f'<object type="NUMANode" cpuset="{words}"' + (">" if old else "/>")
        parts.append(f'<object type="{kind}" cpuset="{words}">{memory}')
        for _ in range(caches):
            l3 = 'type="Cache" depth="3"' if old else 'type="L3Cache"'
            parts.append(f"<object {l3}>")
            for _ in range(cores):
                pair = 3 << pu
                words = f"0x{pair >> 32:08x},0x{pair & 0xFFFFFFFF:08x}"
                parts.append(f'<object type="Core" os_index="0" cpuset="{words}">')
                parts.append('<object type="PU"/><object type="PU"/></object>')
                pu += 2
            parts.append("</object>")
        parts.append("</object></object>" if old else "</object>")
    return "".join([*parts, "</object></topology>"])


@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_the_inside_of_a_node(version: str, tmp_path: Path) -> None:
    """Packages that are NUMA nodes count once; caches part them; what parts nothing is no level."""
    path = written(tmp_path, hwloc(2, 4, 3, version=version), "node.xml")
    machine = read_hwloc(path)
    assert machine.levels == ["package", "l3", "core"]
    assert [one.hosts for one in machine.hosts][:2] == ["core[0-2]", "core[3-5]"]
    assert machine.hosts[-1].domains == ["package1", "l37"]
    assert load_machine(str(path)) == machine
    assert read_hwloc(written(tmp_path, hwloc(1, 1, 2), "flat.xml")).levels == ["core"]
    found = tp.map(tp.grid(24), on=str(path))
    assert found.to_frame()["host"][0].startswith("core")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("<!DOCTYPE topology><topology>", "expected XML (no element found"),
        ("<!DOCTYPE topology [<!ENTITY a 'b'>]><topology/>", "expected XML without entities"),
        ("<!DOCTYPE topology SYSTEM 'x'><topology/>", "expected a topology of hwloc with cores"),
    ],
)
def test_bad_hwloc(text: str, said: str, tmp_path: Path) -> None:
    path = written(tmp_path, text, "node.xml")
    assert lines_said(load_machine, str(path))[0].startswith(f"{path}: {said}")


# ---- A node by its switch ------------------------------------------------------------------------


def test_a_node_by_its_switch(tmp_path: Path) -> None:
    path = written(tmp_path, json.dumps({"n1": "s1", "n2": "s1", "n3": "s2"}), "nodes.json")
    machine = load_machine(str(path))
    assert machine == read_node_switch(path)
    assert machine.levels == ["switch", "node"]
    assert [(one.hosts, one.domains) for one in machine.hosts] == [
        ("n[1-2]", ["s1"]),
        ("n3", ["s2"]),
    ]
    path = written(tmp_path, json.dumps({"n1": ["p0", "s1"], "n2": ["p1", "s1"]}), "pods.json")
    assert load_machine(str(path)).levels == ["switch2", "switch", "node"]
    assert tp.map(tp.grid(2), on=str(path)).levels[0].objective == 12
    path = written(tmp_path, json.dumps({"n1": ["p0", "s1"], "n2": ["s1"]}), "uneven.json")
    said = f"{path}: n2: expected 2 switches, as other nodes have, found ['s1']"
    assert lines_said(load_machine, str(path)) == [said]
