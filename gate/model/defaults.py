"""Defaults shared by several parts of the gate; each is defined only here."""

from __future__ import annotations

from typing import Final

ALPHA = 0.02
"""Error rate of a job: the probability that an unchanged agent is called regressed."""
RELEASE_ALPHA = 0.01
"""The largest error rate of a release."""
MOST_EPOCHS = 3
"""The most epochs of a run."""
STORED_TRIALS = 5
"""Stored trials per case that let the decision find a broken case: docs/dev/decisions/0019-enough-baseline.md."""
MAX_ERROR_RATE = 0.1
"""Largest share of trials that may end in an infrastructure error."""
ON_INCONCLUSIVE: Final = "warn"
"""The effect of an inconclusive verdict."""
POWER_DROP = 0.2
"""Fall of the pass rate that the stored trials should reveal, from 0 to 1."""
POWER_FIND = 0.8
"""Share of such changes that they should reveal."""
CONFIRM_AFTER = 60.0
"""Seconds until failures of the agent are confirmed."""
REMOTE = "origin"
"""Name of the remote that holds the default branch and the baselines."""
OPENAI_URL = "https://api.openai.com/v1"
"""Address of OpenAI's own server."""
