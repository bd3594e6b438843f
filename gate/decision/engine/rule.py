"""The decision rule on plain numbers: screen, confirm, certify. Pure and deterministic from the seed in the state."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal

from msgspec.structs import replace

from gate.decision.engine.drift import (
    cleared,
    confirmed,
    moved_before,
    named_confirmed,
    next_check,
    next_named,
    repeats_confirmed,
    suspected,
    went_live,
)
from gate.decision.engine.evidence import Evidence, KnownTests, answers_now, gather
from gate.decision.engine.schedule import (
    NAMING_CASES,
    next_kept_pass,
    next_naming,
    next_narrowing,
    next_pass,
    next_wave,
)
from gate.decision.engine.state import More, Round, Row, State, runs_of
from gate.decision.engine.summary import summary
from gate.model import Outcome, Side, Stage, StageKind

Step = More | Outcome

Run = Callable[[Side, Sequence[str], int], Mapping[str, Sequence[Row]]]
"""Runs the given number of trials of these cases on a side."""

CLEAR_P = 0.05
CLEAR_STATISTIC_P = 0.10
"""To pass after one epoch takes more than the margins: the p-value of the look must exceed the first number, and no
statistic of any metric may be below the second. One failing trial of a steady suite against five passes has p = 1/6 and
is above both."""
LATER_CLEAR_P = 0.035
LATER_CLEAR_STATISTIC_P = 0.025
"""The same after a second epoch: in suites between the two pairs of bounds, a third epoch finds a drop once in 17."""
FINAL_P = 0.02
"""If a test has a smaller p-value, something fell, even if every loss is within its margin: no PASS. At the end of the
schedule this smaller bound applies, or the test alone would leave one unchanged agent in twenty inconclusive."""


def decide(state: State, known: KnownTests | None = None) -> Step:
    """Return the next step of the rule.

    1. Screen: one epoch over all cases.
    2. Suite look: a joint permutation test after each epoch blocks a drop of the whole suite.
    3. Confirm: reruns of the suspicious cases feed their e-values, which block a break of a few cases.
    4. Certify: PASS if every blocking metric's loss is bounded by its margin; else another epoch.

    Tests and e-values share ``alpha`` (they add up to it), so an unchanged agent is blocked with at most that
    probability, given independent trials and no drift since the baseline was stored.
    """
    evidence = gather(state, known)
    if evidence.proof:
        more = None if evidence.checks else next_naming(evidence)
        return more or _against_now(evidence, evidence.proof)
    if evidence.checks and confirmed(evidence):
        return _proven_beside(evidence)
    if not _screened(evidence):
        return next_pass(evidence) or _outcome(evidence, "INCONCLUSIVE", Stage(StageKind.NOTHING))
    more = next_kept_pass(evidence) or next_wave(evidence)
    if more is not None:
        return more
    if _certified(evidence, final=False):
        return _passed(evidence)
    if _doubtful(evidence):
        more = next_check(evidence)
    more = more or next_narrowing(evidence) or next_pass(evidence)
    if more is not None:
        return more
    evidence.end()
    if _certified(evidence, final=True):
        return _passed(evidence)
    return _outcome(evidence, "INCONCLUSIVE", Stage(StageKind.END))


def follow(state: State, run: Run) -> tuple[Outcome, int]:
    """Return the rule's answer after ``run`` has run everything it requests, and the number of agent runs used."""
    known: KnownTests = {}
    runs = 0
    step = decide(state, known)
    while isinstance(step, More):
        rounds = [Round(one.tag, one.side, run(one.side, one.cases, one.n)) for one in step.requests]
        runs += runs_of(step.requests)
        state = replace(state, rounds=(*state.rounds, *rounds))
        step = decide(state, known)
    return step, runs


def _screened(evidence: Evidence) -> bool:
    """True if the epochs that the design requires before its first look have run."""
    config = evidence.config
    if config.exact_epochs is not None and config.can_run and config.runs_left != 0:
        return evidence.epochs >= config.exact_epochs
    return evidence.epochs >= 1


def _certified(evidence: Evidence, *, final: bool) -> bool:
    """True if every blocking metric's loss is bounded, no test suggests a drop, and no case is named.

    Suggestions of tests are ignored if the change is no worse than the baseline's current agent. Nothing is certified
    if a metric collapsed: few cases prove little, and a pass would hide a total loss. Nor if no look saw any value.
    """
    look = evidence.last_look
    if look is None or not look.metrics or not _bounded(evidence) or evidence.collapsed:
        return False
    if cleared(evidence):
        return True
    if final:
        return look.p > FINAL_P
    smallest = min([test.smallest for test in look.metrics.values()])
    if look.epochs == 1:
        return look.p > CLEAR_P and smallest > CLEAR_STATISTIC_P
    return look.p > LATER_CLEAR_P and smallest > LATER_CLEAR_STATISTIC_P


def _bounded(evidence: Evidence) -> bool:
    """True if the loss of success and of every other blocking metric is bounded, and no case is named."""
    success = evidence.bounds[0]
    if success is None or not success.blocks_regression or evidence.named:
        return False
    return not evidence.open_metrics


def _doubtful(evidence: Evidence) -> bool:
    """True if a drop is suspected, or only a test prevents PASS, and a run of the baseline's agent may settle it.

    That costs at most one epoch, while another epoch of the change would leave drift as a possible cause.
    """
    state = evidence.state
    if evidence.last_look is None or state.config.exact_epochs is not None or state.frozen:
        return False
    return (suspected(evidence) or _bounded(evidence)) and confirmed(evidence) is None


def _passed(evidence: Evidence) -> Outcome:
    """Return PASS, unless it would hide a case that always passed and now never does: no further epoch would clear
    that."""
    if evidence.unproven:
        return _outcome(evidence, "INCONCLUSIVE", Stage(StageKind.UNPROVEN))
    return _outcome(evidence, "PASS", Stage(StageKind.CERTIFIED, evidence.epochs))


def _against_now(evidence: Evidence, proof: Stage) -> Step:
    """Return the next step for a proven drop: it must also show against the baseline's current agent, if that can run.

    If that agent cannot run or hardly answers, the block stands if the drop also shows against the newest stored runs;
    drift since then remains a possible explanation. A few named cases must fail more often than they now do with the
    baseline's agent; failures all over the suite that name no case count as a drop of the whole.
    """
    config = evidence.config
    proof = replace(proof, replayed=not went_live(evidence))
    few = evidence.case_proof is not None and 0 < len(evidence.named) <= NAMING_CASES
    if few and not proof.replayed and config.rerun == "match":
        more = next_named(evidence)
        if more is not None:
            return more
        if named_confirmed(evidence) is False:
            return _outcome(evidence, "INCONCLUSIVE", Stage(StageKind.DRIFTED))
    if few or proof.replayed:
        if config.rerun == "match" and evidence.case_proof is not None:
            proof = evidence.case_proof
        return _outcome(evidence, "REGRESSION", proof)
    if config.rerun != "match" or (evidence.checks and not answers_now(evidence)):
        return _against_newest(evidence, proof)
    return _checked(evidence, proof)


def _checked(evidence: Evidence, proof: Stage) -> Step:
    """Return the next step of the check; stored runs alone decide if they already settle it or no trial can be run."""
    begun = bool(evidence.checks)
    found = confirmed(evidence) if begun else repeats_confirmed(evidence)
    if found is None:
        if not begun and moved_before(evidence, clearly=True):
            return _outcome(evidence, "INCONCLUSIVE", Stage(StageKind.MOVED_BEFORE))
        more = next_check(evidence)
        if begun:
            more = more or next_pass(evidence)
        if more is not None:
            return more
        if not begun:
            return _against_newest(evidence, proof)
    if found:
        return _outcome(evidence, "REGRESSION", replace(proof, confirmed=True))
    return _outcome(evidence, "INCONCLUSIVE", Stage(StageKind.DRIFTED))


def _proven_beside(evidence: Evidence) -> Outcome:
    """Return a regression that the looks at the record alone do not prove, but those with the baseline's trials of this
    job do."""
    look = next(known.look for known in evidence.beside if known.look.blocks)
    evidence.looks[-1] = look
    return _outcome(evidence, "REGRESSION", Stage(StageKind.SUITE_LOOK, look.epochs, confirmed=True))


def _against_newest(evidence: Evidence, proof: Stage) -> Outcome:
    """Return the outcome against the baseline's newest stored trials, the best evidence of its agent if it cannot be
    run."""
    if moved_before(evidence):
        return _outcome(evidence, "INCONCLUSIVE", Stage(StageKind.MOVED_BEFORE))
    return _outcome(evidence, "REGRESSION", proof)


def _outcome(evidence: Evidence, verdict: Literal["PASS", "REGRESSION", "INCONCLUSIVE"], stage: Stage) -> Outcome:
    if verdict == "REGRESSION":
        return Outcome(verdict, evidence.named, stage, summary(evidence, proven=True))
    return Outcome(verdict, (), stage, summary(evidence))
