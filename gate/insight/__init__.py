"""Insights from stored records beyond one verdict: their history, line-ups, requests, and limits that could be
stricter.

Commands import this room, and nothing else does: no run and no verdict needs it.
"""
