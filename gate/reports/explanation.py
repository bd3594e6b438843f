"""A decided suite in words: the outcome, its certainty, the next step and the changes. Escapes nothing."""

from __future__ import annotations

from gate.decision.outcomes import PASS_RATE
from gate.model import CriterionResult, SuiteResult, Verdict, worst
from gate.model.finding import Finding, KindName
from gate.model.results import NOT_STORED
from gate.reports.by_tag import where
from gate.reports.formatting import agree, by_chance, count, listing
from gate.reports.labels import reference_name
from gate.reports.reasons import narrow_miss_of
from gate.reports.words import (
    about,
    causes,
    crashes,
    losses_only_warn,
    only_reports,
    tell,
    tell_cases,
    tell_cause,
    tell_short,
    tell_warning,
    thin,
)

# --- the outcome ----------------------------------------------------------------------------------


def title(suite: SuiteResult) -> str:
    """Return the outcome in a few words: ``4 of 12 cases broke``."""
    by = suite.deciding
    text, _ = tell_cause(by)
    if by.reference:
        return f"against the {reference_name(by.reference)}: {text}"
    return text


def why(suite: SuiteResult) -> tuple[str, ...]:
    """Return clauses with details of the outcome, and with the most important circumstances."""
    return (*tell_cause(suite.deciding)[1], *_besides(suite))


def first_cause(suite: SuiteResult) -> str:
    """Return the first criterion to blame, for a suite that got worse."""
    return causes(suite, suite.cause["criteria"])[0]


def headline(suite: SuiteResult) -> str:
    """Return the title and the clauses in one line, with the names of the cases."""
    by, said = suite.deciding, title(suite)
    more = "; ".join(filter(None, (tell_cases(by), *tell_cause(by)[1])))
    if more:
        said += f": {more}"
    return "; ".join([said, *_besides(suite)])


def _besides(suite: SuiteResult) -> list[str]:
    """Return important facts besides the cause of the verdict."""
    by, said = suite.deciding, []
    for found in by.changes:
        if found.kind == "answered_by" and by.verdict in MAY_BE_MOVED:
            said.append(f"{tell_short(found)}, which may be why")
    if by.cause.kind in OF_COMPARISON and not by.has_baseline:
        said.append(_no_baseline(by))
    missed = [row.criterion.name for row, found in criteria_that_warn(suite) if found.is_excused]
    if missed:
        said.append(f"{listing(missed)} {agree(len(missed), 'misses', 'miss')} the threshold, as the base does")
    if by.crashes is not None and by.verdict not in (Verdict.PASS, Verdict.ERROR):
        said.append(crashes(by, by.crashes))
    place = where(by)
    if place:
        said.append(f"most of it in {place}")
    said += [tell_short(found) for found in by.changes if found.kind == "base_run_beside"]
    said += [tell_short(found) for found in by.changes if found.kind == "stated" and found["agent_key"]][:1]
    if by.baseline is not None and by.baseline.distance and by.verdict is Verdict.REGRESSED and not by.reference:
        ago = count(by.baseline.distance, "commit")
        said.append(
            f"the newest baseline is {ago} before the base: losses since then count, too, until its own is stored"
        )
    if by.baseline is not None and by.baseline.provenance == "unproven":
        said.append("against an unproven baseline")
    return [*said, *filter(None, (suite.expired, measured_again(suite), suite.scope))]


def measured_again(suite: SuiteResult) -> str:
    """Return text like ``measurement 3 of this change (before: pass, regressed)`` if an earlier one failed; else empty.

    Any further measurement is one of several: a lucky one must not hide the others.
    """
    found = suite.warning("measured_before")
    if found is None or FELL_SHORT.isdisjoint(found["verdicts"]):
        return ""
    return tell_short(found)


FELL_SHORT = {Verdict.REGRESSED, Verdict.BELOW_THRESHOLD}


OF_COMPARISON: tuple[KindName, ...] = (
    "passes",
    "cases_broke",
    "suite_got_worse",
    "cases_fail",
    "criteria_decide",
)
"""Causes to which the lack of a baseline is added."""
MAY_BE_MOVED = (Verdict.REGRESSED, Verdict.BELOW_THRESHOLD, Verdict.INCONCLUSIVE)
"""Verdicts that may be due to another model or another system of the provider."""


def opening(suite: SuiteResult) -> tuple[str, ...]:
    """Return the lines below the headline: its certainty, the answering model, and losses that only warn."""
    known = why(suite)
    said = [how_sure(suite)]
    for one in suite.changes:
        if one.kind == "answered_by":
            answer = tell(one)
            if not any(answer.startswith(text.partition(",")[0]) for text in known):
                said.append(answer)
    return tuple(filter(None, (*said, *losses_that_warn(suite))))


def losses_that_warn(suite: SuiteResult) -> tuple[str, ...]:
    """Return the losses that do not block, one line each; empty for a regression, which is enough by itself."""
    if suite.verdict is Verdict.REGRESSED:
        return ()
    losses = [(row, found) for row, found in criteria_that_warn(suite) if found.kind == "change"]
    return tuple(f"warning: {tell_warning(found, row)}" for row, found in losses)


def how_sure(suite: SuiteResult) -> str:
    """Return how certain the verdict is, in one sentence; empty if chance plays no part."""
    by = suite.deciding
    match suite.verdict:
        case Verdict.REGRESSED:
            return _of_unchanged(by)
        case Verdict.PASS:
            return _seen(by)
        case Verdict.BELOW_THRESHOLD:
            row = _deciding_row(by)
            if row is not None:
                return narrow_miss_of(row)
        case Verdict.INCONCLUSIVE if by.outcome is not None and not _is_apart_from_looks(by.cause):
            look = by.outcome.evidence.last_look
            if look is not None:
                return seen_by_chance(look.p)
    return ""


def _deciding_row(suite: SuiteResult) -> CriterionResult | None:
    """Return the first criterion that decides by itself; None if something else does."""
    if suite.cause.kind != "criteria_decide":
        return None
    return suite.row(suite.cause["criteria"][0])


def _is_apart_from_looks(cause: Finding) -> bool:
    """True if the cause of an open answer is another than too little evidence in the looks."""
    if cause.kind == "cases_fail":
        return bool(cause["why"] != "thin_baseline")
    return cause.kind == "criteria_decide" and bool(cause["why"])


def seen_by_chance(p: float) -> str:
    """Return how often an unchanged agent looks as bad; if that is more often than not, there is no sign of a loss."""
    if p > 0.5:
        return "no sign of a loss"
    return f"an unchanged agent looks as bad or worse in {by_chance(p)} of runs"


RARE = (1_000, 500, 200, 100, 50)
"""Numbers of runs for expressing a probability."""


def _of_unchanged(suite: SuiteResult) -> str:
    """Return how rarely an unchanged agent would look like this; empty if that is not rare."""
    cause, outcome = suite.cause, suite.outcome
    chances = []
    if cause.kind == "agent_fails" and cause.verdict is Verdict.REGRESSED:
        chances.append(cause["p"])
    if outcome is not None and outcome.verdict == "REGRESSION":
        evidence = outcome.evidence
        chances += [look.p for look in evidence.looks if look.blocks]
        chances += [test.p for test in evidence.repeats if test.blocks]
        if evidence.highest_e_value is not None and evidence.highest_e_value >= evidence.e_threshold:
            chances.append(1 / evidence.highest_e_value)
    for runs in RARE:
        if chances and min(chances) * runs <= 1:
            return f"an unchanged agent would look like this in fewer than 1 of {runs:,} runs"
    return ""


def _seen(suite: SuiteResult) -> str:
    """Return the losses that a pass may have missed: because of a thin baseline, of few cases, or because they are
    small."""
    told = thin(suite)
    if told or suite.outcome is None:
        return told
    rate = suite.outcome.evidence.metrics.get(PASS_RATE)
    if rate is None:
        return ""
    cases = count(rate.cases, "case")
    if suite.finds is None:
        return f"{cases} like {agree(rate.cases, 'this', 'these')} would only show a case that breaks outright"
    drop = f"an overall drop of less than about {about(suite.finds)}"
    return f"{cases} like these would show a case that breaks; {drop} is often missed (`gate power`)"


LONG = 3
"""Number of commits with a configuration after which a baseline should exist."""


def _no_baseline(suite: SuiteResult) -> str:
    """Return the sentence that nothing is compared; more explicit if a baseline should exist by now."""
    found = suite.baseline
    if found is not None and found.of_itself:
        return "nothing to compare with yet: the stored baseline is of this very commit; the next is compared with it"
    if found is not None and found.missing and not found.missing.startswith(NOT_STORED):
        return f"nothing is compared: {found.missing}"
    if found is None or found.never_stored < LONG:
        return "no baseline yet"
    never = f"no baseline was ever stored, in {count(found.never_stored, 'commit')} of the base's history"
    return f"nothing is compared: {never}; let the job on the default branch end with `gate baseline save`"


# --- the next step --------------------------------------------------------------------------------

TO_MEASURE = "fix what prevented the measurement, then run the job again"
LOOK_AT_ERRORS = "if the error is the agent's own, fix it; if what it depends on was down, run the job again"
OTHER_THRESHOLD = "change the threshold in a separate pull request"
TOO_LOW_TO_ACCEPT = "a missed threshold cannot be accepted"
OTHER_RULE = "change the rule in a separate pull request"


def next_step(suite: SuiteResult, label: str = "") -> str:
    """Return the next step for the verdict; empty if there is none. ``label``: the label that accepts it, if any."""
    if suite.standing is Verdict.PASS or (suite.cause.kind == "shard" and suite.cause["problem"] is None):
        return ""  # for a shard, the headline names what decides
    if suite.accepted:
        return _after_error(suite)
    match suite.verdict:
        case Verdict.REGRESSED if not suite.is_acceptable:
            return f"fix it, or if this is intended, edit the cases, or {OTHER_THRESHOLD}: {TOO_LOW_TO_ACCEPT}"
        case Verdict.REGRESSED if suite.deciding.cause.kind == "not_shown_fixed":
            if suite.deciding.cause["now"].kind == "incomplete":
                return ", or ".join(_after_gaps(suite, label))
            return f"run the job again, since a measurement that passes clears it, or {_accept(label)}"
        case Verdict.REGRESSED if suite.trade is not None:
            return f"fix what was lost, or {_accept(label)}"
        case Verdict.REGRESSED:
            return f"fix it, or {_accept(label)}"
        case Verdict.BELOW_THRESHOLD if suite.deciding.cause.kind == "nothing_passes":
            return "fix the agent or the suite"
        case Verdict.BELOW_THRESHOLD if _is_hard(suite.deciding):
            return f"fix it, or {OTHER_RULE}"
        case Verdict.BELOW_THRESHOLD:
            return f"fix it, or {OTHER_THRESHOLD}"
        case Verdict.NOT_COMPARED:
            return ", or ".join(_after_gaps(suite, label))
        case Verdict.INCONCLUSIVE:
            return _after_noise(suite)
        case _:
            return _after_error(suite)


def _accept(label: str) -> str:
    """Return the way to accept a loss."""
    if label:
        return f"add the label `{label.replace('`', '')}` if this is intended"
    return 'if this is intended, merge it, then run `gate baseline accept --why "…"`'


def _is_hard(suite: SuiteResult) -> bool:
    """True if a hard rule, which has no threshold, was broken."""
    row = _deciding_row(suite)
    return row is not None and row.finding("hard_rule", Verdict.BELOW_THRESHOLD) is not None


def _after_gaps(suite: SuiteResult, label: str) -> list[str]:
    """Return the steps that would make everything comparable again; more trials would not."""
    ways = ["restore what is missing or was changed"]
    reasons = set()
    for row in suite.deciding.criteria:
        if row.criterion.blocking and row.not_compared:
            reasons.add(row.not_compared["why"])
    if "other_user" in reasons:
        ways.append(
            "measure the base commit again (`gate run --record FILE`) and store that (`gate baseline save FILE`)"
        )
    elif reasons.intersection(("changed", "other_judge")):
        ways.append("score the baseline's own record again (`gate rescore`)")
    if suite.is_acceptable:
        ways.append(_accept(label))
    return ways


def _after_noise(suite: SuiteResult) -> str:
    """Return the step that would distinguish an unchanged agent from a worse one."""
    cause = suite.deciding.cause
    match cause.kind:
        case "not_judged":
            return "set a threshold, or store a baseline (`gate baseline save`, on the default branch)"
        case "cases_fail" if cause["why"] == "copies":
            return "clear the cache, or store a second run of the baseline, then run the job again"
        case "cases_fail" if cause["why"] == "base_fails_too":
            return "check that the base commit's agent is the one that was stored, then measure the baseline anew"
        case "criteria_decide" if cause["why"]:
            return "run the job again"
        case _:
            return "look at the cases; more cases, or more stored trials, would decide it"


def _after_error(suite: SuiteResult) -> str:
    """Return the next step for a suite that could not be measured."""
    if suite.course is not None and suite.course.stopped:
        return "give the run what it was short of, then run the job again"
    if suite.cause.kind in ("outage", "agent_fails"):
        return LOOK_AT_ERRORS
    if suite.cause.kind == "collapsed":
        if suite.cause["copies"]:
            return "clear the cache or add cases, then run the job again"
        if losses_only_warn(suite, suite.cause["criterion"]):
            return f"fix it, or if this is intended, {OTHER_RULE}"
        return "fix the agent; if it is not broken, add cases"
    return TO_MEASURE


# --- changes and warnings -------------------------------------------------------------------------


def changes(suite: SuiteResult) -> tuple[str, ...]:
    """Return the changes of the suite and its criteria since the baseline, and the rules of the change not in force."""
    return tuple(map(tell, suite.changes))


def warnings(suite: SuiteResult) -> tuple[tuple[Finding, str], ...]:
    """Return the findings that weaken the verdict without changing it, with their words: on criteria, on the suite,
    then on criteria that only report."""
    first: list[tuple[Finding, str]] = []
    last: list[tuple[Finding, str]] = []
    for row, found in criteria_that_warn(suite):
        told = last if only_reports(found, row) else first
        told.append((found, tell_warning(found, row)))
    of_suite = [(found, tell(found, suite)) for found in suite.warnings]
    return (*first, *of_suite, *last)


def criteria_that_warn(suite: SuiteResult) -> list[tuple[CriterionResult, Finding]]:
    """Return the findings on criteria that readers should know of although they do not decide."""
    found = []
    for row in suite.criteria:
        for one in row.findings:
            if _is_outranked(one, row) or only_reports(one, row) or (one.is_warning and not _is_moot(one, row, suite)):
                found.append((row, one))
    return found


def _is_outranked(found: Finding, row: CriterionResult) -> bool:
    """True if too many scores were lost, but the criterion fails for another reason, which alone is its reason."""
    is_problem = found.kind == "trials_lost" and found.verdict is Verdict.NOT_MEASURED
    return is_problem and worst([found.verdict, row.verdict]) is not found.verdict


def _is_moot(found: Finding, row: CriterionResult, suite: SuiteResult) -> bool:
    """True if a warning adds nothing: the criterion fails or cannot block, or its threshold is close and the suite
    fails."""
    if found.is_excused:
        return row.verdict is not Verdict.PASS or not row.criterion.blocking
    return found.kind == "mean" and suite.verdict not in (Verdict.PASS, Verdict.INCONCLUSIVE)


def agent_failures(suite: SuiteResult) -> str:
    """Return the number of the agent's failures and the most common one; the headline's number is not repeated.

    Empty if there is none, or if the suite could not be measured: then the headline gives the reason.
    """
    facts = suite.crashes
    if facts is None or suite.verdict is Verdict.ERROR:
        return ""
    counted = crashes(suite, facts)
    if counted in headline(suite):
        return f"the agent failed, mostly: {facts.message}"
    return f"{counted}; mostly: {facts.message}"
