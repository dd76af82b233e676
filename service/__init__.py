"""The search service: HTTP API, jobs, storage, embedded servers and the ``vpo`` command.

May import ``evolve`` and ``sandbox``, never ``trainer`` (which is started as a process of its own).
"""
