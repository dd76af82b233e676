"""Points that keep apart and yet together."""

# EVOLVE-BLOCK-START


def points(n):
    """n points of the plane, on a line."""
    return [(float(i), 0.0) for i in range(n)]


# EVOLVE-BLOCK-END
