"""The findings on a suite that weaken a verdict without changing it."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import harmonic_mean
from typing import TYPE_CHECKING, Any

from gate.decision.comparison import Comparison
from gate.decision.outages import base_gone, failures_excused, lost_to_infrastructure
from gate.decision.pairs import pairs_of
from gate.decision.settings import MOST_STORED
from gate.decision.unseen import fell_silent, silence
from gate.model import SILENT, Trial, Verdict
from gate.model.defaults import STORED_TRIALS
from gate.model.finding import Finding

if TYPE_CHECKING:
    from gate.decision.power import Rates


def warnings(comparison: Comparison, cause: Finding) -> tuple[Finding, ...]:
    """Return the findings that weaken the verdict without changing it."""
    found: list[Finding] = []
    if comparison.same_as:  # no loss to miss
        if cause.kind != "same_agent":
            found.append(Finding.of("same_agent", commit=comparison.same_as))
    else:
        found += _thin_baseline(comparison)
    found += _errors(comparison)
    found += _of_turns(comparison)
    found += _constant_answers(comparison)
    found += fell_silent(comparison.criteria, comparison.judged_trials, comparison.stored)
    found += silence(comparison.criteria, comparison.judged_trials)
    return tuple(found)


# --- a baseline too thin to show a loss -----------------------------------------------------------


def _thin_baseline(comparison: Comparison) -> list[Finding]:
    """Return a finding if a case has fewer stored trials than the decision, or the configured power, needs."""
    counts = sorted(len(comparison.baseline[case_id]) for case_id in comparison.paired)
    if not counts:
        return []
    from gate.decision.power import provable, stored_wanted  # weight: only with a baseline

    settings, least = comparison.settings, counts[0]
    wanted = max(settings.stored_trials, STORED_TRIALS)
    most = settings.stored_trials
    if settings.goal is not None:
        if least >= MOST_STORED:
            return []
        rates = _rates(comparison)
        if least >= wanted and rates is not None:
            wanted = stored_wanted(rates, settings.goal, settings)
        most = wanted
    if least >= wanted:
        return []
    can_prove = provable(len(counts), least, settings.own_alpha, recorded=comparison.is_recorded)
    found = Finding.of(
        "thin_baseline",
        cases=sum([n < wanted for n in counts]),
        wanted=wanted,
        least=least,
        typical=counts[(len(counts) - 1) // 2],
        blind=settings.rerun == "never" and not can_prove,
        drop=drop_found(comparison),
        grows=least < most,
    )
    return [found]


def drop_found(comparison: Comparison) -> float | None:
    """Return the smallest drop of the pass rate, 0 to 1, that the rule finds in four of five changes of the suite with
    its stored trials; None if it finds none that often. Not of this run alone, which a real loss would prolong."""
    from gate.decision.power import smallest_found  # weight: only with a baseline

    def found() -> float | None:
        rates = _rates(comparison)
        if rates is None:
            return None
        stored = harmonic_mean([trials for _, trials in rates.counts])  # a case's spread falls with 1/trials
        return smallest_found(rates, stored, comparison.settings)

    return comparison.once("drop found", found)


def _rates(comparison: Comparison) -> Rates | None:
    """Return the pass rates of the paired cases by their stored trials; None if no outcome is known."""
    from gate.decision.power import Rates  # weight: only with a baseline

    def found() -> Rates | None:
        stored = pairs_of(comparison, comparison.metrics[0]).before.values()
        counts = [(round(sum(outcomes)), len(outcomes)) for outcomes in stored if outcomes]
        return Rates(tuple(counts)) if counts else None

    return comparison.once("rates", found)


# --- lost trials -----------------------------------------------------------------------------------


def _errors(comparison: Comparison) -> list[Finding]:
    """Return the trials lost to infrastructure, and the failures that were excused."""
    found: list[Finding] = []
    trials: Sequence[Trial] = comparison.trials
    gone = base_gone(comparison)
    if gone is not None:
        found.append(gone)
        trials = comparison.own
    for excused in failures_excused(comparison):
        if not (excused["by"] == "base" and gone):
            found.append(excused)
    lost = len(lost_to_infrastructure(trials))
    repeated = sum(trial.attempts - 1 for trial in trials)
    if lost or repeated:
        found.append(Finding.of("trials_lost", Verdict.PASS, lost=lost, of=len(trials), repeated=repeated))
    return found


# --- turns that were cut off, and tools that fail -------------------------------------------------


def _of_turns(comparison: Comparison) -> list[Finding]:
    """Return a finding if models say that they ended answers at the limit of their length, and one for each tool of
    which every call failed, in at least two trials: frameworks pass an exception on to the model, so the agent may
    answer well nevertheless."""
    turns = cut = 0
    errors: dict[str, list[str]] = {}
    worked = set[str]()
    for trial in comparison.judged_trials:
        failed: dict[str, str] = {}
        for turn in trial.invocations:
            turns += 1
            cut += turn.usage is not None and turn.usage.cut_off
            for tool, error in turn.tool_outcomes:
                if error:
                    failed.setdefault(tool, error)
                else:
                    worked.add(tool)
        for tool, error in failed.items():
            errors.setdefault(tool, []).append(error)
    found = []
    if cut:
        found.append(Finding.of("answers_say_little", why="cut_off", answers=cut, of=turns))
    for tool in sorted(errors.keys() - worked):
        if len(errors[tool]) > 1:
            found.append(Finding.of("tool_fails", tool=tool, trials=len(errors[tool]), error=errors[tool][0]))
    return found


# --- constant answers --------------------------------------------------------------------------------------


def _constant_answers(comparison: Comparison) -> list[Finding]:
    """Return a finding if repeated trials never differ: a cache, a fixed seed, or a deterministic agent adds
    nothing."""
    known = comparison.copies
    if known.cases:
        cases, of = len(known.cases), known.repeated
        return [Finding.of("answers_say_little", why="other_runs_differ", cases=cases, of=of)]
    groups = []
    for case in comparison.judged:
        trials = comparison.measured(case.id)
        if len(trials) > 1 and any(map(_said, trials)):
            groups.append(trials)
    if len(groups) < 3 or any(len(set(map(_said, trials))) > 1 for trials in groups):
        return []
    return [Finding.of("answers_say_little", why="steady", cases=len(groups), of=len(groups))]


def _said(trial: Trial) -> tuple[Any, ...]:
    """Return the content of a trial's answer, turn by turn, without empty turns."""
    found: list[Any] = []
    for turn in trial.invocations:
        if turn.digest in ("", SILENT) and not turn.text:
            continue
        if turn.digest:
            found.append(turn.digest)
        else:
            found.append((turn.text, tuple([(call.name, repr(call.args)) for call in turn.tool_calls])))
    return tuple(found)
