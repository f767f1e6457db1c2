"""What is read of objects of Kubernetes, Kueue, Volcano, KAI, JobSet and LeaderWorkerSet: tables.

Fields that restrict by what else is in the file, such as a node selector by the labels of the
nodes, are decided in `rules`, `jobs` and `holds`.
"""

from __future__ import annotations

from typing import Any

from topoplace.formats.declared import Table, given_text, neutral, read, restricts

KUEUE = "kueue.x-k8s.io"
KAI = "kai.scheduler"
JOBSET = "alpha.jobset.sigs.k8s.io"
LWS = "leaderworkerset.sigs.k8s.io"

JOBSET_EXCLUSIVE = f"{JOBSET}/exclusive-topology"
LWS_EXCLUSIVE, LWS_SIZE = f"{LWS}/exclusive-topology", f"{LWS}/size"
KAI_TOPOLOGY = f"{KAI}/topology"
KAI_REQUIRED = f"{KAI}/topology-required-placement"
KAI_PREFERRED = f"{KAI}/topology-preferred-placement"
GROUP_NAMES = ("scheduling.k8s.io/group-name", "pod-group-name", "scheduling.x-k8s.io/pod-group")
"""Annotations and a label that name the PodGroup of a pod: of Volcano, KAI and coscheduling."""

SIZES = {
    LWS_SIZE: "size",
    f"{KUEUE}/pod-group-total-count": "pod-group-total-count",
}
"""Annotations that say how many pods a group has, and the options that hold it if it has others."""

_SCHEDULERS = {"default-scheduler", "volcano", "kai-scheduler"}


def _entries(value: Any) -> list[dict[str, Any]] | None:
    """Return the entries of a list of objects; None of anything else."""
    is_list = isinstance(value, list) and all(isinstance(one, dict) for one in value)
    return value if is_list else None


def _hard_spread(value: Any) -> str:
    own = _entries(value)
    if own is None:
        return given_text(value)
    return given_text([one for one in own if one.get("whenUnsatisfiable") != "ScheduleAnyway"])


def _other_scheduler(value: Any) -> str:
    return "" if given_text(value) in _SCHEDULERS else given_text(value)


def _foreign_gates(value: Any) -> str:
    own = _entries(value)
    if own is None:
        return given_text(value)
    names = [str(gate.get("name")) for gate in own]
    return ",".join(name for name in names if not name.startswith(f"{KUEUE}/"))


def _if_false(value: Any) -> str:
    return "false" if value is False else ""


def _hard_topology(value: Any) -> str:
    is_soft = isinstance(value, dict) and value.get("mode") == "soft"
    return "" if is_soft else given_text(value)


def _strict_numa(value: Any) -> str:
    return "" if value in ("none", "best-effort") else given_text(value)


# ---- Pods ----------------------------------------------------------------------------------------

POD = Table(
    "Pods and their templates: `spec`",
    (
        *read("nodeName", about="where the pod runs"),
        *read("containers", "initContainers", "overhead", "resources", about="what a pod takes"),
        *read("priority", "priorityClassName", about="the order of the queue"),
        *restricts(
            "nodeSelector",
            "nodes that others may use, and that have room for a pod, lack a label",
            given=None,
        ),
        *restricts(
            "affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution",
            "nodes that others may use, and that have room for a pod, do not match",
            option="nodeAffinity",
            given=None,
        ),
        *restricts(
            "tolerations",
            "nodes that others may use, and that have room for a pod, have a taint that it does "
            "not tolerate",
            option="taints",
            given=None,
        ),
        *restricts(
            "affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution",
            "always",
            option="podAffinity",
        ),
        *restricts(
            "affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution",
            "always; that of a running pod holds the jobs that it may select",
            option="podAntiAffinity",
        ),
        *(
            field
            for kind in ("nodeAffinity", "podAffinity", "podAntiAffinity")
            for field in neutral(
                f"affinity.{kind}.preferredDuringSchedulingIgnoredDuringExecution", about="a wish"
            )
        ),
        *restricts("topologySpreadConstraints", "one is not `ScheduleAnyway`", given=_hard_spread),
        *restricts(
            "schedulingGates",
            "one is not of Kueue's own",
            given=_foreign_gates,
        ),
        *restricts(
            "schedulerName",
            "it is none of `default-scheduler`, `volcano`, `kai-scheduler`: its rules are unknown",
            given=_other_scheduler,
        ),
        *restricts(
            "runtimeClassName",
            "in a template, if the RuntimeClass is not in the file; its node selector, "
            "tolerations and overhead are read",
            given=None,
        ),
        *restricts("resourceClaims", "always: devices are not modelled"),
        *restricts(
            "volumes[].persistentVolumeClaim",
            "the claim or its volume is not in the file, or is `ReadWriteOncePod`; the node "
            "affinity of a volume is read",
            given=None,
        ),
        *restricts(
            "volumes[].ephemeral", "always: where its volume can be is unknown", option="ephemeral"
        ),
        *neutral("volumes", about="other volumes"),
        *neutral(
            *("activeDeadlineSeconds", "automountServiceAccountToken", "dnsConfig", "dnsPolicy"),
            *("enableServiceLinks", "ephemeralContainers", "hostAliases", "hostIPC", "hostNetwork"),
            *("hostPID", "hostUsers", "hostname", "hostnameOverride", "imagePullSecrets", "os"),
            *("preemptionPolicy", "readinessGates", "restartPolicy", "securityContext"),
            *("serviceAccount", "serviceAccountName", "setHostnameAsFQDN", "shareProcessNamespace"),
            *("subdomain", "terminationGracePeriodSeconds"),
        ),
        *neutral("workloadRef", about="a gang; a request starts as a whole anyway"),
    ),
)

CONTAINER = Table(
    "Containers",
    (
        *read("resources.requests", "resources.limits", about="what a pod takes"),
        *read("restartPolicy", about="whether an initial container goes on"),
        *restricts("resources.claims", "always: devices are not modelled", "resourceClaims"),
        *restricts("ports[].hostPort", "always: pods with one port may not share a node"),
        *neutral(
            *("args", "command", "env", "envFrom", "image", "imagePullPolicy", "lifecycle"),
            *("livenessProbe", "name", "ports", "readinessProbe", "resizePolicy"),
            *("restartPolicyRules", "securityContext", "startupProbe", "stdin", "stdinOnce"),
            *("terminationMessagePath", "terminationMessagePolicy", "tty", "volumeDevices"),
            *("volumeMounts", "workingDir"),
        ),
    ),
)

OWN_PREFIXES = (
    *(f"{KUEUE}/", f"{KAI}/", f"{JOBSET}/", f"{LWS}/", "volcano.sh/", "scheduling.volcano.sh/"),
    *("scheduling.x-k8s.io/", "gpu-fraction", "gpu-memory"),
)
"""How the annotations and labels begin of which each should be in the table."""

NOTES = Table(
    "Annotations and labels of pods, templates and their owners",
    (
        *read(f"{KUEUE}/podset-required-topology", about="`required`"),
        *read(f"{KUEUE}/podset-preferred-topology", about="`preferred`"),
        *neutral(f"{KUEUE}/podset-unconstrained-topology", about="any hosts will do"),
        *read(
            f"{KUEUE}/podset-slice-required-topology",
            f"{KUEUE}/podset-slice-required-topology-constraints",
            about="`segments`",
        ),
        *restricts(
            f"{KUEUE}/podset-slice-size",
            "it does not divide the pods; else `segments`",
            option="podset-slice-size",
            given=None,
        ),
        *read(f"{KUEUE}/podset-group-name", about="`group`"),
        *read(f"{KUEUE}/pod-group-name", about="the job of a pod"),
        *restricts(
            f"{KUEUE}/pod-group-total-count",
            "the file has fewer or more pods of the group",
            option="pod-group-total-count",
            given=None,
        ),
        *read(f"{KUEUE}/queue-name", about="a suspended job with it waits for Kueue"),
        *restricts(
            f"{KUEUE}/job-min-parallelism",
            "always: the job may start with fewer pods",
            option="job-min-parallelism",
        ),
        *neutral(
            *(f"{KUEUE}/{key}" for key in ("managed", "podset", "workload", "priority-class")),
            *(f"{KUEUE}/{key}" for key in ("role-hash", "pod-suspending-parent", "elastic-job")),
            *(f"{KUEUE}/{key}" for key in ("pod-group-serving", "pod-group-fast-admission")),
            *(f"{KUEUE}/{key}" for key in ("pod-group-pod-index", "pod-group-pod-index-label")),
            *(f"{KUEUE}/{key}" for key in ("cluster-queue-name", "local-queue-name", "job-uid")),
            *(f"{KUEUE}/{key}" for key in ("tas", "job-completions-equal-parallelism")),
            *(f"{KUEUE}/{key}" for key in ("podset-index", "is-group-workload")),
        ),
        *restricts(
            KAI_REQUIRED,
            "the level or `kai.scheduler/topology` is not of the machine, or Kueue is asked for a "
            "topology too; else `required` of all pods of the job together",
            option="topology-required-placement",
        ),
        *read(KAI_PREFERRED, about="`preferred`, where nothing is required"),
        *read(KAI_TOPOLOGY, about="of which topology the levels are"),
        *neutral(f"{KAI}/queue", f"{KAI}/node-pool", "runai/queue"),
        *restricts("gpu-fraction", "always: parts of GPUs are not modelled"),
        *restricts("gpu-memory", "always: parts of GPUs are not modelled"),
        *neutral("gpu-fraction-num-devices", about="says nothing without `gpu-fraction`"),
        *restricts(
            JOBSET_EXCLUSIVE,
            "the level is not of the machine, the JobSet has several kinds of jobs, or anything "
            "else runs or waits; else `exclusive`, with a segment and a spread of a job's pods",
            option="exclusive-topology",
        ),
        *restricts(f"{JOBSET}/node-selector", "always", option="node-selector"),
        *restricts(
            LWS_EXCLUSIVE,
            "the level is not of the machine, or anything but such groups runs or waits; else "
            "`required` and `exclusive` of each group",
            option="exclusive-topology",
        ),
        *restricts(
            LWS_SIZE, "the file has fewer or more pods of the group", option="size", given=None
        ),
        *restricts(
            f"{LWS}/subgroup-exclusive-topology", "always", option="subgroup-exclusive-topology"
        ),
        *read(f"{LWS}/name", f"{LWS}/group-index", about="the job of a pod, one for each group"),
        *neutral(
            *(f"{LWS}/{key}" for key in ("replicas", "worker-index", "group-key", "leader-name")),
            *(f"{LWS}/{key}" for key in ("template-revision-hash", "subdomainPolicy")),
            *(f"{LWS}/{key}" for key in ("subgroup-index", "subgroup-size", "subgroup-key")),
            f"{LWS}/subgroup-policy-type",
        ),
        *read("volcano.sh/job-name", about="the job of a pod"),
        *restricts(
            "volcano.sh/numa-topology-policy",
            "it is `restricted` or `single-numa-node`",
            option="numa-topology-policy",
            given=_strict_numa,
        ),
        *restricts("volcano.sh/revocable-zone", "always", option="revocable-zone"),
        *neutral(
            *(f"volcano.sh/{key}" for key in ("preemptable", "job-namespace", "queue-name")),
            *(f"volcano.sh/{key}" for key in ("task-spec", "task-index", "job-version")),
            *(f"volcano.sh/{key}" for key in ("job-retry-count", "template-uid", "job-type")),
            *(f"volcano.sh/{key}" for key in ("createdByJobFlow", "cooldown-time")),
            *(f"volcano.sh/task-topology-{key}" for key in ("affinity", "anti-affinity")),
            *("volcano.sh/task-topology-task-order", "volcano.sh/partition-id"),
            *("scheduling.volcano.sh/queue-name", "scheduling.volcano.sh/group-min-member"),
            "scheduling.volcano.sh/group-min-resources",
        ),
        *(
            field
            for key in GROUP_NAMES
            for field in restricts(
                key, "the PodGroup is not in the file", option="pod-group", given=None
            )
        ),
    ),
)

POD_GROUP = Table(
    "PodGroups of Volcano, KAI and coscheduling: `spec`",
    (
        *restricts("minMember", "the file has fewer or more pods of the group", given=None),
        *restricts("minTaskMember", "always"),
        *restricts("networkTopology", "it is not soft", given=_hard_topology),
        *restricts("subGroupPolicy", "always"),
        *restricts("subGroups", "always"),
        *restricts("minSubGroup", "always"),
        *read("topologyConstraint", about="as the annotations of KAI"),
        *neutral("minResources", "queue", "priority", "priorityClassName", "preemptibility"),
        *neutral("scheduleTimeoutSeconds", "backoffLimit", "markUnschedulable"),
        *neutral("schedulingBackoff"),
    ),
)

# ---- What makes pods -----------------------------------------------------------------------------

JOB = Table(
    "Jobs (batch): `spec`",
    (
        *read("parallelism", "completions", "template", about="how many pods, and which"),
        *restricts(
            "suspend", "it has no queue name of Kueue and no Workload: nobody starts it", given=None
        ),
        *restricts("managedBy", "always: another controller starts it"),
        *neutral(
            *("activeDeadlineSeconds", "backoffLimit", "backoffLimitPerIndex", "completionMode"),
            *("manualSelector", "maxFailedIndexes", "podFailurePolicy", "podReplacementPolicy"),
            *("selector", "successPolicy", "ttlSecondsAfterFinished"),
        ),
    ),
)

JOB_SET = Table(
    "JobSets: `spec`",
    (
        *read("replicatedJobs", about="the parts: `name`, `replicas` and `template` of each"),
        *restricts(
            "suspend", "it has no queue name of Kueue and no Workload: nobody starts it", given=None
        ),
        *restricts("managedBy", "always: another controller starts it"),
        *neutral("startupPolicy", about="all its pods have room at once, as Kueue counts them"),
        *neutral("coordinator", "failurePolicy", "network", "successPolicy"),
        *neutral("ttlSecondsAfterFinished", "volumeClaimPolicies"),
    ),
)

WORKLOAD = Table(
    "Workloads of Kueue: `spec` and `status`",
    (
        *read(
            *(f"spec.podSets[].{name}" for name in ("name", "count", "template")), about="the parts"
        ),
        *read("spec.podSets[].topologyRequest", about="as the annotations of Kueue"),
        *restricts(
            "spec.podSets[].minCount", "always: it may start with fewer pods", option="minCount"
        ),
        *restricts("spec.active", "it is false", given=_if_false),
        *restricts("spec.preemptionGates", "always"),
        *read("spec.priority", about="the order of the queue"),
        *neutral("spec.queueName", "spec.priorityClassName", "spec.priorityClassSource"),
        *neutral("spec.priorityClassRef", "spec.maximumExecutionTimeSeconds"),
        *read("status.admission", about="an admitted one does not wait"),
        *restricts(
            "status.conditions",
            "`QuotaReserved` is false and the message speaks of a quota (option `quota`), or the "
            "reason is `Inadmissible` (`queue`); `Requeued` is false (`requeued`)",
            option="quota",
            given=None,
        ),
        *neutral("status"),
    ),
)

VOLCANO_JOB = Table(
    "Jobs of Volcano: `spec`",
    (
        *read("tasks[].name", "tasks[].replicas", "tasks[].template", about="the parts"),
        *restricts("minAvailable", "it is less than all pods: fewer may start", given=None),
        *restricts("tasks[].minAvailable", "it is less than the task's replicas", given=None),
        *restricts(
            "networkTopology",
            "it is hard and the machine has no tiers, or it names a tier by name; else `required` "
            "or `preferred`",
            given=None,
        ),
        *restricts(
            "tasks[].partitionPolicy",
            "fewer partitions than all may start, they do not make up the task, or the machine "
            "has no tiers; else `segments` of the tier",
            given=None,
        ),
        *restricts("tasks[].subGroupPolicy", "always"),
        *restricts("subGroupPolicy", "always"),
        *restricts("tasks[].dependsOn", "always: it starts after others"),
        *restricts(
            "tasks[].topologyPolicy", "it is `restricted` or `single-numa-node`", given=_strict_numa
        ),
        *restricts("volumes[].volumeClaimName", "always", option="persistentVolumeClaim"),
        *restricts("schedulerName", "it is none of those of pods", given=_other_scheduler),
        *read("priorityClassName", about="the order of the queue"),
        *neutral("tasks[].maxRetry", "tasks[].policies", "volumes", "maxRetry", "minSuccess"),
        *neutral("plugins", "policies", "queue", "runningEstimate", "ttlSecondsAfterFinished"),
    ),
)

# ---- The machine, and all else -------------------------------------------------------------------

NODE = Table(
    "Nodes: `spec` and `status`",
    (
        *read("spec.taints", "spec.unschedulable", about="which pods may come"),
        *read("status.allocatable", about="what there is"),
        *read("status.conditions", about="whether it is ready"),
        *neutral("spec.configSource", "spec.externalID", "spec.podCIDR", "spec.podCIDRs"),
        *neutral("spec.providerID", "status"),
    ),
)

KINDS = Table(
    "Kinds of objects",
    (
        *read("Topology", "ResourceFlavor", "HyperNode", "Node", about="the machine"),
        *read("Pod", "Workload", "Job", "JobSet", about="jobs"),
        *read("PodGroup", "LeaderWorkerSet", about="what restricts jobs"),
        *read("PriorityClass", about="the order of the queue"),
        *read("RuntimeClass", "PersistentVolumeClaim", "PersistentVolume", about="what jobs need"),
        *restricts("ClusterQueue", "nobody, but is named: quotas are not modelled", "quotas"),
        *restricts("Cohort", "nobody, but is named: quotas are not modelled", "quotas"),
        *restricts("LocalQueue", "nobody, but is named: quotas are not modelled", "quotas"),
        *restricts("ResourceQuota", "nobody, but is named: quotas are not modelled", "quotas"),
        *restricts("Queue", "nobody, but is named: quotas are not modelled", "quotas"),
        *neutral(
            *("ConfigMap", "CronJob", "DaemonSet", "Deployment", "Endpoints", "EndpointSlice"),
            *("Event", "Lease", "LimitRange", "Namespace", "PodDisruptionBudget", "ReplicaSet"),
            *("AdmissionCheck", "ControllerRevision", "CSINode", "Secret", "Service"),
            *("ServiceAccount", "StatefulSet", "StorageClass", "WorkloadPriorityClass"),
            *("CustomResourceDefinition", "Numatopology", "Reservation"),
        ),
    ),
)
