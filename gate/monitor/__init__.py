"""Watches an agent in production: a sample of its traces, scored by the criteria of CI, in a rolling window on disk.

It judges no change and has no baseline of its own: what is decided here is whether the pass rate of the newest traces
is shown to be too low. Commands hand in the configuration's scorers, and print.
"""
