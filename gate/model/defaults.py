"""Defaults that the configuration and the decision share; each is written here and nowhere else."""

from __future__ import annotations

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
CONFIRM_AFTER = 60.0
"""Seconds until failures of the agent are confirmed."""
