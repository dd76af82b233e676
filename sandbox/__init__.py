"""Judging untrusted programs: isolation, limits, and one verdict per test case.

Imports nothing else of this project.
"""
