"""What is read of objects of Kubernetes, Kueue, Volcano, KAI, JobSet and LeaderWorkerSet: tables.

Fields that restrict by what else is in the file, such as a node selector by the labels of the
nodes, are decided in `rules`, `jobs` and `snapshots`.
"""

from __future__ import annotations

from typing import Any

from topoplace.formats.declared import given_text, table

KUEUE = "kueue.x-k8s.io"
KAI = "kai.scheduler"
JOBSET = "alpha.jobset.sigs.k8s.io"
LWS = "leaderworkerset.sigs.k8s.io"
GANGS = "scheduling.k8s.io"

JOBSET_EXCLUSIVE = f"{JOBSET}/exclusive-topology"
LWS_EXCLUSIVE, LWS_SIZE = f"{LWS}/exclusive-topology", f"{LWS}/size"
PRIORITY = f"{KUEUE}/priority-class"
NODE_POOL = f"{KAI}/node-pool"
KAI_TOPOLOGY = f"{KAI}/topology"
KAI_REQUIRED = f"{KAI}/topology-required-placement"
KAI_PREFERRED = f"{KAI}/topology-preferred-placement"
GROUP_NAMES = ("scheduling.k8s.io/group-name", "pod-group-name", "scheduling.x-k8s.io/pod-group")
"""Annotations and a label that name the PodGroup of a pod: of Volcano, KAI and coscheduling."""

WORKLOAD_NAMES = (
    f"{KUEUE}/prebuilt-workload-name",
    f"{KUEUE}/pod-group-name",
    f"{KUEUE}/workload",
)
"""Labels and an annotation that name the Workload of a pod or a job."""

PART_NAMES = (
    *(f"{KUEUE}/podset", "jobset.sigs.k8s.io/replicatedjob-name", "volcano.sh/task-spec"),
)
"""Labels that name the part of its job that a pod is of."""

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


_ELASTIC = f"{KUEUE}/elastic-job"
"""A gate that Kueue opens once it has admitted the slice of which the pod is."""


def _foreign_gates(value: Any) -> str:
    own = _entries(value)
    if own is None:
        return given_text(value)
    names = [str(gate.get("name")) for gate in own]
    return ",".join(name for name in names if name == _ELASTIC or not name.startswith(f"{KUEUE}/"))


def _if_false(value: Any) -> str:
    return "false" if value is False else ""


def _strict_numa(value: Any) -> str:
    return "" if value in ("none", "best-effort") else given_text(value)


def _topology_of_network(*places: str) -> str:
    """Return the fields of network topologies of Volcano at some places, as names of a table."""
    inside = ("mode", "highestTierAllowed", "highestTierName")
    return ", ".join(f"{place}networkTopology.{name}" for place in places for name in inside)


def _constraints_of_kai(*places: str) -> str:
    """Return the fields of topology constraints of KAI at some places, as names of a table."""
    inside = ("topology", "requiredTopologyLevel", "preferredTopologyLevel")
    return ", ".join(f"{place}topologyConstraint.{name}" for place in places for name in inside)


# ---- Pods ----------------------------------------------------------------------------------------

_TERMS = "affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[]."

POD = table(
    "Pods and their templates: `spec`",
    f"""
    read nodeName: where the pod runs
    read containers, initContainers, overhead, resources: what a pod takes
    read priority, priorityClassName: the order of the queue
    read preemptionPolicy: whether a line names the job (`preemption`)
    read nodeSelector: `eligible`, a set for each label
    read affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution: `eligible`, a set \
        for each label that a term names
    read {_TERMS}matchExpressions[].key, {_TERMS}matchExpressions[].operator, \
        {_TERMS}matchExpressions[].values, {_TERMS}matchFields[].key, \
        {_TERMS}matchFields[].operator, {_TERMS}matchFields[].values: what a term names
    read tolerations: `eligible`, without the set of each taint that it does not tolerate
    read tolerations[].key, tolerations[].operator, tolerations[].value, tolerations[].effect, \
        tolerations[].tolerationSeconds: which taints
    restricts affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution -> \
        podAffinity: always
    restricts affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution -> \
        podAntiAffinity: always; that of a running pod holds the jobs that it may select
    neutral affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution, \
        affinity.podAffinity.preferredDuringSchedulingIgnoredDuringExecution, \
        affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution: a wish
    restricts topologySpreadConstraints: one is not `ScheduleAnyway`
    restricts schedulingGates: one is not of Kueue's own, or waits for a slice of an elastic job
    restricts schedulerName: it is none of `default-scheduler`, `volcano`, `kai-scheduler`: its \
        rules are unknown
    depends runtimeClassName: in a template, if the RuntimeClass is not in the file; its node \
        selector, tolerations and overhead are read
    restricts resourceClaims: always: devices are not modelled
    depends volumes[].persistentVolumeClaim: the claim or its volume is not in the file, or is \
        `ReadWriteOncePod`; the node affinity of a volume is read
    restricts volumes[].ephemeral: always: where its volume can be is unknown
    neutral volumes: other volumes
    neutral activeDeadlineSeconds, automountServiceAccountToken, dnsConfig, dnsPolicy, \
        enableServiceLinks, ephemeralContainers, hostAliases, hostIPC, hostNetwork, hostPID, \
        hostUsers, hostname, hostnameOverride, imagePullSecrets, os, \
        readinessGates, restartPolicy, securityContext, serviceAccount, serviceAccountName, \
        setHostnameAsFQDN, shareProcessNamespace, subdomain, terminationGracePeriodSeconds
    depends schedulingGroup, workloadRef: in a template: of which gang its pods will be is unknown
    read schedulingGroup.podGroupName, workloadRef.name, workloadRef.podGroup, \
        workloadRef.podGroupReplicaKey: the gang of a pod
    """,
    {
        "topologySpreadConstraints": _hard_spread,
        "schedulingGates": _foreign_gates,
        "schedulerName": _other_scheduler,
    },
)

CONTAINER = table(
    "Containers",
    """
    read resources.requests, resources.limits: what a pod takes
    read restartPolicy: whether an initial container goes on
    restricts resources.claims -> resourceClaims: always: devices are not modelled
    restricts ports[].hostPort: always: pods with one port may not share a node
    neutral args, command, env, envFrom, image, imagePullPolicy, lifecycle, livenessProbe, name, \
        ports, readinessProbe, resizePolicy, restartPolicyRules, securityContext, startupProbe, \
        stdin, stdinOnce, terminationMessagePath, terminationMessagePolicy, tty, volumeDevices, \
        volumeMounts, workingDir
    """,
)

OWN_PREFIXES = (
    *(f"{KUEUE}/", f"{KAI}/", f"{JOBSET}/", f"{LWS}/", "volcano.sh/", "scheduling.volcano.sh/"),
    *("scheduling.x-k8s.io/", "gpu-fraction", "gpu-memory"),
)
"""How the annotations and labels begin of which each should be in the table."""

NOTES = table(
    "Annotations and labels of pods, templates and their owners",
    f"""
    read {KUEUE}/podset-required-topology: `required`
    read {KUEUE}/podset-preferred-topology: `preferred`
    neutral {KUEUE}/podset-unconstrained-topology: any hosts will do
    read {KUEUE}/podset-slice-required-topology, \
        {KUEUE}/podset-slice-required-topology-constraints: `segments`
    depends {KUEUE}/podset-slice-size: it does not divide the pods, or slices of a level do not \
        consist of those of the level below; else `segments`
    read {KUEUE}/podset-group-name: `group`
    read {KUEUE}/pod-group-name: the job of a pod, and its Workload
    read {KUEUE}/prebuilt-workload-name, {KUEUE}/workload: the Workload of a pod or a job, which \
        is not counted twice
    read {KUEUE}/podset: whether a pod is of a podset that has an assignment, and of which part of \
        a job that runs
    depends {KUEUE}/pod-group-total-count: the file has fewer or more pods of the group
    read {PRIORITY}: the order of the queue, if the WorkloadPriorityClass is in the file
    read {KUEUE}/queue-name: a suspended job with it waits for Kueue
    restricts {KUEUE}/job-min-parallelism: always: the job may start with fewer pods
    neutral {KUEUE}/managed, {KUEUE}/role-hash, \
        {KUEUE}/pod-suspending-parent, {KUEUE}/elastic-job, \
        {KUEUE}/pod-group-serving, {KUEUE}/pod-group-fast-admission, \
        {KUEUE}/pod-group-pod-index, {KUEUE}/pod-group-pod-index-label, \
        {KUEUE}/cluster-queue-name, {KUEUE}/local-queue-name, {KUEUE}/job-uid, {KUEUE}/tas, \
        {KUEUE}/job-completions-equal-parallelism, {KUEUE}/podset-index, \
        {KUEUE}/is-group-workload, {KUEUE}/max-exec-time-seconds, \
        {KUEUE}/multikueue-origin, {KUEUE}/retriable-in-group, \
        {KUEUE}/safe-to-forcefully-terminate, {KUEUE}/job-owner-gvk, {KUEUE}/job-owner-name, \
        {KUEUE}/component-workload-index, {KUEUE}/workload-slice-name
    restricts {KUEUE}/admission-gated-by: always: somebody else lets it start
    restricts {KUEUE}/workload-slice-replacement-for: always: a slice of an elastic job, which \
        takes the place of another
    restricts {KAI_REQUIRED}: the level or `{KAI_TOPOLOGY}` is not of the machine, or Kueue is \
        asked for a topology too; else `required` of all pods of the job together
    read {KAI_PREFERRED}: `preferred`, where nothing is required
    read {KAI_TOPOLOGY}: of which topology the levels are
    read {KAI}/subgroup-name: the sub-group of a pod
    restricts {NODE_POOL}: always: a shard of KAI has queues of its own; jobs without it get \
        nodes without it
    neutral {KAI}/queue, {KAI}/skip-podgrouper, runai/queue
    restricts gpu-fraction, gpu-memory: always: parts of GPUs are not modelled
    neutral gpu-fraction-num-devices: says nothing without `gpu-fraction`
    restricts {JOBSET_EXCLUSIVE}: the level is not of the machine, the JobSet has several kinds \
        of jobs, or JobSets without it, or with another level, wait; else `apart` from all \
        JobSets, with a segment and a spread of a job's pods
    restricts {JOBSET}/node-selector: always
    restricts {LWS_EXCLUSIVE}: the level is not of the machine, or groups of the namespace \
        without it, or with another level, wait; else `required` of each group, and `apart` from \
        all others of the namespace
    depends {LWS_SIZE}: the file has fewer or more pods of the group
    restricts {LWS}/subgroup-exclusive-topology: always
    read {LWS}/name, {LWS}/group-index: the job of a pod, one for each group
    neutral {LWS}/replicas, {LWS}/worker-index, {LWS}/group-key, {LWS}/leader-name, \
        {LWS}/template-revision-hash, {LWS}/subdomainPolicy, {LWS}/subgroup-index, \
        {LWS}/subgroup-size, {LWS}/subgroup-key, {LWS}/subgroup-policy-type
    read volcano.sh/job-name: the job of a pod
    read volcano.sh/task-spec: of which part of a job that runs a pod is
    restricts volcano.sh/numa-topology-policy: it is `restricted` or `single-numa-node`
    restricts volcano.sh/revocable-zone: always
    neutral volcano.sh/preemptable, volcano.sh/job-namespace, volcano.sh/queue-name, \
        volcano.sh/task-index, volcano.sh/job-version, \
        volcano.sh/job-retry-count, volcano.sh/template-uid, volcano.sh/job-type, \
        volcano.sh/createdByJobFlow, volcano.sh/cooldown-time, \
        volcano.sh/task-topology-affinity, volcano.sh/task-topology-anti-affinity, \
        volcano.sh/task-topology-task-order, volcano.sh/partition-id, \
        scheduling.volcano.sh/queue-name, scheduling.volcano.sh/group-min-member, \
        scheduling.volcano.sh/group-min-resources
    depends {", ".join(GROUP_NAMES)} -> pod-group: the PodGroup is not in the file
    """,
    {"volcano.sh/numa-topology-policy": _strict_numa},
)

POD_GROUP = table(
    "PodGroups of Volcano, KAI and coscheduling: `spec`",
    f"""
    depends minMember: the file has fewer or more pods of the group
    depends minTaskMember: the file has more or fewer pods of the group
    depends networkTopology: it is hard and its tier is no level of the machine, or some pods run \
        (`running-pods`); else `required`, on nodes of HyperNodes, or `preferred` of all pods \
        together
    depends subGroupPolicy: a sub-group is not whole, or fewer than all may start; else each is \
        in one domain of the tier that is hard for it
    read {_topology_of_network("", "subGroupPolicy[].")}: up to which tier
    read subGroupPolicy[].name, subGroupPolicy[].labelSelector, subGroupPolicy[].matchLabelKeys, \
        subGroupPolicy[].matchPolicy[].labelKey, subGroupPolicy[].subGroupSize, \
        subGroupPolicy[].minSubGroups: which pods are a sub-group
    depends subGroups, minSubGroup: a sub-group is not whole, fewer than all may start, some of \
        its pods run, or a parent and the whole group have a required level each; else each is in \
        one domain of the level that it requires, and so are those of a parent
    read subGroups[].name, subGroups[].parent, subGroups[].minMember, subGroups[].minSubGroup: \
        which sub-groups
    read topologyConstraint, {_constraints_of_kai("", "subGroups[].")}: as the annotations of KAI
    read priorityClassName: the order of the queue, if the PriorityClass is in the file
    depends queue: it is not in the file but other Queues are; or it is not open, has an affinity \
        to groups of nodes, or gives less than the job takes (`capability`, `resources.gpu.limit`)
    neutral minResources, priority, preemptibility, \
        scheduleTimeoutSeconds, backoffLimit, markUnschedulable, schedulingBackoff
    """,
)

GANG = table(
    "PodGroups of Kubernetes, and groups of its Workloads (`scheduling.k8s.io`)",
    """
    depends schedulingPolicy.gang.minCount, policy.gang.minCount -> minCount: the file has fewer \
        or more pods of the group; else they are a request, which starts as a whole
    read schedulingPolicy.basic, policy.basic: each pod is a request
    depends schedulingConstraints: the key is no level of the machine, there are several, the \
        policy is basic, or Kueue is asked for a topology too; else `required` of all pods together
    read schedulingConstraints.topology[].key, \
        schedulingConstraints.topologyConstraints[].topologyKey: the level
    read parentCompositePodGroupName: the group of groups that it is in
    restricts resourceClaims: always: devices are not modelled
    read priority, priorityClassName: the order of the queue
    neutral name, workloadRef, podGroupTemplateRef, disruptionMode, preemptionPolicy
    """,
)

COMPOSITE = table(
    "CompositePodGroups (`scheduling.k8s.io`): `spec`",
    """
    read parentCompositePodGroupName: the group of groups that it is in; all that start together \
        are one request, called after the highest
    depends schedulingPolicy.gang.minGroupCount -> minGroupCount: fewer than all its groups may \
        start, a group of it has no pods, or starts each for itself
    read schedulingPolicy.basic: each group starts for itself
    depends schedulingConstraints: the key is no level of the machine, or there are several; else \
        all its pods are in one domain
    read schedulingConstraints.topology[].key: the level
    read priority, priorityClassName: the order of the queue, those of the highest group
    neutral workloadRef, disruptionMode, preemptionPolicy
    """,
)

# ---- What makes pods -----------------------------------------------------------------------------

JOB = table(
    "Jobs (batch): `spec`",
    """
    read parallelism, completions, template: how many pods, and which; those that have succeeded \
        (`status.succeeded`) are not made again
    depends suspend: it has no queue name of Kueue and no Workload: nobody starts it
    restricts managedBy: always: another controller starts it
    neutral activeDeadlineSeconds, backoffLimit, backoffLimitPerIndex, completionMode, \
        manualSelector, maxFailedIndexes, podFailurePolicy, podReplacementPolicy, selector, \
        successPolicy, ttlSecondsAfterFinished
    """,
)

JOB_SET = table(
    "JobSets: `spec`",
    """
    read replicatedJobs[].name, replicatedJobs[].replicas, replicatedJobs[].template: the parts
    depends suspend: it has no queue name of Kueue and no Workload: nobody starts it
    restricts managedBy: always: another controller starts it
    neutral startupPolicy, replicatedJobs[].dependsOn, replicatedJobs[].groupName: \
        all its pods have room at once, as Kueue counts them
    neutral coordinator, failurePolicy, network, successPolicy, ttlSecondsAfterFinished, \
        volumeClaimPolicies
    """,
)

_LAYERS = "spec.podSets[].topologyRequest.podsetSliceRequiredTopologyConstraints[]"

LWS_SPEC = table(
    "LeaderWorkerSets: `spec`",
    """
    read replicas, leaderWorkerTemplate.size, leaderWorkerTemplate.leaderTemplate, \
        leaderWorkerTemplate.workerTemplate: the groups, and their pods
    restricts leaderWorkerTemplate.volumeClaimTemplates -> persistentVolumeClaim: always
    neutral leaderWorkerTemplate.restartPolicy, leaderWorkerTemplate.resizePolicy, \
        leaderWorkerTemplate.subGroupPolicy, \
        leaderWorkerTemplate.persistentVolumeClaimRetentionPolicy, networkConfig, \
        rolloutStrategy, startupPolicy
    """,
)

WORKLOAD = table(
    "Workloads of Kueue: `spec` and `status`",
    f"""
    read spec.podSets[].name, spec.podSets[].count, spec.podSets[].template: the parts
    read spec.podSets[].topologyRequest, spec.podSets[].topologyRequest.required, \
        spec.podSets[].topologyRequest.preferred, \
        spec.podSets[].topologyRequest.podSetGroupName, \
        spec.podSets[].topologyRequest.podSetSliceRequiredTopology, \
        spec.podSets[].topologyRequest.podSetSliceSize, \
        {_LAYERS}.topology, {_LAYERS}.size: as the annotations of Kueue
    neutral spec.podSets[].topologyRequest.unconstrained, \
        spec.podSets[].topologyRequest.podIndexLabel, \
        spec.podSets[].topologyRequest.subGroupIndexLabel, \
        spec.podSets[].topologyRequest.subGroupCount: any hosts will do
    restricts spec.podSets[].minCount: always: it may start with fewer pods
    restricts spec.active: it is false
    restricts spec.preemptionGates: always
    read spec.priority: the order of the queue
    neutral spec.queueName, spec.priorityClassName, spec.priorityClassSource, \
        spec.priorityClassRef, spec.maximumExecutionTimeSeconds
    depends status.admission -> assignment: an admitted one does not wait: what its \
        `topologyAssignment` says and no pod takes yet is taken, by a running job. Where that is \
        of a domain of several nodes, as of a rack, the jobs that may be there are held until all \
        its pods have nodes
    depends status.conditions -> quota: `QuotaReserved` is false and the reason or the message \
        speaks of a quota (option `quota`), or neither of the topology nor of what is past \
        (`queue`); `Requeued` is false (`requeued`)
    depends status.requeueState.requeueAt -> requeued: `Requeued` is not true since
    read status.reclaimablePods: pods that have ended: they ask for nothing, and what they were \
        assigned is free, if they are in the file or all others are
    neutral status
    """,
    {"spec.active": _if_false},
)

VOLCANO_JOB = table(
    "Jobs of Volcano: `spec`",
    f"""
    read tasks[].name, tasks[].replicas, tasks[].template: the parts
    depends minAvailable: it is less than all pods: fewer may start
    depends tasks[].minAvailable: it is less than the task's replicas
    depends networkTopology: it is hard and its tier is no level of the machine, or some pods run \
        (`running-pods`); else `required`, on nodes of HyperNodes, or `preferred`
    depends tasks[].partitionPolicy: fewer partitions than all may start, they do not make up \
        the task, the job has started, or the tier is no level of the machine; else `segments` of \
        the tier
    read tasks[].partitionPolicy.totalPartitions, tasks[].partitionPolicy.partitionSize, \
        tasks[].partitionPolicy.minPartitions: which partitions
    read {_topology_of_network("", "tasks[].partitionPolicy.")}: up to which tier
    restricts tasks[].subGroupPolicy, subGroupPolicy: always
    restricts tasks[].dependsOn: always: it starts after others
    restricts tasks[].topologyPolicy: it is `restricted` or `single-numa-node`
    restricts volumes[].volumeClaimName -> persistentVolumeClaim: always
    restricts schedulerName: it is none of those of pods
    depends queue: as that of a PodGroup
    read priorityClassName: the order of the queue
    neutral tasks[].maxRetry, tasks[].policies, volumes, maxRetry, minSuccess, plugins, \
        policies, runningEstimate, ttlSecondsAfterFinished
    """,
    {"tasks[].topologyPolicy": _strict_numa, "schedulerName": _other_scheduler},
)

# ---- The machine, and all else -------------------------------------------------------------------

NODE = table(
    "Nodes: `spec` and `status`",
    """
    read spec.taints, spec.unschedulable: which pods may come
    read status.allocatable: what there is
    read status.conditions: whether it is ready
    neutral spec.configSource, spec.externalID, spec.podCIDR, spec.podCIDRs, spec.providerID, \
        status
    """,
)

TOPOLOGY = table("Topologies of Kueue and KAI: `spec`", "read levels[].nodeLabel: the levels")

FLAVOR = table(
    "ResourceFlavors of Kueue: `spec`",
    """
    read nodeLabels, topologyName: which nodes
    read nodeTaints: a job of Kueue that does not tolerate them may not use its nodes
    read tolerations: those of its jobs
    """,
)

QUEUES = table(
    "LocalQueues and ClusterQueues of Kueue: `spec`",
    """
    depends resourceGroups[].flavors[].name -> flavor: the queue of the job offers no flavor of \
        the topology, or several whose nodes the job could use; else the nodes of the flavor are \
        `eligible`
    restricts stopPolicy: it is `Hold` or `HoldAndDrain`
    restricts admissionChecks, admissionChecksStrategy.admissionChecks[].name -> admissionChecks: \
        always: another controller has to agree
    depends namespaceSelector -> queue: it does not select the namespace, or labels of that are \
        not known
    depends resourceGroups[].coveredResources -> coveredResources: the job takes something else
    depends resourceGroups[].flavors[].resources[].nominalQuota, \
        resourceGroups[].flavors[].resources[].borrowingLimit -> quota: the job takes more than \
        all flavors of its queue have and may borrow of what its cohort has in the file; or, in \
        no cohort, more than the admitted Workloads of the file leave, unless it may preempt some
    read resourceGroups[].flavors[].resources[].lendingLimit: what others may borrow
    depends queueingStrategy -> StrictFIFO: nobody, but a line names queues of which several wait
    depends preemption: nobody, but a line names the jobs that may preempt running ones; \
        `repack --evict lower` and `audit --victims lower` go by it
    read cohort, cohortName: whose jobs
    """,
    {"stopPolicy": lambda value: "" if value in (None, "None") else given_text(value)},
)

HYPER_NODE = table(
    "HyperNodes of Volcano: `spec`",
    """
    read tier, members[].type, members[].selector.exactMatch.name, \
        members[].selector.regexMatch.pattern, members[].selector.labelMatch: the domains; a \
        tier whose HyperNodes share nodes, or in which one of a lower tier is only in part, is no \
        level: it is named, and holds the jobs that need it
    read tierName: which tier `highestTierName` means, unless two have the name
    """,
)

MACHINE = {
    (KUEUE, "Topology"): TOPOLOGY,
    (KAI, "Topology"): TOPOLOGY,
    (KUEUE, "ResourceFlavor"): FLAVOR,
    ("topology.volcano.sh", "HyperNode"): HYPER_NODE,
}
"""Tables of the specifications of what makes the machine; what they do not know holds nobody."""

HOLDS = table(
    "What else holds a job, by its option",
    """
    depends flavor: Kueue gives a podset, or a group of them, the nodes of one flavor, and its \
        queue offers none, several whose nodes the job could use, or flavors without a topology \
        too; without the queue, all flavors of the file count
    depends LimitRange: it has an amount for a container of a template that has none, or refuses \
        the pods of the template: they are above a `max` or below a `min`
    depends resourceClaims: a DeviceClass in the file gives a resource that a pod takes
    depends rounding: its pods ask for memory that is no whole number of MiB, and but for the \
        rounding more of them may fit on a node
    depends running-pods: some pods of the job run, and those that wait ask for a topology
    depends exclusive-topology: others of the family have no domain for themselves, or one of \
        another level
    depends subGroups: parts of a request cannot say the sub-groups, or their pods ask for a \
        topology of their own
    depends CompositePodGroup: it is not in the file, is above itself, or some of its pods run
    depends topology: what it asks of the topology is not there, or is wrong
    depends nodeAffinity: its terms are wrong
    depends pod-group: the PodGroup, or the Workload of Kubernetes, of a pod is not in the file
    depends podset-group-name: podsets of a group require different levels
    depends podsets: it has more kinds of pods than a request can say
    depends owner: the Job or JobSet of the pod has ended
    depends queue: a condition of the Workload says so; its queue, or a flavor of this, is not in \
        the file, but others are; the queue is not active, or does not select the namespace
    depends quota, requeued: a condition of the Workload says so, or the job takes more than its \
        queue can ever give, or has left
    depends suspend: neither Kueue nor a user starts it
    depends unknown-fields: it has a field that no table knows
    """,
)

KINDS = table(
    "Kinds of objects",
    """
    read Topology, ResourceFlavor, HyperNode, Node: the machine
    read Pod, Workload, Job, JobSet: jobs
    read PodGroup, CompositePodGroup: what restricts jobs, and gangs
    read LeaderWorkerSet: the workers of a group whose leader waits and has none yet
    read PriorityClass, WorkloadPriorityClass: the order of the queue
    read RuntimeClass, PersistentVolumeClaim, PersistentVolume: what jobs need
    read Namespace: which ClusterQueues select it
    read LimitRange: whether containers of templates get defaults, or are refused
    read DeviceClass: which resources are devices
    restricts ClusterQueue, Cohort, LocalQueue, ResourceQuota, Queue -> quotas: nobody, but is \
        named: how much of a quota others use is not modelled
    neutral ConfigMap, CronJob, DaemonSet, Deployment, Endpoints, EndpointSlice, Event, Lease, \
        PodDisruptionBudget, ReplicaSet, AdmissionCheck, \
        ResourceClaim, ResourceClaimTemplate, ResourceSlice, \
        ControllerRevision, CSINode, Secret, Service, ServiceAccount, StatefulSet, StorageClass, \
        CustomResourceDefinition, Numatopology, Reservation
    """,
)

_GROUPS = {
    "Pod": ("",),
    "Node": ("",),
    "Workload": (KUEUE, GANGS),
    "ResourceFlavor": (KUEUE,),
    "Topology": (KUEUE, KAI),
    "HyperNode": ("topology.volcano.sh",),
    "Job": ("batch", "batch.volcano.sh"),
    "JobSet": ("jobset.x-k8s.io",),
    "LeaderWorkerSet": ("leaderworkerset.x-k8s.io",),
    "PodGroup": (
        *("scheduling.volcano.sh", "scheduling.run.ai", "scheduling.x-k8s.io"),
        *("scheduling.sigs.k8s.io", GANGS),
    ),
}
"""The groups of kinds that are read; others have kinds of the same names."""

_VERSIONS = {f"Workload {KUEUE}": ("v1beta1", "v1beta2")}


def is_read(kind: str, group: str) -> bool:
    """Return whether a kind is that of a group that is read, as far as kinds of groups differ."""
    return group in _GROUPS.get(kind, (group,))


def not_read(kind: str, group: str, version: str) -> str:
    """Return a kind that is not known, or not of this group and version; nothing if it is."""
    if KINDS.unknown([kind]):
        return f"kind {kind}"
    known = is_read(kind, group) and version in _VERSIONS.get(f"{kind} {group}", (version,))
    return "" if known else f"kind {kind} of {'/'.join(filter(None, (group, version)))}"
