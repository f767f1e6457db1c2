"""What is read of Slurm's listings of jobs, nodes, partitions and reservations, field by field.

The fields of a job are called as in ``squeue --json``; `LISTED` and `SHOWN` say how squeue's
columns and ``scontrol show job`` call them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from topoplace.formats.declared import given_text, table

# ---- Values that restrict ------------------------------------------------------------------------


def number_text(value: Any) -> str:
    """Return a number above 0, plain, as text or with flags `set` and `infinite`; else nothing."""
    if isinstance(value, dict):
        value = value.get("number") if value.get("set") and not value.get("infinite") else None
    return str(value) if value and value != "0" else ""


_FREE_REASONS = {"", "None", "Priority", "Resources", "BeginTime", "Dependency"}
_OPTION_OF_REASON = {
    "JobHeldUser": "hold",
    "JobHeldAdmin": "hold",
    "JobHoldMaxRequeue": "hold",
    "Licenses": "licenses",
    "Reservation": "reservation",
    "ReservationDeleted": "reservation",
    "JobArrayTaskLimit": "array_throttle",
    "DeadLine": "deadline",
    "BurstBufferResources": "burst_buffer",
    "BurstBufferStageIn": "burst_buffer",
}


CERTAIN = {"hold", "begin_time", "dependency", "array_throttle", "limits"}
"""Options that keep a job from starting now, whatever is free."""


def option_of_reason(reason: str) -> str | None:
    """Return the option that a reason of waiting stands for; None if it is no restriction.

    Dependencies and begin times count only where Slurm's reason names them, or their own field.
    """
    if reason in _FREE_REASONS - {"BeginTime", "Dependency"}:
        return None
    if reason == "BeginTime":
        return "begin_time"
    if reason.startswith("Dependency"):
        return "dependency"
    if reason.startswith("Partition"):
        return "partition"
    if reason.startswith(
        ("QOS", "Assoc", "Max", "InvalidQOS", "InvalidAccount", "AccountNotAllowed")
    ):
        return "limits"
    return _OPTION_OF_REASON.get(reason, "reason")


UNSAID = "not said whether of whole nodes, as squeue --json of slurm 26.05 does not (scontrol does)"
"""Stands for how a job shares nodes where newer listings do not say it any more."""


def shared_of(exclusive: Any, oversubscribe: Any) -> list[str]:
    """Return what ``shared`` said before Slurm 26.05, of the two fields that replace it."""
    (one, other) = (
        str(w[0] if isinstance(w, list) and w else w) for w in (exclusive, oversubscribe)
    )
    if one.lower() in ("node", "true"):
        return ["none"]
    if one.lower() in ("user", "mcs", "topo"):
        return [one.lower()]
    return ["oversubscribe"] if other.lower() in ("yes", "true") else []


def shared_text(value: Any) -> str:
    """Return how a job shares nodes with others, if it may: one that takes whole nodes does not."""
    words = value if isinstance(value, list) else [value]
    words = [str(word).lower() for word in words if word]
    if words == [UNSAID]:
        return UNSAID
    if words in (["none"], ["topo"], ["exclusive"], ["no"]):
        return ""
    return ",".join(words) or "may take a part of a node"


_SPREAD = {
    *("SPREAD_JOB", "USE_MIN_NODES", "PREFER_MINIMUM_NODE_COUNT"),
    *("SPREAD_SEGMENTS", "CONSOLIDATE_SEGMENTS"),
}


def flags_text(value: Any) -> str:
    """Return the flags of a job that ask for other nodes than the fewest domains."""
    return ",".join(flag for flag in value or () if flag in _SPREAD)


def _not_null(value: Any) -> str:
    text = given_text(value)
    return "" if text.lower() in ("(null)", "null", "n/a", "none") else text


def _as_json(names: Mapping[str, str]) -> str:
    """Return the lines of a table for fields that are read as those of ``squeue --json``."""
    return "".join(f"read {own}: as `{name}` of `squeue --json`\n" for own, name in names.items())


# ---- Jobs ----------------------------------------------------------------------------------------

_OF_LAYOUT = (
    *("sockets_per_node", "cores_per_socket", "threads_per_core"),
    *("tasks_per_socket", "tasks_per_board", "sockets_per_board"),
)

SQUEUE_JSON = table(
    "squeue --json",
    """
    read job_id, array_job_id, array_task_id, array_task_string, het_job_offset: the job's id
    read job_state: whether the job runs, waits or has ended
    read nodes: the nodes of a job that runs
    read node_count: nodes wanted
    read comment: words `pattern=` and `segment=`
    read time_limit, submit_time, end_time: the times of requests and jobs
    read time_minimum: the time limit, where it is given: backfill plans with it
    read gres_detail, job_resources: what a running job holds of nodes that several jobs share
    read cpus_per_task, tasks_per_node: what a job takes of nodes that several jobs share
    read priority_by_partition: of a job for several partitions: audits blame no order
    read nice: part of `priority`
    depends priority -> hold: the order of the queue; 0 is a job on hold
    depends hold: waits until it is released
    depends partition: which nodes it may have; one of several is `one_of`
    depends state_reason -> reason: waits for something else than nodes or its turn
    depends eligible_time -> begin_time: begins later than the listing was made
    depends het_job_id -> het_job: one of several components that start together
    depends array_max_tasks -> array_throttle: the tasks beyond the limit of tasks at a time
    depends max_nodes -> node_count: its size is a range (`-N 2-4`), of which Slurm takes as many \
        nodes as it can, or an estimate of `node_count`
    depends tasks -> node_count: its size is given by tasks
    depends tres_req_str -> node_count: asks for fewer nodes than `node_count`
    depends shared: may take a part of a node, unless `scontrol show partition` says that its \
        partition gives whole nodes; `topo` where there are no blocks; 26.05 does not say it
    depends exclusive: `topo` where there are no blocks; else it says what `shared` did
    depends oversubscribe -> shared: several jobs may have a CPU
    depends segment_size -> segment: where the machine has no blocks or prisms for it
    depends minimum_cpus_per_node -> cpus: where nodes are not known; else a set of nodes
    depends cpus: unless every node has its share of them
    depends memory_per_node -> memory: where nodes are not known; else a set of nodes
    depends memory_per_cpu -> memory: unless every node has as much for all its CPUs
    depends minimum_tmp_disk_per_node -> disk: where nodes are not known; else a set of nodes
    restricts dependency: waits for other jobs
    depends required_nodes: on tori, or with `--switches` and other nodes
    depends excluded_nodes: may not have these nodes
    depends features: its nodes need features; names joined by `&` and `|`, in parentheses, one of \
        several (`[a|b]`) and numbers (`a*2`, `[a*2&b*4]`) are modelled, except numbers other than \
        those of all its nodes, on tori, with `--switches`, required nodes or segments, and on \
        shared nodes that have several of them
    restricts batch_features -> features: its first node needs features
    restricts cluster_features -> federation: its cluster needs features
    depends required_switches -> switches: where there are no leaf switches, or the job may have \
        waited for them as long as it wants to
    depends contiguous: its nodes follow each other in the order of `scontrol show nodes`; held \
        where that order is not given, with required nodes, `--switches`, numbers of features or \
        tasks on any nodes, on several fabrics, and for partitions with `LLN`; blocks, rings and \
        toruses ignore it
    depends tres_per_node -> gres: needs GRES, such as GPUs, of every node; modelled as a set of \
        nodes if all nodes are known
    depends tres_per_job -> gres: unless it is known what each node has to have: on one node, on \
        as many nodes as GRES, and on whole nodes that all have their share
    depends tres_per_task -> gres: unless the tasks of each node are known, or may be on any \
        nodes; CPUs are `cpus_per_task`
    restricts tres_per_socket -> gres: needs GRES of every socket
    restricts gres: needs GRES (before 20.11)
    depends cpus_per_tres, memory_per_tres -> gres: on whole nodes
    depends tasks_per_tres -> gres: on several nodes
    restricts sockets_per_node -> node_layout: the sockets that each node needs
    restricts tasks_per_socket, tasks_per_board, sockets_per_board -> node_layout: within a node
    restricts cores_per_socket -> node_layout: the cores that each socket needs
    restricts threads_per_core -> node_layout: the threads that each core needs
    restricts licenses: needs licences
    restricts resv_name -> reservation: runs in a reservation
    restricts burst_buffer: needs a burst buffer
    restricts mcs_label -> mcs: shares nodes with its own label alone
    restricts network: needs resources of the network
    restricts extra: its nodes may have to match
    restricts flags -> spread: `SPREAD_JOB`: over as many nodes as there are; other sizes and \
        segments (`PREFER_MINIMUM_NODE_COUNT`, `SPREAD_SEGMENTS`, `CONSOLIDATE_SEGMENTS`)
    restricts federation_siblings_viable -> federation: may run on another cluster
    neutral account, user_id, user_name, group_id, group_name, qos, wckey, association_id: \
        limits of accounts show in `state_reason`
    read prefer: a wish, no rule: audits do not say that fewer switches would have done
    depends deadline: its time limit ends after it
    read scheduled_nodes, start_time: Slurm's plan, for audits
    neutral last_sched_evaluation: Slurm's plan
    read maximum_switch_wait_time: how long `required_switches` holds; a job that started on more \
        before the next listing is not judged
    depends core_spec, thread_spec -> cpus: unless every node has its CPUs and those left free
    depends job_size_str -> node_count: one of several sizes
    neutral het_job_id_set, delay_boot, reboot, \
        tres_bind, tres_freq, tasks_per_core, max_cpus: \
        within a node, or said elsewhere
    neutral tres_alloc_str, allocating_node, batch_host, batch_flag, preempt_time, \
        preemptable_time, pre_sus_time, suspend_time, resize_time, billable_tres, \
        licenses_allocated, allocated_nodes: of jobs that run
    neutral accrue_time, admin_comment, burst_buffer_state, cluster, command, container, \
        container_id, cpu_frequency_minimum, cpu_frequency_maximum, cpu_frequency_governor, \
        cron, current_working_directory, derived_exit_code, exit_code, failed_node, \
        federation_origin, federation_siblings_active, mail_type, mail_user, name, power, \
        profile, requeue, restart_cnt, selinux_context, show_flags, standard_error, \
        standard_input, standard_output, stderr_expanded, stdin_expanded, stdout_expanded, \
        state_description, system_comment, step_id, submit_line, argv, runtime, \
        memory_update_delay, memory_update_margin
    """,
    {
        **dict.fromkeys(_OF_LAYOUT, number_text),
        **dict.fromkeys(("gres", "licenses"), _not_null),
        "flags": flags_text,
    },
)

LISTED = {
    "JOBID": "id", "STATE": "job_state", "ST": "job_state", "NODES": "node_count",
    "NODELIST": "nodes", "NODELIST(REASON)": "nodes_or_reason", "COMMENT": "comment",
    "PRIORITY": "priority", "TIME_LIMIT": "time_limit", "SUBMIT_TIME": "submit_time",
    "PARTITION": "partition", "REASON": "state_reason", "FEATURES": "features",
    "DEPENDENCY": "dependency", "TRES_PER_NODE": "tres_per_node", "OVER_SUBSCRIBE": "shared",
    "RESERVATION": "resv_name", "EXC_NODES": "excluded_nodes", "REQ_NODES": "required_nodes",
    "LICENSES": "licenses", "CONTIGUOUS": "contiguous", "MIN_CPUS": "minimum_cpus_per_node",
    "ELIGIBLE_TIME": "eligible_time",
}  # fmt: skip
"""Fields of a job by the header of squeue's column."""

NEEDED_COLUMNS = ("PARTITION", "REASON", "FEATURES", "DEPENDENCY", "TRES_PER_NODE")
"""Columns without which a listing cannot know what keeps a job from nodes."""

SHARED_NODES = "shared nodes"

_OF_JSON_ALONE = {
    "required_switches": "switches", "resv_name": "reservation", "required_nodes": "required nodes",
    "excluded_nodes": "excluded nodes", "tres_per_job": "GRES of a job or a task",
    "minimum_cpus_per_node": "CPUs", "memory_per_node": "memory", "licenses": "licenses",
    "contiguous": "contiguous nodes", "shared": SHARED_NODES, "end_time": "ends of running jobs",
    "scheduled_nodes": "plans",
}  # fmt: skip


def unseen_in(fields: Iterable[str]) -> tuple[str, ...]:
    """Return what a listing with these fields of jobs cannot show, and ``squeue --json`` does."""
    seen = {*fields}
    return tuple(words for name, words in _OF_JSON_ALONE.items() if name not in seen)


SQUEUE_LISTING = table(
    "squeue -o",
    _as_json(LISTED)
    + """
    neutral START_TIME, END_TIME, TIME, TIME_LEFT, NAME, USER, UID, ACCOUNT, QOS, GROUP, GID, \
        WCKEY, NICE, CPUS, MIN_MEMORY, SCHEDNODES, COMMAND, WORK_DIR, EXEC_HOST, S:C:T, \
        CORE_SPEC, MIN_TMP_DISK, ARRAY_JOB_ID, ARRAY_TASK_ID
    """,
)

SHOWN = {
    "JobId": "job_id", "ArrayJobId": "array_job_id", "ArrayTaskId": "array_tasks",
    "HetJobId": "het_job_id", "HetJobOffset": "het_job_offset", "JobState": "job_state",
    "NumNodes": "node_range", "NodeList": "nodes", "Comment": "comment", "Priority": "priority",
    "TimeLimit": "time_limit", "TimeMin": "time_minimum", "SubmitTime": "submit_time",
    "EligibleTime": "eligible_time", "Deadline": "deadline", "Prefer": "prefer",
    "Partition": "partition", "Reason": "state_reason", "Dependency": "dependency",
    "Features": "features", "ReqNodeList": "required_nodes", "ExcNodeList": "excluded_nodes",
    "TresPerNode": "tres_per_node", "TresPerJob": "tres_per_job", "TresPerTask": "tres_per_task",
    "TresPerSocket": "tres_per_socket", "CpusPerTres": "cpus_per_tres",
    "MemPerTres": "memory_per_tres", "NtasksPerTRES": "tasks_per_tres", "NumTasks": "tasks",
    "CPUs/Task": "cpus_per_task", "NtasksPerN:B:S:C": "tasks_per_node", "ReqTRES": "tres_req_str",
    "Gres": "gres", "OverSubscribe": "shared", "Exclusive": "exclusive",
    "Contiguous": "contiguous", "Licenses": "licenses", "Reservation": "resv_name",
    "Switches": "required_switches", "ArrayTaskThrottle": "array_max_tasks",
    "MinCPUsNode": "minimum_cpus_per_node", "MinMemoryNode": "memory_per_node",
    "MinMemoryCPU": "memory_per_cpu", "NumCPUs": "cpus", "SegmentSize": "segment_size",
    "BurstBuffer": "burst_buffer", "Network": "network", "MCS_label": "mcs_label",
    "ClusterFeatures": "cluster_features", "BatchFeatures": "batch_features", "Extra": "extra",
    "FedViableSiblings": "federation_siblings_viable",
    "MinTmpDiskNode": "minimum_tmp_disk_per_node", "ReqB:S:C:T": "node_layout",
    "Socks/Node": "sockets_per_node",
}  # fmt: skip
"""Fields of a job by the key of ``scontrol show job``."""

SCONTROL_JOB = table(
    "scontrol show job",
    _as_json(SHOWN)
    + """
    neutral JobName, UserId, GroupId, Nice, Account, QOS, Requeue, Restarts, BatchFlag, Reboot, \
        ExitCode, RunTime, AccrueTime, StartTime, EndTime, SuspendTime, \
        SecsPreSuspend, LastSchedEval, Scheduler, AllocNode:Sid, BatchHost, \
        TRES, AllocTRES, CoreSpec, MinMemoryTRES, ThreadSpec, DelayBoot, \
        Command, WorkDir, StdErr, StdIn, StdOut, Power, \
        MailUser, MailType, TresBind, WCKey, SchedNodeList, PreemptEligibleTime, PreemptTime, \
        JOB_GRES, Nodes, CPU_IDs, Mem, GRES, SubmitLine, AdminComment, SystemComment, \
        HetJobIdSet, BatchScript, DerivedExitCode, BurstBufferState, CompletingTime, Container, \
        ContainerID, FailedNode, FedActiveSiblings, FedOrigin, LicensesAlloc, MemUpdate, \
        OOMKillStep, ResizeTime, ResvPorts, Runtime, SELinuxContext, SLUID, StepId, TresFreq, \
        TresPerStep, SrunHost:Pid
    """,
)

# ---- Nodes, partitions, reservations -------------------------------------------------------------

SCONTROL_NODE = table(
    "scontrol show nodes",
    """
    read NodeName: its name
    read State: whether a job may take it: else it is down
    read Partitions: which jobs it may run
    read CPUTot, CPUEfctv, RealMemory, MemSpecLimit, TmpDisk: held against what jobs need of a node
    read Owner, MCS_label: of one user or label: down
    read Reservation, ReservationName: reserved: see `scontrol show reservation`
    read LastBusyTime: whether local times are those of this computer
    read ActiveFeatures, AvailableFeatures: what jobs may ask for, if both say the same
    read Gres: what jobs may ask for
    read CPUAlloc, AllocMem, ThreadsPerCore: where jobs share nodes; else a node with a job is full
    neutral GresUsed, GresDrain, AllocTRES: jobs say what they hold
    read Weight: a preference: where weights differ, audits do not say that fewer switches would \
        have done
    neutral Arch, CoresPerSocket, CPULoad, CPUErr, NodeAddr, NodeHostName, Port, Version, OS, \
        FreeMem, Sockets, Boards, BootTime, SlurmdStartTime, \
        ResumeAfterTime, CfgTRES, CurrentWatts, AveWatts, CapWatts, ExtSensorsJoules, \
        ExtSensorsWatts, ExtSensorsTemp, Reason, Comment, Extra, CoreSpecCount, CPUSpecList, \
        InstanceId, InstanceType, Topology, BcastAddr, NextState, LowestJoules, \
        ConsumedJoules, NodeWeight, PowerDown
    """,
)

NODE_JSON = {
    "name": "NodeName", "state": "State", "partitions": "Partitions", "cpus": "CPUTot",
    "effective_cpus": "CPUEfctv", "real_memory": "RealMemory",
    "specialized_memory": "MemSpecLimit", "temporary_disk": "TmpDisk", "owner": "Owner",
    "mcs_label": "MCS_label", "active_features": "ActiveFeatures",
    "features": "AvailableFeatures", "gres": "Gres", "threads": "ThreadsPerCore",
    "alloc_cpus": "CPUAlloc", "alloc_memory": "AllocMem", "weight": "Weight",
}  # fmt: skip
"""Keys of ``scontrol show nodes`` by the field of its ``--json``, the name first."""

SCONTROL_NODE_JSON = table(
    "scontrol show nodes --json",
    "\n".join(f"read {n}: as `{key}` of `scontrol show nodes`" for n, key in NODE_JSON.items()),
)

SCONTROL_PARTITION = table(
    "scontrol show partition",
    """
    read PartitionName, Nodes: its nodes
    read State: `DOWN` or `INACTIVE`: its jobs are held; `DRAIN` only takes no new ones
    read MaxNodes, MinNodes, MaxTime: jobs beyond them are held
    read OverSubscribe: `EXCLUSIVE`: its jobs take whole nodes; `FORCE` or `YES`: sharing is not \
        modelled
    read PriorityTier: the order of the queue, before priority
    read Topology: which of several topologies its jobs have; held if that is not read
    restricts ReqResv -> partition: its jobs run in reservations only
    restricts MaxCPUsPerNode, MaxCPUsPerSocket -> partition: not all CPUs of a node
    restricts MaxMemPerNode -> partition: not all memory of a node
    restricts ExclusiveUser -> partition: nodes of one user at a time
    restricts ExclusiveTopo -> partition: blocks of one job at a time
    read AllowGroups, AllowAccounts, AllowQos, DenyAccounts, DenyQos: jobs for several partitions \
        are held; others show a reason
    read PreemptMode: jobs that may be ended for others are not: audits blame no order
    read SelectTypeParameters: whole sockets: jobs that share nodes are held
    read LLN: as `Weight`
    read JobDefaults: of GPUs: jobs with GPUs that share nodes are held
    neutral AllocNodes, QoS, \
        RootOnly, DisableRootJobs: jobs that are refused show a reason
    neutral Default, DefaultTime, GraceTime, Hidden, PriorityJobFactor, \
        OverTimeLimit, TotalCPUs, TotalNodes, \
        DefMemPerNode, DefMemPerCPU, MaxMemPerCPU, TRES, TRESBillingWeights, ResumeTimeout, \
        SuspendTimeout, SuspendTime, CpuBind, NodeSets, Alternate
    """,
)

SCONTROL_RESERVATION = table(
    "scontrol show reservation",
    """
    read ReservationName, Nodes: its nodes
    read State: `ACTIVE`: it holds its nodes until it ends, which the snapshot has as a running job
    read StartTime: jobs that would still run then may not have its nodes; held are those of which \
        that is not known, as they have no time limit or end less than ten minutes before
    read EndTime: a local time without its zone is read in that of this computer; audits blame no \
        decision for it unless nodes were busy just before the listing, in that zone
    read CoreCnt, Flags: of a part of its nodes, again later, or for jobs that do not name it \
        (`MAGNETIC`): audits blame no decision
    neutral Duration, NodeCnt, NodeName, CoreIDs, Features, PartitionName, TRES, Users, Groups, \
        Accounts, Licenses, BurstBuffer, MaxStartDelay, Watts, Comment
    """,
)

# ---- Options of sbatch: where the fields above have them -----------------------------------------

SBATCH = table(
    "Options of sbatch",
    """
    read --nodes: one number of nodes
    depends --nodes=MIN-MAX -> node_count: Slurm takes as many nodes as it can at that moment, \
        and a request has one size
    depends --nodes=LIST -> node_count: one of several sizes
    depends --ntasks -> node_count: on whole nodes without `--nodes`, or beyond what is known of \
        each node
    depends --ntasks-per-node, --cpus-per-task, --mincpus -> cpus: modelled where nodes are \
        known
    depends --ntasks-per-socket, --ntasks-per-core, --sockets-per-node, --cores-per-socket, \
        --threads-per-core, --extra-node-info -> node_layout: within a node
    depends --ntasks-per-gpu -> gres: on several nodes
    depends --mem, --mem-per-cpu -> memory: where nodes are not known; `--mem=0` on shared nodes
    depends --mem-per-gpu, --cpus-per-gpu -> gres: on whole nodes
    depends --tmp -> disk: where nodes are not known
    depends --gres, --gpus-per-node -> gres: where nodes are not known, or have shards or MPS
    depends --gpus, --gpus-per-task, --tres-per-task -> gres: where it is not known what each \
        node has
    restricts --gpus-per-socket -> gres: needs GPUs of every socket
    depends --constraint -> features: modelled with `&`, `|`, parentheses, `[a|b]` and, except \
        on tori and with switches, numbers
    read --prefer: a wish; audits do not say that fewer switches would have done
    restricts --batch -> features: its first node needs features
    restricts --cluster-constraint, --clusters -> federation: may run on another cluster
    depends --partition -> partition: one of several is `one_of`; limits, states \
        and other topologies of partitions hold it
    read --exclude: nodes that it may not have
    depends --nodelist, --nodefile -> required_nodes: on tori, or with `--switches` and other \
        nodes
    depends --switches -> switches: at most so many leaf switches; held where there are none, or \
        when the time may be over
    depends --contiguous -> contiguous: its nodes follow each other in the order of `scontrol \
        show nodes`; held where that is not given, with `--nodelist` or `--switches`, on several \
        fabrics, and for tasks on any nodes; blocks, rings and toruses ignore it
    restricts --spread-job, --use-min-nodes, --spread-segments, --consolidate-segments -> \
        spread: other nodes than the fewest domains
    depends --segment -> segment: where the machine has no blocks or prisms for it
    read --exclusive: whole nodes; `topo` on blocks
    restricts --exclusive=user, --exclusive=mcs -> shared: nodes of one user or label
    restricts --oversubscribe, --overcommit -> shared: several jobs may have a CPU; several \
        tasks of a job count by its CPUs
    read --array: a request for each task
    restricts --array=%N -> array_throttle: the tasks beyond N
    restricts --dependency -> dependency: waits for other jobs
    restricts --begin -> begin_time: begins later
    depends --deadline -> deadline: where its time limit ends after it
    restricts --hold -> hold: waits until it is released
    read --time, --time-min, --priority, --nice: the times and the order of the queue
    restricts --reservation -> reservation: runs in a reservation
    restricts --licenses, --resources -> licenses: needs licences, or resources of the cluster
    restricts --bb, --bbf -> burst_buffer: needs a burst buffer
    restricts --network -> network: needs resources of the network
    restricts --mcs-label -> mcs: shares nodes with its own label alone
    restricts --extra -> extra: its nodes may have to match
    read --comment: words `pattern=` and `segment=`
    neutral --account, --qos, --wckey, --uid, --gid: limits of accounts show in the reason that \
        a job waits
    depends --core-spec, --thread-spec -> cpus: unless every node has its CPUs and those left free
    neutral --gpu-bind, --gres-flags, --tres-bind, --mem-bind, \
        --hint, --distribution, --cpu-freq, --gpu-freq: within a node
    neutral --reboot, --delay-boot, --no-kill, --requeue, --no-requeue, --signal: of jobs that \
        run
    neutral --acctg-freq, --chdir, --container, --container-id, --error, --export, \
        --export-file, --get-user-env, --help, --ignore-pbs, --input, --job-name, \
        --kill-on-invalid-dep, --mail-type, --mail-user, --mem-update, --oom-kill-step, \
        --open-mode, --output, --parsable, --profile, --propagate, --quiet, --resv-ports, \
        --runtime, --stepmgr, --test-only, --usage, --verbose, --version, --wait, \
        --wait-all-nodes, --wrap
    """,
)
"""What becomes of each option of sbatch (26.05): for the documentation alone."""
