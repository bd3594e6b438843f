"""Commands on stored records: `results` finds the records of earlier runs, `judging` gives verdicts, `explain` and
`record_diff` show how they came about, `upkeep` maintains baselines, `calibrate` compares judges with human labels, and
`statement` and `evidence` attest results."""
