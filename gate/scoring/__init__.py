"""Trials × criteria → scores: in this process, in worker processes, or on a Ray cluster.

`score` scores one trial by every criterion; the other modules decide where that happens. This file imports nothing:
options are read in every run, and most runs need no more.
"""
