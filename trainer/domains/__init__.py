"""Domains: a generator of problems, prompts, a parser of answers, and a reward vector."""
