"""Commands on stored records: `results` finds the records of earlier runs, `judging` gives verdicts and `explain` their
reasons, `upkeep` maintains baselines, `calibrate` compares judges with human labels, and `statement` and `evidence`
attest results."""
