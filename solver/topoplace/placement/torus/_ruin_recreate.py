"""Compiled annealing over placements: drop some jobs, refill, keep the change or take it back.

Arrays are indexed by router, request or *form*: extents that one request may have; the forms of
request q are `first[q]` to `first[q+1] - 1`. Next to the running jobs, a form can be at the origins
`places[i]`, i from `begins[form]` to `begins[form+1] - 1`; there it leaves `waste[i]` usable nodes
idle (at most 255). `kinds[q]` is 0 for strict requests, 1 for tolerant ones that share links, 2 for
those that use none.
"""

from __future__ import annotations

import math

import numpy as np

from topoplace.kernels import kernel
from topoplace.kernels.lists import ranks, write
from topoplace.placement.torus.oracle._boxes import (
    are_free,
    below,
    clear,
    fill,
    free_origins,
    lines_of,
    links_meet,
    open_faces,
    prisms_meet,
    roughness,
    uniform,
)

# Compiled for the array types it is called with; annotations would be noise.
# mypy: allow-untyped-defs, allow-untyped-calls


@kernel()
def push_in(
    shape, strides, first, extents, begins, places, values, form_of, origin_of, q, dropped, rng
):  # fmt: skip
    """Choose a prism for a request and mark the jobs in its way; return (form, origin).

    The prism is the one of a few random ones with the least in its way.
    """
    form = first[q] + below(rng, first[q + 1] - first[q])
    lowest, chosen = np.inf, -1
    for _ in range(12):
        r = places[begins[form] + below(rng, begins[form + 1] - begins[form])]
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


# ruff: noqa: PLR0912, PLR0915 - a kernel is one loop nest over flat arrays


_TAKEN, _FREE = np.uint8(0), np.uint8(1)  # of one type: `fill` is compiled once
_CHECKS = 16  # origins of a form that are looked at closely
_AGAIN = 0.01  # how often requests that are not large are put in again at a known value
_MANY = 2048  # origins of a form that are looked at all at once


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
def is_jammed(shape, strides, wraps, coords, extents, r, mask):
    """Return whether there is no dimension in which a prism can be moved both ways.

    `mask` marks the origins at which it is free.
    """
    for d in range(shape.shape[0]):
        n, c = shape[d], coords[r, d]
        if extents[d] == n:
            continue
        before = r - strides[d] if c > 0 else r + (n - 1) * strides[d]
        after = r + strides[d] if c < n - 1 else r - (n - 1) * strides[d]
        if (wraps[d] or 0 < c < n - 1) and mask[before] and mask[after]:
            return False
    return True


@kernel()
def free_places(
    shape, strides, wraps, coords, extents, places, run, mask, other, found, steps, ahead
):  # fmt: skip
    """Write to `found` at which places of a form it is free; return how many these are.

    `mask` marks these places, and perhaps other origins at which it is free.
    """
    num = 0
    if places.shape[0] > _MANY:
        if free_origins(shape, strides, wraps, extents, run, mask, other):
            for i in range(places.shape[0]):
                if mask[places[i]]:
                    found[num] = i
                    num += 1
        return num
    depth = extents[shape.shape[0] - 1]
    num_lines = lines_of(shape, strides, extents, steps, ahead)
    for i in range(places.shape[0]):
        if are_free(shape, strides, coords, num_lines, steps, ahead, depth, places[i], run):
            found[num] = i
            num += 1
    if num:
        clear(mask)
        for k in range(num):
            mask[places[found[k]]] = 1
    return num


@kernel()
def best_place(
    shape, strides, wraps, coords, forms, kinds, form_of, origin_of, q, weights, room, rng
):  # fmt: skip
    """Return (form, origin) of the best-scored prism among the forms of a request, or (-1, -1).

    The score counts idle nodes, free routers next to the prism and noise, by `weights`.
    """
    first, extents, begins, places, waste, passing = forms
    free, run, mask, other, found, steps, ahead, scratch = room
    best, best_form, best_origin = np.inf, -1, -1
    for form in range(first[q], first[q + 1]):
        begin = begins[form]
        num = free_places(
            shape, strides, wraps, coords, extents[form], places[begin : begins[form + 1]], run,
            mask, other, found, steps, ahead,
        )  # fmt: skip
        if num == 0:
            continue
        num_jammed = 0
        somewhere = found[below(rng, num)]
        for k in range(num):
            i = found[k]
            if is_jammed(shape, strides, wraps, coords, extents[form], places[begin + i], mask):
                found[num_jammed] = i
                num_jammed += 1
        if num_jammed == 0:
            found[0] = somewhere
            num_jammed = 1
        for k in range(min(num_jammed, _CHECKS)):
            i = begin + found[k if num_jammed <= _CHECKS else below(rng, num_jammed)]
            score = weights[0] * waste[i] + weights[2] * uniform(rng)
            if score >= best:
                continue
            r = places[i]
            score += weights[1] * open_faces(shape, strides, wraps, r, extents[form], free, scratch)
            if score < best and not links_clash(
                shape, strides, wraps, extents, passing, kinds, form_of, origin_of, q, form, r
            ):
                best, best_form, best_origin = score, form, r
    return best_form, best_origin


@kernel()
def put_in(
    shape, strides, wraps, coords, forms, kinds, form_of, origin_of, q, weights, room, rng
):  # fmt: skip
    """Place a request where `best_place` says; return whether it has a place."""
    form, r = best_place(
        shape, strides, wraps, coords, forms, kinds, form_of, origin_of, q, weights, room, rng
    )
    if form < 0:
        return False
    form_of[q], origin_of[q] = form, r
    fill(shape, strides, wraps, r, forms[1][form], _TAKEN, room[0], room[1])
    return True


@kernel()
def anneal(
    shape, strides, wraps, first, extents, begins, places, waste, passing, kinds, values, volumes,
    large, free_before, form_of, origin_of, known, best_form, best_origin, steps, hot, smooth, rng,
):  # fmt: skip
    """Anneal a placement in place; a better one than known is written to `best_*`.

    `known` has the value of the best placement, and the largest of large requests alone at which
    the others were put in.

    `volumes[q]` is the least volume of a prism of q. Only requests that are `large` are moved; the
    others are put in around them when a placement with all of them would be the best. The energy
    is the value less `smooth` times the roughness of the free routers; `hot` is the temperature.
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
    steps_to, ahead = np.zeros((size, dims), np.int32), np.zeros(size, np.int32)
    coords = np.zeros((size, dims), np.int32)
    for r in range(size):
        for d in range(dims):
            coords[r, d] = r // strides[d] % shape[d]
    order = np.zeros(num_requests, np.int64)
    keys = np.zeros(num_requests)
    dropped = np.zeros(num_requests, np.uint8)
    weights = np.zeros(3)
    forms = first, extents, begins, places, waste, passing
    room = free, run, mask, other, found, steps_to, ahead, scratch
    one = np.ones(dims, np.int64)
    for r in range(0, size, shape[dims - 1]):
        fill(shape, strides, wraps, r, one, free[r], free, run)  # counts the runs of its line
    value = rest = num_large = num_small = 0
    movable, small = np.zeros_like(order), np.zeros_like(order)
    for q in range(num_requests):
        if large[q] == 0:
            form_of[q] = -1
        if form_of[q] >= 0:
            fill(shape, strides, wraps, origin_of[q], extents[form_of[q]], _TAKEN, free, run)
            value += values[q]
        if first[q] < first[q + 1]:
            if large[q]:
                movable[num_large] = q
                num_large += 1
            else:
                order[num_small] = q
                keys[num_small] = -values[q]
                num_small += 1
                rest += values[q]
    turns = ranks(keys[:num_small])
    for k in range(num_small):
        small[k] = order[turns[k]]
    old_form, old_origin = form_of.copy(), origin_of.copy()
    old_rough = roughness(shape, strides, wraps, free)
    for _ in range(steps):
        write(form_of, old_form)
        write(origin_of, old_origin)
        old_value = value
        dropped[:] = 0
        form, r = -1, -1
        target = movable[below(rng, num_large)] if num_large else 0
        choice = uniform(rng)
        if choice < 0.5 and num_large:
            for _again in range(3):
                if form_of[target] >= 0:
                    target = movable[below(rng, num_large)]
            form, r = push_in(
                shape, strides, first, extents, begins, places, values, form_of, origin_of, target,
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
        for q in movable[:num_large]:
            if form_of[q] >= 0:
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
            if put_in(
                shape, strides, wraps, coords, forms, kinds, form_of, origin_of, q, weights, room,
                rng,
            ):  # fmt: skip
                value += values[q]
        rough = roughness(shape, strides, wraps, free)
        gain = value - old_value - smooth * (rough - old_rough)
        if gain >= 0 or uniform(rng) < math.exp(gain / max(hot, 1e-9)):
            old_rough = rough
            if value + rest > known[0] and (value > known[1] or uniform(rng) < _AGAIN):
                known[1] = max(known[1], value)
                total = value
                for q in small[:num_small]:
                    if put_in(
                        shape, strides, wraps, coords, forms, kinds, form_of, origin_of, q, weights,
                        room, rng,
                    ):  # fmt: skip
                        total += values[q]
                if total > known[0]:
                    known[0] = total
                    write(form_of, best_form)
                    write(origin_of, best_origin)
                for q in small[:num_small]:
                    if form_of[q] >= 0:
                        place = extents[form_of[q]]
                        fill(shape, strides, wraps, origin_of[q], place, _FREE, free, run)
                        form_of[q] = -1
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
