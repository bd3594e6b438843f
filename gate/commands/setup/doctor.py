"""The checks of `gate doctor`: the configuration, the agent, each criterion, the judge, the baselines, the job."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from msgspec.structs import replace

from gate.agents.version import version_of
from gate.baselines.fingerprint import files_named
from gate.commands.setup.checkup import Checkup, note, ok, problem, refused
from gate.commands.setup.probe import AREA, RETURN_CALLS, probe
from gate.commands.setup.remedies import remedy_for
from gate.config.load import Config, load_config
from gate.config.resolve import Plan, make_plans
from gate.decision.unseen import shows_calls
from gate.errors import EXIT_PRECEDENCE, ConfigError, ExitCode, GateError
from gate.judges.options import JudgeOptions, Member, members
from gate.model import Criterion, Trial, Turn
from gate.pipeline.identity import NO_GIT, files_of_agent, git_context
from gate.pipeline.journal import redactor_of
from gate.pipeline.launch import no_own_user
from gate.pipeline.references import find_references
from gate.pipeline.store import store_kind, store_of
from gate.reports.formatting import count, figure, listing
from gate.security.environment import UNKNOWN_CI, ci_system, is_allowed
from gate.system.git import Git

FILES, CRITERIA, JUDGE, BASELINE, JOB = "files", "criteria", "judge", "baseline", "job"
JUDGE_SECONDS = 10.0


async def examine(path: Path, environment: Mapping[str, str], *, ask: bool) -> list[Checkup]:
    """Return all findings, in the order of a run; secrets from the environment are masked."""
    redactor = redactor_of(environment)
    found = await _checkups(path, environment, ask=ask)
    return [replace(one, found=redactor.redact(one.found), remedy=redactor.redact(one.remedy)) for one in found]


def exit_code(found: Sequence[Checkup]) -> ExitCode:
    """Return the exit code that a run with the worst problem would have."""
    codes = [one.code for one in found if one.state == "problem"]
    for code in EXIT_PRECEDENCE:
        if code in codes:
            return code
    return ExitCode.PASS


async def _checkups(path: Path, environment: Mapping[str, str], *, ask: bool) -> list[Checkup]:
    try:
        config = load_config(path)
    except GateError as error:
        return [refused("configuration", path.name, error)]
    found = [ok("configuration", path.name, f"can be read; agent is {config.agent_kind}:")]
    plans: Sequence[Plan] = ()
    try:
        plans = make_plans(config, environment)
    except GateError as error:
        is_judge = isinstance(error, ConfigError) and error.where == "judge"
        found.append(refused(JUDGE if is_judge else "configuration", "suites and criteria", error))
        found.append(note(AREA, "answers", "not called before this problem is solved"))
    found += [*map(_suite, plans), *_files(config, environment), *_environment(config, environment)]
    if plans:
        agent, trials = await _agent(config, plans[0], environment, ask=ask)
        found += [*agent, *_criteria(config, plans, trials), *await _judge(config, plans, environment)]
    job = [*_job(config, environment)]  # the search for baselines deepens a shallow clone
    return [*found, *_baselines(config, plans, environment), *job]


def _suite(plan: Plan) -> Checkup:
    turns = _turns(plan)
    answers = sum(turn.response is not None for turn in turns)
    calls = sum(turn.tools is not None for turn in turns)
    size = f"{count(len(plan.suite.cases), 'case')}, {count(len(turns), 'turn')}"
    said = f"{size}; {answers} with an expected answer, {calls} with expected calls"
    return ok("configuration", f"suite {plan.suite.id}", said)


def _turns(plan: Plan) -> list[Turn]:
    turns: list[Turn] = []
    for case in plan.suite.cases:
        turns += case.turns
    return turns


def _environment(config: Config, environment: Mapping[str, str]) -> Iterator[Checkup]:
    """Yield a note for each variable that ``agent.env`` passes on and that is not set."""
    for name, value in config.agent.env.items():
        if value is None and not any(is_allowed(one, (name,)) for one in environment):
            remedy = "set it here and in CI, or remove it from agent.env"
            yield note(AREA, f"env {name}", "this variable is not set", remedy)


def _files(config: Config, environment: Mapping[str, str]) -> Iterator[Checkup]:
    """Yield the tracked files that count as part of the agent."""
    git = Git(config.root, environment=environment)
    try:
        if not config.agent.is_local or not git.is_repository():
            return
        found = files_of_agent(config, git)
        sources, entry = found.sources, found.entry
    except GateError:
        return  # reported with the job
    tracked = [name for name, commit in (found.files or {}).items() if commit is not None]
    if not tracked and not config.agent.sources:
        return
    if sources:
        own = files_named(tracked, sources, entry)
        what = f"{len(own)} of {count(len(tracked), 'tracked file')}"
        if own:
            yield ok(FILES, "agent", f"{what}: {listing(own)}")
        else:
            yield note(FILES, "agent", f"{what}: agent.sources names none", "commit the agent's files")
        return
    proposed = found.proposed
    if config.agent.sources:
        remedy = f"agent.sources has no effect: {proposed.problem}"
    elif proposed.problem:
        remedy = f"set agent.sources; none is proposed: {proposed.problem}"
    else:
        remedy = f"agent.sources: [{', '.join(proposed.names)}]"
    what = f"all {count(len(tracked), 'tracked file')} count as the agent's: a change to any costs runs"
    yield note(FILES, "agent", what, remedy)


async def _agent(
    config: Config, plan: Plan, environment: Mapping[str, str], *, ask: bool
) -> tuple[list[Checkup], Sequence[Trial] | None]:
    found = [await _version(config, environment), *_user(config, plan, environment)]
    if config.agent_kind == "replay":
        recorded = count(len(plan.suite.recorded), "recorded conversation")
        return [*found, ok(AREA, "answers", f"{recorded}; no agent is called")], None
    if not ask:
        return [*found, note(AREA, "answers", "not called (--no-ask)")], None
    try:
        answered, trials = await probe(config, plan, environment)
    except GateError as error:
        remedy = error.hint or remedy_for(str(error), config.path.name, environment)
        return [*found, refused(AREA, "answers", error, remedy)], None
    return [*found, *answered], trials


async def _version(config: Config, environment: Mapping[str, str]) -> Checkup:
    try:
        version = await version_of(config.agent_kind, config.agent, root=config.root, environment=environment)
    except GateError as error:
        return refused(AREA, "version", error)
    if version:
        return ok(AREA, "version", version)
    if config.agent.is_local:
        return ok(AREA, "version", "known by its files and settings")
    remedy = "agent.version: {header: X-Version}, a command or a text"
    what = "unknown: verdicts name no commit, and every run measures everything again"
    return note(AREA, "version", what, remedy)


def _user(config: Config, plan: Plan, environment: Mapping[str, str]) -> Iterator[Checkup]:
    """Check whether the agent can read its expected answers."""
    why = no_own_user(config.agent, config.root, environment)
    if not config.agent.is_local:
        return
    if not why and not config.agent.reads_suite:
        yield ok(AREA, "user", "a separate user, which cannot read the suite or write to the gate's files")
        return
    expected = any(turn.response is not None or turn.tools is not None for turn in _turns(plan))
    what = f"the gate's own user ({why})" if why else "a separate user, with `reads_suite`"
    remedy = "run the gate as root with `agent.user: own`, or keep expected answers away from what the agent reads"
    if expected:
        yield note(AREA, "user", f"{what}, so the agent can read the expected answers in the suite", remedy)
    else:
        yield ok(AREA, "user", what)


# --- criteria and judge ---------------------------------------------------------------------------


def _criteria(config: Config, plans: Sequence[Plan], trials: Sequence[Trial] | None) -> Iterator[Checkup]:
    for plan in plans:
        first, calls_seen = None, True  # only the first suite's first case was run
        if trials is not None and plan is plans[0]:
            first, calls_seen = trials[0], config.agent.reports_calls or shows_calls(trials)
        for scorer in plan.scorers:
            if scorer.needs_calls and not calls_seen:
                what = "needs reported tool calls; the answers to the first case report none"
                yield note(CRITERIA, scorer.criterion.name, what, RETURN_CALLS)
            else:
                yield _criterion(scorer.criterion, first)


def _criterion(criterion: Criterion, first: Trial | None) -> Checkup:
    """Return a criterion's result in the first case."""
    name, score = criterion.name, None
    if first is not None:
        score = first.scores.get(name)
    if score is None:
        return ok(CRITERIA, name, "not tried here")
    if score.error is not None:
        remedy = "gate explain shows what was scored; gate help criteria"
        return problem(CRITERIA, name, f"not measured in the first case: {score.error}", remedy)
    if score.value is None:
        idle = "does not apply to the first case"
        return note(CRITERIA, name, idle, "other cases may state what it compares with; gate suite lists them")
    return ok(CRITERIA, name, f"measured in the first case: {figure(score.value, criterion.scale)}")


async def _judge(config: Config, plans: Sequence[Plan], environment: Mapping[str, str]) -> list[Checkup]:
    if not any(plan.judged for plan in plans):
        return []
    return [await _reached(member) for member in members(config.file.judge or JudgeOptions(), environment)]


async def _reached(member: Member) -> Checkup:
    """Check the endpoint by listing its models, which costs nothing; a missing page shows that the server is up."""
    import httpx  # weight: only where a judge is asked

    name = f"{member.model}"
    try:
        async with httpx.AsyncClient(timeout=JUDGE_SECONDS) as client:
            headers = {"Authorization": f"Bearer {member.api_key}"}
            status = (await client.get(f"{member.base_url.rstrip('/')}/models", headers=headers)).status_code
    except (httpx.HTTPError, httpx.InvalidURL, ValueError, OSError) as error:
        why = f"{member.base_url} cannot be reached: {type(error).__name__}"
        return problem(JUDGE, name, why, "check judge.base_url, the network and the proxy")
    if status in (401, 403):
        why = f"{member.base_url} refuses the key (HTTP {status})"
        return problem(JUDGE, name, why, "check the key's variable: judge.api_key_env")
    if status >= 500:
        return problem(JUDGE, name, f"{member.base_url} answers with HTTP {status}", "try again later")
    return ok(JUDGE, name, f"{member.base_url} answers")


# --- baselines and the job ------------------------------------------------------------------------


def _baselines(config: Config, plans: Sequence[Plan], environment: Mapping[str, str]) -> Iterator[Checkup]:
    try:
        git = Git(config.root, environment=environment)
        where = git_context(config, git)
        with ExitStack() as stack:
            store = store_of(config, environment)
            if store is None:
                yield note(BASELINE, "store", "switched off: only thresholds decide")
                return
            stack.enter_context(store)
            found = []
            for plan in plans:
                references = find_references(config, store, plan.suite.id, where, git, plan=plan.planned)
                found.append((plan.suite.id, references.first.info))
            if not plans:
                store.entries()
            yield ok(BASELINE, "store", f"{store_kind(config, environment)}: can be read")
            for suite_id, info in found:
                if info.missing:
                    yield note(BASELINE, suite_id, info.missing, "gate baseline")
                else:
                    yield ok(BASELINE, suite_id, f"found, for commit {(info.commit or 'none')[:12]}")
    except GateError as error:
        yield refused(BASELINE, "store", error)


def _job(config: Config, environment: Mapping[str, str]) -> Iterator[Checkup]:
    system = ci_system(environment)
    if system == UNKNOWN_CI:
        yield note(JOB, "CI", system, "gate help ci")
    else:
        yield ok(JOB, "CI", system or "none: this is not a CI job")
    try:
        git = Git(config.root, environment=environment)
        if git.is_out_of_reach():
            yield note(JOB, "git", f"{NO_GIT}: the last saved baseline is used", "install git")
        elif not git.is_repository():
            yield note(JOB, "git", "not a repository: the last saved baseline is used")
        elif git.head() is None:
            yield note(JOB, "git", "no commit yet: baselines are stored per commit")
        elif git.is_shallow():
            known = len(git.first_parents("HEAD", 100))
            what = f"the clone is shallow: {count(known, 'commit')}; older baselines cannot be found"
            yield problem(JOB, "git", what, 'fetch-depth: 0, or GIT_DEPTH: "0"', ExitCode.BASELINE)
        else:
            yield ok(JOB, "git", f"commit {(git.head() or '')[:12]}, with full history")
    except GateError as error:
        yield refused(JOB, "git", error)
