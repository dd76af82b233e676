"""Benchmarks: ``python -m benchmarks.NAME`` prints a table, with ``--json`` one object; see :mod:`benchmarks.figures`.

May import every package of the project; nothing imports it.
"""
