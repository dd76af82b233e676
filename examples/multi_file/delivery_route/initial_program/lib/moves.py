"""Moves that make a tour shorter."""

from lib.geometry import tour_length

# EVOLVE-BLOCK-START


def improved(tour, stops):
    """The tour after the best exchange of two neighbours."""
    exchanged = [[*tour[:i], tour[i + 1], tour[i], *tour[i + 2 :]] for i in range(len(tour) - 1)]
    return min([tour, *exchanged], key=lambda each: tour_length(each, stops))


# EVOLVE-BLOCK-END
