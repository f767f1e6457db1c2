"""A Slurm cluster drawn by a seed, as its tools print it: nodes that jobs share, and features."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

NOW = 2_000_000
LEAVES, OF_LEAF, SPINES = 40, 15, 4
NUM_NODES = LEAVES * OF_LEAF
GPU_LEAVES = range(32, 40)

_NODE = (
    "NodeName={name} CPUTot={cpus} CPUAlloc={held} State={state} RealMemory={memory} "
    "AllocMem={given} Gres={gres} ThreadsPerCore=1 TmpDisk=0 Owner=N/A Partitions={of} "
    "ActiveFeatures={features} AvailableFeatures={features}\n"
)
_PARTITION = (
    "PartitionName={name} MaxNodes=UNLIMITED MaxTime=2-00:00:00 MinNodes=0 Nodes={nodes} "
    "OverSubscribe={shared} State=UP MaxCPUsPerNode=UNLIMITED ReqResv=NO ExclusiveUser=NO\n"
)
PARTITIONS = {
    "cpu": ("n[0-479]", "NO"),
    "gpu": ("n[480-599]", "NO"),
    "big": ("n[240-359]", "NO"),
    "whole": ("n[0-119]", "EXCLUSIVE"),
}
_INSIDE = {"cpu": (0, 480), "gpu": (480, 600), "big": (240, 360), "whole": (0, 120)}


def number(value: int) -> dict[str, Any]:
    return {"set": True, "infinite": False, "number": value}


class Cluster:
    """600 nodes on 40 leaves, partly in use, and jobs that wait; `start` starts some of them."""

    def __init__(self, seed: int, num_jobs: int = 300, load: float = 0.75) -> None:
        self.rng = random.Random(f"slurm-{seed}")
        self.cpus = [64 if k < 480 else 32 for k in range(NUM_NODES)]
        self.memory = [256_000 if 240 <= k < 360 else 128_000 for k in range(NUM_NODES)]
        self.gpus = [4 if k >= 480 else 0 for k in range(NUM_NODES)]
        self.left = [[c, m, g] for c, m, g in zip(self.cpus, self.memory, self.gpus, strict=True)]
        self.jobs: list[dict[str, Any]] = []
        while sum(left[0] for left in self.left) > (1 - load) * sum(self.cpus):
            self.start(self._job(len(self.jobs) + 1), NOW - self.rng.randrange(1, 3000))
        for _ in range(num_jobs):
            self.jobs.append(self._job(len(self.jobs) + 1))

    def _job(self, number_: int) -> dict[str, Any]:
        rng = self.rng
        name = rng.choice(("cpu", "cpu", "cpu", "gpu", "big", "whole"))
        nodes = rng.choice((1, 1, 1, 2, 2, 4, 8))
        whole = name == "whole" or rng.random() < 0.1
        per = rng.choice((1, 2, 4, 8, 16))
        features = rng.choice(("", "", "", "ib", "ib|eth", "ib&new")) if name == "cpu" else ""
        gpus = rng.choice((1, 2, 4)) if name == "gpu" else 0
        by_task = name == "cpu" and rng.random() < 0.1
        tasks = rng.choice((16, 40, 100)) if by_task else nodes * per
        least = 1 if by_task else nodes
        job = {
            "job_id": number_,
            "job_state": ["PENDING"],
            "nodes": "",
            "node_count": number(least),
            "max_nodes": number(0 if by_task else nodes),
            "tasks": number(tasks),
            "cpus": number(tasks),
            "cpus_per_task": number(1),
            "minimum_cpus_per_node": number(1 if by_task else per),
            "memory_per_cpu": number(1000),
            "priority": number(10_000 - number_),
            "time_limit": number(rng.choice((30, 60, 240, 1440))),
            "submit_time": number(NOW - 10_000 + number_),
            "state_reason": "None",
            "partition": name,
            "shared": ["none"] if whole and not by_task else [],
            "features": features,
            "tres_per_node": f"gres/gpu:a100:{gpus}" if gpus else "",
            "tres_req_str": f"cpu={tasks},node={least}",
        }
        if not by_task:
            job["tasks_per_node"] = number(per)
        if rng.random() < 0.05 and not by_task:
            job["required_switches"] = 1
        if rng.random() < 0.03:
            job["dependency"] = "afterok:1(unfulfilled)"
        if rng.random() < 0.02:
            first = _INSIDE[name][0]
            job["excluded_nodes"] = f"n[{first}-{first + 20}]"
        return job

    def features(self, node: int) -> set[str]:
        return {"ib" if node // OF_LEAF % 2 else "eth"} | ({"new"} if node % 3 else set())

    def start(self, job: dict[str, Any], when: int) -> bool:
        """Start a job on the first nodes that fit, if there are enough below one switch or all."""
        if "dependency" in job:
            return False
        first, end = _INSIDE[job["partition"]]
        whole = job["shared"] == ["none"] or job["partition"] == "whole"
        nodes, tasks = job["node_count"]["number"], job["tasks"]["number"]
        per = job.get("tasks_per_node", number(0))["number"]
        gpus = int(job["tres_per_node"].rpartition(":")[2] or 0)
        out = range(first, first + 21) if job.get("excluded_nodes") else range(0)
        wanted = job["features"]
        ok = []
        for node in range(first, end):
            has, (cpus, memory, left) = self.features(node), self.left[node]
            named = {*wanted.replace("|", "&").split("&")} - {""}
            fits = node not in out and (named <= has or ("|" in wanted and bool(named & has)))
            if whole:
                fits &= [cpus, memory, left] == [
                    self.cpus[node],
                    self.memory[node],
                    self.gpus[node],
                ]
            fits &= cpus >= (per or 1) and memory >= 1000 * (per or 1) and left >= gpus
            if fits:
                ok.append(node)
        if job.get("required_switches"):
            leaves = [[n for n in ok if n // OF_LEAF == leaf] for leaf in range(LEAVES)]
            ok = next((own for own in leaves if len(own) >= nodes), [])
        takes: dict[int, int] = {}
        for node in ok:
            if per:
                takes[node] = per
                if len(takes) == nodes:
                    break
            else:
                takes[node] = min(
                    tasks - sum(takes.values()),
                    *(v for v in (self.left[node][0], self.left[node][1] // 1000)),
                )
                if sum(takes.values()) == tasks:
                    break
        if sum(takes.values()) != tasks:
            return False
        allocation = []
        for node, cpus in takes.items():
            mine = self.cpus[node] if whole else cpus
            memory = 1000 * mine if not whole else 1000 * cpus
            self.left[node] = [
                self.left[node][0] - mine,
                self.left[node][1] - memory,
                self.left[node][2] - gpus,
            ]
            allocation.append(
                {"name": f"n{node}", "cpus": {"count": mine}, "memory": {"allocated": memory}}
            )
        job |= {
            "job_state": ["RUNNING"],
            "nodes": ",".join(f"n{node}" for node in takes),
            "node_count": number(len(takes)),
            "start_time": number(when),
            "end_time": number(when + 60 * job["time_limit"]["number"]),
            "job_resources": {"nodes": {"allocation": allocation}},
            "gres_detail": [f"gpu:a100:{gpus}"] * len(takes) if gpus else [],
        }
        if job not in self.jobs:
            self.jobs.append(job)
        return True

    def decide(self) -> int:
        """Start jobs in their order, each that fits; return how many."""
        return sum(self.start(job, NOW) for job in self.jobs if job["job_state"] == ["PENDING"])

    def write(self, folder: Path) -> Path:
        """Write what Slurm's tools would print."""
        folder.mkdir(parents=True, exist_ok=True)
        topology = [
            f"SwitchName=l{k} Nodes=n[{k * OF_LEAF}-{(k + 1) * OF_LEAF - 1}]" for k in range(LEAVES)
        ]
        of_spine = LEAVES // SPINES
        topology += [
            f"SwitchName=s{k} Switches=l[{k * of_spine}-{(k + 1) * of_spine - 1}]"
            for k in range(SPINES)
        ]
        topology += [f"SwitchName=top Switches=s[0-{SPINES - 1}]"]
        (folder / "topology.conf").write_text("\n".join(topology) + "\n")
        nodes = ""
        for k in range(NUM_NODES):
            cpus, memory, _ = self.left[k]
            of = [name for name, (first, end) in _INSIDE.items() if first <= k < end]
            nodes += _NODE.format(
                name=f"n{k}",
                cpus=self.cpus[k],
                held=self.cpus[k] - cpus,
                state="IDLE" if cpus == self.cpus[k] else "MIXED",
                memory=self.memory[k],
                given=self.memory[k] - memory,
                gres="gpu:a100:4" if self.gpus[k] else "(null)",
                of=",".join(of),
                features=",".join(sorted(self.features(k))),
            )
        (folder / "nodes.txt").write_text(nodes)
        partitions = [
            _PARTITION.format(name=name, nodes=nodes, shared=shared)
            for name, (nodes, shared) in PARTITIONS.items()
        ]
        (folder / "partitions.txt").write_text("".join(partitions))
        (folder / "reservations.txt").write_text("No reservations in the system\n")
        document = {"jobs": self.jobs, "last_update": number(NOW)}
        (folder / "squeue.json").write_text(json.dumps(document))
        return folder
