"""Offline training: supervised warm-up, then GRPO or VPO, on domains with vector rewards.

May import ``evolve`` (prompt and chain format, metrics) and ``sandbox``; never ``service``.
"""
