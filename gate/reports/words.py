"""The words of every finding: one template per kind, in one table; a function where a template is not enough.

No other module makes sentences from findings, and nothing parses them. Escapes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from gate.decision.outcomes import PASS_RATE
from gate.errors import ExitCode, brief
from gate.model import CrashFacts, CriterionResult, Direction, Scale, SuiteResult, Verdict
from gate.model.defaults import STORED_TRIALS
from gate.model.finding import CaseTally, Finding, Uncompared, Wording
from gate.reports import reasons
from gate.reports.behaviour import changed_behaviour
from gate.reports.by_tag import where
from gate.reports.formatting import (
    TYPICAL,
    agree,
    change,
    count,
    figures,
    listing,
    margin,
    percentage,
    percents,
    same_cases,
    with_means,
)
from gate.reports.labels import EXIT_MEANINGS, VERDICTS
from gate.reports.reasons import (
    broken_of,
    fails,
    how_it_differs,
    only_warns,
    reason,
    why_apart,
)
from gate.reports.wording import Table, clauses, fill

NOT_COMPARED = "not everything was compared with the base"
DRIFT = "the provider may have changed since the baseline was stored: the base was not run alongside this change"
NOT_LOOKED_FOR = "provider drift since the baseline was stored was not checked, because this fails anyway"
MANY_THIN = 0.1
"""The share of compared cases with a thin baseline from which the headline mentions it."""
MOST_UNPROVEN = 3


def tell(found: Finding, suite: SuiteResult | None = None) -> str:
    """Return a finding in words; ``suite``: the suite of the finding."""
    return "; ".join(clauses(found, WORDS, suite))


def tell_cause(suite: SuiteResult) -> tuple[str, tuple[str, ...]]:
    """Return the cause of the verdict: a title, and clauses with details."""
    cause = suite.cause
    if cause.problem:
        title, *more = _could_not_decide(cause, suite)
    else:
        title, *more = clauses(cause, WORDS, suite)
    return title, tuple(more)


def tell_cases(suite: SuiteResult) -> str:
    """Return the names of the cases of a cause; empty if the cause names them itself, or has none."""
    cause = suite.cause
    if cause.kind == "suite_got_worse":
        return suspects(suite)
    if cause.kind not in ("cases_broke", "cases_fail"):
        return ""
    named = listing(_ids(cause["cases"]))
    if suite.trade is not None:
        return f"worse: {named}"
    return named


def tell_short(found: Finding) -> str:
    """Return the headline's short form of a finding that is also in a list."""
    return "; ".join(clauses(found, IN_HEADLINE))


def only_reports(found: Finding, row: CriterionResult) -> bool:
    """True if a criterion that does not block misses its threshold or has no score."""
    if row.criterion.blocking or row.criterion.name == PASS_RATE:
        return False
    return found.verdict in (Verdict.BELOW_THRESHOLD, Verdict.NOT_MEASURED)


def tell_warning(found: Finding, row: CriterionResult) -> str:
    """Return a finding on a criterion as a warning."""
    if found.kind == "change":
        worse = with_means(change(found["change"].value, row.criterion.scale), row)
        told = f"{row.criterion.name} got worse beyond its margin: {worse}; this alone does not block"
        return told + _wording(found["wording"])
    told = f"{row.criterion.name}: {'; '.join(clauses(found, WORDS, row.criterion))}"
    if found.is_excused:
        return f"{told}: {WOULD}"
    if only_reports(found, row):
        return f"{told}; {NO_BLOCK}"
    if found.kind == "mean":
        often = percentage(found["chance"])
        return f"{told}; this is so close that an unchanged agent misses it in {often} of runs like this one"
    return told


NO_BLOCK = "it does not block"
WOULD = f"{NO_BLOCK} (`ratchet: false` would)"


# --- facts about a suite --------------------------------------------------------------------------


def is_lower_better(suite: SuiteResult, name: str) -> bool:
    """True if a lower value of a criterion is better."""
    row = suite.row(name)
    return row is not None and row.criterion.direction is Direction.LOWER


def losses_only_warn(suite: SuiteResult, name: str) -> bool:
    """True if no loss of a criterion can block, so that no number of cases would prove one."""
    row = suite.row(name)
    return row is not None and not row.criterion.blocks_regression


def causes(suite: SuiteResult, names: Sequence[str]) -> list[str]:
    """Return the criteria at fault, without composites of which a part is at fault: one cause is told once."""
    parts = {row.criterion.name: row.criterion.parts for row in suite.criteria}
    return [name for name in names if set(names).isdisjoint(parts.get(name, ()))]


def missed_besides(suite: SuiteResult) -> list[str]:
    """Return the thresholds, limits and hard rules that are missed besides a loss: nobody can accept these."""
    if suite.cause.verdict is not Verdict.REGRESSED or suite.cause.kind == "not_shown_fixed":
        return []
    names = [row.criterion.name for row in suite.criteria if row.criterion.blocking and row.is_below]
    said = []
    for name in causes(suite, names):
        row = suite.row(name)
        assert row is not None
        said.append(f"{criterion(name)} {fails(row)}")
    return said


def crashes(suite: SuiteResult, found: CrashFacts) -> str:
    """Return ``the agent failed in 9 of 15 trials of 3 cases, before in 0 of 15``; an arrow would suggest a gain."""
    number = len(found.cases)
    said = f"the agent failed in {found.failed} of {count(found.trials, 'trial')}"
    if _always_fails(suite):
        said = f"in {agree(number, 'this case', 'these cases')}, {said}"
    else:
        said += f" of {count(number, 'case')}"
    if found.baseline_trials:
        said += f", before in {found.baseline_failed} of {found.baseline_trials}"
    return said


def _always_fails(suite: SuiteResult) -> bool:
    """True if the broken cases are those in which the agent always fails: their number is the proof, too."""
    cause, found = suite.cause, suite.crashes
    if cause.kind != "cases_broke" or not cause["named"] or found is None:
        return False
    return set(_ids(cause["cases"])) == set(found.cases) and found.failed == found.trials


def _ids(cases: Iterable[CaseTally]) -> list[str]:
    return [one.case_id for one in cases]


def criterion(name: str) -> str:
    """Return a criterion's name as code, except for the pass rate."""
    if name == PASS_RATE:
        return name
    return "`" + name.replace("`", "'") + "`"


def about(drop: float) -> str:
    """Return a drop in whole points, or a small one with decimals."""
    if drop >= 0.015:
        return f"{percents(drop)} points"
    return margin(drop, Scale.BINARY)


def thin(suite: SuiteResult) -> str:
    """Return the losses that a thin baseline hides, and the remedy; empty if the baseline is not thin."""
    found = suite.warning("thin_baseline")
    is_beside = any(one.kind == "base_run_beside" for one in suite.changes)
    if found is None or suite.verdict not in (Verdict.PASS, Verdict.INCONCLUSIVE) or is_beside:
        return ""
    compared = len(suite.cases)
    if suite.outcome is not None:
        compared = suite.outcome.evidence.paired
    if found["cases"] < MANY_THIN * compared:
        return ""
    hidden = []
    if found["blind"]:
        hidden.append("a single broken case")
    if found["drop"] is not None and found["drop"] < 1:
        hidden.append(f"a drop of less than about {about(found['drop'])}")
    which = "each case"
    if found["cases"] < compared:
        which = f"{found['cases']} of {count(compared, 'case')}"
    missed = f"{' or '.join(hidden) or 'a loss'} may go unseen"
    few = f"the baseline has fewer than {count(found['wanted'], 'trial')} of {which}"
    return f"{missed}: {few}{_more_stored(found, suite)}"


def _more_stored(found: Finding, suite: SuiteResult) -> str:
    """Return the way to store more baseline trials, to be appended; empty for the long-term baseline, which no run
    fills up."""
    if suite.reference:
        return ""
    if found["grows"] and found["least"] >= STORED_TRIALS:
        return "; nightly runs would store more"
    if found["grows"]:
        return "; runs on the default branch store more"
    return f"; `baseline.trials: {found['wanted']}` makes runs on the default branch store more"


def pooled(cases: Iterable[CaseTally]) -> str:
    """Return ``27/33 → 0/33``: the number of passed trials in the baseline and now, over all cases."""
    passed_before = trials_before = passed = trials = 0
    for case in cases:
        passed_before += case.passed_before
        trials_before += case.trials_before
        passed += case.passed
        trials += case.trials
    return f"{passed_before:,}/{trials_before:,} → {passed:,}/{trials:,}"


# --- causes ---------------------------------------------------------------------------------------


def _could_not_decide(cause: Finding, suite: SuiteResult) -> list[str]:
    """Return that there is no verdict on the suite, and why."""
    said = [EXIT_MEANINGS[ExitCode.NOT_MEASURED], tell(cause)]
    if cause.kind == "agent_fails" and suite.crashes is not None:
        said.append(f"the error: {suite.crashes.message}")
    if suite.course is not None and suite.course.stopped:
        said.append(f"stopped: {suite.course.stopped}")
    return said


def _same_agent(cause: Finding, suite: SuiteResult) -> list[str]:
    same = f"the agent is the same as at {cause['commit'][:7]}"
    if cause["fell_short"]:
        same += f", which fell short ({VERDICTS[suite.verdict]})"
    return [same, "nothing was run, and its stored trials count"]


def _passes(cause: Finding, suite: SuiteResult) -> list[str]:
    if cause["compared"]:
        found = "no loss found"
        if any(map(only_warns, suite.criteria)):
            found = "no loss that blocks"
        return [f"{found} in {count(cause['compared'], 'case')}", _uncompared(cause["uncompared"])]
    cases = count(cause["cases"], "case")
    if cause["checked"] < cause["cases"]:
        cases = f"{cause['checked']} of {cases}"
    return [f"every threshold holds over {cases}", _uncompared(cause["uncompared"])]


def _uncompared(found: Uncompared) -> str:
    """Return the parts of the suite that could not be compared; empty if all were."""
    parts = []
    if found.new:
        parts.append(f"{found.new} new")
    if found.edited:
        parts.append(f"{found.edited} edited")
    said = []
    if parts:
        said.append(f"{' and '.join(parts)}, judged only by thresholds")
    if found.removed:
        said.append(f"{found.removed} removed")
    if found.quarantined:
        said.append(f"{found.quarantined} in quarantine, not judged")
    return ", ".join(said)


def _not_enough_evidence(cause: Finding, suite: SuiteResult) -> list[str]:
    said = [f"not enough evidence on {listing(map(criterion, causes(suite, cause['criteria'])))}"]
    if cause["suspects"]:
        said.append(f"suspected: {listing(cause['suspects'])}")
    return said


def _cases_broke(cause: Finding, suite: SuiteResult) -> list[str]:
    """Return how many cases broke, and their common change: ``the agent no longer calls `look_up```."""
    if cause["gained"]:
        return _traded(cause, suite)
    cases = _ids(cause["cases"])
    broke = count(len(cases), "case")
    if cause["of"]:
        broke = f"{len(cases)} of {count(cause['of'], 'case')}"
    said = [f"{broke} broke"]
    does, holds = changed_behaviour(suite.cases, cases)
    if does and holds < len(cases):
        said.append(f"the agent {does} in {holds} of the {len(cases)} cases that broke")
    elif does:
        said.append(f"the agent {does}")
    return said


def _suite_got_worse(cause: Finding, suite: SuiteResult) -> list[str]:
    """Return the deciding proof: a lower mean with its change, or drops of a few cases that no mean shows."""
    first, *others = causes(suite, cause["criteria"])
    row = suite.row(first)
    if cause["by_mean"] and row is not None:
        said = [f"{criterion(first)} {_how_it_fell(row)}", *how_it_differs(row)]
    else:
        said = [f"{criterion(first)} fell in some cases"]
    said.append(_in_cases_that_lost(cause, suite))
    held = [name for name in others if name not in cause["missed"]]
    if held:
        said.append(f"{listing(map(criterion, held))} got worse, too")
    if cause["perhaps_drift"] and cause["drift_moot"]:
        said.append(NOT_LOOKED_FOR)
    elif cause["perhaps_drift"]:
        said.append(DRIFT)
    return said


def _in_cases_that_lost(cause: Finding, suite: SuiteResult) -> str:
    """Return the change of behaviour that the cases with the largest losses have in common; empty if there is none."""
    lost = [one.case_id for one in (*cause["suspects"], *cause["fell"])]
    does, holds = changed_behaviour(suite.cases, lost)
    if not does:
        return ""
    which = agree(len(lost), "the case", f"the {len(lost)} cases")
    if holds < len(lost):
        which = f"{holds} of {which}"
    return f"in {which} that lost most, the agent {does}"


def _how_it_fell(row: CriterionResult) -> str:
    """Return how a mean moved: ``fell from 0.99 to 0.79``, ``rose by 40 % for a typical case``."""
    verb = "fell"
    if row.criterion.direction is Direction.LOWER:
        verb = "rose"
    worse = row.finding("change", Verdict.REGRESSED)
    if worse is None or row.compared is None:
        return "got worse"
    cases = count(worse["change"].cases, "case")
    if row.criterion.scale.is_relative:
        return f"{verb} by {percentage(abs(worse['change'].value))} for {TYPICAL} ({cases})"
    before, now = figures(row.compared, row.criterion.scale)
    return f"{verb} from {before} to {now} ({cases})"


def suspects(suite: SuiteResult) -> str:
    """Return the worst-looking cases if none is proven broken; empty if a tag explains the loss."""
    cause = suite.cause
    if where(suite):
        return ""
    row = suite.row(causes(suite, cause["criteria"])[0])
    broken: tuple[str, ...] = ()
    if row is not None and cause["by_mean"]:
        broken = broken_of(row)
    names = [one.case_id for one in cause["suspects"] if one.case_id not in broken]
    if not names and row is not None:
        for one in cause["fell"]:  # the cases whose score fell most, each with both scores
            before, now = figures((one.before, one.now), row.criterion.scale)
            names.append(f"{one.case_id} {before} → {now}")
    if not names:
        return ""
    return f"most suspect: {listing(names)}"


def _traded(cause: Finding, suite: SuiteResult) -> list[str]:
    """Return the lost and the gained cases."""
    broke, improved = "some cases got worse", "others improved"
    if cause["named"]:
        broke = f"{count(len(cause['cases']), 'case')} broke"
    if cause["gained_named"]:
        improved = f"{len(cause['gained'])} improved"
    return [f"a trade: {broke}, {improved}", _rates(suite), f"better: {listing(_ids(cause['gained']))}"]


def _rates(suite: SuiteResult) -> str:
    row = suite.row(PASS_RATE)
    if row is None or row.compared is None or row.change is None:
        return ""
    before, now = figures(row.compared, row.criterion.scale)
    said = f"pass rate {before} → {now}"
    if not same_cases(row):
        said += f" over {count(row.change.n, 'compared case')}"
    return said


def _drifted(cause: Finding, suite: SuiteResult) -> list[str]:
    named, verb = causes(suite, cause["criteria"]), "fell"
    if any(is_lower_better(suite, name) for name in named):
        verb = "got worse"
    fell = f"{listing(map(criterion, named))} {verb} against the stored baseline"
    return ["not shown to be this change", f"{fell}, but not against {STANDS_IN[cause['why']]}: drift or chance"]


STANDS_IN = {"drifted": "the base commit's agent run now", "moved_before": "its newest runs"}


def _criterion_fails(cause: Finding, suite: SuiteResult) -> list[str]:
    first = cause["criteria"][0]
    row = suite.row(first)
    how = "fails"
    if row is not None:
        how = fails(row)
    said = [f"{criterion(first)} {how}"]
    besides = [criterion(name) for name in suite.below if name != first]
    if besides:
        said.append(f"{listing(besides)} {agree(len(besides), 'fails', 'fail')}, too")
    return said


def _criterion_not_measured(cause: Finding, suite: SuiteResult) -> list[str]:
    first = cause["criteria"][0]
    row = suite.row(first)
    said = [f"{criterion(first)} could not be measured"]
    if row is not None:
        said.append(reason(row))
    return said


def _incomplete(cause: Finding, suite: SuiteResult) -> list[str]:
    """Return the parts of the baseline that were not compared; with the reason for criteria."""
    said = [NOT_COMPARED]
    for gap in cause["gaps"]:
        if gap.kind == "not_compared":
            said.append(f"{criterion(gap['criterion'])}: {why_apart(gap)}")
        else:
            said.append(tell(gap, suite))
    return said


# --- problems, changes and warnings ---------------------------------------------------------------


def _collapsed(found: Finding, suite: SuiteResult | None) -> str:
    fell = f"{found['criterion']} is at its worst in all {count(found['trials'], 'trial')} and was not at the base"
    if suite is not None and losses_only_warn(suite, found["criterion"]):
        return f"{fell}, although its losses only warn"
    if found["copies"]:
        return f"{fell}, but the repeats are copies of one answer and prove nothing"
    cases = count(found["cases"], "case")
    return f"{fell}, but {cases} {agree(found['cases'], 'is', 'are')} too few to prove a loss"


def _outage(found: Finding, _: object) -> str:
    cases = found["cases"]
    if not found["compared"]:
        which = {1: "the only case", 2: "both cases"}.get(cases, f"all {cases} cases")
        said = f"the agent failed in {which}"
    elif found["of"] == 1:
        said = "the agent fails in the only case, which it answered at the baseline"
    else:
        of = count(found["of"], "case")
        said = f"{cases} of {of} that answered at the baseline {agree(cases, 'fails', 'fail')} alike"
    if found["error"]:
        said += f": {brief(found['error'])}"
    return said


def _not_run(found: Finding, _: object) -> str:
    if found["cases"]:
        return fill("no trial of {cases:list} was run", found.data)
    if found["wanted"]:
        return fill("{epochs} of {wanted:epoch} {epochs:was|were} run", found.data)
    return fill("{quarantined:every case is in quarantine: nothing is left to judge|no cases}", found.data)


def _answered_by(found: Finding, _: object) -> str:
    now, before = listing(found["now"]), listing(found["before"])
    if found["what"] == "model":
        return f"the provider answered with {now} where the baseline had {before}"
    return f"the provider's system is {now} where it was {before} for the baseline"


def _model_changed(found: Finding, _: object) -> str:
    return f"{tell_short(found)}; unless this change did that, the provider drifted"


def _wording(found: Wording | None) -> str:
    """Return one answer as it is worded now, and the earlier one if known."""
    if found is None:
        return ""
    said = f'; {found.case_id}, for one, says "{found.now}"'
    if found.before:
        said += f', and said "{found.before}"'
    return said


def _thin_baseline(found: Finding, suite: SuiteResult) -> str:
    cases, wanted = count(found["cases"], "case"), count(found["wanted"], "baseline trial")
    told = f"{cases} with fewer than {wanted} (least: {found['least']})"
    if thin(suite):  # what it cannot show is already stated
        return told
    return f"{told}: a single broken case may be missed{_more_stored(found, suite)}"


def _provider_moved(found: Finding, _: object) -> str:
    """Return text like ``since 2026-05-02 10:00 UTC, abc1234 the same agent scores 4 points less on pass rate …``."""
    scale, direction = found["scale"], "more"
    if scale is Scale.UNIT:
        scale = Scale.BINARY
    if found["change"] < 0:
        direction = "less"
    since = f"since {datetime.fromtimestamp(found['since'], UTC):%Y-%m-%d %H:%M} UTC"
    if found["commit"]:
        since += f", {found['commit'][:7]}"
    scores = f"the same agent scores {margin(abs(found['change']), scale)} {direction} on {found['metric']}"
    rests = f"(p = {found['p']:.2g}, {count(found['runs'], 'run')})"
    said = f"{since} {scores} {rests}: the provider drifted"
    if found["baseline_is_older"]:
        return f"the baseline was measured before that: {said}"
    return said


def _unproven(found: Finding, _: object) -> str:
    """Return the unproven baselines, such as ``the baseline of abc1234 is unproven: …``, and why."""
    said = []
    if found["compared"]:
        shown = {"compared": [commit[:7] for commit in found["compared"][:MOST_UNPROVEN]], "why": found["why"]}
        said.append(fill(UNPROVEN, shown))
    for what, why in found["told"][:MOST_UNPROVEN]:
        said.append(f"{what}: {why}")
    more = len(found["told"]) - MOST_UNPROVEN
    if more > 0:
        said.append(f"{more} more")
    return "; ".join(said)


def _measured_before(found: Finding, _: object) -> str:
    anew, down = "each new version of the agent", ""
    if not found["fingerprinted"]:
        anew = "without a known version of the agent, each commit"
    if Verdict.ERROR in found["verdicts"]:
        down = ", what could not be measured, too"
    why = f"{anew} is measured anew{down}, and the error rate is that of one measurement"
    return f"{_measurement(found)}; {_before(found)} ({why})"


def _measured_again(found: Finding, _: object) -> str:
    return f"{_measurement(found)} ({_before(found)})"


def _measurement(found: Finding) -> str:
    return f"measurement {found['total'] + 1:,} of this change"


def _before(found: Finding) -> str:
    told = listing([VERDICTS[verdict] for verdict in found["verdicts"]])
    known, total = len(found["verdicts"]), found["total"]
    if known < total:
        return f"the newest {known} of {total:,} before: {told}"
    return f"before: {told}"


def _cases_changed(found: Finding, _: object) -> str:
    cases = found["cases"]
    if found["how"] == "renamed":
        cases = tuple([f"{before} → {now}" for before, now in zip(found["before"], cases, strict=True)])
    words = CASES_NOT_COMPARED
    if found.verdict is Verdict.PASS:
        words = CASES_CHANGED
    return fill(words[found["how"]], {**found.data, "cases": cases})


def _not_accepted(found: Finding, suite: SuiteResult) -> str:
    """Return that an acceptance does not count, and why."""
    if found["criteria"]:
        short = f"{listing(found['criteria'])} {agree(len(found['criteria']), 'misses', 'miss')}"
    elif suite.cause.kind == "nothing_passes":
        short = "no trial passes, which misses"
    else:
        short = "the suite misses"
    what = f"{short} a threshold, a limit or a hard rule, which cannot be accepted"
    return f"the acceptance by {found['by']} does not count: {what}"


# --- the words of each kind -----------------------------------------------------------------------

UNPROVEN = (
    "the baseline of {compared:list} {compared:is|are} unproven: no trusted job is known to have measured it"
    "{why:+ (#)}, and anybody who can write to the baseline store may have written it"
)
SAY_LITTLE = "{criteria:a score|scores} of {criteria:all} {criteria:proves|prove} little: "
ALIKE = "repeated trials give identical answers"
CASES_CHANGED = {
    "new": "new, judged only by thresholds: {cases:list}",
    "edited": "edited, judged only by thresholds: {cases:list}",
    "removed": "removed since the baseline: {cases:list}",
    "renamed": "renamed, and compared by their content: {cases:list}",
    "all": "none of the base's {of:case} is compared{edited:+ (# edited)}",
    "cut_off": "in {cases:n} of {of:case}, answers are cut off (`max_tokens`, or a content filter): {cases:list}",
}
CASES_NOT_COMPARED = {
    **CASES_CHANGED,
    "edited": "{cases:list} passed there, {cases:was edited and misses|were edited and miss} now",
    "removed": (
        "{cases:n} of the {of:case} that passed there {cases:was|were} removed"
        "{selected: or left the selection|}{unchecked: or left without expectations|} ({cases:list})"
    ),
}

WORDS: Table = {
    **reasons.WORDS,
    "stated": "{text}",
    # reasons why a suite could not be measured
    "not_run": _not_run,
    "outage": _outage,
    "collapsed": _collapsed,
    # causes of a verdict
    "shard": {
        Verdict.INCONCLUSIVE: (
            "shard {shard} of {of}",
            "{trials:trial} of {cases:case}; `gate merge` decides once all shards are done",
        ),
        Verdict.ERROR: ("shard {shard} of {of} was not measured", "{problem}"),
    },
    "passes": _passes,
    "cases_broke": _cases_broke,
    "suite_got_worse": _suite_got_worse,
    "criteria_decide": {
        Verdict.BELOW_THRESHOLD: _criterion_fails,
        Verdict.ERROR: _criterion_not_measured,
        Verdict.INCONCLUSIVE: {"": _not_enough_evidence, "drifted": _drifted, "moved_before": _drifted},
    },
    "nothing_passes": ("no trial passes (0 of {trials:,})", "no baseline is stored yet"),
    "not_shown_fixed": (
        "not shown to be fixed",
        "this change was measured as regressed {measurements:before|# measurements ago} and has not passed since",
        "now: {now}",
    ),
    "same_agent": _same_agent,
    "incomplete": _incomplete,
    # changes
    "answered_by": _model_changed,
    "base_run_beside": (
        "no baseline is stored yet, so the base commit's agent was run as well: gate baseline save on the default "
        "branch stores these runs"
    ),
    "tools_changed": "the tools of {servers:list} changed{changes:+: #| since the baseline was recorded}",
    "cases_changed": _cases_changed,
    "by_base_rules": "judged by the base's own rules; the change's stricter ones would say {stricter}",
    # warnings
    "thin_baseline": _thin_baseline,
    "provider_moved": _provider_moved,
    "unproven": _unproven,
    "measured_before": _measured_before,
    "answers_say_little": {
        "no_calls": SAY_LITTLE + "no answer reports a tool call, and some at the baseline did",
        "one_answer": SAY_LITTLE + "the agent gave one and the same answer {answers:time} in {cases:case}",
        "steady": ALIKE + ": a fixed seed, a cache, or a deterministic agent",
        "cut_off": (
            "{answers} of {of:answer} ended early, at the model's limit of length (`max_tokens`) or by a content filter"
        ),
        "other_runs_differ": (
            ALIKE + " in {cases} of {of:case}, and other runs give other answers: repeats count as one trial "
            "(is there a cache?)"
        ),
    },
    "tool_fails": "every call of `{tool}` failed, in {trials:trial}: {error}",
    "not_accepted": _not_accepted,
}
"""The words of every kind."""

IN_HEADLINE: Table = {
    "answered_by": _answered_by,
    "base_run_beside": (
        "compared with the agent at {commit:7}, run alongside this change"
        "{without_rules: by this change's rules, because the base has none|}"
    ),
    "cases_changed": "{never_passed:+# passed in no trial}",
    "stated": "{agent_key:+another agent than the base's: agent.# differs}",
    "measured_before": _measured_again,
}
"""The headline of each cause."""
