"""Distances between stops, which are points in the plane."""

import math


def tour_length(tour, stops):
    """The length of a tour that ends where it began."""
    return sum(math.dist(stops[tour[i - 1]], stops[tour[i]]) for i in range(len(tour)))
