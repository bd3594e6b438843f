"""Defaults that several rooms need; each is written here and nowhere else."""

from __future__ import annotations

from typing import Final

ALPHA = 0.02
"""Error rate of a job: how often an unchanged agent may be called regressed."""
RELEASE_ALPHA = 0.01
"""The largest error rate of a release."""
MOST_EPOCHS = 3
"""The most epochs of a run."""
STORED_TRIALS = 5
"""Stored trials of each case from which the decision finds a broken one: docs/dev/decisions/0019-enough-baseline.md."""
MAX_ERROR_RATE = 0.1
"""Share of trials that may end in an infrastructure error."""
ON_INCONCLUSIVE: Final = "warn"
"""The effect of an inconclusive verdict."""
POWER_DROP = 0.2
"""Fall of the pass rate that the stored trials should reveal, 0 to 1."""
POWER_FIND = 0.8
"""Share of such changes in which they should reveal it."""
CONFIRM_AFTER = 60.0
"""Seconds until failures of the agent are confirmed."""
REMOTE = "origin"
"""Name of the remote that holds the default branch and the baselines."""
OPENAI_URL = "https://api.openai.com/v1"
"""Address of OpenAI's own server."""
