"""A Kubernetes cluster drawn by a seed, as kubectl prints it: zones, racks, pools, five kinds."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

ZONES, RACKS, HOSTS = 5, 10, 20
ZONE, RACK, HOST, POOL = "zone", "rack", "kubernetes.io/hostname", "pool"
GPU = "nvidia.com/gpu"
LWS, KUEUE = "leaderworkerset.sigs.k8s.io", "kueue.x-k8s.io"

Object = dict[str, Any]


def thing(api: str, kind: str, name: str, namespace: str = "", **more: Any) -> Object:
    meta = {"name": name, **({"namespace": namespace} if namespace else {})}
    meta |= more.pop("metadata", {})
    return {"apiVersion": api, "kind": kind, "metadata": meta, **more}


class Cluster:
    """1,000 nodes, partly in use, and 400 workloads that wait: a fifth of each kind."""

    def __init__(self, seed: int, num: int = 400) -> None:
        self.rng = random.Random(f"kube-{seed}")
        levels = [{"nodeLabel": label} for label in (ZONE, RACK, HOST)]
        self.objects = [thing(f"{KUEUE}/v1beta1", "Topology", "t", spec={"levels": levels})]
        self.free: dict[str, int] = {}
        for z in range(ZONES):
            for r in range(RACKS):
                for h in range(HOSTS):
                    self._node(z, r, h)
        self._running()
        kinds: list[Callable[[int], None]] = [
            self._job, self._groups, self._gang, self._kai, self._workload,
        ]  # fmt: skip
        for k in range(num):
            kinds[k % len(kinds)](k)

    # ---- Nodes, and what runs on them

    def _node(self, z: int, r: int, h: int) -> None:
        name = f"z{z}r{r}n{h}"
        pool = "cpu" if r == 0 else "reserved" if r == 1 else "gpu"
        taints = {
            "gpu": [{"key": GPU, "value": "present", "effect": "NoSchedule"}],
            "reserved": [{"key": "team", "value": "x", "effect": "NoSchedule"}],
        }
        labels = {ZONE: f"z{z}", RACK: f"z{z}r{r}", HOST: name, POOL: pool}
        amounts = {"cpu": "64", "memory": "512Gi", "pods": "110"}
        if pool != "cpu":
            amounts[GPU] = "8"
            self.free[name] = 8
        ready = {"type": "Ready", "status": "True" if self.rng.random() < 0.98 else "False"}
        self.objects.append(
            thing(
                "v1",
                "Node",
                name,
                metadata={"labels": labels},
                spec={"taints": taints.get(pool, [])},
                status={"allocatable": amounts, "conditions": [ready]},
            )
        )
        system = [{"resources": {"requests": {"cpu": "200m", "memory": "256Mi"}}}]
        own = thing("v1", "Pod", f"proxy-{name}", "kube-system", metadata={
            "ownerReferences": [{"kind": "DaemonSet", "name": "proxy", "controller": True}],
        }, spec={"nodeName": name, "containers": system}, status={"phase": "Running"})  # fmt: skip
        self.objects.append(own)

    def _running(self) -> None:
        for k, name in enumerate(self.free):
            if self.rng.random() < 0.6:
                gpus = self.rng.choice((2, 4, 8, 8))
                self.free[name] -= gpus
                spec = self.spec(gpus) | {"nodeName": name}
                meta = {"labels": {"job-name": f"old{k // 4}"}}
                if self.rng.random() < 0.1:
                    meta = {"labels": {f"{LWS}/name": "old", f"{LWS}/group-index": str(k)}}
                status = {"phase": "Running"}
                own = thing("v1", "Pod", f"old-{k}", "lws", metadata=meta, spec=spec, status=status)
                self.objects.append(own)

    # ---- What waits

    def spec(self, gpus: int) -> Object:
        """Return a specification of pods: what each takes, and where they may be."""
        rng = self.rng
        asked = {"cpu": str(rng.choice((1, 2, 4))), "memory": f"{rng.choice((2, 8, 16))}Gi"}
        own: Object = {"containers": [{"resources": {"requests": asked}}]}
        if gpus:
            asked[GPU] = str(gpus)
            own["tolerations"] = [{"key": GPU, "operator": "Exists"}]
            if rng.random() < 0.2:
                own["tolerations"].append({"key": "team", "operator": "Equal", "value": "x"})
        if rng.random() < 0.3:
            own["nodeSelector"] = {POOL: "gpu" if gpus else "cpu"}
        if rng.random() < 0.15:
            zones = [f"z{z}" for z in rng.sample(range(ZONES), 2)]
            terms = [{"matchExpressions": [{"key": ZONE, "operator": "In", "values": zones}]}]
            rule = "requiredDuringSchedulingIgnoredDuringExecution"
            own["affinity"] = {"nodeAffinity": {rule: {"nodeSelectorTerms": terms}}}
        return own

    def _size(self) -> tuple[int, int]:
        """Return pods, and GPUs of each."""
        return self.rng.choice((1, 2, 2, 4, 8, 16)), self.rng.choice((0, 1, 4, 8, 8))

    def _job(self, k: int) -> None:
        pods, gpus = self._size()
        meta = {"labels": {f"{KUEUE}/queue-name": "q"}}
        if k % 2:
            jobs = [{"name": "w", "replicas": 2, "template": {"spec": {
                "parallelism": pods, "completions": pods, "template": {"spec": self.spec(gpus)},
            }}}]  # fmt: skip
            meta["annotations"] = {"alpha.jobset.sigs.k8s.io/exclusive-topology": RACK}
            spec = {"suspend": True, "replicatedJobs": jobs}
            api, kind = "jobset.x-k8s.io/v1alpha2", "JobSet"
        else:
            spec = {"suspend": True, "parallelism": pods, "template": {"spec": self.spec(gpus)}}
            api, kind = "batch/v1", "Job"
        self.objects.append(thing(api, kind, f"job{k}", "default", metadata=meta, spec=spec))

    def _pods(self, name: str, namespace: str, count: int, spec: Object, meta: Object) -> None:
        for idx in range(count):
            status = {"phase": "Pending"}
            own = thing(
                "v1", "Pod", f"{name}-{idx}", namespace, metadata=meta, spec=spec, status=status
            )
            self.objects.append(own)

    def _groups(self, k: int) -> None:
        size, gpus = self.rng.choice((2, 4, 8)), self.rng.choice((4, 8))
        meta = {
            "labels": {f"{LWS}/name": f"lws{k}", f"{LWS}/group-index": "0"},
            "annotations": {f"{LWS}/exclusive-topology": RACK, f"{LWS}/size": str(size)},
        }
        self._pods(f"lws{k}-0", "lws", size, self.spec(gpus), meta)

    def _gang(self, k: int) -> None:
        pods, gpus = self._size()
        owner = [{"kind": "PyTorchJob", "name": f"torch{k}", "controller": True}]
        notes = {"scheduling.k8s.io/group-name": f"torch{k}"}
        meta = {"annotations": notes, "ownerReferences": owner}
        self._pods(f"torch{k}", "torch", pods, self.spec(gpus), meta)
        api = "scheduling.volcano.sh/v1beta1"
        self.objects.append(thing(api, "PodGroup", f"torch{k}", "torch", spec={"minMember": pods}))

    def _kai(self, k: int) -> None:
        subs, each, gpus = self.rng.choice((1, 2, 3)), self.rng.choice((2, 4)), 8
        level = {"topologyConstraint": {"requiredTopologyLevel": RACK, "topology": "t"}}
        spec = self.spec(gpus)
        for s in range(subs):
            labels = {"kai.scheduler/subgroup-name": f"s{s}"}
            meta = {"annotations": {"pod-group-name": f"kai{k}"}, "labels": labels}
            self._pods(f"kai{k}-{s}", "kai", each, spec, meta)
        groups = [{"name": f"s{s}", "minMember": each, **level} for s in range(subs)]
        own = {"minMember": subs * each, "subGroups": groups}
        api = "scheduling.run.ai/v2alpha2"
        self.objects.append(thing(api, "PodGroup", f"kai{k}", "kai", spec=own))

    def _workload(self, k: int) -> None:
        pods, gpus = self._size()
        asked: Object = self.rng.choice(
            ({}, {"required": RACK}, {"preferred": RACK}, {"required": ZONE})
        )
        if self.rng.random() < 0.02:
            sets = [{"name": "main", "count": pods, "minCount": 1}]
        else:
            sets = [{"name": "main", "count": pods}]
        sets[0] |= {"template": {"spec": self.spec(gpus)}, "topologyRequest": asked}
        spec = {"podSets": sets}
        self.objects.append(thing(f"{KUEUE}/v1beta1", "Workload", f"work{k}", "kueue", spec=spec))

    @property
    def document(self) -> Object:
        """The list of all objects."""
        return {"apiVersion": "v1", "kind": "List", "items": self.objects}
