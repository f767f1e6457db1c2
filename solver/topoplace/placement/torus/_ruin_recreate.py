"""Compiled annealing over placements: drop some jobs, refill, keep the change or take it back.

Arrays are indexed by router, request or *form*: extents that one request may have; the forms of
request q are `first[q]` to `first[q+1] - 1`. `waste[form, r]` is 0 if the form cannot be at origin
r next to the running jobs, else one more than the usable nodes that the prism would leave idle
there (at most 255). `kinds[q]` is 0 for strict requests, 1 for tolerant ones that share links, 2
for those that use none.
"""

from __future__ import annotations

import math

import numpy as np

from topoplace.kernels import kernel
from topoplace.kernels.lists import ranks, write
from topoplace.placement.torus.oracle._boxes import (
    below,
    fill,
    free_origins,
    links_meet,
    open_faces,
    prisms_meet,
    roughness,
    uniform,
)

# Compiled for the array types it is called with; annotations would be noise.
# mypy: allow-untyped-defs, allow-untyped-calls


@kernel()
def push_in(shape, strides, first, extents, waste, values, form_of, origin_of, q, dropped, rng):
    """Choose a prism for a request and mark the jobs in its way; return (form, origin).

    The prism is the one of a few random ones with the least in its way.
    """
    form = first[q] + below(rng, first[q + 1] - first[q])
    size = waste.shape[1]
    lowest, chosen = np.inf, -1
    found = 0
    for _ in range(60):
        r = below(rng, size)
        if waste[form, r] == 0:
            continue
        cost = 0.0
        for p in range(values.shape[0]):
            if (
                form_of[p] >= 0
                and p != q
                and prisms_meet(shape, strides, r, extents[form], origin_of[p], extents[form_of[p]])
            ):
                cost += values[p]
        cost *= 0.7 + 0.6 * uniform(rng)
        if cost < lowest:
            lowest, chosen = cost, r
        found += 1
        if found == 12:
            break
    if chosen < 0:
        return -1, -1
    for p in range(values.shape[0]):
        if form_of[p] >= 0 and (
            p == q
            or prisms_meet(shape, strides, chosen, extents[form], origin_of[p], extents[form_of[p]])
        ):
            dropped[p] = 1
    return form, chosen


@kernel()
def drop_some(
    shape, strides, wraps, size, extents, form_of, origin_of, near, num, keys, dropped, rng
):
    """Mark some started jobs: those nearest to a random router, or any."""
    centre = below(rng, size)
    for p in range(form_of.shape[0]):
        keys[p] = np.inf
        if form_of[p] < 0:
            continue
        keys[p] = uniform(rng)
        if near:
            for d in range(shape.shape[0]):
                n = shape[d]
                e = extents[form_of[p], d]
                gap = (centre // strides[d] - origin_of[p] // strides[d]) % n
                if gap >= e:
                    keys[p] += min(gap - e + 1, n - gap) if wraps[d] else gap - e + 1
    for _ in range(num):
        p = int(np.argmin(keys))
        if keys[p] < np.inf:
            dropped[p] = 1
            keys[p] = np.inf


# Compiled for the array types it is called with; annotations would be noise.
# mypy: allow-untyped-defs, allow-untyped-calls
# ruff: noqa: PLR0912, PLR0915 - a kernel is one loop nest over flat arrays


_TAKEN, _FREE = np.uint8(0), np.uint8(1)  # of one type: `fill` is compiled once
_CHECKS = 16  # origins of a form that are looked at closely


@kernel()
def links_clash(shape, strides, wraps, extents, passing, kinds, form_of, origin_of, q, form, r):
    """Return whether a prism for request q uses a link that a started job will not share."""
    if kinds[q] == 2:
        return False
    for p in range(kinds.shape[0]):
        other = form_of[p]
        if other < 0 or p == q or kinds[p] == 2 or kinds[p] + kinds[q] == 2:
            continue
        # disjoint prisms share a link only outside one of them
        if (passing[form] or passing[other]) and links_meet(
            shape, strides, wraps, r, extents[form], origin_of[p], extents[other]
        ):
            return True
    return False


@kernel()
def is_jammed(shape, strides, wraps, extents, r, mask):
    """Return whether there is no dimension in which a prism can be moved both ways."""
    for d in range(shape.shape[0]):
        n = shape[d]
        if extents[d] == n:
            continue
        c = r // strides[d] % n
        before = r - strides[d] if c > 0 else r + (n - 1) * strides[d]
        after = r + strides[d] if c < n - 1 else r - (n - 1) * strides[d]
        if (wraps[d] or 0 < c < n - 1) and mask[before] and mask[after]:
            return False
    return True


@kernel()
def best_place(
    shape, strides, wraps, first, extents, waste, passing, kinds, form_of, origin_of,
    q, weights, free, run, mask, other, found, scratch, rng,
):  # fmt: skip
    """Return (form, origin) of the best-scored prism among the forms of a request, or (-1, -1).

    The score counts idle nodes, free routers next to the prism and noise, by `weights`.
    """
    best, best_form, best_origin = np.inf, -1, -1
    words = mask.view(np.uint64)
    for form in range(first[q], first[q + 1]):
        if not free_origins(shape, strides, wraps, extents[form], run, mask, other):
            continue
        num = num_jammed = 0
        somewhere = -1
        for w in range(words.shape[0]):
            if words[w] == 0:
                continue
            for r in range(8 * w, min(8 * w + 8, run.shape[0])):
                if mask[r] == 0 or waste[form, r] == 0:
                    continue
                num += 1
                if is_jammed(shape, strides, wraps, extents[form], r, mask):
                    found[num_jammed] = r
                    num_jammed += 1
                elif num_jammed == 0 and uniform(rng) * num < 1:
                    somewhere = r
        if num == 0:
            continue
        if num_jammed == 0:
            found[0] = somewhere
            num_jammed = 1
        for k in range(min(num_jammed, _CHECKS)):
            r = found[k if num_jammed <= _CHECKS else below(rng, num_jammed)]
            score = weights[0] * waste[form, r] + weights[2] * uniform(rng)
            if score >= best:
                continue
            score += weights[1] * open_faces(shape, strides, wraps, r, extents[form], free, scratch)
            if score < best and not links_clash(
                shape, strides, wraps, extents, passing, kinds, form_of, origin_of, q, form, r
            ):
                best, best_form, best_origin = score, form, r
    return best_form, best_origin


@kernel()
def anneal(
    shape, strides, wraps, first, extents, waste, passing, kinds, values, volumes, free_before,
    form_of, origin_of, best_form, best_origin, steps, hot, smooth, rng,
):  # fmt: skip
    """Anneal a placement in place; write the best one met to `best_*` and return its value.

    `volumes[q]` is the least volume of a prism of q. The energy is the value less `smooth` times
    the roughness of the free routers; `hot` is the temperature.
    """
    num_requests = values.shape[0]
    size = free_before.shape[0]
    dims = shape.shape[0]
    free = free_before.copy()
    run = np.zeros(size, np.uint16)
    mask = np.zeros((size + 7) // 8 * 8, np.uint8)
    other = np.zeros_like(mask)
    found = np.zeros(size, np.int64)
    scratch = np.zeros((3, dims), np.int64)
    order = np.zeros(num_requests, np.int64)
    keys = np.zeros(num_requests)
    dropped = np.zeros(num_requests, np.uint8)
    weights = np.zeros(3)
    one = np.ones(dims, np.int64)
    for r in range(0, size, shape[dims - 1]):
        fill(shape, strides, wraps, r, one, free[r], free, run)  # counts the runs of its line
    value = 0
    for q in range(num_requests):
        if form_of[q] >= 0:
            fill(shape, strides, wraps, origin_of[q], extents[form_of[q]], _TAKEN, free, run)
            value += values[q]
    best = value
    write(form_of, best_form)
    write(origin_of, best_origin)
    old_form, old_origin = form_of.copy(), origin_of.copy()
    old_rough = roughness(shape, strides, wraps, free)
    for _ in range(steps):
        write(form_of, old_form)
        write(origin_of, old_origin)
        old_value = value
        dropped[:] = 0
        form, r = -1, -1
        target = below(rng, num_requests)
        choice = uniform(rng)
        if choice < 0.5:
            for _again in range(3):
                if form_of[target] >= 0 or first[target] == first[target + 1]:
                    target = below(rng, num_requests)
            if first[target] < first[target + 1]:
                form, r = push_in(
                    shape, strides, first, extents, waste, values, form_of, origin_of, target,
                    dropped, rng,
                )  # fmt: skip
        if form < 0:
            num = 1 + int(5 * uniform(rng) * uniform(rng))
            drop_some(
                shape, strides, wraps, size, extents, form_of, origin_of, choice < 0.8, num,
                keys, dropped, rng,
            )  # fmt: skip
        freed = 0
        for q in range(num_requests):
            if dropped[q]:
                fill(shape, strides, wraps, origin_of[q], extents[form_of[q]], _FREE, free, run)
                volume = 1
                for d in range(dims):
                    volume *= extents[form_of[q], d]
                freed += volume
                value -= values[q]
                form_of[q] = -1
        if form >= 0 and not links_clash(
            shape, strides, wraps, extents, passing, kinds, form_of, origin_of, target, form, r
        ):
            form_of[target], origin_of[target] = form, r
            fill(shape, strides, wraps, r, extents[form], _TAKEN, free, run)
            value += values[target]
        spread = 0.1 if uniform(rng) < 0.3 else (0.5 if uniform(rng) < 0.6 else 1.5)
        count = 0
        for q in range(num_requests):
            if form_of[q] >= 0 or first[q + 1] == first[q]:
                continue
            if volumes[q] > 1.1 * freed and uniform(rng) < 0.8:
                continue
            order[count] = q
            noise = uniform(rng) + uniform(rng) + uniform(rng) - 1.5
            keys[count] = 2 * spread * noise - math.log(max(1.0, float(values[q])))
            count += 1
        turns = ranks(keys[:count])
        weights[0] = uniform(rng)
        weights[1] = 0.0 if uniform(rng) < 0.1 else uniform(rng)
        weights[2] = 20.0 * uniform(rng) ** 3
        for k in range(count):
            q = order[turns[k]]
            form, r = best_place(
                shape, strides, wraps, first, extents, waste, passing, kinds, form_of, origin_of,
                q, weights, free, run, mask, other, found, scratch, rng,
            )  # fmt: skip
            if form >= 0:
                form_of[q], origin_of[q] = form, r
                fill(shape, strides, wraps, r, extents[form], _TAKEN, free, run)
                value += values[q]
        rough = roughness(shape, strides, wraps, free)
        gain = value - old_value - smooth * (rough - old_rough)
        if gain >= 0 or uniform(rng) < math.exp(gain / max(hot, 1e-9)):
            old_rough = rough
            if value > best:
                best = value
                write(form_of, best_form)
                write(origin_of, best_origin)
            continue
        for back in range(2):
            for q in range(num_requests):
                form = old_form[q] if back else form_of[q]
                if form >= 0 and (form_of[q] != old_form[q] or origin_of[q] != old_origin[q]):
                    r = old_origin[q] if back else origin_of[q]
                    mark = _TAKEN if back else _FREE
                    fill(shape, strides, wraps, r, extents[form], mark, free, run)
        write(old_form, form_of)
        write(old_origin, origin_of)
        value = old_value
    return best
