"""Files, summary, annotations, comments and outputs of a step, as effects that the hosts apply."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from msgspec.structs import replace

from gate.action.base_commit import base_of
from gate.action.reuse import record_name
from gate.action.runner import SUMMARY_BYTES, Runner, annotations_of
from gate.action.step import RESULTS, Step, StepOutcome, worse_code
from gate.baselines.proofs import FILE
from gate.baselines.proofs import write as write_proofs
from gate.config.resolve import read_suites
from gate.errors import ExitCode, GateError, PublishError
from gate.hosts.base import (
    Annotation,
    CopyFile,
    Effect,
    PostFailure,
    Publication,
    WriteFile,
    WriteSummary,
    publish,
)
from gate.hosts.events import Mode
from gate.hosts.github import PullRequestHost
from gate.model import Result, Verdict
from gate.pipeline.flow import comments_on
from gate.reports import load_report
from gate.reports.html import render as render_html
from gate.reports.markdown import Place, render_unmeasured
from gate.reports.markdown import render as render_markdown
from gate.security import files
from gate.security.escape import console, markdown
from gate.stored.statement import statement_of, written

REPORT_FILES = {"junit": "junit.xml", "html": "report.html", "json": "report.json", "markdown": "report.md"}
STATEMENT_FILE = "statement.json"
OUTPUTS = (
    "verdict",
    "exit_code",
    "regressions",
    "baseline_sha",
    "baseline_distance",
    "junit_path",
    "report_path",
    "comment_url",
    "cost_usd",
)
"""Every output of the action; tests compare the table with ``action.yml`` and the guide."""
NO_SECRETS = (
    "a fork's job has no secrets: if the agent needs one, review the change, push its commit to a branch of this "
    "repository, and open a pull request from there"
)
SUMMARY_CHARS = SUMMARY_BYTES // 4 - 1_000
"""Maximum number of characters in the summary: each takes at most four bytes."""


def publish_outcome(step: Step | None, outcome: StepOutcome, runner: Runner) -> int:
    """Publish files, summary, comments, outputs and annotations, in this order.

    If one fails, the others are still published, and the verdict does not change.

    Returns:
        The exit code of the step.
    """
    done = publish(_effects(step, outcome), runner)
    stated = publish(_statement(step, outcome.result), runner)  # about the reports as written
    comments = _comment(step, outcome)
    problems = (*done.problems, *stated.problems, *comments.problems)
    code = _exit_code(step, outcome, problems)
    outputs = _outputs(outcome)
    if comments.urls:
        outputs["comment_url"] = comments.urls[0]
    try:
        runner.set_outputs(outputs | {"exit_code": str(code)})
    except PublishError as error:
        problems = (*problems, error)
        code = _exit_code(step, outcome, problems)
    for note in dict.fromkeys(comments.notes):
        runner.say(console(note))
    runner.annotate(_annotations(outcome, problems))
    return code


def _exit_code(step: Step | None, outcome: StepOutcome, problems: Sequence[PublishError]) -> int:
    if problems and step is not None and step.inputs["on_publish_error"] == "fail" and outcome.exit_code < 128:
        return worse_code(outcome.exit_code, ExitCode.PUBLISH)
    return outcome.exit_code


def _annotations(outcome: StepOutcome, problems: Iterable[PublishError]) -> list[Annotation]:
    """Return the step's annotations, its own first: the runner shows ten per level and silently drops the rest."""
    made = []
    if outcome.error:
        made.append(Annotation("error", "Agent Gate", outcome.error))
    for problem in problems:
        made.append(Annotation("warning", "Agent Gate: not published", str(problem)))
    if outcome.result is not None:
        made += annotations_of(outcome.result)
    return made


def _effects(step: Step | None, outcome: StepOutcome) -> list[Effect]:
    effects: list[Effect] = []
    result = outcome.result
    place = Place()
    if step is not None:
        place = _place(step, outcome)
        effects += _records_left(step) if result is None else _files(step, result, place)
        if outcome.proofs is not None:
            effects.append(WriteFile(step.workspace / RESULTS / FILE, write_proofs(outcome.proofs).decode()))
    if result is not None:
        effects.append(WriteSummary(render_markdown(result, limit=SUMMARY_CHARS, place=place)))
    if outcome.note:
        effects.append(WriteSummary(f"### Agent Gate\n\n{markdown(outcome.note)}"))
    if outcome.error and result is None:
        effects.append(WriteSummary(render_unmeasured(outcome.error, place)))
    elif outcome.error:
        effects.append(WriteSummary(f"### Agent Gate\n\n{markdown(outcome.error, 2_000)}"))
    return effects


def _files(step: Step, result: Result, place: Place) -> list[Effect]:
    """Return the reports, and copies of the records under names that other jobs can derive. Git ignores the folder."""
    folder = step.workspace / RESULTS
    effects: list[Effect] = [_ignored(folder)]
    for form, name in REPORT_FILES.items():
        if form == "markdown":
            text = render_markdown(result, place=place)
        elif form == "html":
            text = render_html(result, label=step.accept_label)
        else:
            text = load_report(form)(result)
        effects.append(WriteFile(folder / name, text))
    for suite, path in zip(result.suites, result.record_paths, strict=False):
        effects.append(CopyFile(folder / record_name(suite.suite_id), Path(path)))
    return effects


def _statement(step: Step | None, result: Result | None) -> list[Effect]:
    """Return the statement of the run, for `gate attest`; none for a shard, or if no single commit was measured."""
    if step is None or result is None or step.inputs["shard"] != (1, 1):
        return []
    folder = step.workspace / RESULTS
    rules = base_of(step.activity, step.git) if step.activity.mode is Mode.RUN else None
    try:
        text = written(statement_of(result, [folder / name for name in REPORT_FILES.values()], rules=rules)).decode()
    except (GateError, OSError):
        return []
    return [WriteFile(folder / STATEMENT_FILE, text)]


def _records_left(step: Step) -> list[Effect]:
    """Return copies of the records of a run without a verdict, for another attempt to find."""
    try:
        output, head = step.source.load().output, step.git.head()
    except GateError:
        return []
    folder = step.workspace / RESULTS
    copies: list[Effect] = []
    for path in files.plain(sorted((output / "records").glob(f"*/{head}*.jsonl"))):
        copies.append(CopyFile(folder / f"{path.parent.name}.jsonl", path))
    return [_ignored(folder), *copies] if copies else []


def _ignored(folder: Path) -> WriteFile:
    return WriteFile(folder / ".gitignore", "*\n")


def _outputs(outcome: StepOutcome) -> dict[str, str]:
    """Return the outputs as text; empty if there is no value."""
    result = outcome.result
    outputs = dict.fromkeys(OUTPUTS, "")
    outputs["exit_code"] = str(outcome.exit_code)
    if result is None:
        outputs["verdict"] = "" if outcome.note else Verdict.ERROR.value
        return outputs
    spent: list[float] = []
    regressed = set()
    for suite in result.suites:
        spent += [cost for cost in (suite.cost_usd, suite.judge_cost_usd) if cost is not None]
        for against in (suite, *suite.further):  # the run's own base, and the anchor
            for row in against.criteria:
                if row.verdict is Verdict.REGRESSED:
                    regressed.add((suite.suite_id, row.criterion.name))
        baseline = suite.baseline
        if baseline is not None and baseline.commit and not outputs["baseline_sha"]:
            outputs["baseline_sha"] = baseline.commit
            outputs["baseline_distance"] = "" if baseline.distance is None else str(baseline.distance)
    outputs["verdict"] = result.verdict.value
    outputs["regressions"] = str(len(regressed))
    outputs["junit_path"] = str(RESULTS / REPORT_FILES["junit"])
    outputs["report_path"] = str(RESULTS / REPORT_FILES["html"])
    outputs["cost_usd"] = f"{sum(spent):.6f}" if spent else ""
    return outputs


def _place(step: Step, outcome: StepOutcome, *, with_links: bool = False) -> Place:
    """Return the place where a report is read; ``with_links`` outside of the run's own page."""
    activity = step.activity
    place = Place(head=activity.head or "", remark=_remark(step, outcome), names_suite=outcome.is_named)
    if with_links and activity.run is not None:  # the fork's run is the one to repeat, and its files are a stranger's
        place = replace(place, url=step.page_of(activity.run.id), report=step.summary_url)
    elif with_links:
        place = replace(place, url=step.summary_url, report=f"{step.summary_url}#artifacts")
    return replace(place, accept_label=step.accept_label, base=outcome.onto or activity.onto or "")


def _remark(step: Step, outcome: StepOutcome) -> str:
    """Return what the reader should know about the next step."""
    if step.activity.is_fork and outcome.exit_code == ExitCode.NOT_MEASURED:
        return NO_SECRETS
    return outcome.remark


def _pull_request_left_unmeasured(step: Step) -> int | None:
    """Return the pull request whose earlier verdict is outdated by this run without one; none for a shard."""
    run = step.activity.run
    if step.inputs["shard"] != (1, 1) or not step.activity.comments:
        return None
    try:
        pull = step.github.pull_request_of(run) if run is not None else None
    except GateError:
        return None
    return pull.number if pull is not None else step.activity.pull_request


def _suites_of(step: Step) -> tuple[str, ...] | None:
    """Return the ids of the configured suites; None if the configuration cannot be read."""
    try:
        return tuple(suite.id for suite in read_suites(step.source.load()))
    except GateError:
        return None


def _comment(step: Step | None, outcome: StepOutcome) -> Publication:
    """Write each suite's comment on the pull request, if the token allows it."""
    result = outcome.result
    if outcome.note:
        return Publication(notes=(outcome.note,))
    if step is None or not step.inputs["comment"]:
        return Publication()
    number = outcome.pull_request if result is not None else _pull_request_left_unmeasured(step)
    if number is None:
        return Publication()
    if step.activity.is_fork and step.activity.mode is not Mode.REPORT:
        return Publication(notes=("no comment: a fork's token only reads; the `workflow_run` job comments",))
    place = _place(step, outcome, with_links=True)
    effects: list[Effect] = [PostFailure(render_unmeasured(outcome.error, place), _suites_of(step))]
    if result is not None:
        failed = bool(result.exit_code) and step.activity.run is None  # a repeated report may correct the first one
        effects = comments_on(result, place, failed=failed)
    return publish(effects, PullRequestHost(step.github, number, step.stamp))
