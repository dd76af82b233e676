"""Evolutionary search over programs on reward vectors.

Pure where it can be: no database, no web framework, no torch. May import ``sandbox``.
"""
