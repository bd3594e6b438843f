"""A configuration → the suites to run, each with its criteria, scorers and fingerprints; invalid ones are refused
here."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from gate.agents.base import agent_class, allowed_environment
from gate.agents.replay import ReplayOptions
from gate.baselines.fingerprint import of_case, of_json
from gate.config.adk_criteria import criteria_of
from gate.config.criteria import (
    ADK_DEFAULTS,
    Setting,
    build_scorers,
    check_something_blocks,
    idle_thresholds,
    is_idle,
    place_of_case,
    unread_expectations,
    unread_rubrics,
    with_demands,
)
from gate.config.load import Config, SuiteRules
from gate.config.people import notes_of, with_calibrations
from gate.config.place import FilePlace
from gate.config.specs import CriterionSpec, read_specs
from gate.decision.consistency import cluster_of, group_of, in_cluster
from gate.errors import ConfigError, closest, nearest
from gate.judges.options import SimulatedUserOptions, fingerprint_of_user, is_set_up
from gate.judges.options import check as check_judge
from gate.judges.options import fingerprint as judge_fingerprint
from gate.metrics import METRICS, load_metric
from gate.metrics.base import Context, Judged
from gate.metrics.custom.metric import InAgentMetric
from gate.metrics.custom.source import Folders
from gate.model import Case, Criterion, Suite, text_of
from gate.records import PlannedCase
from gate.scoring.score import Scorer
from gate.security.limits import cut
from gate.suites import Selection, load, select_all
from gate.suites.adk import TYPESCRIPT
from gate.suites.base import is_recorded
from gate.suites.traces import check_paths, with_traces
from gate.system.git import repository_above


class Plan(Struct, frozen=True, dict=True):
    """One suite with everything that judges it."""

    suite: Suite
    scorers: tuple[Scorer, ...]
    notes: tuple[str, ...] = ()
    """Notes for the reader on how it was put together."""
    deselected: frozenset[str] = frozenset()
    """Ids of cases that the selection leaves out."""
    base_criteria: tuple[Criterion, ...] = ()
    """The criteria with the base commit's own demands, if the base's rules apply to a change."""
    base_thresholds: Mapping[str, Mapping[str, float]] = {}
    """The base commit's thresholds of single cases."""
    selection: Selection | None = None
    """The configured selection; None if there is none."""
    user: str = ""
    """Fingerprint of the simulated user, who is part of each case with a scenario; empty if nobody is simulated."""

    @property
    def scope(self) -> str:
        """The selection of the cases, in words; empty if no case is left out."""
        if self.selection is None or not self.deselected:
            return ""
        return self.selection.in_words

    @property
    def whole(self) -> int:
        """Number of cases in the suite's files if some are left out, else 0."""
        if not self.deselected:
            return 0
        return len(self.suite.cases) + len(self.deselected)

    @cached_property
    def criteria(self) -> tuple[Criterion, ...]:
        return tuple(scorer.criterion for scorer in self.scorers)

    @cached_property
    def judged(self) -> tuple[Scorer, ...]:
        """The scorers that need the judge of the run."""
        return tuple([scorer for scorer in self.scorers if scorer.needs_judge])

    @cached_property
    def cases(self) -> Mapping[str, Case]:
        return {case.id: case for case in self.suite.cases}

    @cached_property
    def planned(self) -> tuple[PlannedCase, ...]:
        return tuple([_planned(case, self.user) for case in self.suite.cases])


MAX_EXPECTED_CHARS = 1_000
"""Characters of an expected response that a record keeps for display next to the answer."""


def _planned(case: Case, user: str) -> PlannedCase:
    """Return the part of a case that a record keeps."""
    content = of_case(case)
    if case.scenario is not None and user:
        content = of_json([content, user])
    responses: list[str | None] = []
    for turn in case.turns:
        if turn.response is None:
            responses.append(None)
        else:
            responses.append(cut(text_of(turn.response, thoughts=False), MAX_EXPECTED_CHARS))
    at: tuple[str | int, ...] | None = None
    if case.location is not None:
        at = tuple([part for part in (case.location.path, case.location.line) if part is not None])
    expected = tuple([turn.tools for turn in case.turns])
    return PlannedCase(
        id=case.id,
        fingerprint=content,
        tags=tuple(sorted(case.tags)),
        complexity=case.complexity,
        at=at,
        thresholds=case.thresholds,
        expected=expected if any(calls is not None for calls in expected) else (),
        equivalent=group_of(case),
        cluster=cluster_of(case),
        responses=tuple(responses) if any(responses) else (),
    )


def make_plans(config: Config, environment: Mapping[str, str], *, calibrating: bool = False) -> tuple[Plan, ...]:
    """Read the suites and check everything that can be checked before an agent starts.

    ``calibrating``: True to plan regardless of calibrations, even if no judged criterion may block yet.

    Raises:
        ConfigError: an unreadable suite, an unknown metric or option, or a judge without a key.
        MeasureError: there is no case, or none is selected.
    """
    suites = []
    whole = {}
    for suite in read_suites(config):
        suites.append(_as_at_base(config, suite))
        whole[suite.id] = suites[-1].cases
    _check_quarantine(config, whole.values())
    if config.file.select is not None:
        formerly = {name: rules.formerly for name, rules in config.base_rules.items()}
        try:
            suites = select_all(suites, config.file.select, formerly)
        except ConfigError as error:
            keys = tuple(error.where.split("."))
            raise ConfigError(error.what, where=config.place_of(*keys), hint=error.hint) from None

    def judge_of(criterion: str) -> str:
        check_judge(config.file.judge, environment, needed_by=[criterion])
        return judge_fingerprint(config.file.judge, environment)

    setting = Setting(
        context=Context({name: frozenset(tools) for name, tools in config.file.tool_categories.items()}),
        folders=Folders(str(config.root), str(config.base_root or ""), config.paths),
        environment=allowed_environment(environment, ()),
        judge=judge_of,
    )
    plans = []
    judged = is_set_up(config.file.judge, environment)
    for suite in suites:
        _check_categories(suite, setting.context)
        stated = stated_criteria(config, suite)
        if not judged:
            stated = _without_judged_parts(stated, suite, config)
        plans.append(_plan(config, suite, stated, setting, whole[suite.id], calibrating=calibrating))
        _check_agent(config, plans[-1])
    return tuple(_with_models(config, plans, environment))


def _with_models(config: Config, plans: Sequence[Plan], environment: Mapping[str, str]) -> Iterator[Plan]:
    """Yield the plans with the user that a model plays; in a replay, the user is recorded.

    Raises:
        ConfigError: the run's judge or simulated user could not be reached.
    """
    judged = []
    for plan in plans:
        judged += [scorer.criterion.name for scorer in plan.judged]
    judge, user, usd = config.file.judge, config.file.simulated_user, config.file.budget.usd
    check_judge(judge, environment, needed_by=judged, usd=usd)
    for plan in plans:
        if config.agent_kind == "replay" or not any(case.scenario for case in plan.suite.cases):
            yield plan
        else:
            simulated = (user or SimulatedUserOptions()).as_judge(judge)
            check_judge(simulated, environment, needed_by=["the simulated user"], usd=usd)
            yield replace(plan, user=fingerprint_of_user(user, judge, environment))


def read_suites(config: Config) -> list[Suite]:
    """Return the suites with all cases of their files, before selection. Raises the same as `make_plans`."""
    paths = [config.root / source for source in config.file.suite]
    for source, path in zip(config.file.suite, paths, strict=True):
        if not path.exists():
            where = config.place_of("suite", config.file.suite.index(source))
            raise ConfigError(f"suite {source!r} does not exist", where=where, hint=_nearest_file(source, path))
    file = config.file
    split = file.criteria is None
    root = config.root.resolve()
    place = root.relative_to(repository_above(root))  # two configurations may each have a folder suite/
    suites = []
    for suite in load(paths, root=config.root, fields=file.fields, name=file.name, format=file.format, split=split):
        inside = suite.id.replace("../", "")  # of this configuration, wherever its files are
        named = suite if suite.id == file.name else replace(suite, id=(place / inside).as_posix())
        suites.append(named.under(file.criteria or {}))
    return _with_traces(config, suites)


def _nearest_file(source: str, path: Path) -> str:
    """Return a hint for a missing file or folder."""
    names = []
    if path.parent.is_dir():
        names = [one.name for one in path.parent.iterdir()]
    near = closest(path.name, names)
    if near is None:
        return f"it is looked for in {path.parent}"
    shown = Path(source).with_name(near).as_posix()
    if path.with_name(near).is_dir():
        shown += "/"
    return f"did you mean {shown!r}?"


def _with_traces(config: Config, suites: list[Suite]) -> list[Suite]:
    """Return the suites with the trials in the files of ``agent.replay``; suites that are those files already have
    them."""
    names = config.agent.recordings if isinstance(config.agent, ReplayOptions) else ()
    if not names or list(names) == config.file.suite:
        return suites
    paths = [config.root / name for name in names]
    check_paths(paths, names)
    return with_traces(suites, paths, names)


def _check_categories(suite: Suite, context: Context) -> None:
    """Raise ConfigError for an expected call of an undefined category: no call could match it."""
    known = list(context.tool_categories)
    for case in suite.cases:
        for turn in case.turns:
            for call in turn.tools or ():
                if call.category is None or call.category in known:
                    continue
                what = f"case {case.id!r} expects a tool of category {call.category!r}, which is not defined"
                hint = nearest(call.category, known) if known else "define it under tool_categories in gate.yaml"
                raise ConfigError(what, where=str(case.location or suite.source), hint=hint)


def _as_at_base(config: Config, suite: Suite) -> Suite:
    """Return the suite with the base commit's clusters, and its thresholds of single cases that the change loosens."""
    rules = config.base_rules.get(suite.id)
    if rules is None or not (rules.thresholds or rules.clusters):
        return suite
    cases = []
    for case in suite.cases:
        held = replace(case, thresholds=rules.thresholds.get(case.id, case.thresholds))
        if case.id in rules.clusters:
            held = in_cluster(held, rules.clusters[case.id])
        cases.append(held)
    return replace(suite, cases=tuple(cases))


class StatedCriteria(Struct, frozen=True):
    """A suite's parsed criteria, and the place where they are written."""

    specs: tuple[CriterionSpec, ...]
    place: FilePlace
    note: str = ""
    is_configured: bool = False
    """True if all of them come from gate.yaml, and none from the suite."""


def stated_criteria(config: Config, suite: Suite) -> StatedCriteria:
    """Return the configuration's criteria; else those of the suite's ``test_config.json``; else ADK's defaults.

    Raises:
        ConfigError: they cannot be parsed.
    """
    note, adk = "", config.has_adk_criteria
    place = FilePlace(config.criteria.file)
    rules = config.base_rules.get(suite.id)
    if rules is not None:
        return StatedCriteria(rules.specs, place)
    raw: Mapping[str, Any] = {}
    brought = suite.brought or {}
    if config.agent_kind != "replay":
        # only recorded trials have scores of another tool
        brought = {name: one for name, one in brought.items() if not is_recorded(one)}
    if config.file.criteria is not None:
        raw, place = config.file.criteria, config.criteria
    elif suite.criteria is not None:
        place = FilePlace(f"{suite.source}/test_config.json" if suite.source else "test_config.json")
        raw, adk = criteria_of(dict(suite.criteria), place.file), True
    elif not brought:
        raw, note = ADK_DEFAULTS, NO_CRITERIA
    specs = read_specs(_merged_criteria(brought, raw), place.at, adk=adk)
    return StatedCriteria(specs, place, note, is_configured=suite.criteria is None and not brought)


NO_CRITERIA = "no criteria are given: ADK's defaults apply ({})".format(
    ", ".join(f"{name} {threshold}" for name, threshold in ADK_DEFAULTS.items())
)
_WEIGHTED = {"overall_score", "agent_score", "weighted_score"}


def _merged_criteria(brought: Mapping[str, Any], raw: Mapping[str, Any]) -> dict[str, Any]:
    """Return the criteria from the suite's files, overridden by those of the configuration.

    The configuration need not repeat which scorer `recorded_score` reads. A criterion that it sets to null is left out,
    even of weighted scores; so a suite can do without the judge that a part needs.
    """
    found = {**brought, **raw}
    dropped = []
    for name, own in raw.items():
        if own is None and name in brought:
            dropped.append(name)
            del found[name]
    for name, stated in list(found.items()):
        if name not in brought:
            continue
        if dropped and name in _WEIGHTED:
            found[name] = {**_mapped(stated), "without": dropped}
        if name in raw:
            known, own = _mapped(brought[name]), _mapped(raw[name])
            if "metric" in known and "metric" not in own:
                known.pop("blocking", None)
                found[name] = {**known, **own}
    return found


def _mapped(criterion: Any) -> dict[str, Any]:
    """Return a criterion as a mapping; a number is its threshold."""
    return dict(criterion) if isinstance(criterion, Mapping) else {"threshold": criterion}


def _without_judged_parts(stated: StatedCriteria, suite: Suite, config: Config) -> StatedCriteria:
    """Return the criteria without the parts of a score that need a judge, for a run in which no judge is set up.

    EvalView has such a part by default. Only parts from the suite's files are left out, only if they do not block by
    themselves, and only if other parts of the score remain.
    """
    own = config.file.criteria or {}
    parts = [spec for spec in stated.specs if spec.name in (suite.brought or {}) and spec.name not in own]
    dropped = [spec.name for spec in parts if not spec.common.blocking and asks_judge(spec.metric)]
    if not dropped:
        return stated
    specs = []
    for spec in stated.specs:
        if spec.name in _WEIGHTED:
            specs.append(replace(spec, options={**spec.options, "without": dropped}))
        elif spec.name not in dropped:
            specs.append(spec)
    for case in suite.cases:
        weights = case.options.get("overall_score", {}).get("weights")
        if weights and not any(weight for name, weight in weights.items() if name not in dropped):
            return stated  # its score depends on the judge only
    note = f"{', '.join(dropped)} asks a judge and none is set up, so the score is made of the other parts"
    return replace(stated, specs=tuple(specs), note=f"{note}; set OPENAI_API_KEY, or write it as null under criteria")


def asks_judge(metric: str) -> bool:
    """True if a registered metric can ask a judge."""
    return metric in METRICS and issubclass(load_metric(metric), Judged)


def _plan(
    config: Config,
    suite: Suite,
    stated: StatedCriteria,
    setting: Setting,
    whole: Sequence[Case],
    *,
    calibrating: bool,
) -> Plan:
    rules = config.base_rules.get(suite.id, SuiteRules(()))
    setting = replace(
        setting,
        place=stated.place,
        whole=whole if len(whole) > len(suite.cases) else (),
        demanded=rules.removed,
    )
    scorers = _without_idle(build_scorers(stated.specs, suite.cases, setting), rules.removed, suite.cases)
    if not calibrating:
        scorers = with_calibrations(config, scorers, suite.cases, rules.before)
        hint = "; ".join((*_held_back(scorers), "see `gate calibrate`, or let another criterion block"))
        check_something_blocks(scorers, setting.place.at(), hint)
    deselected = frozenset(case.id for case in whole).difference(case.id for case in suite.cases)
    notes = _notes(suite, stated, scorers)
    if stated.is_configured:
        notes = (*notes, *unread_expectations(suite.cases, scorers), *idle_thresholds(suite.cases, scorers))
    return Plan(
        suite,
        tuple(scorers),
        notes,
        deselected,
        base_criteria=_base_criteria(scorers, rules),
        base_thresholds=rules.thresholds_before,
        selection=config.file.select,
    )


def _without_idle(built: Sequence[Scorer], only_base: frozenset[str], cases: Sequence[Case]) -> list[Scorer]:
    """Return the scorers without those that only the base demands and that no remaining case applies to, if any other
    blocks."""
    busy = []
    for scorer in built:
        if scorer.criterion.name not in only_base or not is_idle(scorer, cases):
            busy.append(scorer)
    for scorer in busy:
        if scorer.criterion.blocking and not scorer.metric.needs_others:
            return busy
    return list(built)


def _notes(suite: Suite, stated: StatedCriteria, scorers: Sequence[Scorer]) -> tuple[str, ...]:
    """Return notes for the reader on how a plan was put together."""
    notes = [stated.note]
    flavored = any("flavor" in spec.options for spec in stated.specs)
    for note in suite.notes:
        if not flavored or note != TYPESCRIPT:
            notes.append(note)
    notes += _held_back(scorers)
    notes += notes_of(scorers)
    notes.append(unread_rubrics(suite.cases, scorers))
    for scorer in scorers:
        if scorer.metric.caveat:
            notes.append(f"{scorer.criterion.name}: {scorer.metric.caveat}")
    return tuple(note for note in notes if note)


def _held_back(scorers: Iterable[Scorer]) -> list[str]:
    """Return the criteria that may not block because of their judge, with the reason."""
    return [f"{scorer.criterion.name} {scorer.held_back}" for scorer in scorers if scorer.held_back]


def _base_criteria(scorers: Iterable[Scorer], rules: SuiteRules) -> tuple[Criterion, ...]:
    """Return the base commit's demands on the same scores; a criterion that may not block does not block under them,
    either."""
    before = {spec.name: spec for spec in rules.before}
    found = []
    for scorer in scorers:
        criterion = scorer.criterion
        if criterion.name in before:
            criterion = with_demands(criterion, before[criterion.name], type(scorer.metric))
            if scorer.held_back:
                criterion = replace(criterion, blocking=False, blocks_regression=False)
            found.append(criterion)
    return tuple(found)


def _check_agent(config: Config, plan: Plan) -> None:
    """Raise ConfigError for criteria that this kind of agent provides nothing for, or for a question with files that it
    does not receive: it would be another question."""
    for scorer in plan.scorers:
        name = scorer.criterion.name
        if isinstance(scorer.metric, InAgentMetric) and config.agent_kind != "python":
            what = f"{name}: `run_in: agent` needs a python: agent, and this one is {config.agent_kind}:"
            raise ConfigError(what, where=config.criteria.file, hint="remove run_in: the gate imports it")
        if scorer.needs_calls and not config.agent.tells_tools:
            place = f"agent.{config.agent_kind}.response"
            what = f"{name} looks at tool calls, and {place} does not say where to find them"
            hint = "add tool_calls: and their path to response, or leave the criterion out"
            raise ConfigError(what, where=str(config.path), hint=hint)
    if agent_class(config.agent_kind).takes_attached:
        return
    for case in plan.suite.cases:
        kinds: dict[str, None] = {}
        for turn in case.turns:
            for part in turn.attached:
                kinds |= dict.fromkeys(part)
        if kinds:
            found = ", ".join(kinds)
            what = f"case {case.id!r}: its question has {found}, which a {config.agent_kind}: agent is not handed"
            raise ConfigError(what, where=place_of_case(case), hint="adk:, a2a: and openai: agents take files")


def _check_quarantine(config: Config, whole: Iterable[Sequence[Case]]) -> None:
    """Raise ConfigError for the quarantine of an unknown case; cases that are not selected count as known."""
    known = sorted(case.id for cases in whole for case in cases)
    for entry in config.file.quarantine:
        if entry.case not in known:
            raise ConfigError(
                f"quarantine: no case {entry.case!r}", where=str(config.path), hint=nearest(entry.case, known)
            )
