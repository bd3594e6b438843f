"""What a reviewer reads first: what happened, what it cost, what to do about it. Plain words; escapes nothing."""

from __future__ import annotations

from gate.model import SuiteResult, Verdict
from gate.reports import explanation
from gate.reports.formatting import count, dollars
from gate.reports.labels import basis, failing_cases, worse_cases

TO_MEASURE = "fix what prevented the measurement, then run the job again"


def cost(suite: SuiteResult) -> str:
    """Money and runs: ``$0.024 by list price · 24 runs``."""
    money = " ".join(filter(None, (spent(suite), basis(suite))))
    return " · ".join(filter(None, (money, *runs(suite))))


def spent(suite: SuiteResult) -> str:
    """``at least $0.024``; empty where nothing is known."""
    if suite.cost_usd is not None:
        least = "at least " if suite.cost_unknown else ""
        return least + dollars(suite.cost_usd + (suite.judge_cost_usd or 0.0))
    if suite.judge_cost_usd:  # what the agent cost is not known, which is not nothing
        return f"{dollars(suite.judge_cost_usd)} for the judge alone"
    return ""


def runs(suite: SuiteResult) -> list[str]:
    """Runs, and infrastructure errors if there were any."""
    errors = [count(suite.errors, "infrastructure error")] if suite.errors else []
    return [count(suite.agent_runs, "run"), *errors]


def next_step(suite: SuiteResult) -> str:
    """Return what to do about the verdict; empty if that is nothing."""
    if suite.standing is Verdict.PASS or suite.cause.kind == "shard_measured":
        return ""  # of a shard the headline says what decides
    if suite.accepted:
        return _of_error(suite)
    match suite.verdict:
        case Verdict.REGRESSED:
            return _of_loss(suite)
        case Verdict.BELOW_THRESHOLD:
            return _of_threshold(suite)
        case Verdict.NOT_COMPARED:
            return _of_gaps(suite)
        case Verdict.INCONCLUSIVE:
            return _of_noise(suite)
        case _:
            return _of_error(suite)


def _of_loss(suite: SuiteResult) -> str:
    if not suite.is_acceptable:
        return "fix it; a missed threshold cannot be accepted"
    if suite.deciding.cause.kind == "not_shown_fixed":
        return f"run the job again, since a measurement that passes clears it, or accept it {ACCEPTED}"
    return f"fix {'what was lost' if suite.trade is not None else 'it'}, or, if it is meant, accept it {ACCEPTED}"


def _of_threshold(suite: SuiteResult) -> str:
    if suite.deciding.cause.kind == "nothing_passes":
        return "fix the agent or the suite"
    return "fix it, or change the threshold in a pull request of its own"


ACCEPTED = "(merge it, then run gate baseline accept)"
"""How it is accepted everywhere; on GitHub a label does it, too."""
LOOK_AT_ERRORS = "if the error is the agent's own, fix it; if what it depends on was down, run the job again"


def _of_gaps(suite: SuiteResult) -> str:
    """Return what would let everything be compared again; more trials would not."""
    decided = suite.deciding
    apart = [row.not_compared for row in decided.criteria if row.criterion.blocking and row.not_compared is not None]
    ways = ["restore what is missing"]
    if any(why.kind == "scorer_changed" for why in apart):
        ways.append("score the baseline's own record again (gate rescore)")
    if suite.is_acceptable:
        ways.append(f"accept it {ACCEPTED}")
    return ", or ".join(ways)


def _of_noise(suite: SuiteResult) -> str:
    """Return what would tell an unchanged agent from a worse one."""
    seen = worse_cases(suite) or failing_cases(suite)
    match suite.deciding.cause.kind:
        case "nothing_decides":
            return "set a threshold, or store a baseline (gate baseline save, on the default branch)"
        case "control_fell":
            told = "check that the base commit's agent is the one that was stored, then measure the baseline anew"
        case "baseline_moved" if not explanation.to_decide(suite):
            told = "run the job again"
        case "copies_lost":
            told = "clear the cache, or store a second run of the baseline, then run the job again"
        case _:
            told = explanation.to_decide(suite) or "to decide: more cases or trials"
    return f"look at the cases below; {told}" if seen else told


def _of_error(suite: SuiteResult) -> str:
    """Return what to do if the suite could not be measured."""
    if suite.course is not None and suite.course.stopped:
        return "give the run what it was short of, then run the job again"
    if suite.cause.problem in ("outage", "failures_not_confirmed", "unexplained_failures"):
        return LOOK_AT_ERRORS
    if suite.cause.problem == "collapsed":
        if suite.cause["problem"]["copies"]:
            return "clear the cache or add cases, then run the job again"
        return "fix the agent; if it is not broken, add cases"
    return TO_MEASURE
