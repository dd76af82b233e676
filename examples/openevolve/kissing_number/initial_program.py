"""Spheres that touch one sphere."""

# EVOLVE-BLOCK-START


def centres(dimension):
    """Vectors of integers: plus and minus each axis."""
    return [[sign * (i == axis) for i in range(dimension)] for axis in range(dimension) for sign in (1, -1)]


# EVOLVE-BLOCK-END
