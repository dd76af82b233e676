"""Smooth a noisy signal as it comes in."""

# EVOLVE-BLOCK-START


def smooth(samples, window):
    """The mean of the last `window` samples, for each."""
    result = []
    for i in range(len(samples)):
        last = samples[max(0, i - window + 1) : i + 1]
        result.append(sum(last) / len(last))
    return result


# EVOLVE-BLOCK-END
