"""A cluster of Kubernetes at one moment, as kubectl prints it, as a machine or a snapshot."""

from __future__ import annotations

import itertools
import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import replace
from pathlib import Path

from pydantic import ValidationError

from topoplace.errors import InputError, blamed_on, number_of
from topoplace.formats.declared import Use, left_out, of_request, unknown_fields
from topoplace.formats.kubernetes.assigned import Amounts, Unplaced, add_amounts, place_assigned
from topoplace.formats.kubernetes.fields import KINDS, MACHINE, NODE, not_read
from topoplace.formats.kubernetes.jobs import KubeJobs, Waiting, jobs_of
from topoplace.formats.kubernetes.nodes import (
    EFFECTS,
    HOSTNAME,
    Domains,
    Flavor,
    KubeNode,
    domains_of,
    inside_label,
    machine_of_nodes,
    nodes_of,
    tier_level,
    untolerated,
)
from topoplace.formats.kubernetes.objects import (
    KubeObject,
    as_waiting,
    read_kube_objects,
    rounding,
)
from topoplace.formats.kubernetes.podsets import Podset
from topoplace.formats.kubernetes.rules import NOWHERE, NodeRules, NodeSets, repelled
from topoplace.formats.text import name_of
from topoplace.machine.hostlist import expand_host_list, format_host_list
from topoplace.snapshot.faults import faults_of
from topoplace.snapshot.held import (
    ELSEWHERE,
    OF_ITS_NODES,
    ORDER,
    OVER_CAPACITY,
    PREEMPTION,
    PREEMPTION_RULES,
    entry_name,
)
from topoplace.snapshot.hierarchy_state import hierarchy_of, prepare_hierarchy
from topoplace.snapshot.running import Began, as_asked
from topoplace.snapshot.schema import (
    LOWEST,
    SNAPSHOT_SCHEMA,
    Apart,
    Counted,
    HierarchyModel,
    LeftOut,
    Part,
    Request,
    RunningJob,
    Segment,
    Snapshot,
)
from topoplace.snapshot.value import has_gpus, valued_in

_MOST_PARTS = 4


def read_kubernetes_machine(path: str | Path, topology: str | None = None) -> HierarchyModel:
    """Read the machine of what ``kubectl get topologies,nodes`` prints.

    See `read_kubernetes`.
    """
    objects = read_kube_objects(path)
    with blamed_on(path):
        nodes = nodes_of(objects)
        return machine_of_nodes(domains_of(objects, nodes, topology), nodes)


def read_kubernetes(
    path: str | Path, topology: str | None = None
) -> tuple[Snapshot, tuple[str, ...]]:
    """Read what ``kubectl get topologies,nodes,pods,jobs,workloads -A`` prints, JSON or YAML.

    Parameters
    ----------
    path
        A file of one list, or of several documents.
    topology
        The name of the Topology, where there are several.

    Returns
    -------
    tuple
        A checked snapshot, and notes for a person on what was left out or closed.

    Raises
    ------
    InputError
        With the file, the object and the field at fault.
    """
    objects = read_kube_objects(path)
    with blamed_on(path):
        nodes = nodes_of(objects)
        domains = domains_of(objects, nodes, topology)
        marks = domains.marks
        nodes = [replace(own, labels={**own.labels, **marks.get(own.name, {})}) for own in nodes]
        jobs = jobs_of(objects, domains)
        unplaced = place_assigned(jobs.assigned, nodes, jobs.running, jobs.parts)
        machine = machine_of_nodes(domains, nodes, _asked(jobs))
        counts: Counter[str] = Counter()
        known = [node for node in nodes if node.name in domains.paths]
        counts["nodes left out, without the labels of all levels"] = len(nodes) - len(known)
        closed = [node.name for node in known if not node.is_open]
        counts["nodes closed, not ready or unschedulable"] += len(closed)
        sets = NodeSets(known)
        begun = _begun(objects, jobs, sets, known, domains)
        running = _running(jobs, machine, begun, counts)
        elsewhere = _elsewhere(jobs, begun, {node.name for node in nodes}, domains)
        unplaced = [one for one in unplaced if not one.nodes.isdisjoint(domains.paths)]
        queue, held = _queue(jobs, sets, known, domains, unplaced, counts)
        snapshot = Snapshot(
            schema_version=SNAPSHOT_SCHEMA,
            name=name_of(path),
            machine=machine,
            down=format_host_list(closed),
            running=running,
            sets=dict(sorted(sets.sets.items())),
            queue=queue,
            left_out=[
                *held,
                *(one.held_by for one in unplaced),
                *elsewhere,
                *_left_out_of_all(objects, jobs, domains),
            ],
            source=f"{domains.source}, nodes and pods",
        )
        if has_gpus(snapshot):
            snapshot = valued_in(snapshot, Counted.GPUS)
        _checked(snapshot)
    notes = [f"{number_of(len(running), 'job')} running, {len(queue)} queued"]
    if domains.others:
        notes.append(f"topology {domains.name}; left out: {', '.join(domains.others)}")
    return snapshot, (*notes, *(f"{what}: {count}" for what, count in counts.items() if count))


def _checked(snapshot: Snapshot) -> None:
    """Raise the faults of a snapshot, which name its jobs and not their places in the queue."""
    try:
        prepare_hierarchy(snapshot)
    except InputError as error:
        for fault in error.faults:
            match = re.match(r"queue\[(\d+)\]\.", fault.field or "")
            if match is not None:
                name = snapshot.queue[int(match[1])].id
                fault.field = f"job {name}: {(fault.field or '')[match.end() :]}"
        raise


def _asked(jobs: KubeJobs) -> set[str]:
    held = {name for own in jobs.running.values() for takes in own.values() for name in takes}
    return held | {
        name for own in jobs.waiting.values() for podset in own.podsets for name in podset.takes
    }


# ---- Running jobs --------------------------------------------------------------------------------


def _apart_of(job: str, jobs: KubeJobs) -> list[Apart]:
    """Return what a running job is to jobs of its family that want domains for themselves."""
    family, _ = jobs.families.get(job, (None, None))
    every = {lv for own in jobs.waiting.values() if own.family == family for lv in own.levels}
    levels = sorted(every - {None}, key=str)
    if family is None:
        return []
    return [Apart(level=str(level), name=family) for level in levels]


def _begun(
    objects: Sequence[KubeObject],
    jobs: KubeJobs,
    sets: NodeSets,
    nodes: Sequence[KubeNode],
    domains: Domains,
) -> dict[str, Began]:
    """Return what jobs that run asked for: what the file would say of them if they waited.

    Of the others, only those of a family may hold them.
    """
    of_family = {job for job, own in jobs.waiting.items() if own.family is not None}
    wanted = {*jobs.running, *of_family}
    then = jobs_of([as_waiting(one) for one in objects], domains, wanted)
    then.waiting = {job: own for job, own in then.waiting.items() if job in wanted}
    then.repelling = jobs.repelling
    queue, held = _queue(then, sets, nodes, domains, (), Counter())
    asked = {request.id: request for request in queue}
    found = {}
    for job in jobs.running:
        own = [one.model_copy(update={"request": None}) for one in held if one.request == job]
        if job in jobs.waiting:
            own.append(left_out("waiting-pods", f"{jobs.waiting[job].num_pods}", job))
        elif job not in asked:
            own.append(left_out("owner", "nothing says what it asked for", job))
        own += [left_out(OF_ITS_NODES, f"of {jobs.stays[job]}", job)] if job in jobs.stays else []
        standing = jobs.standings[job]
        of_queue = None if standing.queue is None else standing.queue.name or None
        found[job] = Began(asked.get(job), own, standing.priority, of_queue)
    return found


def _running(
    jobs: KubeJobs, machine: HierarchyModel, begun: Mapping[str, Began], counts: Counter[str]
) -> list[RunningJob]:
    """Return jobs by what their pods take: a job of ours for each amount that they take of a host.

    Pods whose parts are known are several jobs of ours, too. What they take beyond what a node has,
    as amounts are rounded, is cut.
    """
    left = _capacities(machine)
    over = _over_capacity(jobs, left)
    entries: dict[str, list[RunningJob]] = {}
    for job, part, own in _by_part(jobs):
        hosts: dict[tuple[tuple[str, int], ...], list[str]] = defaultdict(list)
        for host, takes in own.items():
            if host not in left:
                counts["jobs that run on nodes left out"] += 1
                continue
            amounts = {name: min(amount, left[host][name]) for name, amount in takes.items()}
            counts["amounts cut to what nodes have"] += amounts != takes
            for name, amount in amounts.items():
                left[host][name] -= amount
            hosts[tuple(sorted(amounts.items()))].append(host)
        keys = (*_apart_of(job, jobs), *_keys_of(begun[job]))
        apart = {(one.level, one.name): one for one in keys}
        entries.setdefault(job, []).extend(
            RunningJob(
                id=entry_name(part, idx),
                nodes=format_host_list(names),
                takes=dict(takes),
                apart=[one for _, one in sorted(apart.items())] or None,
            )
            for idx, (takes, names) in enumerate(hosts.items())
        )
    whole, found = hierarchy_of(machine), list[RunningJob]()
    for job, some in entries.items():
        began = begun[job]
        marks = [LeftOut(option=OVER_CAPACITY, value=over[job][:1000])] if job in over else []
        began = replace(began, left_out=[*began.left_out, *marks])
        found += as_asked(job, some, began, whole) if some else []
    return found


def _capacities(machine: HierarchyModel) -> dict[str, dict[str, int]]:
    return {
        host: dict(group.capacity)
        for group in machine.hosts
        for host in expand_host_list(group.hosts)
    }


def _over_capacity(jobs: KubeJobs, capacities: Mapping[str, Mapping[str, int]]) -> dict[str, str]:
    """Return by job on which node it takes more than that has, alone or with others there."""
    total: dict[tuple[str, str], dict[str, int]] = defaultdict(dict)
    for job, own in jobs.running.items():
        for host, takes in own.items():
            for name, amount in takes.items():
                least = amount - takes.get("pods", 0) * rounding(name)
                if host in capacities and least > 0:
                    total[host, name][job] = least
    found: dict[str, str] = {}
    for (host, name), taken in total.items():
        amount, there = sum(taken.values()), capacities[host].get(name, 0)
        if amount > there:
            for job in taken:
                others = [other for other in taken if other != job]
                beside = f" with {', '.join(others[:_MOST_NAMED])}" if others else ""
                text = f"{amount:,} of {name} on {host}{beside}, which has {there:,}"
                found.setdefault(job, text)
    return found


def _elsewhere(
    jobs: KubeJobs, begun: Mapping[str, Began], known: Set[str], domains: Domains
) -> list[LeftOut]:
    """Return the jobs that run, or are assigned, on nodes that are not of the machine."""
    found = []
    for job, own in jobs.running.items():
        names = [name for name in own if name not in domains.paths]
        if names and begun[job].asked is not None and job not in jobs.stays:
            foreign = [name for name in names if name not in known]
            why = "not in the file" if foreign else "without the labels of all levels"
            text = f"{job} on {', '.join((foreign or names)[:_MOST_NAMED])}, {why}"
            found.append(LeftOut(option=ELSEWHERE, value=text[:1000]))
    return found


def _keys_of(began: Began) -> list[Apart]:
    """Return jobs with which one that runs shares no domain wherever it goes."""
    asked = began.asked
    own = [] if asked is None else [asked, *(asked.parts or ())]
    return [one for each in own for one in each.apart or ()]


def _by_part(jobs: KubeJobs) -> Iterator[tuple[str, str, Amounts]]:
    """Yield running jobs with their names, part by part where the parts of all pods are known."""
    for job, own in jobs.running.items():
        parts, total = jobs.parts.get(job, {}), Amounts()
        for amounts in parts.values():
            for host, takes in amounts.items():
                add_amounts(total, host, takes)
        names = {part: f"{job}/{part}" for part in parts}
        is_known = len(parts) > 1 and all(parts) and max(map(len, names.values())) <= _LONGEST_PART
        if is_known and total == own:
            yield from ((job, names[part], amounts) for part, amounts in parts.items())
        else:
            yield job, job, own


_LONGEST_PART = 110

# ---- Requests ------------------------------------------------------------------------------------


def _queue(
    jobs: KubeJobs,
    sets: NodeSets,
    nodes: Sequence[KubeNode],
    domains: Domains,
    unplaced: Sequence[Unplaced],
    counts: Counter[str],
) -> tuple[list[Request], list[LeftOut]]:
    """Return what waits, by descending priority and then by age, and what holds it."""
    queue, held = [], []
    waiting = sorted(jobs.waiting.items(), key=lambda job: (-job[1].priority, job[1].created))
    for job, own in waiting:
        name = f"{job[:120]}#waits" if job in jobs.running else job
        own.podsets[:] = [podset for podset in own.podsets if podset.count]
        if not own.podsets:
            counts["jobs left out, without pods"] += 1
            continue
        by_nodes = [*_by_flavors(own, nodes, domains.flavors), *_by_assigned(own, nodes, unplaced)]
        by_nodes += _by_rounding(own, nodes, jobs.running)
        found = _left_out_of(job, jobs, [*by_nodes, *_over_quota(own, jobs)])
        for idx, podset in enumerate(own.podsets):
            own.podsets[idx] = replace(podset, rules=_in_hyper_nodes(podset, domains))
        rank = own.priority if own.preempts else LOWEST
        update = {"rank": rank, "evicts": _evicts(own, jobs)}
        podsets = _sayable(own, sets, [*domains.levels, HOSTNAME], found)
        request = _request(name, podsets).model_copy(update=update)
        counts["jobs of several pods without a gang, taken to start as a whole"] += (
            own.is_loose and own.num_pods > 1
        )
        counts["jobs that run in part and wait in part"] += job in jobs.running
        queue.append(request)
        held += of_request(name, found)
    return queue, held


def _evicts(own: Waiting, jobs: KubeJobs) -> list[str] | None:
    """Return the queues whose jobs one that waits may end; None if that is not by queues."""
    if own.standing.queue is None or not own.queue.name:
        return None
    queues = {jobs.standings[job].queue for job in jobs.running if job in jobs.standings}
    return sorted(one.name for one in queues if one is not None and own.queue.may_end(one))


def _sayable(
    own: Waiting, sets: NodeSets, levels: Sequence[str], found: list[LeftOut]
) -> list[Podset]:
    """Return the podsets of a job as a snapshot can say them; what it cannot is added to `found`.

    A job of too many podsets becomes one of as many pods, each as large as the largest.
    """
    podsets = list(own.podsets)
    wanted = {(podset.group, podset.asked.get("required")) for podset in podsets if podset.group}
    if len(wanted) > len({group for group, _ in wanted}):
        levels = [f"{level} required" if level else "none required" for _, level in wanted]
        text = " or ".join(sorted({*levels}))
        found.append(left_out("podset-group-name", text, podsets[0].rules.where))
        podsets = [replace(podset, asked={}, group=None) for podset in podsets]
    for idx, podset in enumerate(podsets):
        where, asked = podset.rules.where, dict(podset.asked)
        segments = asked.get("segments", ())
        uneven = [str(one.size) for one in segments if podset.count % one.size]
        text = f"{', '.join(uneven)} of {number_of(podset.count, 'pod')}"
        text = text if uneven else _no_nest(segments, levels)
        if text:
            found.append(left_out("podset-slice-size", text, where))
            del asked["segments"]
        if any(one.option == "exclusive-topology" for one in found):
            asked.pop("apart", None)
        eligible = sets.of(podset.rules)
        podsets[idx] = replace(
            podset, asked=asked if eligible is None else asked | {"eligible": eligible}
        )
    if len(podsets) <= _MOST_PARTS:
        return podsets
    found.append(left_out("podsets", f"{len(podsets)}", podsets[0].rules.where))
    names = {name for podset in podsets for name in podset.takes}
    takes = {name: max(podset.takes.get(name, 0) for podset in podsets) for name in sorted(names)}
    count = sum(podset.count for podset in podsets)
    return [replace(podsets[0], count=count, takes=takes, asked={}, group=None)]


def _no_nest(segments: Sequence[Segment], levels: Sequence[str]) -> str:
    """Return which segments do not consist of the next smaller ones, of a level below; or none."""
    ordered = sorted(segments, key=lambda one: one.size)
    for small, large in itertools.pairwise(ordered):
        is_above = levels.index(large.level) < levels.index(small.level)
        if large.size % small.size or not is_above:
            return f"{large.size} of {large.level} and {small.size} of {small.level}"
    return ""


def _in_hyper_nodes(podset: Podset, domains: Domains) -> NodeRules:
    """Return rules by which pods that need a tier of Volcano are on nodes of HyperNodes alone."""
    levels = {
        podset.asked.get("required"),
        *(one.level for one in podset.asked.get("segments", ())),
    }
    keys = [inside_label(level) for level in map(tier_level, domains.tiers) if level in levels]
    wanted = [[{"matchExpressions": [{"key": key, "operator": "Exists"}]}] for key in keys]
    terms = [json.dumps({"nodeSelectorTerms": own}) for own in wanted]
    return replace(podset.rules, affinities=(*podset.rules.affinities, *terms))


def _request(job: str, podsets: Sequence[Podset]) -> Request:
    one = podsets[0]
    try:
        if len(podsets) == 1:
            return Request(id=job, nodes=one.count, takes=dict(one.takes), **one.asked)
        parts = [
            Part(id=own.name, nodes=own.count, takes=dict(own.takes), group=own.group, **own.asked)
            for own in podsets
        ]
        return Request(id=job, nodes=sum(part.nodes for part in parts), parts=parts)
    except ValidationError as error:
        raise faults_of(error, Request, {}).inside(f"job {job}") from None


# ---- What holds a job by what else is in the file: nodes, other jobs, its own pods ---------------


def _by_flavors(
    own: Waiting, nodes: Sequence[KubeNode], flavors: Sequence[Flavor]
) -> list[LeftOut]:
    """Give the podsets of a job of Kueue the nodes of a flavor of its queue, each group of one.

    Return what holds the job if there is none, or several have nodes that matter, or if flavors
    of several groups of resources, or of none, would have to give what it takes.
    """
    groups = own.groups or []
    if not own.by_kueue or not (flavors or any(one.resources is not None for one in groups)):
        return []
    together: dict[object, list[int]] = defaultdict(list)
    for idx, podset in enumerate(own.podsets):
        together[podset.group or idx].append(idx)
    for members in together.values():
        podsets = [own.podsets[idx] for idx in members]
        where, takes = podsets[0].rules.where, {name for one in podsets for name in one.takes}
        known = [one for one in groups if one.resources is not None]
        alien = takes - {"pods"} - {name for one in known for name in one.resources or ()}
        if known and alien:
            return [left_out("coveredResources", f"without {', '.join(sorted(alien))}", where)]
        needed = [one for one in groups if one.resources is None or one.resources & takes]
        names = {name for one in needed or groups for name in one.flavors}
        offered = [one for one in flavors if one.name in names]
        is_mixed = len(names) > len(offered) and not all(one.asked for one in podsets)
        rules = _in_a_flavor(podsets, nodes, offered)
        if not offered or rules is None or is_mixed or len(needed) > 1:
            return [left_out("flavor", ", ".join(sorted(names)), where)]
        for idx, one in zip(members, rules, strict=True):
            own.podsets[idx] = replace(own.podsets[idx], rules=one)
    return []


def _by_rounding(
    own: Waiting, nodes: Sequence[KubeNode], running: Mapping[str, Amounts]
) -> list[LeftOut]:
    """Return where more pods may fit on a node than do as amounts are rounded to MiB."""
    if not any(podset.exact for podset in own.podsets):
        return []
    taken: dict[str, Counter[str]] = defaultdict(Counter)
    for amounts in running.values():
        for host, takes in amounts.items():
            taken[host].update(takes)
    for podset, node in itertools.product(own.podsets, nodes):
        if not podset.exact or not node.is_open or not podset.rules.allow(node):
            continue
        left = {name: node.amounts.get(name, 0) - taken[node.name][name] for name in podset.takes}
        fits = max(min(left[name] // each for name, each in podset.takes.items()), 0)
        slack = 1 + taken[node.name]["pods"]  # of what the node has, and of each pod there
        may = all(
            (fits + 1) * podset.exact[name] < left[name] + slack
            if name in podset.exact
            else (fits + 1) * each <= left[name]
            for name, each in podset.takes.items()
        )
        if may and fits < podset.count:
            names = ", ".join(podset.exact)
            text = f"{names} to MiB: {node.name} may have room for more than {fits}"
            return [left_out("rounding", text, podset.rules.where)]
    return []


def _over_quota(own: Waiting, jobs: KubeJobs) -> list[LeftOut]:
    """Return of what a job takes more than its queue can ever give, or has left.

    What is left counts only in a queue that borrows nothing, for a job that may end no other.
    """
    total: Counter[str] = Counter()
    for podset in own.podsets:
        for name, amount in podset.takes.items():
            total[name] += podset.count * (amount - rounding(name))
    lent = f", with what cohort {own.queue.cohort} can lend" if own.queue.cohort else ""
    texts = {
        name: f"{most:,} of {name} in its queue{lent}"
        for name, most in own.most.items()
        if total[name] > most
    }
    ends = any(map(own.standing.may_preempt, jobs.standings.values()))
    is_alone = own.queue.name and not own.queue.cohort and not ends
    used = jobs.used.get(own.queue.name, Counter()) if is_alone else Counter()
    for name in own.most.keys() - texts.keys() if used else ():
        left = own.most[name] - used.get(name, 0)
        if total[name] > max(left, 0):
            texts[name] = f"{max(left, 0):,} of {name} left of {own.most[name]:,} in its queue"
    return [left_out("quota", text, own.podsets[0].rules.where) for text in texts.values()]


def _by_assigned(
    own: Waiting, nodes: Sequence[KubeNode], unplaced: Sequence[Unplaced]
) -> list[LeftOut]:
    """Return the pods without a node, of admitted Workloads, that may be where the job may be."""
    return [
        one.held_by
        for one in unplaced
        if any(p.rules.allow(n) for n in nodes if n.name in one.nodes for p in own.podsets)
    ]


def _in_a_flavor(
    podsets: Sequence[Podset], nodes: Sequence[KubeNode], flavors: Sequence[Flavor]
) -> list[NodeRules] | None:
    """Return the rules of podsets in the flavor that they can have; None if several matter."""
    found = [_in_each(podset, nodes, flavors) for podset in podsets]
    every = [{name for usable, _ in own for name in usable} for own in found]
    for ways in zip(*found, strict=True):
        if all(usable == most for (usable, _), most in zip(ways, every, strict=True)):
            return [rules for _, rules in ways]
    return None


def _in_each(
    podset: Podset, nodes: Sequence[KubeNode], flavors: Sequence[Flavor]
) -> list[tuple[set[str], NodeRules]]:
    """Return the nodes that a podset can use in each flavor, and its rules there."""
    found: list[tuple[set[str], NodeRules]] = []
    for flavor in flavors:
        tolerations = (*podset.rules.tolerations, *(flavor.tolerations or ()))
        rules = replace(podset.rules, tolerations=tolerations)
        if untolerated(flavor.taints or (), tolerations):
            rules = replace(rules, affinities=(*rules.affinities, NOWHERE))
        elif not all(map(flavor.has, nodes)):
            labels = {**dict(rules.selector), **(flavor.node_labels or {})}
            is_at_odds = any(labels[key] != value for key, value in rules.selector)
            more = (NOWHERE,) if is_at_odds else ()
            rules = replace(
                rules,
                selector=tuple(sorted(labels.items())),
                affinities=(*rules.affinities, *more),
            )
        usable = {n.name for n in nodes if n.is_open and _has_room(n, podset) and rules.allow(n)}
        found.append((usable, rules))
    return found


def _has_room(node: KubeNode, podset: Podset) -> bool:
    return all(node.amounts.get(name, 0) >= amount for name, amount in podset.takes.items())


def _left_out_of(job: str, jobs: KubeJobs, by_nodes: Sequence[LeftOut]) -> list[LeftOut]:
    """Return what restricts a job that waits and is not modelled, of no request yet."""
    own = jobs.waiting[job]
    found = [*own.left_out, *repelled([*own.labels], jobs.repelling), *by_nodes]
    found += _sizes(job, jobs)
    found += _exclusive(job, jobs)
    runs = jobs.num_running.get(job, 0)
    if runs and any(podset.asked or podset.group for podset in own.podsets):
        found.append(left_out("running-pods", f"{runs}", own.podsets[0].rules.where))
    return list({(one.option, one.value): one for one in reversed(found)}.values())[::-1]


def _sizes(job: str, jobs: KubeJobs) -> list[LeftOut]:
    """Return if the file has fewer or more pods of a group than there should be."""
    own = jobs.waiting[job]
    there = own.num_pods + jobs.num_running.get(job, 0)
    return [
        left_out(option, f"{size} of {there}: fewer than all may start", where)
        if option in _LEAST and size < there
        else left_out(option, f"{size}, not {there}", where)
        for option, (size, where) in own.sizes.items()
        if size != there
    ]


_LEAST = frozenset(("minMember", "minCount"))
"""Sizes that say how many pods have to start together, where others may start later."""


def _exclusive(job: str, jobs: KubeJobs) -> list[LeftOut]:
    """Return if a job of a family has domains for itself, or not, and others in it differ.

    That pods which are not exclusive are in no domain of one that is, is not modelled, except that
    those which run keep it away; nor is it that domains of different levels exclude each other.
    """
    own = jobs.waiting[job]
    if own.family is None:
        return []
    waiting = {
        level
        for other in jobs.waiting.values()
        if other.family == own.family
        for level in other.levels
    }
    running = {lv for name, (of, lv) in jobs.families.items() if of == own.family and name != job}
    wanted = own.levels - {None}
    others = running - {None}
    alien = (waiting | others) - wanted if wanted else others
    if not alien:
        return []
    level = ", ".join(map(str, sorted(wanted or alien, key=str)))
    return [left_out("exclusive-topology", f"{level}, beside others", own.podsets[0].rules.where)]


def _left_out_of_all(
    objects: Sequence[KubeObject], jobs: KubeJobs, domains: Domains
) -> list[LeftOut]:
    """Return what is not modelled and is of no job alone: it holds nobody."""
    tiers = [f"tier {tier}, as {why}" for tier, why in domains.tiers.items() if why]
    found = [left_out("HyperNodes", f"of {text}", "hypernodes") for text in tiers]
    if len(jobs.waiting) > 1:
        found.append(left_out(ORDER, "by priority, then age", "pods and workloads"))
    strict = Counter(
        own.queue.name
        for own in jobs.waiting.values()
        if own.queue.spec.get("queueingStrategy") == "StrictFIFO"
    )
    names = ", ".join(name for name, count in strict.items() if count > 1)
    found += [left_out("StrictFIFO", f"of ClusterQueue {names}", "objects")] if names else []
    found += _preempting(jobs)
    alone = [job for job in jobs.admitted if job not in jobs.running]
    if alone:
        names = ", ".join(alone)
        found.append(left_out("admission", f"of {names}, of which no pod runs", "workloads"))
    quotas: dict[str, list[str]] = {}
    options = {field.name: field.held_by for field in KINDS.fields if field.use is Use.RESTRICTS}
    for one in objects:
        if one.kind in options:
            meta = one.section("metadata")
            name = "/".join(map(str, filter(None, (meta.get("namespace"), meta.get("name")))))
            quotas.setdefault(options[one.kind], []).append(f"{one.kind} {name}")
    found += [left_out(option, f"of {', '.join(of)}", "objects") for option, of in quotas.items()]
    return [*found, *unknown_fields(_unknown_of_all(objects))]


def _preempting(jobs: KubeJobs) -> list[LeftOut]:
    """Return the jobs that may preempt some that run: nobody ends for others here."""
    running = {jobs.standings[job] for job in jobs.running if job in jobs.standings}
    names = [
        job
        for job, own in jobs.waiting.items()
        if any(map(own.standing.may_preempt, running))
        and not any(one.option == "suspend" for one in own.left_out)
    ]
    unsure: dict[str, list[str]] = defaultdict(list)
    for job, own in jobs.waiting.items():
        for why in sorted({own.standing.unsure_of(one) for one in running} - {""}):
            unsure[why].append(job)
    where = "pods and workloads"
    found = [
        left_out(PREEMPTION_RULES, f"of {_some(some)}: {why}", where)
        for why, some in unsure.items()
    ]
    if not names:
        return found
    text = f"of running jobs, by which {_some(names)} may start"
    return [left_out(PREEMPTION, text, where), *found]


def _some(names: Sequence[str]) -> str:
    others = len(names) - _MOST_NAMED
    more = f" and {number_of(others, 'other')}" if others > 0 else ""
    return f"{', '.join(names[:_MOST_NAMED])}{more}"


_MOST_NAMED = 3


def _unknown_of_all(objects: Sequence[KubeObject]) -> Iterator[str]:
    """Yield what no table knows of the machine, and kinds of objects: they hold nobody."""
    yield from filter(None, {not_read(one.kind, one.group, one.version) for one in objects})
    for one in objects:
        spec = one.section("spec")
        if (one.group, one.kind) in MACHINE:
            names = MACHINE[one.group, one.kind].unknown_in(spec)
            yield from (f"{one.kind}.spec.{name}" for name in names)
        elif (one.group, one.kind) == ("", "Node"):
            yield from (f"Node.{name}" for name in NODE.unknown_in({"spec": spec}))
            effects = {str(taint.get("effect")) for taint in spec.get("taints") or ()}
            yield from (f"Node.spec.taints effect {name}" for name in effects - EFFECTS)
