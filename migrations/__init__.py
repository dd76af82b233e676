"""Alembic's environment and scripts. Procrastinate's schema (``procrastinate_*``) is applied by a script, pinned."""
