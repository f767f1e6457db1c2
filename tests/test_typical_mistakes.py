"""Typical mistakes and exactly what is said of each: expected X, found Y (did you mean Z?)."""

from __future__ import annotations

import io
import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from small_snapshot import small_document
from topoplace.cli import run
from topoplace.cli.app import app
from topoplace.cli.shipped_names import MACHINES, METHODS, SNAPSHOTS
from topoplace.errors import MAX_FAULTS, Faults, InputError, closest
from topoplace.snapshot import load_any, load_snapshot
from topoplace.snapshot.files import machine_names, snapshot_names
from topoplace.solving import methods
from topoplace.solving.registry import SHIPPED

Document = dict[str, Any]
Bend = Callable[[Document], object]

SWF = "; a log\n" + "".join(f"{j} 0 0 9 64 -1 -1 64 9 {'-1 ' * 9}\n" for j in (1, 2, 3))
TREE: Document = {
    "schema": "topoplace.snapshot/1",
    "name": "tree",
    "machine": "tree:2x4",
    "down": "n7",
    "running": [{"id": "old", "nodes": "n[0-2]"}],
    "queue": [{"id": "new", "nodes": 2, "patterns": [{"pattern": "ring"}]}],
}
SNAPSHOT_FOUND = (
    'a snapshot ("topoplace.snapshot/1"), which topoplace place, compare, batch and map --on take'
)
RESULT_FOUND = (
    'a result ("topoplace.result/3"), which topoplace check, show, compare and map --on take'
)
INSTANCE_FOUND = (
    'a mapping instance ("topoplace.mapping/1"), which topoplace compare and batch take'
)
PLACING, ALLOCATING, MAPPING = (
    ", ".join(METHODS[problem]) for problem in ("placement", "allocation", "mapping")
)
MACHINE = f"a file, a shorthand such as torus:4x4x4 or tree:24x16, or one of {', '.join(MACHINES)}"
COMMANDS = ", ".join(command.name or "" for command in app.registered_commands)
CONVERSIONS = (
    "a known conversion (snapshot to snapshot, cray-neighbours to machine, swf to snapshot, "
    "slurm to snapshot, slurm-topology to machine, machine to slurm-topology)"
)


def write_files(folder: Path) -> None:
    """Write a file of every kind: what a user has lying about."""
    instance = {"schema": "topoplace.mapping/1", "name": "m"}
    texts = {
        "snapshot.json": json.dumps(small_document()),
        "tree.json": json.dumps(TREE),
        "result.json": '{"schema": "topoplace.result/3", "problem": "placement"}',
        "mapped.json": '{"schema": "topoplace.result/3", "problem": "mapping"}',
        "mapping.json": json.dumps(instance),
        "machine.json": '{"kind": "torus", "name": "m", "shape": [4, 4]}',
        "misspelt.json": '{"kind": "torus", "name": "m", "shpae": [4, 4]}',
        "log.swf": SWF,
        "short.swf": "1 2 3\n",
        "topology.conf": "SwitchName=s0 Nodes=n[0-3]\n",
        "graph.csv": "0,1\n1,0\n",
        "crooked.csv": "0,1\n1\n",
        "empty.json": "",
        "comma.json": '{"schema": "topoplace.snapshot/1" "name": "x"}',
        "twice.json": '{"name": "x", "name": "y"}',
        "list.json": "[]",
    }
    for name, text in texts.items():
        (folder / name).write_text(text)


COMMAND_LINES: dict[str, str] = {
    "plaice": f"expected one of {COMMANDS}, found 'plaice' (did you mean 'place'?)",
    "palce snapshot.json": f"expected one of {COMMANDS}, found 'palce' (did you mean 'place'?)",
    "place": (
        "SNAPSHOT: expected a snapshot file, the name of a shipped one, or - for stdin"
        ", found nothing"
    ),
    "place snapshot.json more.json": (
        "expected no more arguments of topoplace place (-h lists them), found 'more.json'"
    ),
    "place snapshot.json --metod exact": (
        "expected an option of topoplace place (-h lists them)"
        ", found '--metod' (did you mean '--method'?)"
    ),
    "place snapshot.json --colour red": (
        "expected an option of topoplace place (-h lists them), found '--colour'"
    ),
    "place snapshot.json --method": "--method: expected a value, found nothing",
    "place snapshot.json --method first_fit": (
        f"--method: expected one of {PLACING}, found 'first_fit' (did you mean 'first-fit'?)"
    ),
    "place snapshot.json --method greedy": f"--method: expected one of {PLACING}, found 'greedy'",
    "place tree.json --method first-fit": (
        f"--method: expected one of {ALLOCATING}, found 'first-fit'"
    ),
    "place snapshot.json --time-limit soon": "--time-limit: expected a number, found 'soon'",
    "place snapshot.json --time-limit -1": (
        "--time-limit: expected a finite number of seconds, 0 or more, found -1.0"
    ),
    "place snapshot.json --seed 1.5": "--seed: expected an integer, found '1.5'",
    "place snapshot.json --seed=-1": "--seed: expected a seed from 0 to 2147483647, found -1",
    "place snapshot.json --interference strikt": (
        "--interference: expected one of strict, tolerant, off"
        ", found 'strikt' (did you mean 'strict'?)"
    ),
    "place snapshot.json --json=yes": "--json: expected no value, found one",
    "place snapshot.json --method exact --command ./mine": (
        "--command: expected either --method or --command, found both"
    ),
    "place snapshot.json -o nowhere/made.json": (
        "--output: expected a file in a folder that can be written (No such file or directory)"
        ", found 'nowhere/made.json'"
    ),
    "place snapshot.json -o .": "--output: expected a file, found a folder, '.'",
    "place tree.json --interference off": (
        "--interference: expected no interference rule on a tree machine, found 'off'"
    ),
    "place snapshots.json": (
        "snapshots.json: expected a file that exists"
        ", found nothing there (did you mean 'snapshot.json'?)"
    ),
    "place blue_waters_6": (
        "blue_waters_6: expected a file that exists"
        ", found nothing there (did you mean 'blue_waters_60'?)"
    ),
    "place blue-waters-60": (
        "blue-waters-60: expected a file that exists"
        ", found nothing there (did you mean 'blue_waters_60'?)"
    ),
    "place .": ".: expected a file, found a folder",
    "place result.json": (
        f'result.json: schema: expected a snapshot ("topoplace.snapshot/1"), found {RESULT_FOUND}'
    ),
    "place mapping.json": (
        'mapping.json: schema: expected a snapshot ("topoplace.snapshot/1")'
        f", found {INSTANCE_FOUND}"
    ),
    "place machine.json": (
        'machine.json: schema: expected a snapshot ("topoplace.snapshot/1")'
        ", found a machine, which the option --on takes"
    ),
    "place log.swf": (
        "log.swf: expected a JSON document (Expecting value at line 1)"
        ", found a job log (SWF), which topoplace replay and convert --from swf take"
    ),
    "place topology.conf": (
        "topology.conf: expected a JSON document (Expecting value at line 1)"
        ", found a Slurm topology.conf, which --on and topoplace convert --from slurm take"
    ),
    "place empty.json": (
        "empty.json: expected a JSON document (Expecting value at line 1), found an empty file"
    ),
    "place comma.json": (
        "comma.json: expected a JSON document (Expecting ',' delimiter at line 1)"
    ),
    "place twice.json": (
        "twice.json: expected a JSON document (with every key once, not name twice)"
    ),
    "place list.json": "list.json: expected a JSON object, found []",
    "check snapshot.json": (
        f'snapshot.json: schema: expected a result ("topoplace.result/3"), found {SNAPSHOT_FOUND}'
    ),
    "check machine.json": (
        'machine.json: schema: expected a result ("topoplace.result/3")'
        ", found a machine, which the option --on takes"
    ),
    "check result.json --instance snapshto.json": (
        "snapshto.json: expected a file that exists"
        ", found nothing there (did you mean 'snapshot.json'?)"
    ),
    "show snapshot.json --png f.png": (
        f'snapshot.json: schema: expected a result ("topoplace.result/3"), found {SNAPSHOT_FOUND}'
    ),
    "show result.json": "--png: expected a file to write, --png F or --html F, found neither",
    "show mapping.json --png f.png": (
        f'mapping.json: schema: expected a result ("topoplace.result/3"), found {INSTANCE_FOUND}'
    ),
    "compare snapshot.json --methods first-fit,bestfit": (
        f"--methods: expected one of {PLACING}, found 'bestfit' (did you mean 'best-fit'?)"
    ),
    "compare snapshot.json --methods first-fit,first-fit": (
        "--methods: expected each method once, found 'first-fit'"
    ),
    "compare snapshot.json tree.json --methods none": (
        "--methods: expected methods to run, or results, found neither"
    ),
    "compare machine.json": (
        'machine.json: schema: expected a snapshot ("topoplace.snapshot/1")'
        ", found a machine, which the option --on takes"
    ),
    "batch nowhere -o out": "nowhere: expected a file or folder that exists, found nothing there",
    "batch snapshot.json": "--output: expected the folder of results and table, found nothing",
    "map --grid 4x4": (
        "--on: expected a machine (file, shipped name, torus:4x4x4), a snapshot, a "
        "placement result, matrix:FILE (distances), or qaplib (those of the graph file)"
        ", found nothing"
    ),
    "map --on torus:4x4": (
        "--grid: expected a virtual grid, or a graph file (--graph), found neither"
    ),
    "map --on torus:4,4 --grid 4x4": (
        "--on: expected a shorthand such as torus:8x8x8"
        ", found 'torus:4,4' (did you mean 'torus:4x4'?)"
    ),
    "map --on torus4x4 --grid 4x4": (
        "--on: expected a shorthand such as torus:8x8x8"
        ", found 'torus4x4' (did you mean 'torus:4x4'?)"
    ),
    "map --on blue_water --grid 4x4": (
        f"--on: expected {MACHINE}, found 'blue_water' (did you mean 'blue_waters'?)"
    ),
    "map --on machne.json --grid 4x4": (
        f"--on: expected {MACHINE}, found 'machne.json' (did you mean 'machine.json'?)"
    ),
    "map --on torus:4x0 --grid 4x4": (
        "--on: expected a shorthand such as torus:8x8x8, its shape[1] an integer of at least 1"
        ", found 'torus:4x0'"
    ),
    "map --on tree:4x4 --grid 4x4": "--on: expected a torus or mesh machine, found 'tree'",
    "map --on mapping.json --grid 4x4": (
        f"mapping.json: schema: expected a machine, found {INSTANCE_FOUND}"
    ),
    "map --on mapped.json --grid 4x4": (
        "mapped.json: problem: expected the result of a placement, found that of a mapping"
    ),
    "map --on torus:4x4 --grid 4,4": (
        "--grid: expected positive sizes such as 32x32x32, found '4,4'"
    ),
    "map --on torus:4x4 --grid 5x5": (
        "--grid: expected at most 16 tasks, the places on 16 usable nodes, found 25"
    ),
    "map --on torus:4x4 --grid 4x4 --method pensils": (
        f"--method: expected one of {MAPPING}, found 'pensils' (did you mean 'pencils'?)"
    ),
    "map --on torus:4x4 --grid 4x4 --periodic xz": (
        "--periodic: expected some of the letters xy, each once, found 'xz'"
    ),
    "map --on torus:4x4 --grid 4x4 --stencil ful": (
        "--stencil: expected one of nearest, full, found 'ful' (did you mean 'full'?)"
    ),
    "map --on torus:4x4 --grid 4x4 --node-list nodes": (
        "--node-list: expected --rank-order beside it, found --node-list alone"
    ),
    "map --on torus:4x4 --grid 4x4 --within 5x5": (
        "--within: expected extents from 1 to the machine's, torus 4x4, found '5x5@0,0'"
    ),
    "map --on torus:4x4 --grid 4x4 --tasks-per-node two": (
        "--tasks-per-node: expected an integer, found 'two'"
    ),
    "map --on torus:4x4 --grid 4x4 --mapping graph.csv --format cvs": (
        "--format: expected one of rank-order, hostfile, csv, maplib, scotch"
        ", found 'cvs' (did you mean 'csv'?)"
    ),
    "map --on snapshot.json --grid 2x2 --job bussy": (
        "--job: expected one running job of: busy, found 'bussy' (did you mean 'busy'?)"
    ),
    "map --on snapshot.json --grid 2x2 --class xq": (
        "--class: expected one class of: xe, xk, found 'xq'"
    ),
    "map --on torus:4x4 --graph snapshot.json": (
        f"snapshot.json: expected a text file, not JSON, found {SNAPSHOT_FOUND}"
    ),
    "map --on torus:4x4 --graph grahp.csv": (
        "grahp.csv: expected a file that exists, found nothing there (did you mean 'graph.csv'?)"
    ),
    "map --on torus:4x4 --graph crooked.csv": (
        "crooked.csv: line 2: expected a square matrix, 2 rows of 2 numbers, found '1 numbers'"
    ),
    "map --on torus:4x4 --graph graph.csv --graph-format cvs": (
        "--graph-format: expected one of csv, qaplib, metis, grf, edges"
        ", found 'cvs' (did you mean 'csv'?)"
    ),
    "replay log.swf --on torus:4x4 --method first-fit": (
        "log.swf: expected at least one job that fits the machine"
        ", found none of 3, the smallest of 64 nodes"
    ),
    "replay log.swf --on tree:2x4 --method default": (
        "log.swf: expected at least one job that fits the machine"
        ", found none of 3, the smallest of 64 nodes"
    ),
    "replay log.swf --on torus:8x8x8 --method default": (
        f"--method: expected one of {PLACING}, found 'default'"
    ),
    "replay log.swf --on torus:8x8x8": (
        "--method: expected --method NAME or --command TEXT, found neither"
    ),
    "replay log.swf --method first-fit": (
        "--on: expected a machine: a file, a shipped name, tree:24x16 or torus:8x8x8, found nothing"
    ),
    "replay log.swf --on snapshot.json --method first-fit": (
        f"snapshot.json: schema: expected a machine, found {SNAPSHOT_FOUND}"
    ),
    "replay snapshot.json --on torus:8x8x8 --method first-fit": (
        f"snapshot.json: expected a text file, not JSON, found {SNAPSHOT_FOUND}"
    ),
    "replay short.swf --on torus:8x8x8 --method first-fit": (
        "short.swf: line 1: expected 18 fields, found '3 fields'"
    ),
    "replay log.swf --on torus:8x8x8 --method first-fit --share 200": (
        "--share: expected a number of at most 100, found '200'"
    ),
    "replay log.swf --on torus:8x8x8 --method first-fit --protocol individal": (
        "--protocol: expected one of continuous, individual"
        ", found 'individal' (did you mean 'individual'?)"
    ),
    "replay log.swf --on tree:2x64 --method default --pattern rings": (
        "--pattern: expected one of rd, rhvd, binomial, ring, stencil2d, stencil3d"
        ", found 'rings' (did you mean 'ring'?)"
    ),
    "replay log.swf --on tree:2x64 --method default --mix F": (
        "--mix: expected one of A, B, C, D, E, found 'F'"
    ),
    "convert log.swf --from sfw": (
        f"--from: expected {CONVERSIONS}, found 'sfw' (did you mean 'swf'?)"
    ),
    "convert log.swf --from swf --to machine": f"--to: expected {CONVERSIONS}, found 'machine'",
    "convert log.swf --from swf": "--on: expected the machine the jobs are for, found nothing",
    "convert snapshot.json --from swf --on torus:4x4": (
        f"snapshot.json: expected a text file, not JSON, found {SNAPSHOT_FOUND}"
    ),
    "convert --from slurm": "FILE: expected one file to read, FILE or --topology, found neither",
    "layouts --grid 8x8 --tasks-per-node 0 --within 4x4x4": (
        "--tasks-per-node: expected a positive integer, found 0"
    ),
    "layouts --grid 8x8 --tasks-per-node 2 --within 4x4": (
        "--within: expected a region inside torus 24x24x24, found '4x4'"
    ),
}
"""What a command line gets to hear; the files are those of `write_files`."""

BENT: list[tuple[Bend, str]] = [
    (
        lambda d: d["queue"][0].update(prioritiy=3),
        "queue[0].prioritiy: expected one of the known fields"
        ", found 'prioritiy' (did you mean 'priority'?)",
    ),
    (
        lambda d: d["queue"][0].update(nodes=0),
        "queue[0].nodes: expected an integer of at least 1, found 0",
    ),
    (lambda d: d["queue"][0].update(nodes=2.5), "queue[0].nodes: expected an integer, found 2.5"),
    (lambda d: d["queue"][0].update(nodes="8"), "queue[0].nodes: expected an integer, found '8'"),
    (
        lambda d: d["queue"][0].update(priority=10**7),
        "queue[0].priority: expected an integer of at most 1000000, found 10000000",
    ),
    (
        lambda d: d["queue"][0].update(communication="tolerent"),
        "queue[0].communication: expected one of strict, tolerant, none"
        ", found 'tolerent' (did you mean 'tolerant'?)",
    ),
    (
        lambda d: d["queue"][0].update(walltime=-1),
        "queue[0].walltime: expected an integer of at least 0, found -1",
    ),
    (
        lambda d: d["queue"][0].update(shapes="2,1,2"),
        "queue[0].shapes: expected shapes such as \"12x2x12/10x5x10:maxz=12\", found '2,1,2'",
    ),
    (
        lambda d: d["queue"][0].update(shapes="2x4"),
        "queue[0].shapes: expected shapes of 3 extents, found '2x4'",
    ),
    (
        lambda d: d["queue"][0].update(shapes="5x1x2"),
        "queue[0].shapes: expected shapes that fit the machine, torus 4x4x3, found '5x1x2'",
    ),
    (
        lambda d: d["queue"][0].update(shapes="1x1x1"),
        "queue[0].shapes: expected shapes that hold the 8 nodes requested, 2 per router"
        ", found '1x1x1'",
    ),
    (
        lambda d: d["queue"][0].update(region="west"),
        "queue[0].region: expected a region of the snapshot, found 'west'",
    ),
    (lambda d: d["queue"][1].pop("nodes"), "queue[1].nodes: expected a value, found nothing"),
    (
        lambda d: d["queue"][1].update(id="first"),
        "queue[1].id: expected each job once, found 'first'",
    ),
    (
        lambda d: d["queue"][1].update(id="two words"),
        "queue[1].id: expected a name without blanks, commas and semicolons, found 'two words'",
    ),
    (
        lambda d: d["queue"][1].update(nodes=87),
        "queue[1].nodes: expected no more nodes than the machine's 86 of class xe, found 87",
    ),
    (
        lambda d: d["queue"][2].update({"class": "kx"}),
        "queue[2].class: expected a class of this machine (xe, xk), found 'kx'",
    ),
    (lambda d: d["queue"].append(None), "queue[3]: expected an object, found null"),
    (
        lambda d: d["running"][0].update(nodes="27-24"),
        "running[0].nodes: expected ranges that ascend, found '27-24'",
    ),
    (
        lambda d: d["running"][0].update(nodes="24,24"),
        "running[0].nodes: expected each node once, found node 24 twice",
    ),
    (
        lambda d: d["running"][0].update(nodes="95-96"),
        "running[0].nodes: expected node numbers from 0 to 95, found '95-96'",
    ),
    (
        lambda d: d["running"][0].update(nodes=""),
        "running[0].nodes: expected at least one node, found ''",
    ),
    (
        lambda d: d["running"][0]["prism"].update(origin=[4, 0, 0]),
        "running[0].prism: expected an origin inside torus 4x4x3, found '1x1x2@4,0,0'",
    ),
    (
        lambda d: d["running"][0]["prism"].update(extents=[1, 1]),
        "running[0].prism: expected 3 coordinates and extents, found '1x1@1,0,0'",
    ),
    (
        lambda d: d["running"][0]["prism"].update(extents=[2, 1, -2]),
        "running[0].prism.extents[2]: expected an integer of at least 1, found -2",
    ),
    (
        lambda d: d["running"].append({"id": "other", "nodes": "24"}),
        "running[1].nodes: expected nodes no other job holds, found node 24, held by busy",
    ),
    (
        lambda d: d["running"].append({"id": "other", "nodes": "0"}),
        "running[1].nodes: expected no service node, found node 0",
    ),
    (lambda d: d.update(down="96"), "down: expected node numbers from 0 to 95, found '96'"),
    (
        lambda d: d.update(down="n[0-3]"),
        "down: expected ranges such as \"0-47,60\", found 'n[0-3]'",
    ),
    (lambda d: d.update(down=9), "down: expected text, found 9"),
    (lambda d: d.update(name=""), "name: expected text of at least 1 character, found ''"),
    (lambda d: d.update(seed=True), "seed: expected an integer, found True"),
    (
        lambda d: d.update(weights={"volum": 2}),
        "weights.volum: expected one of the known fields, found 'volum' (did you mean 'volume'?)",
    ),
    (
        lambda d: d.update(schema="topoplace.snapshot/9"),
        'schema: expected a snapshot ("topoplace.snapshot/1"), found "topoplace.snapshot/9"',
    ),
    (
        lambda d: d.pop("schema"),
        'schema: expected a snapshot ("topoplace.snapshot/1"), found nothing',
    ),
    (lambda d: d.update(queue={}), "queue: expected a list, found {}"),
    (
        lambda d: d["machine"].update(shape=[4, 0, 3]),
        "machine.shape[1]: expected an integer of at least 1, found 0",
    ),
    (lambda d: d["machine"].update(shape="4x4x3"), "machine.shape: expected a list, found '4x4x3'"),
    (
        lambda d: d["machine"].update(shape=[]),
        "machine.shape: expected a list of at least 1 entry, found []",
    ),
    (
        lambda d: d["machine"].update(wrap=[True]),
        "machine.wrap: expected one entry for each of the 3 dimensions, found (True,)",
    ),
    (
        lambda d: d["machine"].update(bandwith=[1, 1, 1]),
        "machine.bandwith: expected one of the known fields"
        ", found 'bandwith' (did you mean 'bandwidth'?)",
    ),
    (
        lambda d: d["machine"].update(shape=[2000, 2000, 2000]),
        "machine.shape: expected at most 2097152 routers, found (2000, 2000, 2000)",
    ),
    (
        lambda d: d["machine"].update(kind="torrus"),
        "machine.kind: expected \"torus\", found 'torrus' (did you mean 'torus'?)",
    ),
    (lambda d: d["machine"].pop("name"), "machine.name: expected a value, found nothing"),
    (
        lambda d: d.update(machine="torus:8x8"),
        "machine: expected a machine of 3 dimensions, as running[0].prism has, found 'torus:8x8'",
    ),
    (
        lambda d: d.update(machine="torus:2x2x2"),
        "machine: expected a machine of more than 8 nodes, as running[0].nodes has node 27"
        ", found 'torus:2x2x2'",
    ),
    (
        lambda d: d.update(machine="torus:8,8,8"),
        "machine: expected a shorthand such as torus:8x8x8"
        ", found 'torus:8,8,8' (did you mean 'torus:8x8x8'?)",
    ),
    (
        lambda d: d.update(machine="Torus 8x8x8"),
        "machine: expected a shorthand such as torus:8x8x8"
        ", found 'Torus 8x8x8' (did you mean 'torus:8x8x8'?)",
    ),
    (
        lambda d: d.update(machine="blue_watres"),
        f"machine: expected {MACHINE}, found 'blue_watres' (did you mean 'blue_waters'?)",
    ),
    (
        lambda d: d.update(machine="tree:4x24"),
        "machine: expected a torus or mesh, as running[0].prism is a prism, found 'tree:4x24'",
    ),
    (lambda d: d.update(machine=7), "machine: expected an object, found 7"),
]
"""Changes of the small snapshot, and what is said of each."""

BENT_TREE: list[tuple[Bend, str]] = [
    (
        lambda d: d.update(machine="torus:8x8"),
        "machine: expected a tree machine, as down has names of nodes, found 'torus:8x8'",
    ),
    (
        lambda d: d.update(machine="tree:2,4"),
        "machine: expected a shorthand such as tree:24x16"
        ", found 'tree:2,4' (did you mean 'tree:2x4'?)",
    ),
    (lambda d: d.update(down="m7"), "down: expected nodes of the machine, found 'm7'"),
    (
        lambda d: d.update(down="n[7"),
        "down: expected a host list such as n[01-16,20],m3, found 'n[7'",
    ),
    (
        lambda d: d["running"].append({"id": "other", "nodes": "n2"}),
        "running[1].nodes: expected nodes no other job holds, found n2, held by old",
    ),
    (
        lambda d: d["queue"][0].update(nodes=9),
        "queue[0].nodes: expected no more nodes than the machine's 8, found 9",
    ),
    (
        lambda d: d["queue"][0].update(shapes="2x2"),
        "queue[0].shapes: expected no shapes on a tree, found '2x2'",
    ),
    (
        lambda d: d["queue"][0]["patterns"][0].update(pattern="rnig"),
        "queue[0].patterns[0].pattern: expected one of rd, rhvd, binomial, ring, stencil2d, "
        "stencil3d, found 'rnig' (did you mean 'ring'?)",
    ),
    (
        lambda d: d["queue"][0]["patterns"].append({"pattern": "rd", "share": 20}),
        "queue[0].patterns: expected shares that add up to 100 at most, found 120",
    ),
    (
        lambda d: d.update(regions={"west": []}),
        "regions: expected no regions on a tree, found 'west'",
    ),
]
"""The same of the snapshot of a tree."""


def said_of(command: str, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """Run a command that must fail on its input; return what it says, a line for each fault."""
    before = sorted(p.name for p in Path().iterdir())
    assert run(shlex.split(command)) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert sorted(p.name for p in Path().iterdir()) == before
    lines = captured.err.splitlines()
    assert all(line.startswith("topoplace: error: ") for line in lines)
    return [line.removeprefix("topoplace: error: ") for line in lines]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write_files(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def place_bent(document: Document, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """Place a bent snapshot; return what is said after the name of the file."""
    Path("bent.json").write_text(json.dumps(document))
    said = said_of("place bent.json --method first-fit -o made.json", capsys)
    assert all(line.startswith("bent.json: ") for line in said)
    return [line.removeprefix("bent.json: ") for line in said]


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("command", COMMAND_LINES)
def test_a_command_line(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert said_of(command, capsys) == [COMMAND_LINES[command]]


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(("bend", "line"), BENT, ids=[line for _, line in BENT])
def test_a_field(bend: Bend, line: str, capsys: pytest.CaptureFixture[str]) -> None:
    document = small_document()
    bend(document)
    assert place_bent(document, capsys) == [line]


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(("bend", "line"), BENT_TREE, ids=[line for _, line in BENT_TREE])
def test_a_field_of_a_tree(bend: Bend, line: str, capsys: pytest.CaptureFixture[str]) -> None:
    document = json.loads(json.dumps(TREE))
    bend(document)
    assert place_bent(document, capsys) == [line]


def test_there_are_enough_mistakes() -> None:
    assert len(COMMAND_LINES) + len(BENT) + len(BENT_TREE) >= 60


@pytest.mark.usefixtures("here")
def test_all_faults_of_a_document_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    document = small_document()
    document["nmae"] = "x"
    document["queue"][0]["nodes"] = 0
    del document["queue"][1]["id"]
    document["machine"]["shap"] = [4]
    assert place_bent(document, capsys) == [
        "machine.shap: expected one of the known fields, found 'shap' (did you mean 'shape'?)",
        "queue[0].nodes: expected an integer of at least 1, found 0",
        "queue[1].id: expected a value, found nothing",
        "nmae: expected one of the known fields, found 'nmae' (did you mean 'name'?)",
    ]


@pytest.mark.usefixtures("here")
def test_all_faults_that_the_machine_shows_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    document = small_document()
    document["down"] = "5-3"
    document["running"][0]["nodes"] = "4000"
    document["regions"] = {"west": [{"origin": [9, 0, 0], "extents": [1, 1, 1]}]}
    document["queue"][0]["shapes"] = "2x2"
    document["queue"][2]["class"] = "gpu"
    assert place_bent(document, capsys) == [
        "down: expected ranges that ascend, found '5-3'",
        "running[0].nodes: expected node numbers from 0 to 95, found '4000'",
        "regions.west[0]: expected an origin inside torus 4x4x3, found '1x1x1@9,0,0'",
        "queue[0].shapes: expected shapes of 3 extents, found '2x2'",
        "queue[2].class: expected a class of this machine (xe, xk), found 'gpu'",
    ]


@pytest.mark.usefixtures("here")
def test_all_faults_of_a_machine_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert said_of("map --on misspelt.json --grid 4x4", capsys) == [
        "misspelt.json: shape: expected a value, found nothing",
        "misspelt.json: shpae: expected one of the known fields, found 'shpae' "
        "(did you mean 'shape'?)",
    ]


@pytest.mark.usefixtures("here")
def test_no_more_lines_than_one_can_read(capsys: pytest.CaptureFixture[str]) -> None:
    document = small_document()
    document["queue"] = [{"id": f"j{k}", "nodes": 0} for k in range(MAX_FAULTS)]
    assert len(place_bent(document, capsys)) == MAX_FAULTS
    document["queue"] *= 2
    said = place_bent(document, capsys)
    assert len(said) == MAX_FAULTS
    assert said[-1] == f"and {MAX_FAULTS + 1} more faults"


@pytest.mark.parametrize("command", ["place", "check", "show", "compare"])
def test_a_document_from_stdin_is_named_so(
    command: str,
    here: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    text = io.BytesIO((here / "comma.json").read_bytes())
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(text))
    options = " --png f.png" if command == "show" else ""
    (line,) = said_of(f"{command} -{options}", capsys)
    assert line.startswith("stdin: expected a JSON document (")


@pytest.mark.parametrize("command", ["place", "compare"])
def test_a_snapshot_from_stdin(
    command: str,
    here: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    text = io.BytesIO((here / "snapshot.json").read_bytes())
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(text))
    methods = "--methods" if command == "compare" else "--method"
    assert run([command, "-", methods, "first-fit"]) == 0
    assert "first-fit" in capsys.readouterr().out


@pytest.mark.usefixtures("here")
def test_a_shipped_snapshot_by_name() -> None:
    assert load_snapshot("tiny_features").snapshot.name == "tiny_features"
    Path("tiny_features").write_text(json.dumps(TREE))
    assert load_any("tiny_features").snapshot.name == "tree"  # a file goes first


@pytest.mark.usefixtures("here")
def test_a_rank_order_alone_has_its_node_list_beside_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(["map", "--on", "torus:4x4", "--grid", "4x4", "--rank-order", "order"]) == 0
    said = capsys.readouterr().out
    assert "rank-order: order\nnode-list: order.nodes\n" in said
    order = Path("order").read_text().split()
    assert sorted(map(int, order)) == list(range(16))
    assert Path("order.nodes").read_text() == ",".join(map(str, range(16))) + "\n"


def test_the_names_that_help_lists_are_those_there_are() -> None:
    for problem, summaries in METHODS.items():
        there = {name: methods(problem)[name].summary for name in summaries}
        assert summaries == there
        assert set(summaries) >= set(SHIPPED[problem])
    assert list(MACHINES) == machine_names()
    assert list(SNAPSHOTS) == snapshot_names()


@pytest.mark.parametrize("command", ["place", "compare", "map", "replay", "batch"])
def test_help_lists_methods(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([command, "-h"]) == 0
    told = capsys.readouterr().out
    problems = {"map": ["mapping"], "place": ["placement", "allocation"]}.get(
        command, ["placement"]
    )
    for problem in problems:
        assert all(name in told for name in METHODS[problem])
    if command in {"map", "replay"}:
        assert all(name in told for name in MACHINES)


@pytest.mark.parametrize("command", [c.name or "" for c in app.registered_commands])
def test_every_command_has_h(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([command, "-h"]) == 0
    assert "Usage: topoplace" in capsys.readouterr().out


def test_a_shell_completes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("_TOPOPLACE_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", "topoplace place --method alps-")
    monkeypatch.setenv("COMP_CWORD", "3")
    with pytest.raises(SystemExit):
        run([])
    assert capsys.readouterr().out.split() == ["alps-2y", "alps-4y", "alps-o2"]


def test_faults_are_collected_and_told_together() -> None:
    faults = Faults()
    for text in ("1", "x", "y"):
        with faults.collected():
            if not text.isdigit():
                raise InputError("a digit", field=text, value=text)
    with pytest.raises(InputError) as caught:
        faults.require_none()
    error = caught.value.located("f").inside("top")
    assert str(error).splitlines() == [
        "f: top.x: expected a digit, found 'x'",
        "f: top.y: expected a digit, found 'y'",
    ]
    assert error.brief == "f: top.x: expected a digit, found 'x' (and 1 more fault)"


@pytest.mark.parametrize(
    ("value", "meant"),
    [("First-Fit", "first-fit"), ("second", None), ("first", "first-fit"), (7, None), ("", None)],
)
def test_what_was_meant(value: object, meant: str | None) -> None:
    assert closest(value, ["first-fit", "exact"]) == meant
