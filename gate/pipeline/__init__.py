"""The flow of a run, and of every command on records: run trials, score, record, ask `decision` for the verdict.

`flow` calls the stages in their order; `rounds` asks for trials, `execute` runs them through the agent; `verdict` is
the one path from a record to a result. Only `commands`, `action` and the public API import this room.
"""
