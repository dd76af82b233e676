"""Where the next item goes."""

# EVOLVE-BLOCK-START


def priority(item, room):
    """Higher is better; all bins that are given have room for the item."""
    return 0.0


# EVOLVE-BLOCK-END
