"""Commands on stored records: `judging` gives verdicts, `upkeep` keeps baselines, `statement` attests results."""
