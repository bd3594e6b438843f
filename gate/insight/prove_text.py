"""The text of `gate prove`: the verdicts on changes that change nothing."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import to_builtins

from gate.baselines.pairing import as_baseline, pair
from gate.config.load import Config
from gate.config.resolve import make_plans
from gate.config.settings import settings_of
from gate.decision import Settings
from gate.errors import BaselineError, MeasureError
from gate.insight.nearest import nearest_by_suite, trials_of_epochs
from gate.insight.power import Share
from gate.insight.power_text import interval_of
from gate.insight.prove import Progress, Proof, Source, in_words, prove, source_of
from gate.pipeline.terms import own_terms
from gate.records import cases_of, read_record
from gate.reports.formatting import count
from gate.reports.table import table
from gate.security.escape import console
from gate.system.clock import now


def proof_of_record(path: Path, changes: int, progress: Progress) -> Proof:
    """Return the verdicts on simulated unchanged agents under a record's own terms.

    Raises:
        MeasureError: no trial of the record has a known outcome.
    """
    record = read_record(path)
    terms = own_terms(record)
    trials = as_baseline(record).trials
    source = source_of(cases_of(record.header), terms.criteria, trials_of_epochs(trials))
    if not source.cases:
        raise MeasureError("no trial passed or failed: there is nothing to draw from", where=str(path))
    return _proven(record.header.suite_id, source, terms.settings, changes, progress)


def proofs_of_suites(config: Config, environment: Mapping[str, str], changes: int, progress: Progress) -> list[Proof]:
    """Return the verdicts for each suite of a configuration, by its stored baseline.

    Raises:
        BaselineError: no suite has a stored baseline.
    """
    settings = settings_of(config, now())
    proofs = []
    plans = make_plans(config, environment)
    known = nearest_by_suite(config, plans, environment)
    for plan in plans:
        if plan.suite.id not in known:
            continue
        trials = pair(plan.planned, plan.criteria, known[plan.suite.id]).stored
        source = source_of(plan.suite.cases, plan.criteria, trials_of_epochs(trials))
        if source.cases:
            proofs.append(_proven(plan.suite.id, source, settings, changes, progress))
    if not proofs:
        hint = "`gate baseline save` stores one, and `gate prove RECORD` needs none"
        raise BaselineError("no suite has a stored baseline to draw from", hint=hint)
    return proofs


def _proven(suite: str, source: Source, settings: Settings, changes: int, progress: Progress) -> Proof:
    with progress(suite) as tick:
        return prove(suite, source, settings, changes=changes, tick=tick)


def told(proofs: Sequence[Proof], width: int | None, *, as_json: bool) -> str:
    if as_json:
        return json.dumps([{**to_builtins(one), "sentence": in_words(one)} for one in proofs], indent=2)
    return "\n\n".join(_text(one, width) for one in proofs)


def _text(proof: Proof, width: int | None) -> str:
    stored = f"{proof.stored:.1f} stored trials per case"
    rows: list[Sequence[str]] = [("unchanged changes", f"of {proof.changes:,}", "95 % interval")]
    rows.append(_row("blocked", proof.blocked))
    rows.append(_row("  regressed", proof.regressed))
    rows.append(_row("  below a threshold", proof.below_threshold))
    rows.append(_row("inconclusive", proof.inconclusive))
    rows.append(_row("could not be measured", proof.unmeasured))
    rows.append(_row(f"one run of each case, threshold {proof.threshold:.2f}", proof.single))
    return "\n".join(
        [
            in_words(proof),
            f"{console(proof.suite)}: {count(proof.cases, 'case')}, {stored}; nothing was run",
            table(rows, width),
            f"an unchanged agent takes {proof.runs_per_case:.2f} runs per case",
        ]
    )


def _row(name: str, share: Share) -> Sequence[str]:
    return name, f"{round(share.share * share.runs):,}", interval_of(share)
