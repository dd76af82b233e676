"""Circles of any size in the unit square."""

# EVOLVE-BLOCK-START
import math


def pack(n):
    """n circles (x, y, r): equal ones on a square grid."""
    side = math.ceil(math.sqrt(n))
    r = 0.5 / side
    return [((2 * (i % side) + 1) * r, (2 * (i // side) + 1) * r, r) for i in range(n)]


# EVOLVE-BLOCK-END
