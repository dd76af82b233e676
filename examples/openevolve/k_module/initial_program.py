"""Which modules a pipeline is made of."""

# EVOLVE-BLOCK-START


def configure():
    """One choice for each module."""
    return {"loader": "json", "cleaner": "none", "splitter": "lines", "ranker": "random"}


# EVOLVE-BLOCK-END
