"""The one table from verdicts to the exit code."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from gate.decision.comparison import Settings
from gate.errors import EXIT_PRECEDENCE, ExitCode
from gate.model import SuiteResult, Verdict

EXIT_CODES: Mapping[Verdict, ExitCode] = {
    Verdict.NOT_APPLIED: ExitCode.NOT_MEASURED,
    Verdict.PASS: ExitCode.PASS,
    Verdict.INCONCLUSIVE: ExitCode.PASS,
    Verdict.NOT_MEASURED: ExitCode.NOT_MEASURED,
    Verdict.ERROR: ExitCode.NOT_MEASURED,
    Verdict.NOT_COMPARED: ExitCode.FAILED,
    Verdict.BELOW_THRESHOLD: ExitCode.FAILED,
    Verdict.REGRESSED: ExitCode.FAILED,
}


def exit_code(suites: Iterable[SuiteResult], settings: Settings) -> ExitCode:
    """Return the exit code of a run; no suite at all is 3, never green."""
    codes = [_code(suite.standing, settings) for suite in suites]
    return min(codes or [ExitCode.NOT_MEASURED], key=EXIT_PRECEDENCE.index)


def _code(verdict: Verdict, settings: Settings) -> ExitCode:
    if verdict is Verdict.INCONCLUSIVE and settings.on_inconclusive == "block":
        return ExitCode.FAILED
    return EXIT_CODES[verdict]
