"""The min-plus convolution of two tables, which takes most of the time."""

from topoplace.kernels.compiling import kernel


@kernel()
def join(first, second, cost, choice, infinite):
    """Fill in the least cost of every state made of one of each table, and the second's part.

    Parameters
    ----------
    first, second
        Cost by state, four dimensions; `infinite` and more where there is none.
    cost, choice
        The least sum of the two, and the number of the state of the second that it has; shapes as
        large as states are wanted. `cost` comes filled with `infinite`.
    """
    n0, n1, n2, n3 = cost.shape
    s0, s1, s2, s3 = second.shape
    f0, f1, f2, f3 = first.shape
    for b0 in range(min(s0, n0)):
        for b1 in range(min(s1, n1)):
            for b2 in range(min(s2, n2)):
                for b3 in range(min(s3, n3)):
                    own = second[b0, b1, b2, b3]
                    if own >= infinite:
                        continue
                    number = ((b0 * s1 + b1) * s2 + b2) * s3 + b3
                    for a0 in range(min(f0, n0 - b0)):
                        for a1 in range(min(f1, n1 - b1)):
                            for a2 in range(min(f2, n2 - b2)):
                                for a3 in range(min(f3, n3 - b3)):
                                    total = first[a0, a1, a2, a3] + own
                                    if total < cost[a0 + b0, a1 + b1, a2 + b2, a3 + b3]:
                                        cost[a0 + b0, a1 + b1, a2 + b2, a3 + b3] = total
                                        choice[a0 + b0, a1 + b1, a2 + b2, a3 + b3] = number
