"""Stands in for OpenEvolve inside the jail, where its evaluators import one class from it."""
