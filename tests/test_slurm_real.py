"""A real slurmctld: what its tools print is read, and what it decides is right.

Its nodes are nodes of a cloud that never boot, so it needs no slurmd: a job that starts is
configured for ever.
"""

from __future__ import annotations

import getpass
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import topoplace as tp
from topoplace.machine.hostlist import expand_host_list

pytestmark = pytest.mark.slow

CONF = """\
ClusterName=tiny
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/none
CredType=cred/none
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/pid
SlurmctldLogFile={folder}/log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
TopologyPlugin=topology/tree
GresTypes=gpu
PrivateData=cloud
SchedulerParameters={scheduler}
PriorityType=priority/multifactor
PriorityWeightJobSize=1000
PriorityCalcPeriod=1
DefMemPerCPU=1000
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
SuspendProgram=/bin/true
ResumeProgram=/bin/true
ResumeTimeout=65000
SuspendTime=65000
NodeName=c[1-4] CPUs=16 Sockets=2 CoresPerSocket=8 RealMemory=64000 Feature=r1,ib State=CLOUD
NodeName=c[5-8] CPUs=16 Sockets=2 CoresPerSocket=8 RealMemory=64000 Feature=r2,ib State=CLOUD
NodeName=g[1-4] CPUs=32 Sockets=2 CoresPerSocket=16 RealMemory=128000 Gres=gpu:4 State=CLOUD
PartitionName=cpu Nodes=c[1-8] Default=YES MaxTime=1-0 State=UP
PartitionName=gpu Nodes=g[1-4] MaxTime=1-0 State=UP
"""
SWITCHES = """\
SwitchName=l1 Nodes=c[1-4]
SwitchName=l2 Nodes=c[5-8]
SwitchName=l3 Nodes=g[1-4]
SwitchName=top Switches=l[1-3]
"""
PAUSED = "defer,sched_interval=-1,bf_interval=-1,batch_sched_delay=100000"
JOBS = [
    "-N4 --exclusive --switches=1",
    "-N2 -n4",
    "-N2 -n32",
    "-N3 --exclusive -C [r1*1&r2*2]",
    "-N2 -C ib&(r1|r2)",
    "-n6",
    "-p gpu -n6 --gpus-per-task=1",
    "-p gpu -N2 --gpus=2",
    "-p gpu -N1 --gpus=2 --ntasks-per-gpu=2",
    "-p gpu -N2 --gpus-per-node=2 --cpus-per-gpu=4",
    "-p gpu -N1 --gpus-per-node=2 --mem-per-gpu=4G",
    "-p gpu -N2 --gpus=5 --exclusive",
    "-N2-4",
    "-p gpu --gpus=6",
]
HELD = 2  # the last ones


PATH = os.pathsep.join((os.environ.get("PATH", ""), "/usr/sbin", "/sbin"))


def run(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout


class Controller:
    """A slurmctld of a folder of its own."""

    def __init__(self, folder: Path) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        host = socket.gethostname().partition(".")[0]
        self.folder = folder
        self._own = {"host": host, "port": port, "user": getpass.getuser(), "folder": folder}
        (folder / "state").mkdir()
        (folder / "topology.conf").write_text(SWITCHES)
        (folder / "wait.sh").write_text("#!/bin/sh\nsleep 9999\n")
        self.write(PAUSED)

    def write(self, scheduler: str) -> None:
        text = CONF.format(**self._own, scheduler=scheduler)
        (self.folder / "slurm.conf").write_text(text)

    def start(self, *options: str) -> None:
        """Start it, and wait until it answers."""
        self._process = subprocess.Popen(["slurmctld", "-D", *options], stderr=subprocess.DEVNULL)
        for _ in range(60):
            ping = subprocess.run(["scontrol", "ping"], check=False, capture_output=True)
            if ping.returncode == 0:
                return
            time.sleep(0.5)
        pytest.fail((self.folder / "log").read_text()[-2000:])

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait(60)

    def go(self) -> None:
        """Let it schedule, until its queue has not changed for some rounds."""
        self.stop()  # its backfill scheduler may sleep too long to see other parameters
        self.write("sched_interval=1,bf_interval=1")
        self.start()
        before, same, end = "", 0, time.monotonic() + 90
        while same < 8 and time.monotonic() < end:
            time.sleep(1)
            now = run("squeue", "-h", "-o", "%i %T %N")
            before, same = now, same + 1 if now == before and "CONFIGURING" in now else 0


@pytest.fixture
def controller(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Controller]:
    missing = [
        name
        for name in ("slurmctld", "scontrol", "squeue", "sbatch")
        if shutil.which(name, path=PATH) is None
    ]
    if missing:
        pytest.skip(f"no {', '.join(missing)} on this machine (Debian: slurmctld, slurm-client)")
    own = Controller(tmp_path)
    monkeypatch.setenv("SLURM_CONF", str(tmp_path / "slurm.conf"))
    monkeypatch.setenv("PATH", PATH)
    own.start("-c")
    try:
        yield own
    finally:
        own.stop()


def snapshot(folder: Path, name: str) -> tp.Model:
    path = folder / f"{name}.json"
    run("topoplace", "snapshot", "--slurm", "-o", str(path))
    return tp.Model.of(tp.load(path).snapshot)


def test_a_real_controller_is_read_and_judged(controller: Controller) -> None:
    folder = controller.folder
    ids = []
    for options in JOBS:
        minutes = "1000" if {"--exclusive", "-n32"} & {*options.split()} else "100"
        told = run("sbatch", "--parsable", "-t", minutes, *options.split(), str(folder / "wait.sh"))
        ids.append(told.strip())
    before = snapshot(folder, "before")
    held = {one.request for one in before.snapshot.left_out if one.request}
    assert held == {*ids[-HELD:]}
    result = tp.place(before, time_limit=20)
    assert result.check().verified
    for start in result.placements:
        hosts = expand_host_list(start.hosts.split("*")[0].split(" ")[0])
        of_gpu = "-p gpu" in JOBS[ids.index(start.request)]
        assert all(host.startswith("g" if of_gpu else "c") for host in hosts)
    controller.go()
    after = snapshot(folder, "after")
    assert after.snapshot.running
    rows = tp.audit(before, after=after, order="backfill", time_limit=20).rows
    assert not {"missed", "invalid", "out of turn"} & {row.verdict for row in rows}, rows
    assert sum(row.verdict not in ("unjudged", "unproven") for row in rows) >= len(JOBS) - HELD
