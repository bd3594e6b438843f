"""Commands on stored records: `judging` gives verdicts, `explain` and `record_diff` say how they came about, `upkeep`
keeps baselines, `calibrate` holds judges to people's labels, and `statement` and `evidence` attest results."""
