"""Applications of the papers (Bhatele 2009, sections 3.3 and 4.2; docs/guide/objects.md).

Sizes and loads are parameters; values that a source does not give are marked as assumptions.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from topoplace.errors import InputError, number_of
from topoplace.snapshot.objects import ObjectsApplication

Document = dict[str, Any]


def application(
    name: str, arrays: list[Document], messages: list[Document], source: str
) -> ObjectsApplication:
    """Return a document of arrays and messages."""
    return ObjectsApplication.model_validate(
        {
            "schema": "topoplace.application/1",
            "name": name,
            "arrays": arrays,
            "messages": messages,
            "source": source,
        }
    )


def openatom(
    states: int = 128,
    gspace_planes: int = 16,
    realspace_planes: int = 12,
    block: int = 32,
    *,
    transpose_bytes: int = 8,
    pair_bytes: int = 64,
    loads: Sequence[int] = (4, 3, 20),
    name: str = "openatom",
) -> ObjectsApplication:
    """Return GSpace, RealSpace and PairCalculators of OpenAtom (Bhatele 2009, section 3.3.1).

    All planes of a state in GSpace send to all its planes in RealSpace, and back. The states of a
    plane send to the pair calculators of their blocks, row and column, and get as much back.

    Parameters
    ----------
    block
        States that a pair calculator has in each of its two dimensions; it divides `states`.
    transpose_bytes, pair_bytes
        The size of a message, in units of about a kilobyte.
    loads
        The load of an object of GSpace, RealSpace and PairCalculator.
    """
    if states % block:
        raise InputError(f"a divisor of {number_of(states, 'state')}", field="block", value=block)
    blocks = states // block
    arrays: list[Document] = [
        {"name": "GSpace", "shape": [states, gspace_planes], "load": loads[0]},
        {"name": "RealSpace", "shape": [states, realspace_planes], "load": loads[1]},
        {"name": "PairCalculator", "shape": [blocks, blocks, gspace_planes], "load": loads[2]},
    ]
    rules = [
        ("GSpace(s,*) <-> RealSpace(s,*)", transpose_bytes),
        (f"GSpace(s,p) <-> PairCalculator(s/{block},*,p)", pair_bytes),
        (f"GSpace(s,p) <-> PairCalculator(*,s/{block},p)", pair_bytes),
    ]
    messages: list[Document] = [{"rule": rule, "bytes": size} for rule, size in rules]
    source = "Bhatele 2009, 3.3.1; planes, blocks, bytes and loads are assumptions"
    return application(name, arrays, messages, source)


def namd(
    patches: Sequence[int] = (6, 6, 4),
    *,
    face_bytes: int = 16,
    self_load: int = 60,
    loads: Sequence[int] = (80, 30, 10),
    patch_load: int = 10,
    once: bool = True,
    name: str = "namd",
) -> ObjectsApplication:
    """Return patches and computes of NAMD (Bhatele 2009, section 3.3.2).

    Patches are a periodic array; a compute for every pair of neighbours, and one for each patch by
    itself, gets the atoms of its patches and returns forces, through proxies: once between a patch
    and every node that has computes of it. By default the 144 patches of ApoLipoprotein-A1 (92,227
    atoms).

    Parameters
    ----------
    face_bytes
        The size of a message of atoms or forces, in units of about a kilobyte.
    self_load, loads
        The load of a compute of one patch, and of two that share a face, an edge, a corner.
    once
        Whether messages go through proxies; else between a patch and each of its computes.
    """
    if min(patches) < 3:
        raise InputError(
            "at least 3 patches in each dimension", field="patches", value=list(patches)
        )
    offsets = [o for o in itertools.product((-1, 0, 1), repeat=3) if o > (0, 0, 0)]
    work = [self_load, *(loads[sum(map(abs, offset)) - 1] for offset in offsets)]
    num = int(np.prod(patches))
    arrays: list[Document] = [
        {"name": "Patches", "shape": list(patches), "load": patch_load},
        {"name": "Computes", "shape": [*patches, len(work)], "load": 1, "loads": work * num},
    ]
    rules = ["Patches(i,j,k) <-> Computes(i,j,k,*)"]
    for number, offset in enumerate(offsets, start=1):
        there = ",".join(_shifted(n, -step) for n, step in zip("ijk", offset, strict=True))
        # compute o of a patch works on it and on the patch one offset further
        rules.append(f"Patches(i,j,k) <-> Computes({there},{number})")
    sent: Document = {"bytes": face_bytes, "periodic": True}
    if once:
        messages = [{"rule": "; ".join(rules), "once": "node", **sent}]
    else:
        messages = [{"rule": rule, **sent} for rule in rules]
    source = "Bhatele 2009, 3.3.2 (ApoA1); bytes and loads are assumptions"
    return application(name, arrays, messages, source)


def _shifted(name: str, step: int) -> str:
    return name if step == 0 else f"{name}{step:+d}"


def matrix_multiplication(
    shape: Sequence[int] = (8, 8, 8), *, block_bytes: int = 64, name: str = "matmul"
) -> ObjectsApplication:
    """Return 3D matrix multiplication (Bhatele 2009, section 4.2).

    Parts of A go along the last dimension to all objects of the line, those of B along the first,
    those of C are added up along the second.
    """
    arrays: list[Document] = [{"name": "Chares", "shape": list(shape), "load": 1}]
    rules = ("Chares(x,y,*)", "Chares(*,y,z)", "Chares(x,*,z)")
    messages: list[Document] = [
        {"rule": f"Chares(x,y,z) -> {to}", "bytes": block_bytes} for to in rules
    ]
    source = "Bhatele 2009, 4.2; equal parts, and sizes, are assumptions"
    return application(name, arrays, messages, source)


def milc(
    shape: Sequence[int] = (8, 8, 8, 16), *, face_bytes: int = 64, name: str = "milc"
) -> ObjectsApplication:
    """Return the periodic 4D grid of MILC, neighbours only (Bhatele 2009, section 4.2)."""
    names = "xyzt"[: len(shape)]
    messages: list[Document] = []
    for d in range(len(shape)):
        there = ",".join(_shifted(n, int(k == d)) for k, n in enumerate(names))
        rule = f"Sites({','.join(names)}) <-> Sites({there})"
        messages.append({"rule": rule, "bytes": face_bytes, "periodic": True})
    arrays: list[Document] = [{"name": "Sites", "shape": list(shape), "load": 1}]
    source = "Bhatele 2009, 4.2 (ks_imp_dyn); nearest neighbours and sizes are assumptions"
    return application(name, arrays, messages, source)


def mesh(num: int = 2000, seed: int = 0, *, name: str = "mesh") -> ObjectsApplication:
    """Return an unstructured mesh (Bhatele 2009, section 4.2): random points in a cube.

    Neighbours in a Delaunay triangulation exchange bytes; loads are from 1 to 9.
    """
    from scipy.spatial import Delaunay  # noqa: PLC0415 - heavy

    random = np.random.default_rng(seed)
    simplices = Delaunay(random.random((num, 3))).simplices
    ends = np.concatenate([simplices[:, pair] for pair in itertools.combinations(range(4), 2)])
    pairs = np.unique(np.sort(ends, axis=1), axis=0)
    loads = random.integers(1, 10, num).tolist()
    arrays: list[Document] = [{"name": "Elements", "shape": [num], "loads": loads}]
    listed = np.concatenate([pairs, pairs[:, ::-1]])
    messages: list[Document] = [
        {
            "sender": "Elements",
            "receiver": "Elements",
            "pairs": listed.tolist(),
            "bytes": random.integers(1, 10, len(pairs)).tolist() * 2,
        }
    ]
    source = f"Delaunay triangulation of {num} random points, seed {seed}"
    return application(name, arrays, messages, source)


def water_32m() -> ObjectsApplication:
    """Return OpenAtom's WATER_32M: four doubly occupied states for each of 32 molecules of water.

    Planes and blocks are assumptions.
    """
    return openatom(128, 16, 12, 32, name="openatom_water_32m")


def water_256m() -> ObjectsApplication:
    """Return OpenAtom's WATER_256M: four states for each of 256 molecules; see `water_32m`."""
    return openatom(1024, 32, 24, 128, name="openatom_water_256m")


BUILDERS: dict[str, Callable[[], ObjectsApplication]] = {
    "openatom_water_32m": water_32m,
    "openatom_water_256m": water_256m,
    "namd_apoa1": partial(namd, name="namd_apoa1"),
    "matmul_8x8x8": partial(matrix_multiplication, name="matmul_8x8x8"),
    "milc_8x8x8x16": partial(milc, name="milc_8x8x8x16"),
}
"""The applications shipped in `instances/applications`, written by `scripts/build_instances.py`."""
