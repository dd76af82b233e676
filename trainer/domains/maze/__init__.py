"""The maze: two zones in conflict, after the paper (arXiv 2605.22817, appendix) and its released code."""
