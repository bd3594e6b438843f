"""Compares this window with another monitor's: a canary with the stable version.

The two are not paired, so their difference has the interval of two independent shares: the squared distances of their
bounds are added (Newcombe 1998). They must also differ by Fisher's exact test, because in small windows the interval
alone exceeds alpha.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from time import time

from msgspec import Struct
from msgspec.structs import replace

from gate.config.load import Config
from gate.config.schema import PASS_RATE_MARGIN
from gate.decision.own_models import OwnModels, moved
from gate.errors import ConfigError, ExitCode, GateError
from gate.model import Scale, Verdict
from gate.monitor.model import Observation
from gate.monitor.report import STALE_SECONDS, utc_time
from gate.monitor.store import is_other_file, read_state
from gate.monitor.watch import Setup
from gate.reports.formatting import count, figure, figures
from gate.statistics.intervals import fisher_less, wilson

MOST_SHARED = 0.1
"""Share of a window's traces that the other may also hold; with more, a version is compared with itself."""
LEVEL = 0.90
"""The level of the interval that must exclude a loss beyond the margin, as in a run."""


class Arm(Struct, frozen=True):
    """One window of a comparison."""

    name: str
    passed: int
    measured: int
    unmeasured: int = 0
    """Number of further traces without an outcome."""
    problem: str = ""
    """The reason why this window cannot be compared; empty if it can."""

    @property
    def rate(self) -> float:
        return self.passed / self.measured

    def if_the_rest(self, *, passed: bool) -> Arm:
        """Return the window as if each trace without an outcome had passed, or had failed."""
        return replace(
            self,
            passed=self.passed + passed * self.unmeasured,
            measured=self.measured + self.unmeasured,
            unmeasured=0,
        )


def check_other(setup: Setup, other: Path) -> None:
    """Raise `ConfigError` if the window would be compared with the monitor's own state."""
    if other.resolve() == setup.state_path.resolve():
        raise ConfigError("it is this monitor's own state", where=str(other), hint="give the other version's state")


def code_of(verdict: Verdict, config: Config) -> ExitCode:
    """Return the exit code of a comparison, as for a run with this verdict."""
    if verdict is Verdict.INCONCLUSIVE:
        return ExitCode.FAILED if config.file.gate.on_inconclusive == "block" else ExitCode.PASS
    return {Verdict.PASS: ExitCode.PASS, Verdict.REGRESSED: ExitCode.FAILED}.get(verdict, ExitCode.NOT_MEASURED)


def compared_with(setup: Setup, other: Path) -> tuple[Verdict, str]:
    """Return the verdict on this window beside another monitor's, and a line about it.

    If the other state is missing or damaged, the verdict is `NOT_MEASURED`, and the status of this window still counts.
    """
    try:
        if is_other_file(other):
            hint = "measure the other version with `gate monitor --state`; --against RECORD shows a record's averages"
            raise ConfigError("it is no monitor's state", where=str(other), hint=hint)
        here, there = _window_in(setup, setup.state_path), _window_in(setup, other)
    except GateError as error:
        return Verdict.NOT_MEASURED, f"not measured: {error}"
    shared = len({one.trace for one in here} & {one.trace for one in there})
    own = arm_of("this window", [one.passed for one in here], setup.max_unmeasured, shared)
    against = arm_of(other.stem, [one.passed for one in there], setup.max_unmeasured, shared)
    if not against.problem:
        against = replace(against, problem=_other_judge(setup, here, there))
    gate = setup.config.file.gate
    margin = gate.pass_rate_margin
    if margin is None:
        margin = PASS_RATE_MARGIN
    verdict, text = compare_arms(own, against, alpha=gate.alpha, margin=margin, least=setup.section.min_samples)
    newest = max((one.at for one in there), default=None)
    if newest is not None and time() - newest > STALE_SECONDS:  # what moved since is not the version alone
        text += f"; {other.stem} is from {utc_time(newest, ' ')} UTC"
    return verdict, text


def _window_in(setup: Setup, path: Path) -> list[Observation]:
    with read_state(path) as state:
        return state.window(setup.section.window, setup.scoring.fingerprint)


def _other_judge(setup: Setup, here: Sequence[Observation], there: Sequence[Observation]) -> str:
    """Return the reason why two windows cannot be compared if different models judged them; else empty."""
    own, others = _judges_of(here), _judges_of(there)
    for criterion in setup.scoring.blocking:
        asked = moved(own.get(criterion.name, ()), others.get(criterion.name, ()))
        if asked:
            what = f"for {criterion.name}, another model answered as the judge {asked[0]}"
            return f"{what}: score one side again"
    return ""


def _judges_of(window: Sequence[Observation]) -> OwnModels:
    """Return the judges of the traces in a window."""
    found: dict[str, set[tuple[str, str]]] = {}
    for one in window:
        for criterion, judges in one.judges.items():
            found.setdefault(criterion, set()).update(judges)
    return found


def arm_of(name: str, outcomes: Sequence[bool | None], max_unmeasured: float, shared: int = 0) -> Arm:
    """Return a window by the outcomes of its traces; None stands for one that was not measured.

    ``shared``: how many of them the other window also holds. It is reported for both: a large window may hold a small
    one.
    """
    lost = outcomes.count(None)
    problem = ""
    if lost > max_unmeasured * len(outcomes):
        problem = f"{lost} of {len(outcomes)} traces could not be measured"
    if shared > MOST_SHARED * len(outcomes):
        problem = f"{shared} of its {count(len(outcomes), 'trace')} are in the other window, too: name two versions"
    return Arm(name, outcomes.count(True), len(outcomes) - lost, lost, problem)


def compare_arms(new: Arm, old: Arm, *, alpha: float, margin: float, least: int) -> tuple[Verdict, str]:
    """Return the verdict on the new window, and a line about it for people.

    The verdict is `PASS`, `REGRESSED`, `INCONCLUSIVE`, or `NOT_MEASURED`: if either window has too little data, or if
    the traces without an outcome could turn it, those of the new one as failures and those of the old one as passes.

    Args:
        alpha: bound on the probability that a window that is equally good is called worse, in one look.
        margin: the loss of the pass rate that still counts as unchanged, 0–1.
        least: traces that a window needs.
    """
    for arm in (new, old):
        if arm.problem or arm.measured < least:
            few = f"{count(arm.measured, 'trace')} of at least {least} measured by these criteria"
            return Verdict.NOT_MEASURED, f"not measured: {arm.name}: {arm.problem or few}"
    verdict, text = _decided(new, old, alpha, margin)
    turned, _ = _decided(new.if_the_rest(passed=False), old.if_the_rest(passed=True), alpha, margin)
    if verdict is not Verdict.REGRESSED and turned not in (verdict, Verdict.PASS):
        lost = [f"{count(arm.unmeasured, 'trace')} of {arm.name}" for arm in (new, old) if arm.unmeasured]
        what = f"{' and '.join(lost)} could not be measured: at worst they would make it {turned.value}"
        return Verdict.NOT_MEASURED, f"not measured: {what}"
    return verdict, text


def _decided(new: Arm, old: Arm, alpha: float, margin: float) -> tuple[Verdict, str]:
    """Return the verdict on two windows that were measured."""
    low, high = difference(new, old, 1 - 2 * alpha)
    text = ""
    if high < 0 and fisher_less(new.passed, new.measured, old.passed, old.measured) <= alpha:
        verdict = Verdict.REGRESSED
    elif difference(new, old, LEVEL)[0] >= -margin:
        verdict = Verdict.PASS
    else:
        verdict = Verdict.INCONCLUSIVE
        text = f"; a loss of more than {figure(margin, Scale.BINARY)} is not ruled out: wait for more traces"
    rates = []
    for arm, rate in zip((old, new), figures((old.rate, new.rate), Scale.BINARY), strict=True):
        rates.append(f"{rate} ({arm.name}, {count(arm.measured, 'trace')})")
    change = f"{_points(new.rate - old.rate)} points [{_points(low)}, {_points(high)}]"
    return verdict, f"{verdict.value}: pass rate {' → '.join(rates)}, {change}{text}"


def difference(new: Arm, old: Arm, level: float) -> tuple[float, float]:
    """Return the interval of the new pass rate minus the old."""
    low, high = wilson(new.passed, new.measured, level)
    old_low, old_high = wilson(old.passed, old.measured, level)
    change = new.rate - old.rate
    return (
        change - math.hypot(new.rate - low, old_high - old.rate),
        change + math.hypot(high - new.rate, old.rate - old_low),
    )


def _points(value: float) -> str:
    return f"{100 * value:+.1f}"
