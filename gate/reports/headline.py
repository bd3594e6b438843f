"""What a reviewer reads first: what happened, what it cost, what to do about it. Plain words; escapes nothing."""

from __future__ import annotations

from gate.model import SuiteResult, Verdict, acceptable, missed
from gate.model.facts import (
    CacheOrBroken,
    CasesNotCompared,
    ControlFell,
    CouldNotMeasure,
    CriteriaNotCompared,
    Doubt,
    Doubted,
    FailsAllOver,
    LostDecide,
    Outage,
    ShardMeasured,
    Stated,
    TradedOff,
    UnexplainedFailures,
)
from gate.model.findings import (
    CasesGone,
    ChecksFellAway,
    ConfirmationLost,
    FailuresGone,
    NoLongerMeasured,
    NothingRerun,
    PerhapsProvider,
    ScorerChanged,
    SlowedDown,
)
from gate.reports import explanation
from gate.reports.formatting import count, dollars, listing
from gate.reports.labels import basis, deciding, failing_cases, worse_cases

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
    """What to do about the verdict; empty where that is nothing."""
    if suite.accepted or suite.verdict is Verdict.PASS or isinstance(suite.cause, ShardMeasured):
        return ""  # of a shard the headline says what decides
    if suite.verdict is Verdict.INCONCLUSIVE:
        return _of_doubt(suite)
    if suite.verdict is Verdict.ERROR:
        return _of_error(suite)
    if suite.verdict is Verdict.REGRESSED and missed(suite):
        return "fix it; a missed threshold cannot be accepted"
    return {
        Verdict.REGRESSED: "fix it" if suite.trade is None else "fix what was lost, or accept the trade",
        Verdict.BELOW_THRESHOLD: "fix it, or change the threshold in a pull request of its own",
    }.get(suite.verdict, TO_MEASURE)


def accepting_helps(suite: SuiteResult) -> bool:
    """Whether someone may accept the verdict: a loss, or that what was compared is gone, or rules it was held to."""
    gone = any(isinstance(one, Stated | CriteriaNotCompared | CasesNotCompared) for one in suite.doubts)
    return suite.verdict in acceptable(suite) and (suite.verdict is Verdict.REGRESSED or gone)


ACCEPTED = "(gate baseline accept, once it is merged)"
"""How it is accepted everywhere; on GitHub a label does it, too."""
LOOK_AT_ERRORS = (
    "look at the errors with which the agent failed: if they are its own, fix it; "
    "if what it depends on was down, run the job again"
)


def _of_doubt(suite: SuiteResult) -> str:
    """What to do where neither unchanged nor worse can be said."""
    decided = deciding(suite)
    steps = [*_to_compare(decided), *filter(None, map(_against, suite.doubts))]
    if isinstance(cause := decided.cause, TradedOff):
        steps.append(_of_trade(cause))
    elif not steps or not isinstance(cause, Doubted):
        seen = worse_cases(suite) or failing_cases(suite)
        told = explanation.to_decide(suite) or "to decide: more cases or trials"
        steps.append(f"look at the cases below; {told}" if seen else told)
    return "; ".join(dict.fromkeys(filter(None, steps)))


def _to_compare(suite: SuiteResult) -> list[str]:
    """What would let criteria be compared again that are not; more trials would not."""
    apart = [(row.criterion.name, row.not_compared) for row in suite.criteria if row.criterion.blocking]
    changed = any(isinstance(why, ScorerChanged) for _, why in apart)
    gone = [name for name, why in apart if isinstance(why, NoLongerMeasured | CasesGone)]
    steps = ["score the baseline's own record again (gate rescore), or bring back what was compared"] if changed else []
    return steps + ([f"bring back what {listing(gone)} measured, or accept that it is gone {ACCEPTED}"] if gone else [])


def _against(doubt: Doubt) -> str:  # noqa: PLR0911 - one for each kind
    """What would settle a doubt; empty where nothing is known that would, or `_to_compare` says it."""
    match doubt:
        case Stated():
            return "settle what the headline names: it is no matter of trials"
        case ChecksFellAway():
            return "look at the answers of these cases: nothing in them can be checked"
        case CasesNotCompared():
            which = " and ".join(word for n, word in ((doubt.removed, "removed"), (doubt.edited, "edited")) if n)
            return f"bring back the {which} cases as they were, or accept that they are not compared {ACCEPTED}"
        case LostDecide():
            return TO_MEASURE
        case CacheOrBroken() | ControlFell():
            return "run the default branch's job again, which stores what its agent does now; then this one"
        case (
            UnexplainedFailures()
            | NothingRerun()
            | ConfirmationLost()
            | FailuresGone()
            | PerhapsProvider()
            | SlowedDown()
        ):
            return LOOK_AT_ERRORS
        case _:
            return ""


def _of_error(suite: SuiteResult) -> str:
    """What to do where nothing could be measured; an outage is of an agent that failed, and often its own mistake."""
    if suite.course is not None and suite.course.stopped:
        return "give the run what it was short of, then run the job again"
    if isinstance(suite.cause, CouldNotMeasure) and isinstance(suite.cause.problem, Outage | FailsAllOver):
        return "look at the error: if it is the agent's own, fix it; if what it depends on was down, run the job again"
    return TO_MEASURE


def _of_trade(found: TradedOff) -> str:
    """What to do about a trade that does not block by itself, and about what is undecided besides."""
    lost = listing(one.case_id for one in found.lost)
    look = f"look at what was lost ({lost}): fix it, or accept the trade" if found.policy != "accept" else ""
    open_ = f"to decide {listing(found.waits)}: more cases or trials" if found.waits else ""
    return "; ".join(filter(None, (look, open_)))


def story(suite: SuiteResult) -> tuple[str, ...]:
    """How the verdict came about, without what the next step says already."""
    todo = next_step(suite)
    return tuple(line for line in explanation.story(suite) if line not in todo)
