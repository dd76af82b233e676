"""Isolation: the bubblewrap command line, the seccomp filter, launching, killing and probing."""
