"""Runs over time: numbers of each run, its cases, and moves and trends of an agent's scores. Pure."""
