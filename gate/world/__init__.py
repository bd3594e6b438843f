"""Records an agent's requests to models and tools during a measurement, and replays the answers in later ones.

Knows requests, answers and recordings; the choice of trials and the meaning of scores are left to others.
"""
