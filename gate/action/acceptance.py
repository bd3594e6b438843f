"""The acceptance of a regression by a reviewer: the label on the pull request, who set it, and whether it counts."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from msgspec.structs import replace

from gate.action.step import Step
from gate.config.load import Config
from gate.config.settings import settings_of
from gate.errors import PublishError
from gate.hosts.events import Mode
from gate.hosts.github import LabelAcceptance
from gate.model import Result, SuiteResult, Verdict, accepted_by
from gate.pipeline.verdict import result_of
from gate.reports.files import with_problems
from gate.security.escape import console
from gate.system.clock import now as utc_now


def with_acceptance(step: Step, config: Config, result: Result, number: int | None) -> tuple[Result, str]:
    """Return the result, with losses and uncompared parts accepted if an authorised person set the label, and the
    reason why the label is ignored."""
    if not any(map(_is_worth_asking, result.suites)):
        return result, ""
    found = acceptance_of(step, number)
    if found is None:
        return result, ""
    days = config.file.baseline.accept_days
    ignored = found.ignored
    is_merged = step.activity.mode is Mode.RECORD
    if not ignored and is_merged and utc_now() > found.at + timedelta(days=days):
        ignored = f"it was set more than {days} days ago"
    by, suites, reasons = f"{found.by} at {found.at.isoformat()}", [], dict[str, None]()
    for suite in result.suites:
        why = ignored or (is_merged and _lost_before(suite))
        if why:
            reasons[why] = None
            suites.append(suite)
        else:
            suites.append(accepted_by(suite, by))
    said = ""
    if reasons:
        said = f"the label {step.inputs['accept_label']} is ignored: {'; '.join(reasons)}"
        step.say(said)
    settings, paths = settings_of(config, utc_now()), [Path(path) for path in result.record_paths]
    accepted = result_of(suites, settings, command=result.command, record_paths=paths)
    return with_problems(accepted, result.problems), said  # a label accepts a verdict, not a report that is missing


def _lost_before(suite: SuiteResult) -> str:
    """Return a remark if the default branch fell short before this commit and nobody accepted that: whoever set the
    label saw only what the change lost on top."""
    before = suite.baseline
    if before is None or not before.fell_short or not suite.is_acceptable:
        return ""
    commit = (before.commit or "")[:12]
    return f"{suite.suite_id} fell short at {commit} already; accept that first: `gate baseline accept {commit}`"


def _is_worth_asking(suite: SuiteResult) -> bool:
    """True if an acceptance changes the suite, or if the report says why it does not."""
    return suite.is_acceptable or bool(suite.below) or suite.if_accepted is Verdict.BELOW_THRESHOLD


def acceptance_of(step: Step, number: int | None) -> LabelAcceptance | None:
    """Return who accepted the result and when: by the label on pull request ``number``, or on the one merged here.

    After the merge, it counts only for the push: nobody has reviewed losses that a later scheduled run finds.

    None if nobody did. The label may not count; the result has the reason.
    """
    label, activity = step.inputs["accept_label"], step.activity
    if not label:
        return None
    try:
        if number is None and activity.mode is Mode.RECORD and step.environment.get("GITHUB_EVENT_NAME") == "push":
            merged = step.github.merged_pull_request(activity.head or "")
            if merged is not None:
                number = merged.number
        if not number:
            return None
        found = step.github.acceptance(number, label, activity.labelled, activity.head or "")
    except PublishError as error:
        step.say(f"cannot look up the label {label}: {console(str(error))}")
        return None
    if found is None:
        return None
    if not found.ignored and not _is_of_head(step):
        return replace(found, ignored="the checkout is neither the pull request's head nor its merge commit")
    return found


def _is_of_head(step: Step) -> bool:
    """True if the checkout is the head in the event, or the merge commit that GitHub makes of it.

    A workflow may instead check out a branch, which may have moved since the event.
    """
    if step.activity.mode is not Mode.RUN or not step.activity.comments:
        return True
    head = step.git.head()
    return head is not None and step.activity.head in (head, *step.git.parents(head)[1:])
