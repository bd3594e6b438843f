"""Records what an agent asks of models and tools while it is measured, and answers from that when it asks the same again.

Knows requests, answers and recordings; which trials are run, and what their scores mean, is left to others.
"""
