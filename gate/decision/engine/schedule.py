"""Chooses the trials that are worth running next."""

from __future__ import annotations

import math
from collections.abc import Sequence

from gate.decision.engine.bounds import are_plain, has_tighter_interval, passes_of, values_of
from gate.decision.engine.case import CaseEvidence
from gate.decision.engine.evidence import ZERO_TRIALS, Evidence
from gate.decision.engine.repeats import REPEATS
from gate.decision.engine.state import More, Request, round_of
from gate.model import CONFIRM, FULL, NARROW, Side
from gate.statistics.evalues import e_bh, suite_e
from gate.statistics.shift import shared_out, spreads

WAVES = (*REPEATS, 3, 3, 4, 4)
"""Reruns of a suspicious case, wave by wave, while it stays suspicious. Short, so that little is run beyond the proof
of a steady case that broke."""
LONG_WAVES = (12, 16, 20, 28)
"""More waves for a case whose e-value is at least LONG_E: a thin baseline makes its break slow to prove."""
ALL_WAVES = WAVES + LONG_WAVES
LONG_E = 100.0
BEHIND = 0.2
"""A case whose e-value is below this share of the largest waits: the other case is proven first, which mostly ends
it."""
NAMING_WAVES = 4
"""Waves that still run after the suite is proven worse, to name broken cases among those with fewer reruns."""
NAMING_CASES = 10
"""Maximum number of cases to name. If more are suspicious the whole suite is worse, and naming them would cost much and
tell little."""
RERUN_RATE = 0.5
"""A case that passed less often at the baseline is not rerun: its failure says little."""
NARROW_P = 0.05
"""If the newest look has a smaller p-value, the last epoch runs every case: it may yet prove a loss."""


FAILING = "asking the failing cases again"
AGAIN = "asking each case again"


def next_wave(evidence: Evidence) -> More | None:
    """Return reruns of the suspicious cases; of both sides with ``match``. None if no rerun would change the
    verdict."""
    left = ALL_WAVES[evidence.waves :]
    if not left or not _reruns(evidence):
        return None
    suspects, n = _suspects(evidence), left[0]
    # The others wait for the proof that the foremost may bring.
    least = BEHIND * max([case.e_value for case in suspects], default=0.0)
    if evidence.waves >= len(WAVES):
        least = max(least, LONG_E)
    cases = [case for case in suspects if case.e_value >= least]
    if not _provable(evidence, cases, left):
        cases = [case for case in cases if case.never_passes and case.trials + n <= ZERO_TRIALS]
    for case_id in evidence.repeats.newest:
        if evidence.cases[case_id] not in cases:
            cases.append(evidence.cases[case_id])
    return _wave(evidence, cases, n)


def next_naming(evidence: Evidence) -> More | None:
    """Return reruns after the suite is proven worse that may name another case, or prove one and so spare a check."""
    left = WAVES[evidence.naming_waves : NAMING_WAVES]
    if not left or not _reruns(evidence):
        return None
    # A proof by single cases would spare a block of the whole suite its check for drift.
    wants_proof = evidence.config.rerun == "match" and evidence.case_proof is None
    few = sum(WAVES[:NAMING_WAVES])
    cases = []
    for case in _suspects(evidence):
        if case.reruns < few and (wants_proof or case.id not in evidence.named):
            cases.append(case)
    if len(cases) > NAMING_CASES or not _provable(evidence, cases, left, proof=wants_proof):
        return None
    return _wave(evidence, cases, left[0])


def _reruns(evidence: Evidence) -> bool:
    """True if this design reruns single cases and their answers could differ."""
    config = evidence.config
    return config.can_run and config.exact_epochs is None and not evidence.state.frozen


def unprovable(evidence: Evidence) -> tuple[str, ...]:
    """Return the suspicious cases if no number of further failures would prove or name one."""
    if evidence.proof or evidence.config.rerun != "never":
        return ()
    cases = [case for case in _suspects(evidence) if case.id not in evidence.named]
    if _provable(evidence, cases, ALL_WAVES):
        return ()
    return tuple([case.id for case in cases])


def _suspects(evidence: Evidence) -> list[CaseEvidence]:
    """Return the cases whose newest trial of an epoch failed, that used to pass, and that later evidence does not
    clear."""
    found = []
    for case in evidence.cases.values():
        if case.newest_failed and case.stored_passed >= RERUN_RATE * case.stored and case.seems_worse:
            found.append(case)
    return found


def _provable(evidence: Evidence, cases: Sequence[CaseEvidence], left: Sequence[int], *, proof: bool = True) -> bool:
    """True if a case could be named, or with ``proof`` proven broken, if all trials in the remaining waves failed.

    One stored trial is too little: against it a thousand failures are evidence of only ten, and hundreds are needed.
    """
    runs_base = evidence.config.rerun != "never"
    best = {case.id: _best_log_e(case, left, runs_base=runs_base) for case in cases}
    log_es = [best.get(case.id, case.log_e) for case in evidence.cases.values()]
    names = len(e_bh(log_es)) > len(evidence.named)
    return names or (proof and suite_e(log_es, recorded=evidence.state.recorded) >= evidence.e_threshold)


def _best_log_e(case: CaseEvidence, waves: Sequence[int], *, runs_base: bool) -> float:
    """Return the most evidence that these waves could bring; ``runs_base``: of both sides."""
    more_now = more_before = 0
    found = case.log_e
    for n in waves:
        if n in LONG_WAVES and found < math.log(LONG_E):
            break
        more_now += n
        if runs_base:
            more_before = max(more_before, case.trials + more_now - case.baseline_trials)
        found = case.log_e_after(more_now, more_before)
    return found


def _wave(evidence: Evidence, cases: Sequence[CaseEvidence], n: int) -> More | None:
    """Return ``n`` more trials of each case within the budget, the most suspicious cases first."""
    cases = sorted(cases, key=lambda case: (-case.log_e, case.id))
    requests = [Request(Side.CANDIDATE, CONFIRM, tuple([case.id for case in cases]), n)]
    short: dict[int, list[str]] = {}
    for case in cases:
        missing = case.trials + n - case.baseline_trials
        if missing > 0 and evidence.config.rerun != "never":
            short.setdefault(missing, []).append(case.id)
    for missing, ids in sorted(short.items()):
        requests.append(Request(Side.BASELINE, CONFIRM, tuple(ids), missing))
    left = evidence.config.runs_left
    affordable = []
    for request in requests:
        ids = list(request.cases)
        if left is not None:
            ids = ids[: left // request.n]
            left -= len(ids) * request.n
        if ids:
            affordable.append(Request(request.side, request.tag, tuple(ids), request.n))
    return round_of(affordable, FAILING)


# --- epochs -----------------------------------------------------------------------------------------


def next_pass(evidence: Evidence) -> More | None:
    """Return one more epoch, or all epochs of a fixed design; None if none is left or affordable."""
    exact = evidence.config.exact_epochs
    if exact is not None:
        return _epoch(evidence, exact - evidence.epochs, exact, "asking each case")
    return _epoch(evidence, 1, evidence.config.max_epochs, AGAIN if evidence.epochs else "asking each case")


def next_kept_pass(evidence: Evidence) -> More | None:
    """Return another of the epochs that will run anyway: its results may spare the suspicious cases their reruns."""
    config = evidence.config
    if config.exact_epochs is not None or not _suspects(evidence):
        return None
    return _epoch(evidence, 1, config.kept_epochs, AGAIN)


def _epoch(evidence: Evidence, n: int, most: int, why: str) -> More | None:
    """Return ``n`` more epochs, with the baseline's agent beside the candidate if that is affordable."""
    config = evidence.config
    repeats = config.exact_epochs is None and evidence.epochs > 0
    if not config.can_run or evidence.epochs_spent >= most or (evidence.state.frozen and repeats):
        return None
    wanted: list[str] = []
    left_out: list[str] = []
    for case_id in evidence.wanted:
        case = evidence.cases.get(case_id)
        # A case that ran in every recorded world, with the same requests each time, would only repeat known results.
        # That depends on the requests, never on an outcome.
        is_exhausted = case is not None and not case.live and len(case.full) >= case.before_job
        if config.exact_epochs is None and is_exhausted:
            left_out.append(case_id)
        else:
            wanted.append(case_id)
    if evidence.wanted and not wanted:
        return None
    request = Request(Side.CANDIDATE, FULL, tuple(wanted), n, tuple(left_out))
    requests = [request]
    if config.rerun != "never" and repeats:
        # Cases with fewer trials at the baseline than here. Chosen by the number of trials and never by their outcomes,
        # so the new trials are exchangeable with the candidate's.
        thin = [case.id for case in evidence.cases.values() if len(case.before) <= evidence.epochs]
        if thin:
            requests.insert(0, Request(Side.BASELINE, FULL, tuple(thin), 1))
    for affordable in (requests, [request]):
        if config.affords(affordable):
            return round_of(affordable, why)
    return None


def next_narrowing(evidence: Evidence) -> More | None:
    """Return the trials of the last epoch, given to the cases that vary most; None if it runs every case.

    They narrow the interval of the change more than a whole epoch does. Only stored trials decide how often a case
    runs, so its mean stays unbiased; but the new trials are not exchangeable with the stored ones, and no look at the
    suite uses them.
    """
    look, config, done = evidence.last_look, evidence.config, evidence.epochs_spent
    if look is None or look.p < NARROW_P or not _reruns(evidence):
        return None
    if done != config.max_epochs - 1 or evidence.epochs < config.kept_epochs:
        return None
    metrics, cases = evidence.state.metrics, list(evidence.cases.values())
    if len(evidence.units) < len(cases) or evidence.collapsed or not are_plain(cases):
        return None
    if not all(case.sample and len(case.before) > done for case in cases):
        return None
    if not evidence.open_metrics or not all(has_tighter_interval(metrics[m]) for m in evidence.open_metrics):
        return None
    varying = [0.0] * len(cases)
    for m in evidence.open_metrics:
        stored = [passes_of(values_of(case, m), metrics[m])[2:] for case in cases]
        for place, spread in enumerate(spreads(stored)):
            varying[place] += spread
    shares = shared_out(len(evidence.wanted), varying, [len(case.sample) for case in cases])
    ids: dict[int, list[str]] = {}
    for case, n in zip(cases, shares, strict=True):
        if n:
            ids.setdefault(n, []).append(case.id)
    requests = [Request(Side.CANDIDATE, NARROW, tuple(ids[n]), n) for n in sorted(ids)]
    if not config.affords(requests):
        return None
    return round_of(requests, "asking the cases that vary again")
