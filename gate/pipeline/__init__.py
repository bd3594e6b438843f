"""The flow of a run.

`flow` tells the story of `gate run`. A `session` holds what its suites share; `references` finds what each is compared
with, of which `provenance` proves the origin. `measurement` brings one suite from its plan to a closed record:
`earlier` finds trials that were measured before; else `rounds` asks the schedule for trials, and `storing` for those
that later changes want. `trials` runs and scores them within the `budget`, `execute` holds each conversation,
`agent_user` is the user that the agent runs as, and `base_agent` the base commit's side. The `journal` keeps the
record. `terms` are the demands on it, and `verdict` is the one path from a record to a result. `publishing` tells
others of a result, and `progress` is what a person sees meanwhile.
"""
