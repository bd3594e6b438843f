"""The sequential test of a suite: converts trials to the engine's plain numbers and runs the test."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from gate.decision.comparison import Comparison
from gate.decision.consistency import clusters_of
from gate.decision.correction import PLAIN, Correction
from gate.decision.engine.state import Config, Metric, More, Partner, Request, Round, Row, State
from gate.decision.outcomes import are_successes, measured_values, passed, value_of
from gate.model import FULL, PROBE, REPEAT, Criterion, Outcome, Scale, Side, Trial
from gate.model.defaults import STORED_TRIALS

NEWEST_STORED = 7
"""Maximum number of the newest stored runs against which alone a drop of the whole suite must show: a week of nightly
runs. docs/dev/decisions/0004-decision-rule.md."""


def answer_of(comparison: Comparison, *, can_run: bool, stopped: bool) -> Outcome | More | None:
    """Return the test's answer, or the trials that it requests; None if nothing is paired, or both sides have the same
    trials.

    ``can_run=False`` looks once at trials of one round. ``stopped``: no further trial can run.
    """
    if not comparison.paired or comparison.same_as:
        return None
    from gate.decision.engine.rule import decide  # weight: only with a baseline

    step = decide(state_of(comparison, can_run=can_run, stopped=stopped))
    if isinstance(step, Outcome):
        return step
    requests = tuple([with_all_cases(comparison, request) for request in step.requests])
    return replace(step, requests=requests, round=comparison.next_round)


def outcome_without_runs(comparison: Comparison, *, can_run: bool) -> Outcome | None:
    """Return the test's answer on the trials so far; ``can_run``: look at them as the schedule would."""
    found = answer_of(comparison, can_run=can_run, stopped=True)
    if isinstance(found, Outcome):
        return found
    return None


def with_all_cases(comparison: Comparison, request: Request) -> Request:
    """Return an epoch that includes unpaired cases; those in quarantine once, to see if they recovered."""
    if request.tag != FULL or request.side is Side.BASELINE:
        return request
    cases = comparison.judged if comparison.trials else comparison.cases
    ids = [case.id for case in cases if case.id not in request.left_out]
    return replace(request, cases=tuple(ids))


# --- the numbers of the pairing -------------------------------------------------------------------


def state_of(comparison: Comparison, *, can_run: bool, stopped: bool) -> State:
    """Return the paired trials as numbers for the engine."""
    settings = comparison.settings
    left = settings.runs
    if stopped:
        left = 0
    elif left is not None:
        left = max(0, left - len(comparison.trials))
    config = Config(
        settings.own_alpha,
        settings.max_epochs,
        settings.exact_epochs,
        settings.rerun,
        can_run,
        left,
        settings.kept_epochs,
    )
    metrics = []
    every = (*comparison.trials, *comparison.stored)
    for criterion in comparison.metrics:
        metrics.append(metric_of(criterion, every, comparison.correction_of(criterion)))
    stored = _stored_draws(comparison)
    baseline = {}
    for case_id, trials in stored.items():
        baseline[case_id] = [_row(comparison, trial) for trial in trials]
    return State(
        tuple(metrics),
        baseline,
        _rounds(comparison, stored),
        config,
        comparison.seed,
        clusters_of([comparison.by_id[case_id] for case_id in comparison.paired]),
        comparison.copies.frozen,
        _places_of_newest(stored, comparison.stored_runs),
        comparison.is_recorded,
    )


def _stored_draws(comparison: Comparison) -> dict[str, tuple[Trial, ...]]:
    """Return the stored trials of epochs that are independent draws, by paired case."""
    by_case: dict[str, list[Trial]] = {case_id: [] for case_id in comparison.paired}
    for trial in comparison.stored:
        if trial.measured and trial.tag == FULL and trial.case_id in by_case:
            by_case[trial.case_id].append(trial)
    found = {}
    for case_id, trials in by_case.items():
        trials.sort(key=lambda trial: (trial.round, trial.number))
        found[case_id] = comparison.counted(trials)
    return found


def _places_of_newest(stored: Mapping[str, Sequence[Trial]], runs: Sequence[str]) -> dict[str, list[int]]:
    """Return the positions of the trials of the newest runs that measured STORED_TRIALS of each case, and of as many
    more as fit into NEWEST_STORED; empty if those are all runs."""
    if len(runs) < 2:  # most calls: no need to look at any trial
        return {}
    sizes = Counter([trial.run for trials in stored.values() for trial in trials])
    newest: set[str] = set()
    have = 0
    for run in reversed(runs):
        if not sizes[run]:
            continue
        if have >= STORED_TRIALS * len(stored) and have + sizes[run] > NEWEST_STORED * len(stored):
            break
        newest.add(run)
        have += sizes[run]
    else:
        return {}
    places = {}
    for case_id, trials in stored.items():
        places[case_id] = [place for place, trial in enumerate(trials) if trial.run in newest]
    return places


def metric_of(criterion: Criterion, trials: Sequence[Trial], correction: Correction | None = None) -> Metric:
    """Return a criterion as the engine's metric, derived from its values in these trials."""
    scale = criterion.scale
    if are_successes(measured_values(trials, criterion), scale):
        scale = Scale.BINARY
    blocks = criterion.blocking and criterion.blocks_regression
    slope, slope_error = PLAIN
    if correction is not None:
        slope, slope_error = correction.slope
    margin = criterion.margin_or_default
    return Metric(criterion.name, scale.kind, criterion.direction, margin, blocks, slope, slope_error)


def _row(comparison: Comparison, trial: Trial) -> Row:
    """Return metric 0 and the scores. If criteria are not comparable, both sides are judged by the others alone.

    If the agent failed, metric 0 is 0 and the rest is missing; a lost trial is an empty row.
    """
    comparable = comparison.comparable(trial.case_id)
    outcome = passed(trial, comparison.by_id[trial.case_id], comparable)
    names = {criterion.name for criterion in comparable}
    row: list[float | None] = [None] * len(comparison.metrics)
    if outcome is not None:
        row[0] = float(outcome)
    for m, criterion in enumerate(comparison.metrics[1:], 1):
        if criterion.name in names:
            row[m] = value_of(trial, criterion)
    return row


# --- rounds ---------------------------------------------------------------------------------------

RowsOfCase = list[tuple[Row, Trial]]
"""The rows of a case in a round, each with its trial."""


def _rounds(comparison: Comparison, stored: Mapping[str, Sequence[Trial]]) -> tuple[Round, ...]:
    """Return the rounds in the order in which they were requested.

    A trial with an infrastructure error is an empty row unless it was rerun: then the newer trial replaces it. Within a
    round the baseline's trials come first and are looked at once the candidate's exist, too. A trial that repeats a
    draw is also an empty row: it ran but says nothing new.
    """
    groups: dict[tuple[int, str, Side], dict[str, RowsOfCase]] = {}
    lost: Row = [None] * len(comparison.metrics)
    repeated: Row = tuple(lost)  # unlike a lost row, nothing replaces a tuple
    for trial in sorted(comparison.trials, key=lambda t: (t.round, t.side is Side.CANDIDATE, t.tag, t.number)):
        if trial.case_id not in comparison.with_baseline:
            continue
        if trial.tag in (PROBE, REPEAT):
            continue  # run on cases picked by their outcomes, for a question that is not decided here
        row = repeated if id(trial) in comparison.dropped else _row(comparison, trial)
        rows = groups.setdefault((trial.round, trial.tag, trial.side), {}).setdefault(trial.case_id, [])
        if trial.again and rows:
            replaced = [place for place, (known, _) in enumerate(rows) if known == lost]
            if replaced:
                rows[replaced[0]] = row, trial
        else:
            rows.append((row, trial))
    rounds = []
    for (_, tag, side), by_case in groups.items():
        trials: dict[str, list[Row]] = {}
        links: dict[str, tuple[Partner | None, ...]] = {}
        for case_id, rows in by_case.items():
            trials[case_id] = [row for row, _ in rows]
            known = comparison.coupling.links([trial for _, trial in rows], stored[case_id])
            if known:
                links[case_id] = known
        rounds.append(Round(tag, side, trials, links))
    return tuple(rounds)
