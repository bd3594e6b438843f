"""The one path from a record to a result, for every command: pair, decide, note, and name the exit code.

`gate run` takes it once its record is closed; `gate report`, `compare`, `merge` and the action take it for existing
records. It measures and looks up nothing: a record, its references and the terms of its verdict give a result.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from msgspec import structs
from msgspec.structs import replace

from gate import __version__
from gate.agents import AGENTS
from gate.baselines.pairing import excuses, pair, reported_before
from gate.baselines.reference import Reference, with_base
from gate.baselines.union import trials_of
from gate.config.tighten import AGENT_DIFFERS
from gate.decision import Settings, exit_code, verdict_on
from gate.decision.cases import MAX_WORDING_CHARS, reads_text
from gate.decision.consistency import compares_trials
from gate.decision.outages import outage_of
from gate.decision.outcomes import PASS_RATE, passed
from gate.decision.own_models import OwnModels, judges_of, moved, own_models_of
from gate.decision.rules import place
from gate.errors import MeasureError
from gate.model import (
    BASE,
    FULL,
    STORED,
    BaselineInfo,
    Case,
    CaseResult,
    Criterion,
    Result,
    Scale,
    Score,
    Side,
    StoredForLater,
    SuiteResult,
    ToolCall,
    Trial,
    Verdict,
    accepted_by,
    worst,
)
from gate.model.finding import Finding
from gate.pipeline.budget import spent_on
from gate.pipeline.references import References
from gate.pipeline.terms import Demands, Terms, divided_at_least, with_settings_of_run
from gate.records import Footer, Header, PlannedCase, Record, cases_of, digested, fold_record, iter_trials
from gate.reports.formatting import agree, count
from gate.reports.trials import SuiteTrials
from gate.suites import Selection

NO_REFERENCE = Reference(BaselineInfo(None, missing="no baseline was named"))
MAX_SHOWN_CHARS = 20_000_000
"""The most characters of failing answers kept to be shown; later ones are in the record alone."""


OTHER_SCORE = Score(None, error="scored with other options, by another scorer or judge: `gate rescore` scores it again")

# --- a record as far as judging and showing need it -----------------------------------------------


class Keeper:
    """Reduces each trial on disk to a digest, so that a run or a record of any length fits in memory.

    Failing trials are kept whole, to be shown, while there is ``room`` for their answers.
    """

    def __init__(self, cases: Mapping[str, Case], criteria: Sequence[Criterion], room: int = MAX_SHOWN_CHARS) -> None:
        self._room = room
        self._cases = cases
        self._criteria = [replace(criterion, blocking=True) for criterion in criteria]
        self._compares = compares_trials(self._criteria)
        self._times = any(criterion.scale is Scale.SECONDS for criterion in criteria)
        self._text = 0
        if any(map(reads_text, criteria)):
            self._text = MAX_WORDING_CHARS

    def keep(self, trial: Trial) -> Trial:
        """Return the part of a trial that stays in memory."""
        case = self._cases.get(trial.case_id)
        failed = case is None or passed(trial, case, self._criteria) is False
        if failed and self._room > 0:
            for turn in trial.invocations:
                self._room -= len(turn.text)
            return trial
        return digested(trial, failed=failed, calls=self._compares, names=self._times, text=self._text)


def keeper_of(header: Header, criteria: Sequence[Criterion] | None = None) -> Callable[[Trial], Trial]:
    """Return a function that keeps the part of a trial that `judge_record` needs; ``criteria`` replace the record's."""
    if criteria is None:
        criteria = header.criteria
    cases = {case.id: case for case in cases_of(header)}
    return Keeper(cases, criteria).keep


def load_to_judge(source: Path | Record, *, criteria: Sequence[Criterion] | None = None) -> Record:
    """Return a closed record, from a file or as given, reduced to what `judge_record` needs.

    ``criteria`` decide which trials fail; None: the record's own.

    Raises:
        MeasureError: the record is missing, cut short or damaged.
    """
    keeper = partial(keeper_of, criteria=criteria)
    if isinstance(source, Path):
        return fold_record(source, keeper)
    if source.footer is None:
        raise MeasureError("the record is not closed", hint="continue its run with --resume")
    return replace(source, trials=tuple(map(keeper(source.header), source.trials)))


# --- the verdict ----------------------------------------------------------------------------------


def judge_record(record: Record, references: Sequence[Reference], terms: Terms) -> SuiteResult:
    """Return the verdict on a record as it stands; nothing is run.

    With several references, the figures against the first are shown first, and the verdict is the worst of all.

    Raises:
        MeasureError: the record has no trials.
    """
    whole = _without_other_scores(record, terms.criteria)
    terms = _without_other_calibrations(terms, judges_of(whole.trials))
    record = whole
    if terms.whole:
        record = in_one_look(whole)
    elif any(trial.tag == BASE for trial in whole.trials):  # they take the place of a stored baseline
        record = replace(whole, trials=tuple([trial for trial in whole.trials if trial.tag != BASE]))
    stopped = record.footer is not None and record.footer.stopped
    if not stopped and not any(trial.side is Side.CANDIDATE for trial in record.trials):
        raise MeasureError("the record has no trials", where=record.header.suite_id)
    references, terms = _about_same_trials(references, terms)
    references = with_base(whole.header, whole.trials, references)
    terms = divided_at_least(terms, references)
    found = _against_all(record, references, terms, terms)
    if terms.base is not None:
        base = replace(terms.base, settings=with_settings_of_run(terms.base.settings, terms.settings))
        found = _stricter_of(found, _against_all(record, references, base, terms))
    found = replace(
        found,
        cases=_with_categories(found.cases, terms.categories),
        changes=tuple(dict.fromkeys((*found.changes, *map(_change, terms.changes)))),
        warnings=tuple(dict.fromkeys((*found.warnings, *map(_finding, terms.notes)))),
        scope=_scope(record.header),
        **_spent(whole),
    )
    rate = found.row(PASS_RATE)
    if rate is not None and rate.candidate is not None and len(terms.past) > 1:
        found = replace(found, trend=(*terms.past, rate.candidate.value))
    if terms.saving and found.verdict is Verdict.PASS and not any(map(_got_worse, found.cases)):
        found = replace(found, warnings=(*found.warnings, _stated(terms.saving)))
    if not terms.whole:
        found = with_stored(_with_base_runs(found, whole, references, terms), whole)
    if terms.same_as:  # no trial was run for it
        if found.course is not None:
            found = replace(found, course=replace(found.course, runs=0))
        found = replace(found, agent_runs=0, retried=0, cost_usd=None, cost_basis="", cost_unknown=0)
    return found


def _without_other_scores(record: Record, criteria: Sequence[Criterion]) -> Record:
    """Return the record, with scores that were measured by another form of these criteria as not measured."""
    measured = record.header.measures
    other = set()
    for criterion in criteria:
        if measured.get(criterion.name, criterion.fingerprint) != criterion.fingerprint:
            other.add(criterion.name)
    if not other:
        return record
    trials = []
    for trial in record.trials:
        lost = dict.fromkeys(other.intersection(trial.scores), OTHER_SCORE)
        trials.append(replace(trial, scores={**trial.scores, **lost}))
    return replace(record, trials=tuple(trials))


def _without_other_calibrations(terms: Terms, answered: OwnModels) -> Terms:
    """Return the terms without calibrations of a model other than the one that answered, with a note for each."""
    notes: list[str] = []

    def without(criteria: Sequence[Criterion]) -> tuple[Criterion, ...]:
        kept = []
        for criterion in criteria:
            known = criterion.calibration
            if known is not None and moved(answered.get(criterion.name, ()), known.judges):
                what = "its calibration is of another model than the one that answered: run `gate calibrate` again"
                notes.append(f"{criterion.name}: {what}: nothing is corrected")
                kept.append(replace(criterion, calibration=None))
            else:
                kept.append(criterion)
        return tuple(kept)

    base = terms.base
    if base is not None:
        base = replace(base, criteria=without(base.criteria))
    terms = replace(terms, criteria=without(terms.criteria), base=base)
    return replace(terms, notes=(*terms.notes, *dict.fromkeys(notes)))


def _about_same_trials(references: Sequence[Reference], terms: Terms) -> tuple[Sequence[Reference], Terms]:
    """Return only the record that the trials belong to, and, if it is not the reference, terms that do not mention
    it."""
    if not terms.same_as:
        return references, terms
    first = references[0] if references else NO_REFERENCE
    if first.records and first.commit == terms.same_as:
        return [replace(first, records=first.records[:1])], terms
    return references, replace(terms, same_as="", same_verdict="")


def _got_worse(case: CaseResult) -> bool:
    """True if a smaller share of the case's trials passed than at the baseline."""
    return case.passed * case.baseline_trials < case.baseline_passed * case.trials


def _stated(text: str) -> Finding:
    return Finding.of("stated", text=text)


def _change(text: str) -> Finding:
    """Return a finding for a difference from the base's rules; another kind or start of the agent goes into the
    headline."""
    key = text.removeprefix(AGENT_DIFFERS).partition(":")[0]
    if text.startswith(AGENT_DIFFERS) and key in AGENTS:
        return Finding.of("stated", text=text, agent_key=key)
    return _stated(text)


def _finding(note: str | Finding) -> Finding:
    if isinstance(note, Finding):
        return note
    return _stated(note)


def _with_categories(cases: Sequence[CaseResult], categories: Mapping[str, frozenset[str]]) -> tuple[CaseResult, ...]:
    """Return the cases with each expected category named after the call of its turn that satisfies it."""
    if not categories:
        return tuple(cases)
    found = []
    for case in cases:
        turns: list[tuple[ToolCall, ...] | None] = []
        for number, expected in enumerate(case.expected):
            if expected is None:
                turns.append(None)
                continue
            free: list[str] = []
            if number < len(case.actual):
                free = [call.name for call in case.actual[number]]
            turns.append(tuple([_named_call(call, free, categories) for call in expected]))
        found.append(replace(case, expected=tuple(turns)))
    return tuple(found)


def _named_call(call: ToolCall, free: list[str], categories: Mapping[str, frozenset[str]]) -> ToolCall:
    """Return the call under the first free name in its category, and take that name; unchanged if there is none."""
    tools = categories.get(call.category or "", frozenset())
    for name in free:
        if name in tools:
            free.remove(name)
            return replace(call, name=name, any_args=True)
    return call


def _against_all(record: Record, references: Sequence[Reference], demands: Demands, terms: Terms) -> SuiteResult:
    """Return the verdict under one commit's demands: the worst over all references."""
    reported = any(reported_before(record.header, reference) for reference in references)
    first, *others = references or [NO_REFERENCE]
    found = _against(record, first, demands, terms, reported=reported)
    if not others:
        return found
    once = replace(demands, settings=replace(demands.settings, rerun="never"))
    # Trials of the base's agent concern only the first reference.
    of_change = replace(record, trials=tuple([trial for trial in record.trials if trial.side is Side.CANDIDATE]))
    further = []
    for reference in others:
        result = _against(of_change, reference, once, terms, reported=reported)
        further.append(replace(result, reference=reference.name))
    worse = min(further, key=_rule_place)
    shown = _with_what_nobody_accepts(replace(found, further=tuple(further)), further)
    if _rule_place(worse) >= _rule_place(found):
        return shown
    return replace(shown, verdict=worse.verdict, decided_by=worse.reference)


def _rule_place(suite: SuiteResult) -> int:
    """Return the rank of the rule that decided the suite, against any reference."""
    return place(suite.deciding.cause)


def _with_what_nobody_accepts(shown: SuiteResult, others: Sequence[SuiteResult]) -> SuiteResult:
    """Return the suite with the failures that nobody can accept, under any of the rules and against any reference."""
    every = [shown, *others]
    below = dict.fromkeys(chain.from_iterable([one.below for one in every]))
    return replace(shown, below=tuple(below), if_accepted=worst([one.if_accepted for one in every]))


def _stricter_of(held: SuiteResult, of_base: SuiteResult) -> SuiteResult:
    """Return the result under the rules in force, unless an earlier rule decides under the base's own."""
    if _rule_place(of_base) >= _rule_place(held):
        return _with_what_nobody_accepts(held, [of_base])
    other = Finding.of("by_base_rules", stricter=held.verdict)
    return _with_what_nobody_accepts(replace(of_base, changes=(*of_base.changes, other)), [held])


def _scope(header: Header) -> str:
    """Return the part of the suite that was run: ``24 of 120 cases were run: tag smoke``; empty if it is all of it."""
    if not header.whole:
        return ""
    were = agree(len(header.plan), "was", "were")
    return f"{len(header.plan)} of {count(header.whole, 'case')} {were} run: {header.scope}"


def accepted(suite: SuiteResult, found: References) -> SuiteResult:
    """Return the suite as accepted; if it does not pass and an acceptance has ended, with a note of that."""
    if found.accepted:
        suite = accepted_by(suite, found.accepted)
    if found.expired and not suite.accepted and suite.verdict is not Verdict.PASS:
        return replace(suite, expired=found.expired)
    return suite


def _against(record: Record, reference: Reference, demands: Demands, terms: Terms, *, reported: bool) -> SuiteResult:
    header = record.header
    deselected: Set[str] = terms.deselected or frozenset()
    if terms.deselected is None and header.selected:
        deselected = {case.id for case in _newest_plan(reference)}.difference([case.id for case in header.plan])
    elif terms.selection:
        selection = Selection.model_validate(terms.selection)
        deselected = left_out_by(selection, deselected, header.plan, reference)
    paired = pair(
        header.plan,
        demands.criteria,
        reference,
        deselected=deselected,
        models=own_models_of(record.trials),
    )
    fell_below = terms.same_verdict == Verdict.BELOW_THRESHOLD  # then these trials are no excuse for themselves
    doubts, stopped = terms.doubts, ""
    if reference.records and not reference.beside:
        doubts = (*doubts, *terms.doubts_if_compared)
    if record.footer is not None:
        stopped = record.footer.stopped
    known = replace(
        paired,
        cases=cases_of(header, demands.thresholds),
        trials=trials_of(record),
        settings=demands.settings,
        seed=header.seed,
        suite_id=header.suite_id,
        stopped=stopped,
        reported=reported,
        selected=header.selected,
        gaps=[_stated(text) for text in doubts],
        earlier=terms.earlier,
        excuses=excuses(reference, header) and not (terms.anchored or terms.release or fell_below),
        same_as=terms.same_as,
        same_verdict=terms.same_verdict,
    )
    return replace(verdict_on(known, scheduled=terms.scheduled), baseline=reference.info)


def _with_base_runs(suite: SuiteResult, record: Record, references: Sequence[Reference], terms: Terms) -> SuiteResult:
    """Return the suite with the runs made in place of a stored baseline, and a note that it was compared with them."""
    runs = [trial.tag for trial in record.trials].count(BASE)
    if not runs:
        return suite
    course = suite.course
    if course is not None:
        course = replace(
            course,
            runs=course.runs + runs,
            baseline_runs=course.baseline_runs + runs,
            baseline_epochs=course.baseline_epochs + runs,
        )
    suite = replace(suite, course=course, agent_runs=suite.agent_runs + runs)
    if not (references and references[0].beside and references[0].records):
        return suite
    said = Finding.of("base_run_beside", commit=record.header.base_commit or "", without_rules=terms.base_has_no_rules)
    return replace(suite, changes=(said, *suite.changes))


# --- the result of a shard -----------------------------------------------------------------------


def shard_result(record: Record, most_errors: float) -> SuiteResult:
    """Return the result of a shard, which only shows if its cases were measured: it never passes or regresses.

    ``most_errors`` is the share of unmeasured trials that it may have.
    """
    header, own = record.header, record.header.own_cases
    trials = [trial for trial in record.trials if trial.tag not in (BASE, STORED)]
    errors = [trial.measured for trial in trials].count(False)
    problem = _shard_problem(own, trials, errors, most_errors)
    verdict = Verdict.ERROR
    if problem is None:
        verdict = Verdict.INCONCLUSIVE
    index, total = header.shard
    cause = Finding.of("shard", verdict, shard=index, of=total, trials=len(trials), cases=len(own), problem=problem)
    found = SuiteResult(
        suite_id=header.suite_id,
        verdict=verdict,
        cause=cause,
        criteria=(),
        cases=(),
        agent_runs=len(record.trials) - [trial.tag for trial in record.trials].count(STORED),
        errors=errors,
        seed=header.seed,
        **_spent(record),
    )
    return with_stored(found, record)


def _shard_problem(own: Sequence[str], trials: Sequence[Trial], errors: int, most: float) -> Finding | None:
    """Return the reason why the shard cannot be used for the whole run; None if it can."""
    if trials and errors / len(trials) > most:
        return Finding.of("trials_lost", lost=errors, of=len(trials), most=most)
    if trials and not any(trial.answered for trial in trials):
        cases = {trial.case_id for trial in trials}
        return outage_of(trials, cases=len(cases), of=len(own), compared=False)
    silent = set(own).difference([trial.case_id for trial in trials])
    if silent:
        return Finding.of("not_run", cases=tuple(sorted(silent)))
    return None


# --- trials that count together -------------------------------------------------------------------


def in_one_look(record: Record) -> Record:
    """Return a record with all its epochs as if run at once, whatever each was run for.

    Reruns were picked by their outcomes and are left out; the number of runs of a case depends on the target alone.
    """
    trials = []
    for trial in trials_of(record):
        if trial.is_of_epoch:
            trials.append(replace(trial, tag=FULL, round=1))
    return replace(record, header=replace(record.header, runs=()), trials=tuple(trials))


def with_stored(suite: SuiteResult, record: Record) -> SuiteResult:
    """Return the decided suite with the trials that its record holds for later changes."""
    further, kept = Counter[str](), Counter[str]()
    for trial in record.trials:
        further[trial.case_id] += trial.tag == STORED
        kept[trial.case_id] += trial.is_of_epoch and trial.measured
    further = +further  # only the cases that have some
    if not further:
        return suite
    stored = StoredForLater(min([kept[case_id] for case_id in further]), max(further.values()), further.total())
    return replace(suite, agent_runs=len(record.trials), stored=stored)


def _spent(record: Record) -> dict[str, Any]:
    """Return the cost of the record's run, its time and its commit."""
    footer = record.footer or Footer(0, 0, 0)
    return {
        **structs.asdict(spent_on(record.trials)),
        "judge_cost_usd": footer.judge_cost_usd,
        "duration": footer.duration,
        "commit": record.header.commit,
        "dirty": record.header.dirty,
        "subject": record.header.subject,
        "branch": record.header.branch,
        "started": record.header.created,
    }


def result_of(
    suites: Sequence[SuiteResult], settings: Settings, *, command: str, record_paths: Sequence[Path] = ()
) -> Result:
    """Return all suites under one verdict and one exit code."""
    return Result(
        suites=tuple(suites),
        verdict=worst([suite.verdict for suite in suites]),
        exit_code=exit_code(suites, settings),
        command=command,
        version=__version__,
        duration=sum([suite.duration for suite in suites]),
        record_paths=tuple(map(str, record_paths)),
    )


def left_out_by(
    selection: Selection | None, deselected: Set[str], plan: Sequence[PlannedCase], reference: Reference
) -> frozenset[str]:
    """Return the cases that need not be compared because the selection leaves them out.

    The selection applies to the reference's data: a case that has lost its tag since is still expected. A reference has
    no metadata, so a condition on metadata leaves out the cases that are ``deselected`` now.
    """
    if selection is None:
        return frozenset(deselected)
    known = selection.model_copy(update={"metadata": {}})
    planned = {case.id for case in plan}
    left_out = set(deselected)
    for case in _newest_plan(reference):
        if case.id in planned:
            continue
        if not known.takes(Case(case.id, (), tags=frozenset(case.tags), complexity=case.complexity)):
            left_out.add(case.id)
        elif not selection.metadata:
            left_out.discard(case.id)
    return frozenset(left_out)


def _newest_plan(reference: Reference) -> Iterable[PlannedCase]:
    """Return each case of a reference as its nearest record has it."""
    found: dict[str, PlannedCase] = {}
    for record in reference.records:
        for case in record.header.plan:
            found.setdefault(case.id, case)
    return found.values()


# --- the trials behind a verdict ------------------------------------------------------------------


def shown_trials(source: Path | Record, header: Header, reference: Reference, terms: Terms) -> SuiteTrials:
    """Return the trials of each case in the record and in its first reference."""

    def read() -> Iterable[Trial]:
        if isinstance(source, Record):
            return source.trials
        return iter_trials(source)

    before = pair(header.plan, terms.criteria, reference).stored
    return SuiteTrials(cases_of(header, terms.thresholds), terms.criteria, read, before)
