"""The next step for each verdict, in one sentence. Escapes nothing."""

from __future__ import annotations

from gate.model import SuiteResult, Verdict
from gate.reports.certainty import deciding_row
from gate.reports.words import losses_only_warn

TO_MEASURE = "fix what prevented the measurement, then run the job again"
AMEND_SETUP = "correct the model's name, the key or the address that the error names; running again changes nothing"
LOOK_AT_ERRORS = "if the error is the agent's own, fix it; if what it depends on was down, run the job again"
OTHER_THRESHOLD = "change the threshold in a separate pull request"
TOO_LOW_TO_ACCEPT = "a missed threshold cannot be accepted"
OTHER_LIMIT = "change the limit in a separate pull request"
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
        case Verdict.REGRESSED if suite.deciding.commits_before_base:
            return f"run again once the base's own baseline is stored, or fix it, or {_accept(label)}"
        case Verdict.REGRESSED:
            return f"fix it, or {_accept(label)}"
        case Verdict.BELOW_THRESHOLD if suite.deciding.cause.kind == "nothing_passes":
            return "fix the agent or the suite"
        case Verdict.BELOW_THRESHOLD:
            return f"fix it, or {_other_demand(suite.deciding)}"
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
    return 'if this is intended, run `gate baseline accept --why "…"` on the default branch, after `gate run` there'


def _other_demand(suite: SuiteResult) -> str:
    """Return where to change what the first criterion demands: a hard rule, a limit or a threshold."""
    row = deciding_row(suite)
    for found in row.findings if row is not None else ():
        if found.verdict is Verdict.BELOW_THRESHOLD:
            return OTHER_DEMAND.get(found.kind, OTHER_THRESHOLD)
    return OTHER_THRESHOLD


OTHER_DEMAND = {"hard_rule": OTHER_RULE, "limit": OTHER_LIMIT}


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
        case "cases_fail" if cause["why"] == "thin_baseline":
            return "look at the cases; more stored trials would decide it"
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
    cause = suite.cause
    if cause.kind == "shard":
        cause = cause["problem"]
    if cause.kind == "outage" and cause["setup"]:
        return AMEND_SETUP
    if cause.kind in ("outage", "agent_fails"):
        return LOOK_AT_ERRORS
    if cause.kind == "collapsed":
        if cause["copies"]:
            return "fix the agent; if it is not broken, clear the cache or add cases, then run the job again"
        if losses_only_warn(suite, cause["criterion"]):
            return f"fix it, or if this is intended, {OTHER_RULE}"
        return "fix the agent; if it is not broken, add cases"
    return TO_MEASURE
