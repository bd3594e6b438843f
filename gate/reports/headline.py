"""What a reviewer reads first: what happened, what it cost, what to do about it. Plain words; escapes nothing."""

from __future__ import annotations

from gate.model import CaseStatus, CriterionResult, SuiteResult, Verdict
from gate.reports import explanation
from gate.reports.formatting import change_interval, count, dollars, figure
from gate.reports.labels import deciding, failing_cases, worse_cases


def headline(suite: SuiteResult) -> str:
    """One line: what happened. Of a regression: how many cases, of what, from where to where."""
    against = deciding(suite)
    found = next((c for c in against.criteria if c.verdict is Verdict.REGRESSED and c.criterion.blocking), None)
    if suite.verdict is not Verdict.REGRESSED or found is None or not (found.candidate and found.baseline):
        return explanation.headline(suite)
    scale = found.criterion.scale
    before, now = (figure(side.value, scale) for side in (found.baseline, found.candidate))
    change = f", {change_interval(found.change, scale)}" if found.change else ""
    named = f"against the {suite.decided_by}: " if suite.decided_by else ""
    scope = f"; {suite.scope}" if suite.scope else ""
    return f"{named}{_how_many(against, found)}{found.criterion.name} {before} → {now}{change}{scope}"


def _how_many(suite: SuiteResult, found: CriterionResult) -> str:
    worse = [case for case in worse_cases(suite) if case.status is not CaseStatus.ERROR]
    broken = sum(case.status is CaseStatus.BROKEN for case in worse)
    number, verb = (broken, "broke") if broken else (len(worse), "got worse")
    of = found.change.n if found.change else len(suite.cases)
    return f"{number:,} of {count(of, 'case')} {verb}: " if 0 < number <= of else ""


def cost(suite: SuiteResult) -> str:
    """Money and runs: ``$0.024 · 24 runs``."""
    parts = []
    if suite.cost_usd is not None:
        parts.append(dollars(suite.cost_usd + (suite.judge_cost_usd or 0.0)))
    elif suite.judge_cost_usd:  # what the agent cost is not known, which is not nothing
        parts.append(f"{dollars(suite.judge_cost_usd)} for the judge alone")
    parts.append(count(suite.agent_runs, "run"))
    return " · ".join([*parts, *([count(suite.errors, "infrastructure error")] if suite.errors else [])])


def next_step(suite: SuiteResult) -> str:
    """What to do about the verdict; empty where that is nothing."""
    if suite.accepted or suite.verdict is Verdict.PASS:
        return ""
    if suite.verdict is Verdict.INCONCLUSIVE:
        if any(found.not_compared and found.criterion.blocking for found in suite.criteria):
            return "score the baseline's own record again (gate rescore), or bring back what was compared"
        seen = worse_cases(suite) or failing_cases(suite)
        told = explanation.to_decide(suite) or "to decide: more cases or trials"
        return f"look at the cases below; {told}" if seen else told
    return {
        Verdict.REGRESSED: "fix it",
        Verdict.BELOW_THRESHOLD: "fix it, or change the threshold in a pull request of its own",
    }.get(suite.verdict, "fix what prevented the measurement, then run the job again")
