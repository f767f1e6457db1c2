"""Compiled minimisation of the bundle's model near a centre (see `bundle`).

Arrays are indexed by column, packing row or earlier level. The columns of request q are
`members[first[q]] .. members[first[q+1] - 1]`; column j uses the rows of the runs
`runs[starts[j]] .. runs[starts[j+1] - 1]`, each the first row and the one after the last. A row of
which it takes several is in as many runs.

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
from topoplace.packing.dual._kernels import numbered

# Compiled for the array types it is called with; annotations would be noise.
# mypy: allow-untyped-defs, allow-untyped-calls, disable-error-code=call-arg
# ruff: noqa: PLR0912, PLR0915 - a kernel is one loop nest over flat arrays


_WORD = 64  # bits
_ONE, _SHIFT, _IN_WORD = np.uint64(1), np.uint64(6), np.uint64(63)


@intrinsic
def num_set(typing_context, word):
    """Count the bits set in an unsigned integer, by the processor's own instruction."""

    def generate(context, builder, signature, args):
        return builder.ctpop(args[0])

    return word(word), generate


@kernel()
def rows_in_words(columns, starts, runs, marked):
    """Return the marked rows of some columns as bits, shape ``(num_words, num_columns)``."""
    before = numbered(marked)
    words = np.zeros((before[-1] // _WORD + 1, columns.shape[0]), np.uint64)
    every = ~np.uint64(0)
    for i in range(columns.shape[0]):
        for k in range(np.uint64(starts[columns[i]]), np.uint64(starts[columns[i] + 1])):
            begin, end = np.uint64(before[runs[k, 0]]), np.uint64(before[runs[k, 1]])
            if begin == end:
                continue
            first, last = begin >> _SHIFT, (end - _ONE) >> _SHIFT
            from_begin = every << (begin & _IN_WORD)
            to_end = every >> (_IN_WORD - ((end - _ONE) & _IN_WORD))
            if first == last:
                words[first, i] |= from_begin & to_end
                continue
            words[first, i] |= from_begin
            for w in range(first + _ONE, last):
                words[w, i] = every
            words[last, i] |= to_end
    return words


@kernel()
def complete(i, words, factor, level_step_size, worth, bend, ready):
    """Write a row of the second derivative: by how much gains fall per unit of a column.

    That is a factor times the number of bits that two columns have in common, and what they have in
    common on earlier levels, where column j is worth ``worth[k, j]``.
    """
    ready[i] = True
    row = bend[i]
    common = np.zeros(row.shape[0], np.int64)
    for w in range(words.shape[0]):
        mine, others = words[w, i], words[w]
        if mine != 0:
            for j in range(common.shape[0]):
                common[j] += np.int64(num_set(others[j] & mine))
    for j in range(common.shape[0]):
        row[j] = np.float32(common[j]) * factor
    add_levels(i, level_step_size, worth, row)


@kernel()
def add_levels(i, level_step_size, worth, row):
    """Add to a row what columns have in common with the i-th on earlier levels."""
    for k in range(level_step_size.shape[0]):
        for j in range(row.shape[0]):
            row[j] += level_step_size[k] * (worth[k, i] * worth[k, j])


_PASSES = 100  # over the requests, in a round
_EXCHANGES = 4  # at most, of amounts of one request in a pass
_INNER = 0.1  # of a round's duality gap that may be left of that of its quadratic function
_ENTERING = 16  # columns without an amount of each request, at most, that take part in a round
_TINY = 1e-9  # amounts that do not count
_HALVINGS = 6  # of the way to the maximum of the quadratic function


@kernel()
def gram_of_amounts(columns, starts, runs, marked, factor):
    """Return a factor times the sum over the marked rows of the products of two columns' amounts.

    Only columns that use the same row are looked at: a product of matrices takes longer, and loads
    more of Numba.
    """
    num, num_rows = columns.shape[0], marked.shape[0]
    last, ends = np.full(num_rows, -1), np.zeros(num_rows + 1, np.int64)
    for i in range(num):
        for k in range(starts[columns[i]], starts[columns[i] + 1]):
            for r in range(np.int64(runs[k, 0]), np.int64(runs[k, 1])):
                if marked[r] and last[r] != i:
                    last[r] = i
                    ends[r + 1] += 1
    for r in range(num_rows):
        ends[r + 1] += ends[r]
    user, amount = np.empty(ends[-1], np.int64), np.zeros(ends[-1], np.float32)
    at, last = ends[:-1] - 1, np.full(num_rows, -1)  # of each row, what is written last
    for i in range(num):
        for k in range(starts[columns[i]], starts[columns[i] + 1]):
            for r in range(np.int64(runs[k, 0]), np.int64(runs[k, 1])):
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
        for j in range(i + 1):
            common[i, j] *= factor
            common[j, i] = common[i, j]
    return common


@kernel()
def prices_at(
    rise, level_load, capacity, centre, step_size, free, reached, level_centre, level_step_size,
    prices, multipliers,
):  # fmt: skip
    """Set prices and multipliers to the best ones for loads; return the gain of the loads there.

    `rise` is by how much the load of a row exceeds that of the row before.
    """
    total, load = 0.0, 0.0
    for r in range(prices.shape[0]):
        load += rise[r]
        if free[r]:
            price = max(0.0, centre[r] + step_size * (load - capacity[r]))
            move = price - centre[r]
            prices[r] = price
            total += price * (capacity[r] - load) + move * move / (2.0 * step_size)
    for k in range(multipliers.shape[0]):
        excess = level_load[k] - reached[k]
        multipliers[k] = max(0.0, level_centre[k] - level_step_size[k] * excess)
        move = multipliers[k] - level_centre[k]
        total += multipliers[k] * excess + move * move / (2.0 * level_step_size[k])
    return total


@kernel()
def add_load(j, by, starts, runs, earlier, rise, level_load):
    """Add the load of an amount of a column on rows and earlier levels (see `prices_at`)."""
    for k in range(np.uint64(starts[j]), np.uint64(starts[j + 1])):
        rise[runs[k, 0]] += by
        rise[runs[k, 1]] -= by
    for k in range(level_load.shape[0]):
        level_load[k] += by * earlier[k, j]


@kernel()
def gains_at(costs, earlier, starts, runs, prices, multipliers, gains):
    """Set every column's gain: its value less the cost of its rows."""
    before = np.zeros(prices.shape[0] + 1)
    for r in range(prices.shape[0]):
        before[r + 1] = before[r] + prices[r]
    for j in range(costs.shape[0]):
        cost = 0.0
        for k in range(np.uint64(starts[j]), np.uint64(starts[j + 1])):
            cost += before[runs[k, 1]] - before[runs[k, 0]]
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
def exchange(
    first, least, most, words, factor, level_step_size, level_worth, bend, ready,
    gains, amounts, enough,
):  # fmt: skip
    """Move amounts from the worst to the best column of a request, request by request.

    `gains` falls by `bend[j]` per unit of column j: a row that is not `ready` is completed when it
    is needed, as most never are. Stops when the gap is at most `enough`.
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
                for j in (up, down):
                    if j >= 0 and not ready[j]:
                        complete(j, words, factor, level_step_size, level_worth, bend, ready)
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
                if down >= 0:
                    amounts[down] = 0.0 if by == amounts[down] else amounts[down] - by
                if up >= 0 and down >= 0:  # read and written once
                    for j in range(gains.shape[0]):
                        gains[j] += by * (bend[down, j] - bend[up, j])
                    continue
                one, sign = (up, -by) if up >= 0 else (down, by)
                for j in range(gains.shape[0]):
                    gains[j] += sign * bend[one, j]
        if gap <= enough:
            break


@kernel()
def minimise_near(
    first, members, least, most, costs, earlier, reached, starts, runs,
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
    rise, level_load = np.zeros(centre.shape[0] + 1), np.zeros(reached.shape[0])
    for j in range(costs.shape[0]):
        if amounts[j] > 0:
            add_load(j, amounts[j], starts, runs, earlier, rise, level_load)
    prices, multipliers = centre.copy(), level_centre.copy()
    value = product(costs, amounts) + prices_at(
        rise, level_load, capacity, centre, step_size, free, reached,
        level_centre, level_step_size, prices, multipliers,
    )  # fmt: skip
    new_amounts, new_prices, new_multipliers = amounts.copy(), prices.copy(), multipliers.copy()
    priced = np.empty(prices.shape[0], np.bool_)
    model = 0.0
    for turn in range(max_rounds + 1):
        gains_at(costs, earlier, starts, runs, prices, multipliers, gains)
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
        factor, ready = np.float32(step_size), np.zeros(num, np.bool_)
        level_bend = np.zeros(multipliers.shape[0])
        worth = np.empty((multipliers.shape[0], num))
        for k in range(multipliers.shape[0]):
            if multipliers[k] > 0:
                level_bend[k] = level_step_size[k]
            for i in range(num):
                worth[k, i] = earlier[k, columns[i]]
        if is_unit:
            words = rows_in_words(columns, starts, runs, priced)
            bend = np.empty((num, num), np.float32)
        else:
            words = np.empty((0, num), np.uint64)
            bend = gram_of_amounts(columns, starts, runs, priced, factor)
            for i in range(num):
                add_levels(i, level_bend, worth, bend[i])
                ready[i] = True
        aims = picked(amounts, columns)
        exchange(
            first_of, least, most, words, factor, level_bend, worth, bend, ready,
            picked(gains, columns), aims, _INNER * gap,
        )  # fmt: skip
        step, new_value = 1.0, value
        for _ in range(_HALVINGS):
            new_rise, new_level_load = rise.copy(), level_load.copy()
            for i in range(num):
                j = columns[i]
                by = step * (aims[i] - amounts[j])
                new_amounts[j] = aims[i] if step == 1.0 else amounts[j] + by
                if by != 0:
                    add_load(j, by, starts, runs, earlier, new_rise, new_level_load)
            new_value = product(costs, new_amounts) + prices_at(
                new_rise, new_level_load, capacity, centre, step_size, free, reached,
                level_centre, level_step_size, new_prices, new_multipliers,
            )  # fmt: skip
            if new_value > value:
                break
            step *= 0.5
        if new_value <= value:
            break
        value, rise, level_load = new_value, new_rise, new_level_load
        write(new_amounts, amounts)
        write(new_prices, prices)
        write(new_multipliers, multipliers)
    return prices, multipliers, model, False
