"""Where recorded trials are scored: in this process, in others on this machine, or on a Ray cluster.

All of them take a batch and give its answer, by the one function in `gate.batch`. Imports nothing: options are read in
every run, and most need no more.
"""
