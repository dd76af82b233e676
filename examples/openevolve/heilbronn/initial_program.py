"""Points without small triangles."""

# EVOLVE-BLOCK-START
import math


def points(n):
    """n points of the unit square, on a circle."""
    angles = [2 * math.pi * i / n for i in range(n)]
    return [(0.5 + 0.5 * math.cos(angle), 0.5 + 0.5 * math.sin(angle)) for angle in angles]


# EVOLVE-BLOCK-END
