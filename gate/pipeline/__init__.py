"""The flow of a run, and of every command on records.

`flow` tells the story of `gate run`. A `session` holds what its suites share; `references` finds what each is compared
with; `draws` and `stored_trials` find what was measured before. Else `rounds` asks the schedule for trials, `trials`
runs and scores them within the `budget`, `execute` holds each conversation, and `base_agent` is the base commit's side.
The `journal` keeps the record. `terms` say what it is judged by, and `verdict` is the one path from a record to a
result. `top_up` measures more for later changes.

`judge_stored` and `baseline_upkeep` are the commands on stored records, `provenance` proves where those come from,
`evidence` and `publishing` tell others of a result. `api` is the public interface, `progress` what a person sees.
"""
