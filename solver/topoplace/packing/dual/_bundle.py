"""Compiled minimisation of the bundle's model near a centre (see `bundle`).

Arrays are indexed by column, packing row or earlier level. The columns of request q are
`members[first[q]] .. members[first[q+1] - 1]`; column j uses the rows `rows[starts[j]] ..
rows[starts[j+1] - 1]`, each repeated by the amount.

The dual of the problem is a concave function of `amounts`: the amount of every column, with a sum
between `least` and `most` for a request, which may represent others with the same columns. It is
quadratic as long as the same rows have a price: then two columns meet in its second derivative by
the priced rows that they have in common, weighted by amounts. A round takes that quadratic
function, maximises it by exchanges between two columns of a request, and goes as far towards the
maximum as the true function rises.
"""

from __future__ import annotations

import numpy as np
from numba.extending import intrinsic

from topoplace.kernels import kernel
from topoplace.kernels.lists import write

# Compiled for the array types it is called with; annotations would be noise.
# mypy: allow-untyped-defs, allow-untyped-calls, disable-error-code=call-arg


_WORD = 64  # bits
_SHIFT, _IN_WORD = np.uint64(6), np.uint64(63)
_LINE = 8  # words


@intrinsic
def num_set(typing_context, word):
    """Count the bits set in an unsigned integer, by the processor's own instruction."""

    def generate(context, builder, signature, args):
        return builder.ctpop(args[0])

    return word(word), generate


@kernel()
def rows_in_words(columns, starts, rows, marked):
    """Return the marked rows of some columns as bits, a row of words per column.

    Rows of zeros are added until there are a multiple of four. Rows are aligned with cache lines,
    which is a fifth faster.
    """
    num = 0
    for r in range(marked.shape[0]):
        num += marked[r]
    place = np.empty(marked.shape[0], np.uint32)
    before = 0
    for r in range(marked.shape[0]):  # the bit after all others is that of rows not marked,
        place[r] = before if marked[r] else num  # until it is cleared
        before += marked[r]
    height = (columns.shape[0] + 3) // 4 * 4
    width = (num // _WORD + _LINE) // _LINE * _LINE
    room = np.zeros(height * width + _LINE, np.uint64)
    first = -(room.ctypes.data // 8) % _LINE
    words = room[first : first + height * width].reshape(height, width)
    one, last = np.uint64(1), np.uint64(num)
    for i in range(columns.shape[0]):
        mine = words[i]
        for k in range(np.uint64(starts[columns[i]]), np.uint64(starts[columns[i] + 1])):
            at = np.uint64(place[np.uint64(rows[k])])
            mine[at >> _SHIFT] |= one << (at & _IN_WORD)
        mine[last >> _SHIFT] &= ~(one << (last & _IN_WORD))
    return words


@kernel()
def gram(words):
    """Return the number of common bits of every two rows of words; rows are a multiple of four."""
    num = words.shape[0]
    common = np.empty((num, num), np.float32)
    for i in range(0, num, 4):  # four at once: each row is read a quarter as often
        one, two, three, four = words[i], words[i + 1], words[i + 2], words[i + 3]
        for k in range(i + 4):
            other = words[k]
            a = b = c = d = np.uint64(0)
            for w in range(words.shape[1]):
                bits = other[w]
                a += num_set(one[w] & bits)
                b += num_set(two[w] & bits)
                c += num_set(three[w] & bits)
                d += num_set(four[w] & bits)
            common[k, i] = common[i, k] = a
            common[k, i + 1] = common[i + 1, k] = b
            common[k, i + 2] = common[i + 2, k] = c
            common[k, i + 3] = common[i + 3, k] = d
    return common


# Compiled for the array types it is called with; annotations would be noise.
# mypy: allow-untyped-defs, allow-untyped-calls
# ruff: noqa: PLR0912 - a kernel is one loop nest over flat arrays


_PASSES = 100  # over the requests, in a round
_EXCHANGES = 4  # at most, of amounts of one request in a pass
_INNER = 0.1  # of a round's duality gap that may be left of that of its quadratic function
_ENTERING = 16  # columns without an amount of each request, at most, that take part in a round
_TINY = 1e-9  # amounts that do not count
_HALVINGS = 6  # of the way to the maximum of the quadratic function


@kernel()
def gram_of_amounts(columns, starts, rows, marked):
    """Return for every two columns the sum over the marked rows of the products of their amounts.

    Columns list the rows that they use, each repeated by the amount. Only columns that use the same
    row are looked at: a product of matrices takes longer, and loads more of Numba.
    """
    num, num_rows = columns.shape[0], marked.shape[0]
    last, ends = np.full(num_rows, -1), np.zeros(num_rows + 1, np.int64)
    for i in range(num):
        for k in range(starts[columns[i]], starts[columns[i] + 1]):
            if marked[rows[k]] and last[rows[k]] != i:
                last[rows[k]] = i
                ends[rows[k] + 1] += 1
    for r in range(num_rows):
        ends[r + 1] += ends[r]
    user, amount = np.empty(ends[-1], np.int64), np.zeros(ends[-1], np.float32)
    at, last = ends[:-1] - 1, np.full(num_rows, -1)  # of each row, what is written last
    for i in range(num):
        for k in range(starts[columns[i]], starts[columns[i] + 1]):
            r = rows[k]
            if marked[r]:
                at[r] += last[r] != i
                last[r] = i
                user[at[r]] = i
                amount[at[r]] += 1
    common = np.zeros((num, num), np.float32)
    for r in range(num_rows):
        for k in range(ends[r], ends[r + 1]):
            for m in range(ends[r], k + 1):
                common[user[k], user[m]] += amount[k] * amount[m]
    for i in range(num):
        for j in range(i):
            common[j, i] = common[i, j]
    return common


@kernel()
def prices_at(
    load, level_load, capacity, centre, step_size, free, reached, level_centre, level_step_size,
    prices, multipliers,
):  # fmt: skip
    """Set prices and multipliers to the best ones for loads; return the gain of the loads there."""
    total = 0.0
    for r in range(load.shape[0]):
        if free[r]:
            price = max(0.0, centre[r] + step_size * (load[r] - capacity[r]))
            move = price - centre[r]
            prices[r] = price
            total += price * (capacity[r] - load[r]) + move * move / (2.0 * step_size)
    for k in range(multipliers.shape[0]):
        excess = level_load[k] - reached[k]
        multipliers[k] = max(0.0, level_centre[k] - level_step_size[k] * excess)
        move = multipliers[k] - level_centre[k]
        total += multipliers[k] * excess + move * move / (2.0 * level_step_size[k])
    return total


@kernel()
def add_load(j, by, starts, rows, earlier, load, level_load):
    """Add the load of an amount of a column on rows and earlier levels."""
    for k in range(starts[j], starts[j + 1]):
        load[rows[k]] += by
    for k in range(level_load.shape[0]):
        level_load[k] += by * earlier[k, j]


@kernel()
def gains_at(costs, earlier, starts, rows, prices, multipliers, gains):
    """Set every column's gain: its value less the cost of its rows."""
    for j in range(costs.shape[0]):
        cost = 0.0
        for k in range(starts[j], starts[j + 1]):
            cost += prices[rows[k]]
        gains[j] = costs[j] - cost
        for k in range(multipliers.shape[0]):
            gains[j] += multipliers[k] * earlier[k, j]


@kernel()
def lowest_of_best(gains, mine, best):
    """Return the lowest of the `len(best)` best gains of some columns."""
    best[:] = -np.inf
    for j in mine:
        at = 0  # `best` ascends: move entries below this gain down by one, and the lowest out
        while at < best.shape[0] and best[at] < gains[j]:
            if at > 0:
                best[at - 1] = best[at]
            at += 1
        if at > 0:
            best[at - 1] = gains[j]
    return best[0]


@kernel()
def product(one, other):
    """Return the sum of the products of two lists' entries."""
    total = 0.0
    for k in range(one.shape[0]):
        total += one[k] * other[k]
    return total


@kernel()
def picked(values, columns):
    """Return the values of some columns."""
    found = np.empty(columns.shape[0])
    for k in range(columns.shape[0]):
        found[k] = values[columns[k]]
    return found


@kernel()
def those_to_move(first, members, least, most, amounts, gains, columns, first_of):
    """Choose the columns whose amount a round may change: those that have one, and the best.

    Writes them to `columns`, request by request from `first_of[q]` on. Returns their number, the
    sum of the largest gains of requests, and by how much the amounts miss it.
    """
    num, gained, missed = 0, 0.0, 0.0
    widest = 0
    for q in range(most.shape[0]):
        widest = max(widest, most[q])
    best = np.empty(_ENTERING + widest)
    for q in range(first.shape[0] - 1):
        mine = members[first[q] : first[q + 1]]
        high, low = -np.inf, np.inf
        used, worth = 0.0, 0.0
        for j in mine:
            high = max(high, gains[j])
            if amounts[j] > 0:
                used += amounts[j]
                worth += amounts[j] * gains[j]
                low = min(low, gains[j])
        if used < most[q] - 1e-12:
            low = min(low, 0.0)
        if high > -np.inf:
            total = high * (most[q] if high > 0 else least[q])
            gained += total
            missed += total - worth
        entering = _ENTERING + most[q] - 1
        if len(mine) > entering:
            low = max(low, lowest_of_best(gains, mine, best[:entering]))
        for j in mine:
            if amounts[j] > _TINY or gains[j] >= low:
                columns[num] = j
                num += 1
        first_of[q + 1] = num
    return num, gained, missed


@kernel()
def exchange(first, least, most, bend, gains, amounts, enough):
    """Move amounts from the worst to the best column of a request, request by request.

    `gains` falls by `bend[j]` per unit of column j. Stops when the gap is at most `enough`.
    """
    for _ in range(_PASSES):
        gap = 0.0
        for q in range(first.shape[0] - 1):
            for turn in range(_EXCHANGES):
                up, down = -1, -2
                high, low = -np.inf, np.inf
                used, worth = 0.0, 0.0
                for j in range(first[q], first[q + 1]):
                    if gains[j] > high:
                        high, up = gains[j], j
                    if amounts[j] > 0:
                        used += amounts[j]
                        worth += amounts[j] * gains[j]
                        if gains[j] < low:
                            low, down = gains[j], j
                if high == -np.inf:
                    break
                if turn == 0:
                    gap += high * (most[q] if high > 0 else least[q]) - worth
                if high < 0 and used > least[q] + 1e-12:
                    high, up = 0.0, -1
                elif used < most[q] - 1e-12 and low > 0:
                    low, down = 0.0, -1
                if down in (-2, up) or high - low <= 1e-12:
                    break
                curvature = 0.0
                if up >= 0:
                    curvature += bend[up, up]
                if down >= 0:
                    curvature += bend[down, down]
                if up >= 0 and down >= 0:
                    curvature -= 2 * bend[up, down]
                room = amounts[down] if down >= 0 else most[q] - used
                if up < 0:
                    room = min(room, used - least[q])
                by = room if curvature * room <= high - low else (high - low) / curvature
                if up >= 0:
                    amounts[up] += by
                    for j in range(gains.shape[0]):
                        gains[j] -= by * bend[up, j]
                if down >= 0:
                    amounts[down] = 0.0 if by == amounts[down] else amounts[down] - by
                    for j in range(gains.shape[0]):
                        gains[j] += by * bend[down, j]
        if gap <= enough:
            break


@kernel()
def minimise_near(
    first, members, least, most, costs, earlier, reached, starts, rows,
    capacity, is_unit, centre, step_size, free, level_centre, level_step_size,
    amounts, centre_value, accuracy, max_rounds,
):  # fmt: skip
    """Find the prices that minimise the model plus their weighted squared distance to a centre.

    `capacity` is that of every row; `is_unit` says that amounts are 0 or 1. `step_size` is by how
    much the price of a free row rises per unit of load, `level_step_size` that of the multiplier of
    an earlier level. `amounts` are the start, and become those that belong to the prices found.
    Stops when the duality gap is below `accuracy` times the descent from `centre_value` that the
    model predicts.

    Returns the prices and multipliers, the model's value there, and whether the gap came down that
    far.
    """
    gains = np.zeros(costs.shape[0])
    chosen = np.zeros(costs.shape[0], np.int64)
    first_of = np.zeros(first.shape[0], np.int64)
    load, level_load = np.zeros(centre.shape[0]), np.zeros(reached.shape[0])
    for j in range(costs.shape[0]):
        if amounts[j] > 0:
            add_load(j, amounts[j], starts, rows, earlier, load, level_load)
    prices, multipliers = centre.copy(), level_centre.copy()
    value = product(costs, amounts) + prices_at(
        load, level_load, capacity, centre, step_size, free, reached,
        level_centre, level_step_size, prices, multipliers,
    )  # fmt: skip
    new_amounts, new_prices, new_multipliers = amounts.copy(), prices.copy(), multipliers.copy()
    priced = np.empty(prices.shape[0], np.bool_)
    model = 0.0
    for turn in range(max_rounds + 1):
        gains_at(costs, earlier, starts, rows, prices, multipliers, gains)
        num, model, gap = those_to_move(
            first, members, least, most, amounts, gains, chosen, first_of
        )
        total = 0.0
        for r in range(prices.shape[0]):
            total += capacity[r] * prices[r]
            priced[r] = prices[r] > 0
        model += total - product(multipliers, reached)
        if gap <= accuracy * max(centre_value - model, 1e-6 * abs(centre_value)):
            return prices, multipliers, model, True
        if turn == max_rounds:
            break
        columns = chosen[:num]
        if is_unit:
            bend = gram(rows_in_words(columns, starts, rows, priced))
        else:
            bend = gram_of_amounts(columns, starts, rows, priced)
        for i in range(bend.shape[0]):
            for j in range(bend.shape[0]):
                bend[i, j] *= np.float32(step_size)
        for k in range(multipliers.shape[0]):
            if multipliers[k] > 0:
                for i in range(num):
                    for j in range(num):
                        worth = earlier[k, columns[i]] * earlier[k, columns[j]]
                        bend[i, j] += level_step_size[k] * worth
        aims = picked(amounts, columns)
        exchange(first_of, least, most, bend, picked(gains, columns), aims, _INNER * gap)
        step, new_value = 1.0, value
        for _ in range(_HALVINGS):
            new_load, new_level_load = load.copy(), level_load.copy()
            for i in range(num):
                j = columns[i]
                by = step * (aims[i] - amounts[j])
                new_amounts[j] = aims[i] if step == 1.0 else amounts[j] + by
                if by != 0:
                    add_load(j, by, starts, rows, earlier, new_load, new_level_load)
            new_value = product(costs, new_amounts) + prices_at(
                new_load, new_level_load, capacity, centre, step_size, free, reached,
                level_centre, level_step_size, new_prices, new_multipliers,
            )  # fmt: skip
            if new_value > value:
                break
            step *= 0.5
        if new_value <= value:
            break
        value, load, level_load = new_value, new_load, new_level_load
        write(new_amounts, amounts)
        write(new_prices, prices)
        write(new_multipliers, multipliers)
    return prices, multipliers, model, False
