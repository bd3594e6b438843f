"""Records what an agent asks of models and tools while it is measured, and answers the same from that the next time.

Knows requests, answers and recordings; which trials are run, and what their scores mean, is left to others.
"""
