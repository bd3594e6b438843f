"""The flow of a run.

`flow` tells the story of `gate run`, from the configuration to the result and its publication. A `session` holds the
state that the suites share; `identity` says what is measured: the commit and its agent. `references` finds the records
in the `store` that each suite is compared with. `measurement` brings one suite from its plan to a closed record:
`earlier` finds trials that were already measured, and `rounds` runs what the schedule asks for and what later changes
will need. `trials` runs and scores them within the `budget`, `execute` holds each conversation, and `launch` starts the
agents of both sides. The `journal` keeps the record. `terms` are the demands on it, and `verdict` is the one path from
a record to a result. `progress` shows a person what is going on.
"""
