"""The settings of a decision, taken from a configuration."""

from __future__ import annotations

from datetime import datetime

from gate.config.load import Config
from gate.config.schema import TrialsSection
from gate.decision import Settings
from gate.decision.settings import Goal
from gate.model.defaults import MOST_EPOCHS, RELEASE_ALPHA, STORED_TRIALS

EXPIRED = "quarantine of {case} expired on {date}: the case is judged again"


def settings_of(config: Config | None, now: datetime, *, release: bool = False) -> Settings:
    """Return the decision's settings; a case whose quarantine expired before ``now`` is judged again.

    The error rate of a ``release`` is at most `RELEASE_ALPHA`.
    """
    if config is None:
        return Settings()
    file = config.file
    alpha = file.gate.alpha
    if release:
        alpha = min(alpha, RELEASE_ALPHA)
    max_epochs, exact_epochs, confirm_after = MOST_EPOCHS, None, None
    if config.agent_kind != "replay":
        confirm_after = file.gate.confirm_after
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
        confirm_after=confirm_after,
        stored_trials=wanted_trials(config),
        goal=goal_of(config),
    )


def wanted_trials(config: Config) -> int:
    """Return the trials per case that a run on the default branch stores for later changes; 0: only those that it needs
    itself."""
    stated = config.file.baseline.trials
    if config.agent_kind == "replay" or stated == "off":
        return 0
    if isinstance(stated, int):
        return stated
    if isinstance(config.file.trials, int):
        return 0
    return STORED_TRIALS


def goal_of(config: Config) -> Goal | None:
    """Return the power that trials stored by the default branch should reach; None if their number is set, or none are
    stored."""
    if config.file.baseline.trials != "auto" or not wanted_trials(config):
        return None
    power = config.file.baseline.power
    return Goal(power.drop, power.find)


def expired_quarantine(config: Config, now: datetime) -> tuple[str, ...]:
    """Return a warning for each quarantine entry whose date has passed."""
    entries = [entry for entry in config.file.quarantine if entry.expires < now.date()]
    return tuple(EXPIRED.format(case=entry.case, date=entry.expires.isoformat()) for entry in entries)
