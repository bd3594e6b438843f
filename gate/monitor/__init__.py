"""Monitors an agent in production: scores a sample of its traces by the criteria of CI, in a rolling window on disk.

It judges no change and keeps no baseline; it decides only if the pass rate of the newest traces is shown to be too low.
The commands pass in the configured scorers and print the result.
"""
