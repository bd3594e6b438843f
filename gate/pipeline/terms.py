"""The terms of a verdict: the demands on a record, how it was measured, and how a job divides its error budget.

A user makes one decision per job. So ``alpha`` is divided over the job's comparisons (Bonferroni): each suite with each
of its references that has records. A suite without a baseline cannot be called regressed, so it takes no part.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
from gate.model import Criterion, Verdict
from gate.model.finding import Finding
from gate.pipeline.identity import GitContext
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
"""Settings on how trials were scheduled and in what job, as opposed to demands on them."""


class Demands(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """The demands of one commit's rules on a record.

    An unknown key, as from another version, is refused: ignoring it could make a verdict better.
    """

    criteria: tuple[Criterion, ...]
    settings: Settings = Settings()
    thresholds: Mapping[str, Mapping[str, float]] | None = None
    """Thresholds of individual cases, by case and criterion; None: those of the record's plan."""


class Terms(Demands, frozen=True):
    """The demands on a record, how it was measured, and notes for its reader. Kept in the closed record."""

    deselected: frozenset[str] | None = None
    """Cases of the suite that were left out on purpose. None: the record says that there were some but not which, so
    all missing cases count as such."""
    selection: Mapping[str, Any] = {}
    """The selection of cases, as in the configuration; empty if all cases were selected."""
    categories: Mapping[str, frozenset[str]] = {}
    """Tools by category, so that a call of one is not shown as a difference if its category was expected."""
    base: Demands | None = None
    """The demands of the base commit if they differ: the verdict is never better than the one under them. Of their
    settings, those of the run are the terms' own."""
    rules: str = ""
    """The commit whose rules these are; empty: the record's own."""
    changes: tuple[str, ...] = ()
    """The change's own rules that are not in force yet."""
    doubts: tuple[str, ...] = ()
    """Descriptions of parts of the base that were not compared; each keeps the suite from passing."""
    doubts_if_compared: tuple[str, ...] = ()
    """Further doubts that apply if a baseline is stored."""

    # How the record came about, as far as its verdict depends on it:
    scheduled: bool = False
    """True if a schedule decided from round to round what to run, so that each of its looks counts."""
    whole: bool = False
    """True if all of the commit's trials count in one look, whatever their purpose."""
    anchored: bool = False
    """True if the anchor is a reference too: the commit is on the default branch, or is a release."""
    release: str = ""
    """The tag to be released; empty if there is none."""
    store: str = ""
    """The kind of store that baselines came from; empty: the configuration's."""
    compared: tuple[str, ...] = ()
    """The references that the run compared its record with, in the form of `identity`; empty if unknown."""
    base_has_no_rules: bool = False
    """True if the base commit has no such configuration, so that its agent is judged by the change's rules."""
    same_as: str = ""
    """The commit whose stored trials these are, with the same agent, cases and criteria, so that nothing was run and
    nothing can be lost. Empty: the trials are the record's own."""
    same_verdict: str = ""
    """The ledger's verdict on those trials if they fell short and nobody accepted that: it still holds."""
    earlier: tuple[Verdict, ...] = ()
    """Verdicts of earlier measurements of this change, as judged when it was measured, newest first."""
    taken_up: int = 0
    """Number of the record's trials measured by an earlier job; shown, but not part of the verdict."""
    past: tuple[float, ...] = ()
    """Pass rates of earlier runs on the default branch, oldest first; shown, but not part of the verdict."""
    command: str = ""
    """The command that reproduces the result; empty: the command that shows it."""
    notes: tuple[str | Finding, ...] = ()
    """Warnings about how the record came about."""
    saving: str = ""
    """A note on how this run could have cost nothing; shown only beside a pass in which no case got worse."""

    def plain(self) -> dict[str, Any]:
        """Return the terms as JSON values for the record."""
        found: dict[str, Any] = msgspec.to_builtins(replace(self, notes=()), order="deterministic")
        notes = []
        for note in self.notes:
            notes.append(note if isinstance(note, str) else note.plain)
        if notes:
            found["notes"] = notes
        return found

    @classmethod
    def read(cls, plain: Mapping[str, Any]) -> Terms:
        """Return the terms of a record. Raises `msgspec.ValidationError` or TypeError."""
        told = plain.get("notes")
        if isinstance(told, list | tuple):
            notes: list[str | Finding] = []
            for note in told:
                notes.append(note if isinstance(note, str) else Finding.read(note))
            plain = {**plain, "notes": notes}
        return msgspec.convert(_known(plain), cls)


def _known(value: Any) -> Any:
    """Return the terms without the key that earlier versions wrote, and that was always empty."""
    if isinstance(value, Mapping):
        return {key: _known(item) for key, item in value.items() if (key, item) != GONE}
    if isinstance(value, list | tuple):
        return [_known(item) for item in value]
    return value


GONE = ("stands_for", "")
"""A key of criteria, and its only value."""


# --- where terms come from ------------------------------------------------------------------------


def terms_of_plan(
    plan: Plan,
    config: Config,
    settings: Settings | None = None,
    *,
    notes: Sequence[str | Finding] = (),
    doubts: Sequence[str] = (),
    rules: Rules | None = None,
    where: GitContext | None = None,
) -> Terms:
    """Return the terms that a configuration sets for a suite.

    ``rules`` are those it comes from, if a base commit's rules apply; ``where`` says if this is the default branch or a
    release, which has a separate error rate.
    """
    where = where or GitContext()
    release = where.release
    settings = settings or settings_of(config, now(), release=bool(release))
    thresholds = {}
    for case in plan.suite.cases:
        if case.thresholds:
            thresholds[case.id] = dict(case.thresholds)
    selection: dict[str, Any] = {}
    if plan.selection is not None:
        selection = plan.selection.model_dump(mode="json", exclude_unset=True)
    terms = Terms(
        plan.criteria,
        settings,
        thresholds=thresholds,
        deselected=plan.deselected,
        categories={name: frozenset(tools) for name, tools in config.file.tool_categories.items()},
        selection=selection,
        notes=tuple(dict.fromkeys((*plan.notes, *expired_quarantine(config, now()), *notes))),
        doubts=tuple(doubts),
        anchored=where.anchored,
        release=release,
    )
    if rules is None:
        return terms
    return replace(
        terms,
        base=_demands_of_base(plan, terms, rules.base, release),
        changes=rules.changes,
        rules=rules.commit,
        doubts=tuple(dict.fromkeys((*rules.doubts, *doubts))),
        doubts_if_compared=(MOVED,) if rules.is_first else (),
    )


def _demands_of_base(plan: Plan, own: Demands, base: Config | None, release: str) -> Demands | None:
    """Return the base commit's demands on the same trials; None if they are the same or unknown."""
    if base is None or not plan.base_criteria:
        return None
    thresholds = {}
    for case in plan.suite.cases:
        stated = plan.base_thresholds.get(case.id)
        if stated:
            thresholds[case.id] = dict(stated)
    settings = with_settings_of_run(settings_of(base, now(), release=bool(release)), own.settings)
    if (plan.base_criteria, settings, thresholds) == (own.criteria, own.settings, own.thresholds):
        return None
    return Demands(plan.base_criteria, settings, thresholds)


def own_terms(record: Record, settings: Settings | None = None) -> Terms:
    """Return the terms by which the record's run judged it.

    A record without terms is judged by its criteria and these ``settings``.

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
    """Return the terms with facts that only the record's run knows: how it was scheduled, its notes and its command.

    With ``scope`` also the selection of its command line: cases left out on purpose need not be compared.
    """
    own = own_terms(record)
    if scope and record.header.selected and own.deselected:
        deselected = own.deselected | (terms.deselected or frozenset())
        terms = replace(terms, deselected=deselected, selection=own.selection or terms.selection)
    if record.footer is not None and record.footer.terms:
        terms = replace(terms, settings=with_settings_of_run(terms.settings, own.settings))
    return replace(
        terms,
        notes=tuple(dict.fromkeys((*own.notes, *terms.notes))),
        scheduled=own.scheduled,
        base_has_no_rules=own.base_has_no_rules,
        taken_up=own.taken_up,
        command=own.command,
        anchored=own.anchored or terms.anchored,
        release=own.release or terms.release,
    )


def with_settings_of_run(settings: Settings, of: Settings) -> Settings:
    """Return the settings with those of a run: how its trials were scheduled, and in what job."""
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
    """Return the settings of each suite of a job, whose error budget is divided over the job's comparisons.

    ``beside``: for each suite, True if the base commit's agent runs in place of a stored baseline.
    """
    total = 0
    for plan, found, is_beside in zip(plans, baselines, beside or [False] * len(plans), strict=True):
        terms = terms_of_plan(plan, config, settings, rules=rules)
        total += comparisons_of(terms, found.all, beside=is_beside)
    return replace(settings, suites=max(1, len(plans)), comparisons=max(1, total))


def divided_at_least(terms: Terms, references: Sequence[Reference]) -> Terms:
    """Return the terms with an alpha that is divided at least over the comparisons made here."""
    here = comparisons_of(terms, references)
    comparisons = max(terms.settings.comparisons, here)
    return replace(terms, settings=replace(terms.settings, comparisons=comparisons))


def comparisons_of(terms: Terms, references: Sequence[Reference], *, beside: bool = False) -> int:
    """Return the number of comparisons that a suite makes, twice as many if its base's rules differ.

    ``beside``: True if the base commit's agent takes the place of a stored baseline.
    """
    made = sum([bool(reference.records) for reference in references]) + beside
    if terms.base is None:
        return made
    return 2 * made
