"""The terms of a verdict: what is demanded of a record, how it was measured, and how a job divides its error budget.

A user takes one decision per job. So ``alpha`` is divided over the job's comparisons (Bonferroni): each suite with each
of its references that has records. What has no baseline cannot be called regressed, and takes no part. Once suites are
proven, the others are judged by what is left (Holm): the job is blocked already, and the same trials may name more.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from gate.baselines.reference import Reference
from gate.config.base_policy import MOVED, Rules
from gate.config.load import Config
from gate.config.resolve import Plan
from gate.config.settings import expired_quarantine, settings_of
from gate.decision import Settings
from gate.errors import MeasureError
from gate.model import Criterion, SuiteResult, Verdict
from gate.model.finding import Finding
from gate.pipeline.references import References
from gate.records import Record
from gate.system.clock import now

SETTINGS_OF_RUN = (
    "max_epochs",
    "exact_epochs",
    "rerun",
    "runs",
    "kept_epochs",
    "comparisons",
    "suites",
    "family",
    "stored_trials",
    "goal",
)
"""Settings that say how trials were asked for and in what job, not what they are held to."""


class Demands(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """The demands of one commit's rules on a record.

    A key that is not known here, as one of another version, is refused: left out, it could make a verdict better.
    """

    criteria: tuple[Criterion, ...]
    settings: Settings = Settings()
    thresholds: Mapping[str, Mapping[str, float]] | None = None
    """Thresholds of single cases, by case and criterion; None: those of the record's plan."""


class RunDesign(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """The way in which a record came about, as far as its verdict depends on it."""

    scheduled: bool = False
    """True if a schedule decided from round to round what to run, so that each of its looks counts."""
    whole: bool = False
    """True if all of the commit's trials count in one look, whatever their purpose."""
    anchored: bool = False
    """True if the anchor is a reference too: the commit is on the default branch, or is a release."""
    release: str = ""
    """The tag that is to be released, if any."""
    store: str = ""
    """The kind of store that baselines were looked up in; empty: the configuration's."""
    compared: tuple[str, ...] = ()
    """The references that the run compared its record with, as `identity` has them; empty if it does not say."""
    base_has_no_rules: bool = False
    """True if the base commit has no such configuration, so that its agent is held to the change's rules."""
    same_as: str = ""
    """The commit whose stored trials these are: the agent, the cases and the criteria are the ones that were measured
    there, so that nothing was run and nothing can be lost. Empty: the trials are the record's own."""
    same_verdict: str = ""
    """The ledger's verdict on those trials if they fell short and nobody accepted that: then they still do."""
    earlier: tuple[Verdict, ...] = ()
    """Earlier measurements of this change, judged again when it was measured, the newest first."""
    taken_up: int = 0
    """Trials of the record that an earlier job had measured; shown, and no part of the verdict."""
    past: tuple[float, ...] = ()
    """Pass rates of the default branch's runs before, the oldest first; shown, and no part of the verdict."""
    command: str = ""
    """The command that reproduces the result; empty: the one that shows it."""


class Terms(Demands, frozen=True):
    """The demands on a record, how it was measured, and notes for its reader. Kept in the closed record."""

    deselected: frozenset[str] | None = None
    """Cases of the suite that were left out on purpose. None: of a record that says that some were, nobody knows which,
    and all that it lacks are taken for such."""
    selection: Mapping[str, Any] = {}
    """The selection of cases, as in the configuration; empty if all were to be run."""
    categories: Mapping[str, frozenset[str]] = {}
    """Tools by category, so that a call of one is not shown as a difference where its category was expected."""
    base: Demands | None = None
    """The demands of the base commit, if they differ: no verdict is better than the one under them."""
    rules: str = ""
    """The commit whose rules these are; empty: the record's own."""
    changes: tuple[str, ...] = ()
    """The change's own rules that do not hold yet."""
    doubts: tuple[str, ...] = ()
    """Parts of the base that were not compared, in words; each keeps the suite from passing."""
    doubts_if_compared: tuple[str, ...] = ()
    """Further doubts if a baseline is stored."""
    notes: tuple[str | Finding, ...] = ()
    """Warnings about how the record came about."""
    design: RunDesign = RunDesign()

    def with_design(self, **changes: Any) -> Terms:
        """Return the terms with other facts of the design."""
        return replace(self, design=replace(self.design, **changes))

    def plain(self) -> dict[str, Any]:
        """Return the terms as JSON values for the record, including those of the design."""
        found: dict[str, Any] = msgspec.to_builtins(replace(self, notes=(), design=RunDesign()), order="deterministic")
        found.pop("design", None)
        found |= msgspec.to_builtins(self.design, order="deterministic")
        if self.notes:
            found["notes"] = [note if isinstance(note, str) else note.plain for note in self.notes]
        return found

    @classmethod
    def read(cls, plain: Mapping[str, Any]) -> Terms:
        """Return the terms of a record. Raises `msgspec.ValidationError` or TypeError."""
        if "design" in plain:
            raise msgspec.ValidationError("Object contains unknown field `design`")
        design: dict[str, Any] = {}
        found: dict[str, Any] = {"design": design}
        for name, value in plain.items():
            if name in RunDesign.__struct_fields__:
                design[name] = value
            else:
                found[name] = value
        notes = found.get("notes")
        if isinstance(notes, list | tuple):
            found["notes"] = [note if isinstance(note, str) else Finding.read(note) for note in notes]
        return msgspec.convert(found, cls)


# --- where terms come from ------------------------------------------------------------------------


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
    """Return the terms that a configuration sets for a suite.

    ``rules`` are those it comes from, if it is held to a base's; ``release`` is the tag that is to be released, if any:
    a release has an error rate of its own.
    """
    settings = settings or settings_of(config, now(), release=bool(release))
    terms = Terms(
        plan.criteria,
        settings,
        thresholds={case.id: dict(case.thresholds) for case in plan.suite.cases if case.thresholds},
        deselected=plan.deselected,
        categories={name: frozenset(tools) for name, tools in config.file.tool_categories.items()},
        selection=plan.selection.model_dump(mode="json", exclude_unset=True) if plan.selection is not None else {},
        notes=tuple(dict.fromkeys((*plan.notes, *expired_quarantine(config, now()), *notes))),
        doubts=tuple(doubts),
    )
    if rules is None:
        return terms
    return replace(
        terms,
        base=_demands_of_base(plan, terms, rules.base, release),
        changes=rules.changes,
        rules=rules.commit,
        doubts=(*rules.doubts, *doubts),
        doubts_if_compared=(MOVED,) if rules.is_first else (),
    )


def _demands_of_base(plan: Plan, own: Demands, base: Config | None, release: str) -> Demands | None:
    """Return what the base commit demands of the same trials; None if that is the same, or is not known."""
    if base is None or not plan.base_criteria:
        return None
    thresholds = {}
    for case in plan.suite.cases:
        stated = plan.base_thresholds.get(case.id)
        if stated:
            thresholds[case.id] = dict(stated)
    settings = _with_settings_of_run(settings_of(base, now(), release=bool(release)), own.settings)
    if (plan.base_criteria, settings, thresholds) == (own.criteria, own.settings, own.thresholds):
        return None
    return Demands(plan.base_criteria, settings, thresholds)


def own_terms(record: Record, settings: Settings | None = None) -> Terms:
    """Return the terms that the record's run judged it by.

    A record that does not say is judged by its criteria and these ``settings``.

    Raises:
        MeasureError: the record's terms cannot be read.
    """
    kept = record.footer.terms if record.footer is not None else {}
    if not kept:
        return Terms(record.header.criteria, settings or Settings())
    try:
        return Terms.read(kept)
    except (msgspec.ValidationError, TypeError) as error:
        raise MeasureError(
            f"the record's terms cannot be read: {error}", where=record.header.suite_id, hint="name a configuration: -c"
        ) from None


def with_run_of(record: Record, terms: Terms, *, scope: bool = True) -> Terms:
    """Return the terms with what only the record's run knows: how it asked for trials, its notes and its command.

    With ``scope`` also what its command line selected: cases that a run left out on purpose need not be compared.
    """
    own = own_terms(record)
    if scope and record.header.selected and own.deselected:
        deselected = own.deselected | (terms.deselected or frozenset())
        terms = replace(terms, deselected=deselected, selection=own.selection or terms.selection)
    if record.footer is not None and record.footer.terms:
        terms = with_settings_of_run(terms, own.settings)
    terms = replace(terms, notes=tuple(dict.fromkeys((*own.notes, *terms.notes))))
    return terms.with_design(
        scheduled=own.design.scheduled,
        base_has_no_rules=own.design.base_has_no_rules,
        taken_up=own.design.taken_up,
        command=own.design.command,
        anchored=own.design.anchored or terms.design.anchored,
        release=own.design.release or terms.design.release,
    )


def with_settings_of_run(terms: Terms, settings: Settings) -> Terms:
    """Return the terms with how trials were asked for, and in what job, as these settings have it."""
    base = terms.base
    if base is not None:
        base = replace(base, settings=_with_settings_of_run(base.settings, settings))
    return replace(terms, settings=_with_settings_of_run(terms.settings, settings), base=base)


def _with_settings_of_run(settings: Settings, of: Settings) -> Settings:
    return replace(settings, **{name: getattr(of, name) for name in SETTINGS_OF_RUN})


# --- one error budget for a job -------------------------------------------------------------------


def job_settings(
    config: Config,
    settings: Settings,
    plans: Sequence[Plan],
    baselines: Sequence[References],
    rules: Rules | None = None,
    *,
    beside: Sequence[bool] = (),
) -> Settings:
    """Return the settings of each suite of a job, whose error budget is divided over what the job compares.

    ``beside``: for each suite, True if the base commit's agent runs in place of a stored baseline.
    """
    total = 0
    for plan, found, is_beside in zip(plans, baselines, beside or [False] * len(plans), strict=True):
        terms = terms_of_plan(plan, config, settings, rules=rules)
        total += comparisons_of(found.all, rules=_rule_sets(terms), beside=is_beside)
    return divided(settings, len(plans), total)


def divided_at_least(terms: Terms, references: Sequence[Reference]) -> Terms:
    """Return the terms with an alpha that is divided at least over what is compared here."""
    comparisons = comparisons_of(references, rules=_rule_sets(terms))
    base = terms.base
    if base is not None:
        base = replace(base, settings=at_least(base.settings, comparisons))
    return replace(terms, settings=at_least(terms.settings, comparisons), base=base)


def _rule_sets(terms: Terms) -> int:
    return 1 if terms.base is None else 2


def comparisons_of(references: Sequence[Reference], *, rules: int = 1, beside: bool = False) -> int:
    """Return how many comparisons a suite makes.

    ``rules``: 2 if it is judged by its own rules and by those of its base. ``beside``: the base commit's agent takes
    the place of a stored baseline.
    """
    return rules * (beside + sum(bool(reference.records) for reference in references))


def divided(settings: Settings, suites: int, comparisons: int) -> Settings:
    """Return the settings of each suite in a job with these numbers of comparisons and suites."""
    return replace(settings, suites=max(1, suites), comparisons=max(1, comparisons))


def at_least(settings: Settings, comparisons: int) -> Settings:
    """Return the settings, divided over at least so many comparisons."""
    return settings if settings.comparisons >= comparisons else replace(settings, comparisons=comparisons)


def after_proofs(settings: Settings, proven: int) -> Settings:
    """Return the settings of the other suites once so many are proven."""
    return replace(settings, comparisons=max(1, settings.comparisons - proven))


def step_down(found: Sequence[SuiteResult], again: Callable[[int, int], SuiteResult]) -> list[SuiteResult]:
    """Return the suites' results, with those proven that the rest of the error budget suffices to prove.

    ``again(number, proven)`` judges a suite from the trials that there are, after so many proofs.
    """
    results, judged_after = list(found), 0
    while True:
        proven = sum(one.verdict is Verdict.REGRESSED for one in results)
        if proven <= judged_after:
            return results
        judged_after = proven
        for number, one in enumerate(results):
            if one.verdict is Verdict.REGRESSED:
                continue
            other = again(number, proven)
            if other.verdict is Verdict.REGRESSED:
                results[number] = other
