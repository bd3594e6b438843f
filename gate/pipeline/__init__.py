"""The flow of a run.

`flow` tells the story of `gate run`. A `session` holds the state that the suites share, such as where the commit stands
(`git_context`) and which agent this is (its `identity`). `references` finds the records in the `store` that each suite
is compared with, and `past` tells what is known of them. `measurement` brings one suite from its plan to a closed
record: `earlier` finds trials that were already measured; `rounds` runs what the schedule asks for, and `storing` what
later changes will need. `trials` runs and scores them within the `budget`, `execute` holds each conversation, and
`launch` starts the agents of both sides. The `journal` keeps the record. `terms` are the demands on it, and `verdict`
is the one path from a record to a result. `publishing` sends a result to hosts, and `progress` shows a person what is
going on.
"""
