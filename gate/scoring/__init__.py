"""Trials × criteria → scores: in this process, in worker processes, or on a Ray cluster.

Imports nothing: options are read in every run, and most need no more.
"""
