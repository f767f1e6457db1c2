"""A snapshot of the cluster that is here: the tools of its scheduler are called and read."""

from __future__ import annotations

import contextlib
import shlex
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from topoplace import options
from topoplace.errors import InputError
from topoplace.formats.declared import Use
from topoplace.formats.kubernetes.fields import KINDS
from topoplace.front.converting import converted
from topoplace.model import Model
from topoplace.options import ConvertOptions, takes
from topoplace.snapshot.convert import Converted
from topoplace.snapshot.files import make_folder, write_bytes
from topoplace.snapshot.schema import Snapshot
from topoplace.study.external.allocator import last_words

MOST_SECONDS = 300.0
"""What a tool gets for an answer."""

_FLAT = "- {topology: flat, flat: true}\n"
_NO_TOPOLOGY = "No topology information"
_NO_JOBS = b"No jobs in the system"


@takes(options.Live)
def live_snapshot(asked: options.Live) -> Model:
    """Ask the tools of Slurm or Kubernetes for the cluster as it is now.

    Returns
    -------
    Model
        As `load` returns it.
    """
    found = taken(asked).document
    assert isinstance(found, Snapshot)
    return Model.of(found)


def taken(asked: options.Live) -> Converted:
    """Return a snapshot of the cluster, and what a person should know about how it was made."""
    if asked.slurm == asked.kube:
        raise InputError("--slurm or --kube", found="both" if asked.slurm else "neither")
    make_folder(asked.keep, "--keep")
    own = ConvertOptions(
        name=asked.name or ("slurm" if asked.slurm else "kubernetes"),
        topology=asked.topology,
        levels=asked.levels,
    )
    with _folder(asked.keep) as folder:
        if asked.slurm:
            _ask_slurm(asked, folder)
            return converted(folder, "slurm", "snapshot", own)
        _ask_kubernetes(asked, folder / "now.json")
        return converted(folder / "now.json", "kubernetes", "snapshot", own)


@contextlib.contextmanager
def _folder(kept: Path | None) -> Iterator[Path]:
    """Yield where answers go; errors name a file that is not kept by its name alone."""
    if kept is not None:
        yield kept
        return
    with tempfile.TemporaryDirectory() as folder:
        try:
            yield Path(folder)
        except InputError as error:
            for fault in error.faults:
                if fault.file is not None and fault.file.startswith(folder):
                    fault.file = fault.file.removeprefix(folder).strip("/") or "the answers"
            raise


def _ask_slurm(asked: options.Live, folder: Path) -> None:
    """Write what scontrol and squeue say into a folder, under the names that are read."""
    topology, said = _answer(asked.scontrol, "--scontrol", "show topology", may_fail=_NO_TOPOLOGY)
    if topology.strip() and _NO_TOPOLOGY not in said:
        write_bytes(folder / "topology.txt", topology)
    else:
        write_bytes(folder / "topology.yaml", _FLAT.encode())
    for record in ("node", "partition"):
        listed, _ = _answer(asked.scontrol, "--scontrol", f"show {record} -o")
        write_bytes(folder / f"{record}s.txt", listed)
    listed, _ = _answer(asked.scontrol, "--scontrol", "show reservation --json", may_fail="")
    if listed.lstrip().startswith(b"{"):
        write_bytes(folder / "reservations.json", listed)
    else:  # a Slurm without JSON
        listed, _ = _answer(asked.scontrol, "--scontrol", "show reservation -o")
        write_bytes(folder / "reservations.txt", listed)
    jobs, said = _answer(asked.squeue, "--squeue", "--all --json", may_fail="")
    if jobs.lstrip().startswith(b"{"):
        write_bytes(folder / "squeue.json", jobs)
        return
    jobs, _ = _answer(asked.scontrol, "--scontrol", "show job -o")  # a Slurm without JSON
    if not jobs.startswith(_NO_JOBS):
        write_bytes(folder / "jobs.txt", jobs)


def _ask_kubernetes(asked: options.Live, path: Path) -> None:
    """Write what kubectl says of all kinds of objects that are read, and that are there."""
    listed, _ = _answer(asked.kubectl, "--kubectl", "api-resources --verbs=list --no-headers")
    wanted = {field.name for field in KINDS.fields if field.use is not Use.NEUTRAL}
    names = []
    for line in listed.decode(errors="replace").splitlines():
        name, *_, version, _, kind = line.split() if len(line.split()) > 3 else [""] * 4
        if kind in wanted:
            names.append(f"{name}.{version.partition('/')[0]}" if "/" in version else name)
    if "nodes" not in names:
        raise InputError("a cluster that lists nodes", field="--kubectl", value=asked.kubectl)
    write_bytes(path, _answer(asked.kubectl, "--kubectl", f"get {','.join(names)} -A -o json")[0])


def _answer(
    command: str, option: str, arguments: str, *, may_fail: str | None = None
) -> tuple[bytes, str]:
    """Return what a tool prints, on stdout and on stderr.

    Parameters
    ----------
    command
        The tool, perhaps with arguments: ``ssh login scontrol``.
    may_fail
        It may end badly if it says this; None if it may not.
    """
    words = [*shlex.split(command), *arguments.split()]
    try:
        done = subprocess.run(words, capture_output=True, timeout=MOST_SECONDS, check=False)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        expected = f"a program that can be run ({reason})"
        raise InputError(expected, field=option, value=command) from None
    except subprocess.TimeoutExpired:
        expected = f"an answer in {MOST_SECONDS:g} s"
        raise InputError(expected, field=option, value=" ".join(words)) from None
    said = done.stderr.decode(errors="replace")
    if done.returncode and (may_fail is None or may_fail not in said):
        found = f"exit code {done.returncode}: {last_words(said)!r}"
        raise InputError(f"an answer to {' '.join(words)}", field=option, found=found)
    return done.stdout, said
