"""The one path from a record to a result, for every command: pair, decide, note, and name the exit code.

`gate run` takes it once its record is closed, `gate report`, `compare`, `merge` and the action for records of others.
Measures nothing and looks nothing up: a record, its references and the terms of judging come in, a result comes out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence, Set
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct, structs
from msgspec.structs import replace

from gate import __version__
from gate.baselines.beside import with_base
from gate.baselines.pairing import Reference, pair, reported_before
from gate.baselines.union import trials_of
from gate.config.base_policy import MOVED, Rules
from gate.config.load import Config
from gate.config.resolve import Plan
from gate.config.settings import expired_quarantine, settings_of
from gate.decision import Settings, Situation, exit_code, verdict_on
from gate.decision.comparison import PASS_RATE, passed
from gate.decision.consistency import compares_trials
from gate.decision.facts import MAX_WORDING_CHARS
from gate.decision.rules import place
from gate.errors import GateError, MeasureError
from gate.model import (
    APART,
    BASE,
    FULL,
    STORED,
    BaselineInfo,
    Case,
    CaseResult,
    Criterion,
    Result,
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
from gate.pipeline.division import at_least, comparisons_of, shared
from gate.pipeline.reference import References
from gate.pipeline.spent import spent_on
from gate.records import Header, PlannedCase, Record, cases_of, digested, fold_record
from gate.reports.formatting import count
from gate.suites import Selection
from gate.system.clock import now

MAX_SHOWN_CHARS = 20_000_000
"""Characters of failing answers that are held to be shown; those after are in the record alone."""


DESIGN = (
    "max_epochs",
    "exact_epochs",
    "rerun",
    "runs",
    "kept_epochs",
    "comparisons",
    "suites",
    "family",
    "stored_trials",
)
"""Settings that say how trials were asked for and in what job, not what they are held to."""


OF_RECORD = (
    "deselected",
    "selection",
    "scheduled",
    "doubts",
    "doubts_if_compared",
    "earlier",
    "anchored",
    "release",
    "same_as",
    "same_verdict",
)
"""Terms that are the record's own, whoever's rules it is judged by."""


class Terms(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """What a record is judged by, and what its reader is told besides. Kept in the record that a run closes.

    A key that is not known here, as one of another version, is refused: left out, it could make a verdict better.
    """

    criteria: tuple[Criterion, ...]
    settings: Settings = Settings()
    thresholds: Mapping[str, Mapping[str, float]] | None = None
    """Thresholds of single cases, by case and criterion; None: those of the record's plan."""
    deselected: frozenset[str] | None = None
    """Cases of the suite that were left out on purpose. None: of a record that says that some were, nobody knows which,
    and all that it lacks are taken for such."""
    selection: Mapping[str, Any] = {}
    """What the cases were selected by, as in the configuration; empty if all were to be run."""
    categories: Mapping[str, frozenset[str]] = {}
    """Tools by category, so that a call of one is not shown as a difference where its category was expected."""
    scheduled: bool = False
    """Whether a schedule decided from round to round what to run, so that each of its looks counts."""
    notes: tuple[str | Finding, ...] = ()
    """Warnings about how the record came about."""
    changes: tuple[str, ...] = ()
    """What of the change's own rules does not hold yet."""
    rules: str = ""
    """The commit whose rules these are; empty: the record's own."""
    doubts: tuple[str, ...] = ()
    """What the base holds and was not compared, in words; each keeps the suite from passing."""
    doubts_if_compared: tuple[str, ...] = ()
    """The same if a baseline is stored."""
    earlier: tuple[Verdict, ...] = ()
    """Earlier measurements of this change, judged again when it was measured, the newest first."""
    base: Terms | None = None
    """The base commit's own terms, where the change's differ: no verdict is better than the one under these."""
    command: str = ""
    """The command that reproduces the result; empty: the one that shows it."""
    anchored: bool = False
    """Whether the anchor is a reference too: the commit is on the default branch, or is a release."""
    release: str = ""
    """The tag that is to be released, if one is."""
    store: str = ""
    """The kind of store that baselines were looked up in; empty: the configuration's."""
    compared: tuple[str, ...] = ()
    """What the run compared its record with, as `identity` has it; empty: it does not say."""
    whole: bool = False
    """Whether everything that was measured of the commit counts, in one look, whatever it was run for."""
    base_has_no_rules: bool = False
    """Whether the base commit has no such configuration, so that its agent is held to the change's rules."""
    taken_up: int = 0
    """Trials of the record that an earlier job had measured."""
    same_as: str = ""
    """The commit whose stored trials these are: the agent, the cases and the criteria are the ones that were measured
    there, so that nothing was run and nothing can be lost. Empty: the trials are the record's own."""
    same_verdict: str = ""
    """What the ledger says of those trials if they fell short and nobody accepted that: then they still do."""
    past: tuple[float, ...] = ()
    """Pass rates of the default branch's runs before, the oldest first; shown, and no part of the verdict."""

    def plain(self) -> dict[str, Any]:
        """As JSON values, for the record."""
        found: dict[str, Any] = msgspec.to_builtins(replace(self, notes=()), order="deterministic")
        if self.notes:
            found["notes"] = [note if isinstance(note, str) else note.plain for note in self.notes]
        return found


def terms_of_plan(
    plan: Plan,
    config: Config,
    settings: Settings | None = None,
    *,
    notes: Sequence[str | Finding] = (),
    doubts: Sequence[str] = (),
    rules: Rules | None = None,
    release: str = "",
) -> Terms:
    """What a configuration judges a suite by. ``rules`` are those it comes from, where it is held to a base's.

    ``release``: the tag that is to be released, if one is; it has an error rate of its own.
    """
    settings = settings or settings_of(config, now(), release=bool(release))
    thresholds = {case.id: dict(case.thresholds) for case in plan.suite.cases if case.thresholds}
    return Terms(
        plan.criteria,
        settings,
        thresholds=thresholds,
        base=_base_terms(plan, settings, thresholds, rules.base, release) if rules is not None else None,
        deselected=plan.deselected,
        categories={name: frozenset(tools) for name, tools in config.file.tool_categories.items()},
        selection=plan.selection.model_dump(mode="json", exclude_unset=True) if plan.selection is not None else {},
        notes=tuple(dict.fromkeys((*plan.notes, *config.retired, *expired_quarantine(config, now()), *notes))),
        changes=rules.changes if rules is not None else (),
        rules=rules.commit if rules is not None else "",
        doubts=(*(rules.doubts if rules is not None else ()), *doubts),
        doubts_if_compared=(MOVED,) if rules is not None and rules.is_first else (),
    )


def _base_terms(
    plan: Plan, settings: Settings, thresholds: Mapping[str, Mapping[str, float]], base: Config | None, release: str
) -> Terms | None:
    """The base commit's own terms for the same trials; None where the plan's are no others, or none are known."""
    if base is None or not plan.base_criteria:
        return None
    design = {name: getattr(settings, name) for name in DESIGN}
    settings_before = replace(settings_of(base, now(), release=bool(release)), **design)
    before = {case.id: dict(plan.base_thresholds.get(case.id, {})) for case in plan.suite.cases}
    before = {case_id: stated for case_id, stated in before.items() if stated}
    if (plan.base_criteria, settings_before, before) == (plan.criteria, settings, thresholds):
        return None
    return Terms(plan.base_criteria, settings_before, thresholds=before)


def own_terms(record: Record, settings: Settings | None = None) -> Terms:
    """What the record's run judged it by; of a record that does not say, its criteria under these ``settings``.

    Raises:
        MeasureError: the record says so in a form that cannot be read.
    """
    kept = record.footer.terms if record.footer is not None else {}
    if not kept:
        return Terms(record.header.criteria, settings or Settings())
    try:
        return msgspec.convert(_with_notes(_without_retired(kept)), Terms)
    except (msgspec.ValidationError, TypeError) as error:
        raise MeasureError(
            f"the record's terms cannot be read: {error}", where=record.header.suite_id, hint="name a configuration: -c"
        ) from None


RETIRED = {"settings": ("longest_passes", "on_tradeoff"), "criteria": ("strict",)}
"""Keys of the terms in records of earlier versions that decide nothing any more."""


def _without_retired(kept: Mapping[str, Any]) -> dict[str, Any]:
    """Return the kept terms, those of the base included, without keys that decide nothing any more."""
    found = dict(kept)
    if isinstance(settings := found.get("settings"), Mapping):
        found["settings"] = {key: value for key, value in settings.items() if key not in RETIRED["settings"]}
    if isinstance(criteria := found.get("criteria"), Sequence) and not isinstance(criteria, str):
        found["criteria"] = [
            {key: value for key, value in one.items() if key not in RETIRED["criteria"]}
            if isinstance(one, Mapping)
            else one
            for one in criteria
        ]
    if isinstance(base := found.get("base"), Mapping):
        found["base"] = _without_retired(base)
    return found


def _with_notes(kept: dict[str, Any]) -> dict[str, Any]:
    """Return the kept terms with their notes as findings."""
    notes = kept.get("notes")
    if not isinstance(notes, list | tuple):
        return kept
    return {**kept, "notes": [note if isinstance(note, str) else Finding.read(note) for note in notes]}


def told_by(record: Record, terms: Terms, *, scope: bool = True) -> Terms:
    """The terms with what only the record's run can say: how it asked for trials, its notes and its command.

    With ``scope`` also what its command line selected: to what a run left out on purpose, nothing is owed.
    """
    own = own_terms(record)
    if scope and record.header.selected and own.deselected:
        deselected = own.deselected | (terms.deselected or frozenset())
        terms = replace(terms, deselected=deselected, selection=own.selection or terms.selection)
    if record.footer is not None and record.footer.terms:
        terms = with_design(terms, own.settings)
    notes = tuple(dict.fromkeys((*own.notes, *terms.notes)))
    return replace(
        terms,
        notes=notes,
        scheduled=own.scheduled,
        base_has_no_rules=own.base_has_no_rules,
        taken_up=own.taken_up,
        command=own.command,
        anchored=own.anchored or terms.anchored,
        release=own.release or terms.release,
    )


# --- a record as far as judging and showing need it -----------------------------------------------


class Keeper:
    """What stays of a trial that is on disk, so that any record fits: one that fails is kept to be shown."""

    def __init__(self, cases: Mapping[str, Case], criteria: Sequence[Criterion]) -> None:
        self._room = MAX_SHOWN_CHARS
        self._cases = cases
        self._criteria = [replace(criterion, blocking=True) for criterion in criteria]
        self._compares = compares_trials(self._criteria)
        self._text = MAX_WORDING_CHARS if any(criterion.lexical for criterion in criteria) else 0

    def keep(self, trial: Trial) -> Trial:
        case = self._cases.get(trial.case_id)
        failed = case is None or passed(trial, case, self._criteria) is False
        if failed and self._room > 0:
            self._room -= sum(len(turn.text) for turn in trial.invocations)
            return trial
        return digested(trial, failed=failed, calls=self._compares, text=self._text)


def keeper_of(header: Header, criteria: Sequence[Criterion] | None = None) -> Callable[[Trial], Trial]:
    """What keeps of each trial what `judge_record` wants; by the record's own criteria unless others are given."""
    cases = {case.id: case for case in cases_of(header)}
    return Keeper(cases, header.criteria if criteria is None else criteria).keep


def no_record(path: Path, error: type[GateError]) -> GateError:
    """The error for a path at which there is no file."""
    if path.is_dir():
        hint = "name a file in it, or none: then it is the newest of the results folder"
        return error("this is a folder, and a record is a file", where=str(path), hint=hint)
    return error("no such record", where=str(path))


def load_to_judge(source: Path | Record, *, criteria: Sequence[Criterion] | None = None) -> Record:
    """A closed record, of a file or as it is, as `judge_record` wants it.

    ``criteria`` say which trials fail; None: the record's own.

    Raises:
        MeasureError: missing, cut short, or damaged.
    """
    if isinstance(source, Path) and not source.is_file():
        raise no_record(source, MeasureError)

    def keeper(header: Header) -> Callable[[Trial], Trial]:
        return keeper_of(header, criteria)

    if isinstance(source, Path):
        return fold_record(source, keeper, error=MeasureError)
    if source.footer is None:
        raise MeasureError("the record is not closed", hint="continue its run with --resume")
    return replace(source, trials=tuple(map(keeper(source.header), source.trials)))


# --- the verdict ----------------------------------------------------------------------------------


def judge_record(record: Record, references: Sequence[Reference], terms: Terms) -> SuiteResult:
    """The verdict on a record as it stands; nothing is run.

    Against several references the first is the one whose figures are shown first, and the verdict is the worst of all.

    Raises:
        MeasureError: the record holds no trial.
    """
    whole, record = record, in_one_look(record) if terms.whole else judged_part(record)
    stopped = record.footer is not None and record.footer.stopped
    if not stopped and not any(trial.side is Side.CANDIDATE for trial in record.trials):
        raise MeasureError("the record has no trials", where=record.header.suite_id)
    references, terms = _same_alone(references, terms)
    references = with_base(whole.header, whole.trials, references)
    terms = _divided(terms, references)
    found = _against_all(record, references, terms)
    if terms.base is not None:
        context = {name: getattr(terms, name) for name in OF_RECORD}
        found = _no_better(found, _against_all(record, references, replace(terms.base, **context)))
    said = replace(
        found,
        cases=tuple(_with_categories(case, terms.categories) for case in found.cases),
        changes=tuple(dict.fromkeys((*found.changes, *map(_stated, terms.changes)))),
        warnings=tuple(dict.fromkeys((*found.warnings, *map(_told, terms.notes)))),
        **_spent(whole),
    )
    said = replace(said, trend=_trend(said, terms))
    said = said if terms.whole else with_stored(_with_base_runs(said, whole, references, terms), whole)
    said = _at_no_cost(said) if terms.same_as else said
    return replace(said, scope=_scope(record.header)) if record.header.whole else said


def _same_alone(references: Sequence[Reference], terms: Terms) -> tuple[Sequence[Reference], Terms]:
    """The record that the trials are of, alone; terms that say nothing of it where something else is compared with."""
    first = next(iter(references), None)
    if not terms.same_as or (first is not None and first.records and first.info.commit == terms.same_as):
        return [replace(first, records=first.records[:1])] if first is not None and terms.same_as else references, terms
    return references, replace(terms, same_as="", same_verdict="")


def _at_no_cost(found: SuiteResult) -> SuiteResult:
    """Return the result of trials that were not run for it."""
    course = replace(found.course, runs=0) if found.course is not None else None
    nothing = {"agent_runs": 0, "retried": 0, "cost_usd": None, "cost_basis": "", "cost_unknown": 0}
    return replace(found, course=course, **nothing)


def _trend(found: SuiteResult, terms: Terms) -> tuple[float, ...]:
    """The runs of the default branch where the terms have them, else those behind the baseline."""
    rate = next((row.candidate for row in found.criteria if row.criterion.name == PASS_RATE), None)
    return (*terms.past, rate.value) if rate is not None and len(terms.past) >= 2 else found.trend


def _stated(text: str) -> Finding:
    return Finding.of("stated", text=text)


def _told(note: str | Finding) -> Finding:
    return _stated(note) if isinstance(note, str) else note


def _divided(terms: Terms, references: Sequence[Reference]) -> Terms:
    """The terms with an alpha that is divided over what is compared here, if they do not say of more."""
    comparisons = comparisons_of(references, rules=rules_of(terms))
    base = terms.base
    if base is not None:
        base = replace(base, settings=at_least(base.settings, comparisons))
    return replace(terms, settings=at_least(terms.settings, comparisons), base=base)


def rules_of(terms: Terms) -> int:
    """How many sets of rules the record is judged by."""
    return 1 if terms.base is None else 2


def job_settings(
    config: Config,
    settings: Settings,
    plans: Sequence[Plan],
    baselines: Sequence[References],
    rules: Rules | None = None,
    *,
    beside: Sequence[bool] = (),
) -> Settings:
    """The settings of each suite of a job, whose error budget is divided over what the job compares.

    ``beside``: of each suite, whether it is compared with the base commit's agent in place of a stored baseline.
    """
    comparisons = [
        comparisons_of(found.all, rules=rules_of(terms_of_plan(plan, config, settings, rules=rules)), beside=is_beside)
        for plan, found, is_beside in zip(plans, baselines, beside or [False] * len(plans), strict=True)
    ]
    return shared(settings, len(plans), sum(comparisons))


def with_design(terms: Terms, settings: Settings) -> Terms:
    """The terms with how trials were asked for, and in what job, as these settings have it."""
    design = {name: getattr(settings, name) for name in DESIGN}
    base = None if terms.base is None else replace(terms.base, settings=replace(terms.base.settings, **design))
    return replace(terms, settings=replace(terms.settings, **design), base=base)


def _with_categories(case: CaseResult, categories: Mapping[str, frozenset[str]]) -> CaseResult:
    """The case with each expected category that a call of its turn satisfies under the name of that call."""
    if not categories or not any(call.category for turn in case.expected for call in turn or ()):
        return case
    turns = []
    for number, expected in enumerate(case.expected):
        free = [call.name for call in (case.actual[number] if number < len(case.actual) else ())]
        turns.append(None if expected is None else tuple(_named_call(call, free, categories) for call in expected))
    return replace(case, expected=tuple(turns))


def _named_call(call: ToolCall, free: list[str], categories: Mapping[str, frozenset[str]]) -> ToolCall:
    """Takes the first free name in the call's category, if there is one."""
    tools = categories.get(call.category or "", frozenset())
    name = next((name for name in free if name in tools), None)
    if name is None:
        return call
    free.remove(name)
    return replace(call, name=name, any_args=True)


def _against_all(record: Record, references: Sequence[Reference], terms: Terms) -> SuiteResult:
    """The verdict under one set of terms: the worst over all references."""
    reported = any(reported_before(record.header, reference) for reference in references)
    first = _against(record, references[0] if references else NO_REFERENCE, terms, reported=reported)
    alone = replace(terms, settings=replace(terms.settings, rerun="never"))
    others = [_against(_own(record), one, alone, reported=reported) for one in references[1:]]
    return _worst_of(first, others, references)


def _place(suite: SuiteResult) -> int:
    """Return the place of the rule that decided the suite, against whichever reference."""
    return place(suite.deciding.cause)


def _together(shown: SuiteResult, others: Sequence[SuiteResult]) -> SuiteResult:
    """Return the suite with what nobody can accept, under any of the rules and against any reference."""
    below = dict.fromkeys(name for one in (shown, *others) for name in one.below)
    return replace(shown, below=tuple(below), if_accepted=worst([one.if_accepted for one in (shown, *others)]))


def _no_better(held: SuiteResult, of_base: SuiteResult) -> SuiteResult:
    """Return what was found under the rules that hold, unless an earlier rule applies under the base's own."""
    if _place(of_base) >= _place(held):
        return _together(held, [of_base])
    other = Finding.of("by_base_rules", verdict=held.verdict)
    return _together(replace(of_base, changes=(*of_base.changes, other)), [held])


def _scope(header: Header) -> str:
    """What of the suite was run, as ``24 of 120 cases, tag smoke``."""
    return f"{len(header.plan)} of {count(header.whole, 'case')}, {header.scope}"


def accepted(suite: SuiteResult, found: References) -> SuiteResult:
    """The suite as people accepted it, or that they once did, if that has ended and it does not pass without."""
    if found.accepted:
        suite = accepted_by(suite, found.accepted)
        if suite.accepted:
            return suite
    return replace(suite, expired=found.expired) if found.expired and suite.verdict is not Verdict.PASS else suite


def _own(record: Record) -> Record:
    """Without the trials of the base's agent that ran beside: they say something of the first reference alone."""
    return replace(record, trials=tuple(trial for trial in record.trials if trial.side is Side.CANDIDATE))


NO_REFERENCE = Reference(BaselineInfo(None, missing="none was named"))


def _against(record: Record, reference: Reference, terms: Terms, *, reported: bool) -> SuiteResult:
    header, is_stored = record.header, bool(reference.records) and not reference.beside
    paired = pair(header.plan, terms.criteria, reference, deselected=_deselected(header, reference, terms))
    fell_below = terms.same_verdict == Verdict.BELOW_THRESHOLD  # and these trials are no excuse for themselves
    known = Situation(
        cases_of(header, terms.thresholds),
        terms.criteria,
        trials_of(record),
        paired.trials,
        terms.settings,
        seed=header.seed,
        suite_id=header.suite_id,
        not_comparable=paired.not_comparable,
        stored_runs=paired.runs,
        owed=paired.owed,
        stopped=record.footer.stopped if record.footer is not None else "",
        reported=reported,
        selected=header.selected,
        gaps=[_stated(text) for text in (*terms.doubts, *(terms.doubts_if_compared if is_stored else ()))],
        earlier=terms.earlier,
        excuses=paired.excuses and not (terms.anchored or terms.release or fell_below),
        same_as=terms.same_as,
        same_verdict=terms.same_verdict,
    )
    found = replace(verdict_on(known, scheduled=terms.scheduled), baseline=reference.info)
    if reference.beside and found.cause.kind == "suite_got_worse":  # the base's agent was run now
        return replace(found, cause=found.cause.but(perhaps_drift=False, drift_moot=False))
    return found


def _deselected(header: Header, reference: Reference, terms: Terms) -> Set[str]:
    if terms.deselected is not None or not header.selected:
        selection = Selection.model_validate(terms.selection) if terms.selection else None
        return (terms.deselected or frozenset()) | outside(selection, header.plan, reference)
    stored = {case.id for record in reference.records for case in record.header.plan}
    return stored - {case.id for case in header.plan}


def _worst_of(first: SuiteResult, others: Sequence[SuiteResult], references: Sequence[Reference]) -> SuiteResult:
    """The first, under the worst verdict of all; the others go with it, each under the name of its reference."""
    if not others:
        return first
    further = [
        replace(other, reference=reference.name) for other, reference in zip(others, references[1:], strict=True)
    ]
    worse = min(further, key=_place)
    found = _together(replace(first, further=tuple(further)), further)
    if _place(worse) >= _place(first):
        return found
    return replace(found, verdict=worse.verdict, decided_by=worse.reference)


def judged_part(record: Record) -> Record:
    """Without what was run for later changes, and in place of a baseline: that is no part of what is judged."""
    if not any(trial.tag in APART for trial in record.trials):
        return record
    return replace(record, trials=tuple(trial for trial in record.trials if trial.tag not in APART))


def _with_base_runs(suite: SuiteResult, record: Record, references: Sequence[Reference], terms: Terms) -> SuiteResult:
    """Return the suite with what was run in place of a stored baseline, and that it was compared with that."""
    runs = sum(trial.tag == BASE for trial in record.trials)
    if not runs:
        return suite
    course = suite.course
    if course is not None:
        of_base = {name: getattr(course, name) + runs for name in ("runs", "baseline_runs", "baseline_epochs")}
        course = replace(course, **of_base)
    suite = replace(suite, course=course, agent_runs=suite.agent_runs + runs)
    if not (references and references[0].beside and references[0].records):
        return suite
    said = Finding.of("base_run_beside", commit=record.header.base_commit or "", without_rules=terms.base_has_no_rules)
    return replace(suite, changes=(said, *suite.changes))


def in_one_look(record: Record) -> Record:
    """Every epoch of a record as if they had been run at once, whatever each was run for.

    Reruns were picked by their outcomes and are left out; what decides how often a case was run is the target alone.
    """
    own = [trial for trial in trials_of(record) if trial.side is Side.CANDIDATE and trial.tag in (FULL, STORED)]
    trials = tuple([replace(trial, tag=FULL, round=1) for trial in own])
    return replace(record, header=replace(record.header, runs=()), trials=trials)


def with_stored(suite: SuiteResult, record: Record) -> SuiteResult:
    """The suite as decided, with what its record holds for later changes, and what that cost."""
    own = Counter(trial.case_id for trial in record.trials if trial.tag == STORED)
    if not own:
        return suite
    kept = Counter(
        t.case_id for t in record.trials if t.tag in (FULL, STORED) and t.measured and t.side is Side.CANDIDATE
    )
    runs = sum(own.values())
    stored = StoredForLater(min(kept[case_id] for case_id in own), max(own.values()), runs)
    return replace(suite, **_spent(record), agent_runs=len(record.trials), stored=stored)


def _spent(record: Record) -> dict[str, Any]:
    """What the record's run cost."""
    footer = record.footer
    return {
        **structs.asdict(spent_on(record.trials)),
        "judge_cost_usd": footer.judge_cost_usd if footer else None,
        "duration": footer.duration if footer else 0.0,
        "commit": record.header.commit,
        "dirty": record.header.dirty,
        "started": record.header.created,
    }


def result_of(
    suites: Sequence[SuiteResult], settings: Settings, *, command: str, record_paths: Sequence[Path] = ()
) -> Result:
    """All suites under one verdict and one exit code."""
    return Result(
        suites=tuple(suites),
        verdict=worst([suite.verdict for suite in suites]),
        exit_code=exit_code(suites, settings),
        command=command,
        version=__version__,
        duration=sum(suite.duration for suite in suites),
        record_paths=tuple(str(path) for path in record_paths),
    )


def outside(selection: Selection | None, plan: Sequence[PlannedCase], reference: Reference) -> frozenset[str]:
    """The cases that the reference measured and the selection would not take of it: nothing is owed for them.

    By what the reference knows of a case; of its metadata it knows nothing, and a condition on it leaves none out.
    """
    if selection is None:
        return frozenset()
    known = selection.model_copy(update={"metadata": {}})
    here = {case.id for case in plan}
    stored = {case.id: case for record in reference.records for case in record.header.plan if case.id not in here}
    cases = (Case(case.id, (), tags=case.tags, complexity=case.complexity) for case in stored.values())
    return frozenset(case.id for case in cases if not known.takes(case))
