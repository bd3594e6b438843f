"""The flow of a run, and of every command on records: run trials, score, record, ask `decision` for the verdict.

Only `commands`, `action` and the public API import it.
"""
