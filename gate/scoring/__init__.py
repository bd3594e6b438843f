"""Trials × criteria → scores: in this process, in worker processes, or on a Ray cluster.

`score` scores one trial by every criterion; the rest is about where that happens. This file imports nothing: options
are read in every run, and most need no more.
"""
