"""The settings of a decision, from those of a configuration."""

from __future__ import annotations

from datetime import datetime

from gate.config.load import Config
from gate.config.schema import TrialsSection
from gate.decision import Settings
from gate.decision.settings import Goal
from gate.model.defaults import MOST_EPOCHS, RELEASE_ALPHA, STORED_TRIALS

EXPIRED = "quarantine of {case} expired on {date}: the case is judged again"


def settings_of(config: Config | None, now: datetime, *, release: bool = False) -> Settings:
    """The decision's settings; quarantine that expired before ``now`` is active again.

    The error rate of a ``release`` is at most `RELEASE_ALPHA`.
    """
    if config is None:
        return Settings()
    file = config.file
    alpha = file.gate.alpha
    if release:
        alpha = min(alpha, RELEASE_ALPHA)
    max_epochs, exact_epochs = MOST_EPOCHS, None
    if isinstance(file.trials, TrialsSection):
        max_epochs = file.trials.max
    elif isinstance(file.trials, int):
        exact_epochs = file.trials
    quarantine = {}
    for entry in file.quarantine:
        if entry.expires >= now.date():
            quarantine[entry.case] = f"{entry.reason} ({entry.owner}, until {entry.expires.isoformat()})"
    return Settings(
        alpha=alpha,
        max_epochs=max_epochs,
        exact_epochs=exact_epochs,
        rerun="match" if file.baseline.rerun == "match" else "never",
        pass_rate_margin=file.gate.pass_rate_margin,
        max_error_rate=file.gate.max_error_rate,
        on_inconclusive=file.gate.on_inconclusive,
        quarantine=quarantine,
        runs=file.budget.runs,
        family=file.gate.family,
        confirm_after=None if config.agent_kind == "replay" else file.gate.confirm_after,
        stored_trials=wanted_trials(config),
        goal=goal_of(config),
    )


def wanted_trials(config: Config) -> int:
    """Trials of each case that a run on the default branch leaves for later changes; 0: as many as it needs itself."""
    stated = config.file.baseline.trials
    if config.agent_kind == "replay" or stated == "off":
        return 0
    if isinstance(stated, int):
        return stated
    return 0 if isinstance(config.file.trials, int) else STORED_TRIALS


def goal_of(config: Config) -> Goal | None:
    """Return the power that the trials of runs on the default branch are to add up to; None: a number is stated, or
    none."""
    if config.file.baseline.trials != "auto" or not wanted_trials(config):
        return None
    power = config.file.baseline.power
    return Goal(power.drop, power.find)


def expired_quarantine(config: Config, now: datetime) -> tuple[str, ...]:
    """A warning for each entry whose date has passed."""
    entries = [entry for entry in config.file.quarantine if entry.expires < now.date()]
    return tuple(EXPIRED.format(case=entry.case, date=entry.expires.isoformat()) for entry in entries)
