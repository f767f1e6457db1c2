"""Dimension-ordered routes (Fiedler 2014: "Routing algorithm is X, then Y, then Z")."""

from __future__ import annotations

from topoplace.machine.torus import Torus


def route(torus: Torus, source: int, target: int) -> list[tuple[int, int]]:
    """Return the links of the dimension-ordered route, each as ``(link, direction)``.

    The route corrects the first dimension first, the shortest way round; a tie at exactly half
    the ring goes the positive way. `direction` is +1 when the link is crossed from its own
    router towards the positive neighbour and -1 when it is crossed back. The length of the list
    equals `Torus.distance`.
    """
    links: list[tuple[int, int]] = []
    at = source
    here = list(torus.coords(source))
    goal = torus.coords(target)
    for d, (n, stride) in enumerate(zip(torus.shape, torus.strides, strict=True)):
        forward = (goal[d] - here[d]) % n
        if torus.wrap[d]:
            direction = 1 if 2 * forward <= n else -1
        else:
            direction = 1 if goal[d] >= here[d] else -1
        while here[d] != goal[d]:
            step = (here[d] + direction) % n
            after = at + (step - here[d]) * stride
            owner = at if direction == 1 else after
            links.append((d * torus.num_routers + owner, direction))
            here[d], at = step, after
    return links
