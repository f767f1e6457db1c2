"""Compiled operations on prisms and free routers, for the annealing (`_refill`).

A prism is an origin (router number) and a row of extents. `free[r]` is 1 for a free router, and
`run[r]` counts the free routers from r on along the last dimension, wrap included.
"""

# Compiled for the array types it is called with; annotations would be noise.
# mypy: allow-untyped-defs, allow-untyped-calls
# ruff: noqa: PLR0912 - a kernel is one loop nest over flat arrays

from __future__ import annotations

import numpy as np

from topoplace.kernels import kernel


@kernel()
def uniform(rng):
    """Return a number in [0, 1) from a xorshift generator, whose state is `rng[0]`."""
    x = rng[0]
    x ^= x >> np.uint64(12)
    x ^= x << np.uint64(25)
    x ^= x >> np.uint64(27)
    rng[0] = x
    return ((x * np.uint64(2685821657736338717)) >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@kernel()
def below(rng, n):
    """Return a random integer from 0 to n-1."""
    return min(n - 1, int(uniform(rng) * n))


@kernel()
def arcs_meet(a, length_a, b, length_b, n):
    """Return whether two arcs of a ring of n share a place."""
    return length_a > 0 and length_b > 0 and ((b - a) % n < length_a or (a - b) % n < length_b)


@kernel()
def prisms_meet(shape, strides, first, extents_a, second, extents_b):
    """Return whether two prisms share a router."""
    for d in range(shape.shape[0]):
        n = shape[d]
        a, b = first // strides[d] % n, second // strides[d] % n
        if not arcs_meet(a, extents_a[d], b, extents_b[d], n):
            return False
    return True


@kernel()
def links_meet(shape, strides, wraps, first, extents_a, second, extents_b):
    """Return whether two prisms use a common link."""
    dims = shape.shape[0]
    for d in range(dims):
        shared = True
        for k in range(dims):
            n = shape[k]
            length_a, length_b = extents_a[k], extents_b[k]
            if k == d:
                length_a = n if wraps[d] and 2 * (length_a - 1) >= n else length_a - 1
                length_b = n if wraps[d] and 2 * (length_b - 1) >= n else length_b - 1
            a, b = first // strides[k] % n, second // strides[k] % n
            if not arcs_meet(a, length_a, b, length_b, n):
                shared = False
                break
        if shared:
            return True
    return False


@kernel()
def fill(shape, strides, wraps, origin, extents, value, free, run):
    """Mark all routers of a prism as free (1) or not (0), and bring `run` up to date."""
    dims = shape.shape[0]
    n = shape[dims - 1]
    start = origin % n
    num = 1
    for d in range(dims - 1):
        num *= extents[d]
    for k in range(num):
        base = 0
        rest = k
        for d in range(dims - 2, -1, -1):
            base += (origin // strides[d] + rest % extents[d]) % shape[d] * strides[d]
            rest //= extents[d]
        for i in range(extents[dims - 1]):
            z = start + i
            free[base + (z if z < n else z - n)] = value
        length = 0
        if wraps[dims - 1]:
            while length < n and free[base + length]:
                length += 1
        for z in range(n - 1, -1, -1):
            length = min(n, length + 1) if free[base + z] else 0
            run[base + z] = length


@kernel()
def lines_of(shape, strides, extents, steps, ahead):
    """List the lines of a prism along its last dimension, the one opposite the origin first.

    Writes how far each is from the origin, by dimension and in router numbers without wraps;
    returns how many there are.
    """
    dims = shape.shape[0]
    num = 1
    for d in range(dims - 1):
        num *= extents[d]
    for k in range(num):
        rest = k - 1 if k else num - 1
        ahead[k] = 0
        for d in range(dims - 2, -1, -1):
            steps[k, d] = rest % extents[d]
            ahead[k] += steps[k, d] * strides[d]
            rest //= extents[d]
    return num


@kernel(inline="always")
def are_free(shape, strides, coords, num, steps, ahead, depth, r, run):
    """Return whether the lines of a prism with an origin hold free routers only."""
    if run[r] < depth:
        return False
    for k in range(num):
        router = r + ahead[k]
        for d in range(shape.shape[0] - 1):
            if coords[r, d] + steps[k, d] >= shape[d]:
                router -= shape[d] * strides[d]
        if run[router] < depth:
            return False
    return True


@kernel()
def clear(mask):
    """Take away all marks."""
    for k in range(mask.shape[0]):
        mask[k] = 0


@kernel()
def any_set(mask):
    """Return whether a mask, whose size is a multiple of 8, has a mark."""
    words = mask.view(np.uint64)
    some = np.uint64(0)
    for w in range(words.shape[0]):
        some |= words[w]
    return some != 0


@kernel()
def both(one, other, out):
    """Write the element-wise and."""
    for i in range(out.shape[0]):
        out[i] = one[i] & other[i]


@kernel()
def shrink(mask, ring, shift, wraps, out):
    """Write what is marked both here and `shift` places on, within each ring of routers."""
    size = mask.shape[0]
    cut = ring - shift
    both(mask[: size - shift], mask[shift:], out[: size - shift])
    for start in range(0, size - ring + 1, ring):
        if wraps:
            both(
                mask[start + cut : start + ring],
                mask[start : start + shift],
                out[start + cut : start + ring],
            )
        else:
            out[start + cut : start + ring] = 0


@kernel()
def deep_enough(run, depth, out):
    """Mark the routers that are followed by `depth` free ones."""
    for i in range(run.shape[0]):
        out[i] = run[i] >= depth


@kernel()
def free_origins(shape, strides, wraps, extents, run, mask, other):
    """Mark in `mask` the origins at which a prism holds free routers only; False without any.

    `mask` and `other` (scratch) are padded with zeros to a multiple of 8.
    """
    dims = shape.shape[0]
    turn = 0  # where the latest marks are
    deep_enough(run, np.uint16(extents[dims - 1]), mask)
    for d in range(dims - 2, -1, -1):
        ring = shape[d] * strides[d]
        length = 1
        while length < extents[d]:
            if not any_set(other if turn else mask):
                return False
            step = min(length, extents[d] - length)
            length += step
            if turn:
                shrink(other, ring, step * strides[d], wraps[d], mask)
            else:
                shrink(mask, ring, step * strides[d], wraps[d], other)
            turn = 1 - turn
    if turn:
        both(other, other, mask)
    return any_set(mask)


@kernel()
def open_faces(shape, strides, wraps, origin, extents, free, scratch):
    """Count the free routers next to a prism's faces; `scratch` holds three rows of integers."""
    dims = shape.shape[0]
    start, at, steps = scratch[0], scratch[1], scratch[2]
    for k in range(dims):
        start[k] = origin // strides[k] % shape[k]
    total = 0
    for d in range(dims):
        if extents[d] == shape[d]:
            continue
        area = 1
        for k in range(dims):
            if k != d:
                area *= extents[k]
        for side in range(2):
            place = start[d] - 1 if side == 0 else start[d] + extents[d]
            if not wraps[d] and (place < 0 or place >= shape[d]):
                continue
            router = origin + (place % shape[d] - start[d]) * strides[d]
            for k in range(dims):
                at[k], steps[k] = start[k], 0
            for _ in range(area):
                total += free[router]
                for k in range(dims - 1, -1, -1):  # on to the next router of the face
                    if k == d:
                        continue
                    steps[k] += 1
                    if steps[k] < extents[k]:
                        at[k] += 1
                        router += strides[k]
                        if at[k] == shape[k]:
                            at[k] = 0
                            router -= shape[k] * strides[k]
                        break
                    router += (start[k] - at[k]) * strides[k]
                    at[k], steps[k] = start[k], 0
    return total


@kernel()
def roughness(shape, strides, wraps, free):
    """Count the pairs of neighbours where one router is free and the other is not."""
    total = 0
    size = free.shape[0]
    for d in range(shape.shape[0]):
        inner = strides[d]
        ring = inner * shape[d]
        for outer in range(0, size, ring):
            here = free[outer : outer + ring - inner]
            ahead = free[outer + inner : outer + ring]
            for i in range(ring - inner):
                total += here[i] ^ ahead[i]
            if wraps[d]:
                here = free[outer : outer + inner]
                ahead = free[outer + ring - inner : outer + ring]
                for i in range(inner):
                    total += here[i] ^ ahead[i]
    return total
