"""Unit hexagons in a hexagon."""

# EVOLVE-BLOCK-START
import math


def pack(n):
    """n hexagons (x, y, angle in degrees), in a row."""
    step = math.sqrt(3) + 1e-6
    return [((i - (n - 1) / 2) * step, 0.0, 30.0) for i in range(n)]


# EVOLVE-BLOCK-END
