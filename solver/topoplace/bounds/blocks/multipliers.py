"""Which families to add up: a small packing program, solved in rationals."""

from __future__ import annotations

from fractions import Fraction

Row = list[Fraction]


def best_multipliers(values: list[Fraction], rates: list[tuple[Fraction, ...]]) -> Row:
    """Maximise ``sum mu * value`` with ``sum mu * rate <= 1`` in every dimension, mu >= 0.

    The simplex method with exact fractions and Bland's rule: as many rows as the machine has
    dimensions, and the multipliers come out valid as they are.

    Parameters
    ----------
    values
        What each family proves.
    rates
        Per family its rate in every dimension; each family has a positive one.

    Returns
    -------
    list of Fraction
        The multipliers, at most as many positive ones as dimensions.
    """
    num = len(values)
    dims = len(rates[0]) if rates else 0
    rows = [
        [rate[d] for rate in rates] + [Fraction(int(k == d)) for k in range(dims)] + [Fraction(1)]
        for d in range(dims)
    ]
    gains = [*values, *[Fraction(0)] * (dims + 1)]
    basis = [num + d for d in range(dims)]
    while True:
        rising = [c for c in range(num + dims) if gains[c] > 0]
        if not rising:
            break
        column = rising[0]
        leaving = [r for r in range(dims) if rows[r][column] > 0]
        pivot = min(leaving, key=lambda r: (rows[r][-1] / rows[r][column], basis[r]))
        rows[pivot] = [x / rows[pivot][column] for x in rows[pivot]]
        for r in range(dims):
            if r != pivot:
                rows[r] = _eliminate(rows[r], rows[pivot], column)
        gains = _eliminate(gains, rows[pivot], column)
        basis[pivot] = column
    found = [Fraction(0)] * num
    for r, column in enumerate(basis):
        if column < num:
            found[column] = rows[r][-1]
    return found


def _eliminate(row: Row, pivot: Row, column: int) -> Row:
    factor = row[column]
    if not factor:
        return row
    return [x - factor * y for x, y in zip(row, pivot, strict=True)]
