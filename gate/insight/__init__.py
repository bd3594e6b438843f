"""Analyses stored records beyond a single verdict: history, line-ups, requests, and limits that could be stricter.

Only commands import this package: no run and no verdict needs it.
"""
