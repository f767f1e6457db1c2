"""What is read of Slurm's listings of jobs, nodes, partitions and reservations, field by field.

The fields of a job are called as in ``squeue --json``; `LISTED` and `SHOWN` say how squeue's
columns and ``scontrol show job`` call them.
"""

from __future__ import annotations

from typing import Any

from topoplace.formats.declared import Table, given_text, neutral, read, restricts

# ---- Values that restrict ------------------------------------------------------------------------


def number_text(value: Any) -> str:
    """Return a number above 0, plain, as text or with flags `set` and `infinite`; else nothing."""
    if isinstance(value, dict):
        value = value.get("number") if value.get("set") and not value.get("infinite") else None
    return str(value) if value and value != "0" else ""


_FREE_REASONS = {"", "None", "Priority", "Resources", "Cleaning", "BeginTime", "Dependency"}
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


def shared_text(value: Any) -> str:
    """Return how a job shares nodes with others, if it may: one that takes whole nodes does not."""
    words = value if isinstance(value, list) else [value]
    words = [str(word).lower() for word in words if word]
    if words in (["none"], ["topo"], ["exclusive"], ["no"]):
        return ""
    return ",".join(words) or "may take a part of a node"


def flags_text(value: Any) -> str:
    """Return the flags of a job that ask for other nodes than the fewest domains."""
    return ",".join(flag for flag in value or () if flag in ("SPREAD_JOB", "USE_MIN_NODES"))


def _not_null(value: Any) -> str:
    text = given_text(value)
    return "" if text.lower() in ("(null)", "null", "n/a", "none") else text


def _held(name: str, about: str, option: str = "") -> Any:
    """Return a field that holds a job by more than its own value: the reader finds that out."""
    return restricts(name, about, option, None)


def _numbered(name: str, about: str, option: str = "") -> Any:
    return restricts(name, about, option, number_text)


# ---- Jobs ----------------------------------------------------------------------------------------

SQUEUE_JSON = Table(
    "squeue --json",
    (
        *read("job_id", "array_job_id", "array_task_id", "array_task_string", "het_job_offset",
              about="the job's id"),
        *read("job_state", about="whether the job runs, waits or has ended"),
        *read("nodes", about="the nodes of a job that runs"),
        *read("node_count", about="nodes wanted"),
        *read("comment", about="words `pattern=` and `segment=`"),
        *read("time_limit", "submit_time", about="the request's times"),
        *read("nice", about="part of `priority`"),
        *_held("priority", "the order of the queue; 0 is a job on hold", "hold"),
        *_held("hold", "waits until it is released"),
        *_held("partition", "unless one partition of the job has all nodes"),
        *_held("state_reason", "waits for something else than nodes or its turn", "reason"),
        *_held("eligible_time", "begins later than the listing was made", "begin_time"),
        *_held("het_job_id", "one of several components that start together", "het_job"),
        *_held("array_max_tasks", "the tasks beyond so many at a time", "array_throttle"),
        *_held("max_nodes", "its size is a range, or an estimate of `node_count`", "node_count"),
        *_held("tasks", "its size is given by tasks", "node_count"),
        *_held("tres_req_str", "asks for fewer nodes than `node_count`", "node_count"),
        *_held("shared", "may take a part of a node, unless `scontrol show partition` says that "
               "its partition gives whole nodes; `topo` where there are no blocks"),
        *_held("exclusive", "`topo` where there are no blocks"),
        *_held("segment_size", "where the machine has no blocks or prisms for it", "segment"),
        *_held("minimum_cpus_per_node", "unless every node has as many", "cpus"),
        *_held("cpus", "unless every node has its share of them"),
        *_held("memory_per_node", "unless every node has as much", "memory"),
        *_held("memory_per_cpu", "unless every node has as much for all its CPUs", "memory"),
        *_held("minimum_tmp_disk_per_node", "unless every node has as much", "disk"),
        *restricts("dependency", "waits for other jobs"),
        *restricts("required_nodes", "has to have these nodes"),
        *restricts("excluded_nodes", "may not have these nodes"),
        *restricts("features", "its nodes need features"),
        *restricts("batch_features", "its first node needs features", "features"),
        *restricts("cluster_features", "its cluster needs features", "federation"),
        *_numbered("required_switches", "at most so many leaf switches (`--switches`)", "switches"),
        *restricts("contiguous", "its nodes are in a row"),
        *restricts("tres_per_node", "needs GRES, such as GPUs", "gres"),
        *restricts("tres_per_job", "needs GRES, such as GPUs", "gres"),
        *restricts("tres_per_task", "needs GRES, such as GPUs", "gres"),
        *restricts("tres_per_socket", "needs GRES, such as GPUs", "gres"),
        *restricts("gres", "needs GRES (before 20.11)", "gres", _not_null),
        *restricts("cpus_per_tres", "CPUs by GRES", "gres"),
        *restricts("memory_per_tres", "memory by GRES", "gres"),
        *_numbered("tasks_per_tres", "tasks by GRES", "gres"),
        *_numbered("sockets_per_node", "its nodes need so many sockets", "node_layout"),
        *_numbered("cores_per_socket", "its nodes need so many cores", "node_layout"),
        *_numbered("threads_per_core", "its nodes need so many threads", "node_layout"),
        *restricts("licenses", "needs licences", "licenses", _not_null),
        *restricts("resv_name", "runs in a reservation", "reservation"),
        *restricts("burst_buffer", "needs a burst buffer"),
        *restricts("mcs_label", "shares nodes with its own label alone", "mcs"),
        *restricts("network", "needs resources of the network"),
        *restricts("extra", "its nodes may have to match", "extra"),
        *restricts("flags", "`SPREAD_JOB`: over as many nodes as there are", "spread",
                   flags_text),
        *restricts("federation_siblings_viable", "may run on another cluster", "federation"),
        *neutral("account", "user_id", "user_name", "group_id", "group_name", "qos", "wckey",
                 "association_id", about="limits of accounts show in `state_reason`"),
        *neutral("prefer", about="a wish, no rule"),
        *neutral("scheduled_nodes", "start_time", "last_sched_evaluation",
                 about="Slurm's plan"),
        *neutral("maximum_switch_wait_time", about="of `required_switches`"),
        *neutral("priority_by_partition", "het_job_id_set", "deadline", "delay_boot", "reboot",
                 "time_minimum", "tres_bind", "tres_freq", "core_spec",
                 "thread_spec", "cpus_per_task", "tasks_per_node", "tasks_per_core",
                 "tasks_per_socket", "tasks_per_board", "sockets_per_board", "max_cpus",
                 about="within a node, or said elsewhere"),
        *neutral("gres_detail", "job_resources", "tres_alloc_str", "allocating_node",
                 "batch_host", "batch_flag", "end_time", "preempt_time", "preemptable_time",
                 "pre_sus_time", "suspend_time", "resize_time", "job_size_str",
                 "billable_tres", "licenses_allocated", "allocated_nodes",
                 about="of jobs that run"),
        *neutral("accrue_time", "admin_comment", "burst_buffer_state", "cluster", "command",
                 "container", "container_id", "cpu_frequency_minimum", "cpu_frequency_maximum",
                 "cpu_frequency_governor", "cron", "current_working_directory",
                 "derived_exit_code", "exit_code", "failed_node", "federation_origin",
                 "federation_siblings_active", "mail_type", "mail_user", "name", "power",
                 "profile", "requeue", "restart_cnt", "selinux_context", "show_flags",
                 "standard_error", "standard_input", "standard_output", "stderr_expanded",
                 "stdin_expanded", "stdout_expanded", "state_description", "system_comment",
                 "step_id", "submit_line", "argv"),
    ),
)  # fmt: skip

_LISTED = (
    ("JOBID", "id"), ("STATE", "job_state"), ("ST", "job_state"), ("NODES", "node_count"),
    ("NODELIST", "nodes"), ("NODELIST(REASON)", "nodes_or_reason"), ("COMMENT", "comment"),
    ("PRIORITY", "priority"), ("TIME_LIMIT", "time_limit"), ("SUBMIT_TIME", "submit_time"),
    ("PARTITION", "partition"), ("REASON", "state_reason"), ("FEATURES", "features"),
    ("DEPENDENCY", "dependency"), ("TRES_PER_NODE", "tres_per_node"),
    ("OVER_SUBSCRIBE", "shared"), ("RESERVATION", "resv_name"), ("EXC_NODES", "excluded_nodes"),
    ("REQ_NODES", "required_nodes"), ("LICENSES", "licenses"), ("CONTIGUOUS", "contiguous"),
    ("MIN_CPUS", "minimum_cpus_per_node"), ("ELIGIBLE_TIME", "eligible_time"),
)  # fmt: skip
LISTED = dict(_LISTED)
"""Fields of a job by the header of squeue's column."""

NEEDED_COLUMNS = ("PARTITION", "REASON", "FEATURES", "DEPENDENCY", "TRES_PER_NODE")
"""Columns without which a listing cannot know what keeps a job from nodes."""

SQUEUE_LISTING = Table(
    "squeue -o",
    (
        *(
            field
            for header, name in _LISTED
            for field in read(header, about=f"as `{name}` of `squeue --json`")
        ),
        *neutral("START_TIME", "END_TIME", "TIME", "TIME_LEFT", "NAME", "USER", "UID", "ACCOUNT",
                 "QOS", "GROUP", "GID", "WCKEY", "NICE", "CPUS", "MIN_MEMORY", "SCHEDNODES",
                 "COMMAND", "WORK_DIR", "EXEC_HOST", "S:C:T", "CORE_SPEC", "MIN_TMP_DISK",
                 "ARRAY_JOB_ID", "ARRAY_TASK_ID"),
    ),
)  # fmt: skip

_SHOWN = (
    ("JobId", "job_id"), ("ArrayJobId", "array_job_id"), ("ArrayTaskId", "array_tasks"),
    ("HetJobId", "het_job_id"), ("HetJobOffset", "het_job_offset"), ("JobState", "job_state"),
    ("NumNodes", "node_range"), ("NodeList", "nodes"), ("Comment", "comment"),
    ("Priority", "priority"), ("TimeLimit", "time_limit"), ("SubmitTime", "submit_time"),
    ("EligibleTime", "eligible_time"), ("Partition", "partition"), ("Reason", "state_reason"),
    ("Dependency", "dependency"), ("Features", "features"), ("ReqNodeList", "required_nodes"),
    ("ExcNodeList", "excluded_nodes"), ("TresPerNode", "tres_per_node"),
    ("TresPerJob", "tres_per_job"), ("TresPerTask", "tres_per_task"),
    ("TresPerSocket", "tres_per_socket"), ("Gres", "gres"), ("OverSubscribe", "shared"),
    ("Contiguous", "contiguous"), ("Licenses", "licenses"), ("Reservation", "resv_name"),
    ("Switches", "required_switches"), ("ArrayTaskThrottle", "array_max_tasks"),
    ("MinCPUsNode", "minimum_cpus_per_node"), ("MinMemoryNode", "memory_per_node"),
    ("MinMemoryCPU", "memory_per_cpu"), ("NumCPUs", "cpus"), ("SegmentSize", "segment_size"),
    ("BurstBuffer", "burst_buffer"), ("Network", "network"), ("MCS_label", "mcs_label"),
    ("ClusterFeatures", "cluster_features"), ("BatchFeatures", "batch_features"),
)  # fmt: skip
SHOWN = dict(_SHOWN)
"""Fields of a job by the key of ``scontrol show job``."""

SCONTROL_JOB = Table(
    "scontrol show job",
    (
        *(
            field
            for key, name in _SHOWN
            for field in read(key, about=f"as `{name}` of `squeue --json`")
        ),
        *neutral("JobName", "UserId", "GroupId", "Nice", "Account", "QOS", "Requeue", "Restarts",
                 "BatchFlag", "Reboot", "ExitCode", "RunTime", "TimeMin", "AccrueTime",
                 "StartTime", "EndTime", "Deadline", "SuspendTime", "SecsPreSuspend",
                 "LastSchedEval", "Scheduler", "AllocNode:Sid", "BatchHost", "NumTasks",
                 "CPUs/Task", "ReqB:S:C:T", "TRES", "ReqTRES", "AllocTRES", "Socks/Node",
                 "NtasksPerN:B:S:C", "CoreSpec", "ThreadSpec", "MinTmpDiskNode", "DelayBoot",
                 "Command", "WorkDir", "StdErr", "StdIn", "StdOut", "Power", "MailUser",
                 "MailType", "TresBind", "WCKey", "SchedNodeList", "PreemptEligibleTime",
                 "PreemptTime", "JOB_GRES", "Nodes", "CPU_IDs", "Mem", "GRES", "SubmitLine",
                 "AdminComment", "SystemComment", "Prefer", "HetJobIdSet", "BatchScript",
                 "DerivedExitCode"),
    ),
)  # fmt: skip

# ---- Nodes, partitions, reservations -------------------------------------------------------------

SCONTROL_NODE = Table(
    "scontrol show nodes",
    (
        *read("NodeName", about="its name"),
        *read("State", about="whether a job may take it: else it is down"),
        *read("Partitions", about="which jobs it may run"),
        *read("CPUTot", "RealMemory", "TmpDisk", about="held against what jobs need of a node"),
        *read("Owner", "MCS_label", about="of one user or label: down"),
        *read("Reservation", "ReservationName", about="reserved: down"),
        *neutral("ActiveFeatures", "AvailableFeatures", "Gres", "GresUsed", "GresDrain",
                 about="jobs that ask for them are held"),
        *neutral("CPUAlloc", "CPUEfctv", "AllocMem", "AllocTRES",
                 about="a node with a job is full"),
        *neutral("Weight", about="a preference"),
        *neutral("Arch", "CoresPerSocket", "CPULoad", "CPUErr", "NodeAddr", "NodeHostName", "Port",
                 "Version", "OS", "FreeMem", "Sockets", "Boards", "ThreadsPerCore", "BootTime",
                 "SlurmdStartTime", "LastBusyTime", "ResumeAfterTime", "CfgTRES", "CurrentWatts",
                 "AveWatts", "CapWatts", "ExtSensorsJoules", "ExtSensorsWatts", "ExtSensorsTemp",
                 "Reason", "Comment", "Extra", "CoreSpecCount", "CPUSpecList", "MemSpecLimit",
                 "InstanceId", "InstanceType", "Topology", "BcastAddr", "NextState",
                 "LowestJoules", "ConsumedJoules", "NodeWeight", "PowerDown"),
    ),
)  # fmt: skip

SCONTROL_PARTITION = Table(
    "scontrol show partition",
    (
        *read("PartitionName", "Nodes", about="its nodes"),
        *read("State", about="not up: its jobs are held"),
        *read("MaxNodes", "MinNodes", "MaxTime", about="jobs beyond them are held"),
        *read("OverSubscribe", about="`EXCLUSIVE`: its jobs take whole nodes"),
        *restricts("ReqResv", "its jobs run in reservations only", "partition"),
        *restricts("MaxCPUsPerNode", "not all CPUs of a node", "partition"),
        *restricts("MaxCPUsPerSocket", "not all CPUs of a node", "partition"),
        *restricts("MaxMemPerNode", "not all memory of a node", "partition"),
        *restricts("ExclusiveUser", "nodes of one user at a time", "partition"),
        *restricts("ExclusiveTopo", "blocks of one job at a time", "partition"),
        *neutral("AllowGroups", "AllowAccounts", "AllowQos", "DenyAccounts", "DenyQos",
                 "AllocNodes", "QoS", "RootOnly", "DisableRootJobs",
                 about="jobs that are refused show a reason"),
        *neutral("Default", "DefaultTime", "GraceTime", "Hidden", "LLN", "PriorityJobFactor",
                 "PriorityTier", "OverTimeLimit", "PreemptMode", "TotalCPUs", "TotalNodes",
                 "SelectTypeParameters", "JobDefaults", "DefMemPerNode", "DefMemPerCPU",
                 "MaxMemPerCPU", "TRES", "TRESBillingWeights", "ResumeTimeout", "SuspendTimeout",
                 "SuspendTime", "CpuBind", "NodeSets", "Alternate", "TopologyName"),
    ),
)  # fmt: skip

SCONTROL_RESERVATION = Table(
    "scontrol show reservation",
    (
        *read("ReservationName", "Nodes", about="its nodes"),
        *read("State", about="`ACTIVE`: its nodes are down; else all requests are held"),
        *read("StartTime", "EndTime", about="when it is"),
        *neutral("Duration", "NodeCnt", "CoreCnt", "NodeName", "CoreIDs", "Features",
                 "PartitionName", "Flags", "TRES", "Users", "Groups", "Accounts", "Licenses",
                 "BurstBuffer", "MaxStartDelay", "Watts", "Comment"),
    ),
)  # fmt: skip

TABLES = (
    SQUEUE_JSON,
    SQUEUE_LISTING,
    SCONTROL_JOB,
    SCONTROL_NODE,
    SCONTROL_PARTITION,
    SCONTROL_RESERVATION,
)
