"""The check runs of a step: one per suite on the judged commit, with the text of the comment."""

from __future__ import annotations

from typing import Literal

from msgspec.structs import replace

from gate.action.runner import annotations_of
from gate.action.step import Step, StepOutcome
from gate.config.resolve import read_suites
from gate.errors import ExitCode, GateError, PublishError
from gate.hosts.base import Effect, PostCheck, PostFailure, Publication, publish
from gate.hosts.checks import SUMMARY_CHARS
from gate.hosts.events import Mode
from gate.model import Result, SuiteResult, Verdict
from gate.reports.markdown import Place, render_suite, render_unmeasured
from gate.reports.view import View

_LIMIT = SUMMARY_CHARS // 4
"""Maximum number of characters in a summary; the host may count bytes."""


def post_check_runs(step: Step | None, outcome: StepOutcome, place: Place) -> Publication:
    """Write the check runs, with the links of ``place``, if the token allows it; none for a shard or an empty step."""
    if step is None or outcome.note or not step.inputs["check_run"] or step.inputs["shard"] != (1, 1):
        return Publication()
    if not step.activity.head or (step.activity.is_fork and step.activity.mode is not Mode.REPORT):
        return Publication()  # a fork's token only reads: a later job writes them
    try:
        about = _about(step, outcome.onto)
    except PublishError as error:
        return Publication(problems=(error,))
    effects: list[Effect]
    if outcome.result is None:
        effects = [PostFailure(render_unmeasured(outcome.error, place), suites_of(step))]
    else:
        effects = [_check(suite, outcome, outcome.result, place) for suite in outcome.result.suites]
    return publish(effects, step.github.check_runs(step.stamp, page=step.summary_url, about=about))


def _check(suite: SuiteResult, outcome: StepOutcome, result: Result, place: Place) -> PostCheck:
    code = outcome.codes[suite.suite_id]
    alone = replace(result, suites=(suite,), exit_code=ExitCode(code))
    return PostCheck(
        suite.suite_id,
        View(suite).verdict_line,
        render_suite(suite, result, limit=_LIMIT, place=place),
        _conclusion(suite, code),
        annotations_of(alone),
    )


def _conclusion(suite: SuiteResult, code: int) -> Literal["success", "neutral", "failure"]:
    """Return the conclusion of the check: failure if the step failed, neutral for a result that is not a pass."""
    if code:
        return "failure"
    return "success" if suite.verdict is Verdict.PASS else "neutral"


def _about(step: Step, onto: str | None) -> str:
    """Return a suffix to distinguish verdicts on one commit against different bases; empty for the default branch.

    A commit can be the head of several pull requests, a release and a push at the same time.
    """
    activity = step.activity
    if activity.mode is Mode.RELEASE:
        return "release"
    onto = onto or activity.onto
    if onto is not None:
        return "" if onto == activity.default_branch else f"into {onto}"
    return "" if activity.mode is Mode.RECORD else step.environment.get("GITHUB_EVENT_NAME", "")


def suites_of(step: Step) -> tuple[str, ...] | None:
    """Return the ids of the configured suites; None if the configuration cannot be read."""
    try:
        return tuple(suite.id for suite in read_suites(step.source.load()))
    except GateError:
        return None
