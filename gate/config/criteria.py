"""Criteria as the user writes them → criteria as the gate judges them, all checked before anything runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from gate.baselines.fingerprint import of_criterion
from gate.config.place import FilePlace
from gate.config.specs import CriterionSpec, read_options
from gate.errors import ConfigError, closest, unknown_key
from gate.metrics import METRICS
from gate.metrics.base import Context, Metric, PerTurn, TrialOutput
from gate.metrics.custom.metric import MetricUse
from gate.metrics.custom.source import Folders
from gate.metrics.outcome import PassK
from gate.metrics.weighted import WeightedScore
from gate.model import Case, Criterion, Direction, Invocation, Part, Rubric, Scale
from gate.scoring.score import Scorer, build_scorer
from gate.security.limits import shorten

ADK_DEFAULTS: Mapping[str, Any] = {"tool_trajectory_avg_score": 1.0, "response_match_score": 0.8}
"""The criteria that google-adk checks by default."""


class Setting(Struct, frozen=True):
    """The context that all criteria of a suite share."""

    place: FilePlace = FilePlace("criteria")
    """The place in the configuration where they are written."""
    context: Context = field(default_factory=Context)
    folders: Folders = Folders()
    """The folders to import custom metrics from, besides the installed packages."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """The environment of custom metrics."""
    whole: Sequence[Case] = ()
    """All cases of the suite if a selection leaves some out: a criterion may have something to check only in those."""
    demanded: frozenset[str] = frozenset()
    """Criteria that only the base commit demands; the change removed them, perhaps with the last case that they
    check."""
    judge: Callable[[str], str] = str
    """Criterion's name → fingerprint of the run's judge; called only for a criterion that needs one."""


def build_scorers(specs: Sequence[CriterionSpec], cases: Sequence[Case], setting: Setting) -> tuple[Scorer, ...]:
    """Return one scorer per criterion, in their order.

    Raises:
        ConfigError: an unknown option, a threshold out of range, or a case's settings for an absent criterion.
    """
    scorers = tuple([_scorer(spec, cases, setting) for spec in specs])
    check_something_blocks(scorers, setting.place.at(), "leave `blocking: false` off one")
    _check_weights(scorers, setting.place.at())
    _check_cases(cases, scorers)
    _check_idle(specs, cases, scorers, setting)
    return scorers


def check_something_blocks(scorers: Sequence[Scorer], where: str, hint: str) -> None:
    """Raise ConfigError if no criterion blocks."""
    blocking = [scorer for scorer in scorers if scorer.criterion.blocking]
    if blocking and all(scorer.metric.needs_others for scorer in blocking):
        what = f"{blocking[0].criterion.name} counts trials that meet the other criteria, and no other criterion blocks"
        raise ConfigError(what, where=where, hint="add a criterion that says when a trial passes")
    if not blocking:
        raise ConfigError("no criterion blocks: the gate could never fail", where=where, hint=hint)


def _check_idle(
    specs: Sequence[CriterionSpec], cases: Sequence[Case], scorers: Sequence[Scorer], setting: Setting
) -> None:
    """Raise ConfigError for a criterion that checks nothing in any case. Otherwise it would be noticed only after a
    full run, and never in a partial run, where it might apply to cases that are left out."""
    if not cases:
        return
    for spec, scorer in zip(specs, scorers, strict=True):
        criterion = scorer.criterion
        if not criterion.blocking or criterion.name in setting.demanded:
            continue
        if criterion.threshold is not None and criterion.is_idle(criterion.threshold):
            what = f"{criterion.name}: every score reaches its threshold of {criterion.threshold:g}"
            hint = "raise it, leave it out to compare with a baseline only, or set `blocking: false`"
            raise ConfigError(what, where=setting.place.at(criterion.name), hint=hint)
        is_nothing = _gives_nothing(scorer, cases)
        if setting.whole:
            is_nothing = is_nothing and _gives_nothing(_scorer(spec, setting.whole, setting), setting.whole)
        if is_nothing:
            missing = scorer.metric.missing or ("tools" if scorer.metric.compares_calls else "a response")
            what = f"{criterion.name} would check nothing: neither it nor any case gives {missing}"
            hint = f"give it {missing}, or write `criteria` without it"
            raise ConfigError(what, where=setting.place.at(criterion.name), hint=hint)


def _gives_nothing(scorer: Scorer, cases: Sequence[Case]) -> bool:
    """True if a criterion checks nothing in these cases, or none of them states what it compares turns with."""
    if scorer.metric.missing:
        return is_idle(scorer, cases)
    return all(_states_nothing(scorer.for_case(case), case) for case in cases)


def _states_nothing(metric: Metric[Any], case: Case) -> bool:
    """True if a metric that compares turn by turn finds nothing to compare with in a case."""
    if not isinstance(metric, PerTurn):
        return False
    found = metric.score(case, TrialOutput(tuple(Invocation(turn.user, (Part("?"),)) for turn in case.turns)))
    return found.does_not_apply


def is_idle(scorer: Scorer, cases: Sequence[Case]) -> bool:
    """True if a criterion has nothing to check in any case."""
    return all(scorer.for_case(case).missing for case in cases)


def _check_weights(scorers: Sequence[Scorer], where: str) -> None:
    """Raise ConfigError unless each part of a weighted score is a criterion with a score per trial, scored before it:
    otherwise every trial would lack the score, noticed only after a full run."""
    weighted, over_trials = {}, set()
    for scorer in scorers:
        metrics = [metric for metric in (scorer.metric, *scorer.by_case.values()) if isinstance(metric, WeightedScore)]
        if metrics:
            weighted[scorer.criterion.name] = metrics
        if scorer.metric.over_trials:
            over_trials.add(scorer.criterion.name)
    known = [scorer.criterion.name for scorer in scorers if scorer.criterion.name not in weighted]
    for name, metrics in weighted.items():
        for metric in metrics:
            for part in metric.options.parts:
                if part in over_trials and part in metric.options.weights:
                    what = f"{name} weighs {part}, which has no score for a single trial"
                    hint = "give it a threshold of its own"
                elif part in known:
                    continue
                elif part in weighted:
                    what, hint = f"{name} weighs {part}, which is scored after it", f"name {part} before {name}"
                else:
                    what = f"{name} weighs {part!r}, which is not a criterion of this run"
                    near = closest(part, known, cutoff=0.75)
                    absent = [one for one in metric.options.parts if one not in known]
                    hint = f"did you mean {near!r}?" if near else f"name its parts as well: {', '.join(absent)}"
                raise ConfigError(what, where=where, hint=hint)
        known.append(name)


def _scorer(spec: CriterionSpec, cases: Sequence[Case], setting: Setting) -> Scorer:
    """Return the scorer of a criterion."""
    where = f"{spec.where}: {spec.name}"
    metric_type, options, run_in = _metric_type(spec, setting, where)
    spec = spec.under(metric_type)
    _check_limits(spec, metric_type, where)
    criterion = Criterion(
        spec.name,
        spec.metric,
        metric_type.scale,
        metric_type.direction,
        hard=metric_type.hard,
        absence=metric_type.absence,
        lexical=metric_type.lexical,
    )
    criterion = with_demands(criterion, spec, metric_type)
    scorer = build_scorer(criterion, metric_type, options, cases, setting.context, where=spec.where)
    judge = setting.judge(spec.name) if scorer.needs_judge else None
    measuring = {key: value for key, value in options.items() if key != "min_kappa"} | run_in
    # min_kappa decides only what may block; where a custom metric runs, and its code, decide what it measures
    fingerprint = of_criterion(spec.metric, metric_type.version, measuring, judge=judge)
    criterion = replace(
        criterion,
        reads_tools=scorer.needs_calls,
        parts=scorer.parts,
        k=scorer.metric.options.k if isinstance(scorer.metric, PassK) else 0,
        fingerprint=fingerprint,
    )
    return replace(scorer, criterion=criterion)


def with_demands(criterion: Criterion, spec: CriterionSpec, metric_type: type[Metric[Any]]) -> Criterion:
    """Return the criterion with the demands of an entry, such as the base commit's; it measures the same."""
    common = spec.under(metric_type).common
    return replace(
        criterion,
        threshold=common.threshold,
        limit=common.max,
        quantiles=spec.quantiles,
        margin=common.margin,
        pass_threshold=common.threshold if common.threshold is not None else metric_type.pass_threshold,
        blocking=common.blocking,
        blocks_regression=common.blocking and common.regression == "block",
        ratchet=common.ratchet,
    )


def _check_limits(spec: CriterionSpec, metric_type: type[Metric[Any]], where: str) -> None:
    """Raise ConfigError if a metric's direction and scale do not allow the limits."""
    common, quantiles = spec.common, spec.quantiles
    if metric_type.direction is not Direction.LOWER and (common.max is not None or quantiles):
        what = "`max` and quantile limits are for metrics where lower is better"
        raise ConfigError(what, where=where, hint="use `threshold`")
    limits = {"threshold": common.threshold, "max": common.max}
    for quantile, limit in quantiles:
        limits[f"p{quantile * 100:g}"] = limit
    for label, value in limits.items():
        _check_range(label, value, metric_type.scale, where)
    if metric_type.needs_others and common.margin is not None:
        what = "use `gate.pass_rate_margin` for the drop that still counts as unchanged"
        raise ConfigError(f"margin: {what}", where=where, hint="set it there")
    if metric_type.hard and common.threshold != 1.0:
        what = f"threshold {common.threshold:g}: one occurrence fails the gate"
        raise ConfigError(what, where=where, hint="leave it out")
    if metric_type.over_trials and common.regression == "block":
        what = "it compares trials with one another, so a change of it cannot block"
        raise ConfigError(what, where=where, hint="give a `threshold`")
    _check_margin(common.margin, metric_type.scale, where)


def _metric_type(
    spec: CriterionSpec, setting: Setting, where: str
) -> tuple[type[Metric[Any]], dict[str, Any], dict[str, Any]]:
    """Return the metric, its own options, and what else decides what a custom metric measures."""
    if spec.metric_type is not None:
        read_options(spec.metric_type.options_type, spec.options, where)  # its hint names the common options
        return spec.metric_type, dict(spec.options), {}
    from gate.metrics.custom.isolated import resolve_custom  # weight: only if there are custom metrics

    use = MetricUse(spec.name, spec.common.threshold, environment=setting.environment)
    return resolve_custom(spec.metric, use, spec.options, setting.folders, where)


PERCENT = 2.0
"""The least number that is taken for a percentage where a share is due."""
MOST_RELATIVE = 10.0
"""The widest margin of a cost, a duration or a count, as a share: eleven times as much."""


def _check_margin(margin: float | None, scale: Scale, where: str) -> None:
    """Raise ConfigError for a margin below 0, or wider than any loss."""
    if margin is None:
        return
    if margin < 0:
        raise ConfigError(f"margin {margin:g} is below 0", where=where)
    low, high = scale.range
    widest = MOST_RELATIVE if scale.is_relative else high - low
    if margin <= widest:
        return
    hint = "`regression: warn` is the way to do so"
    if margin >= PERCENT and (scale.is_relative or scale.is_zero_to_one):
        hint = f"it is a share: did you mean {margin / 100:g}?"
    raise ConfigError(f"margin {margin:g} would let any loss pass", where=where, hint=hint)


def _check_range(label: str, value: float | None, scale: Scale, where: str) -> None:
    low, high = scale.range
    if value is None or low <= value <= high:
        return
    hint = f"scores are {low:g} or more"
    if scale.is_zero_to_one and PERCENT <= value <= 100:
        hint = f"did you mean {value / 100:g}?"
    elif high != float("inf"):
        hint = f"scores are {low:g} to {high:g}"
    raise ConfigError(f"{label} {value:g} is out of range", where=where, hint=hint)


RUBRIC_TYPES = ("FINAL_RESPONSE_QUALITY", "TOOL_USE_QUALITY", "TRAJECTORY_QUALITY")


def unread_rubrics(cases: Sequence[Case], scorers: Sequence[Scorer]) -> str:
    """Return a note with the number of cases whose rubrics no criterion reads; empty if there are none."""
    read = {scorer.metric.rubric_type for scorer in scorers} - {""}
    unread = []
    for case in cases:
        if any(rubric.type not in read for rubric in rubrics_of(case)):
            unread.append(case.id)
    if not unread:
        return ""
    return f"cases with rubrics that no criterion reads: {len(unread)} (first: {shorten(unread[0], 80)})"


def unread_expectations(cases: Sequence[Case], scorers: Sequence[Scorer]) -> list[str]:
    """Return a note for each part of the cases that no criterion compares with, with the key that would."""
    if not all(_is_built_in(scorer.metric) for scorer in scorers):
        return []  # the user's own metric may read anything
    with_tools = without_tools = with_response = 0
    for case in cases:
        with_tools += any(turn.tools for turn in case.turns)
        without_tools += any(turn.tools == () for turn in case.turns)
        with_response += any(turn.response is not None for turn in case.turns)
    told = []
    if with_tools and not any(scorer.metric.compares_calls for scorer in scorers):
        told.append(_unread(with_tools, "tools", "tool_trajectory_avg_score: 0.6"))
    if without_tools and not any(scorer.metric.refuses_other_calls for scorer in scorers):
        expects = "case expects" if without_tools == 1 else "cases expect"
        what = f"{without_tools:,} {expects} no call in a turn, which no criterion checks"
        told.append(f"{what}: add `tool_selection_accuracy: 0.9` to the criteria")
    if with_response and not any(scorer.metric.reads_response for scorer in scorers):
        told.append(_unread(with_response, "a response", "response_match_score: 0.5"))
    return told


def idle_thresholds(cases: Sequence[Case], scorers: Sequence[Scorer]) -> list[str]:
    """Return a note for each blocking criterion with a threshold of single cases that every score reaches."""
    told = []
    for scorer in scorers:
        criterion = scorer.criterion
        if not criterion.blocking:
            continue
        idle = []
        for case in cases:
            threshold = case.thresholds.get(criterion.name)
            if threshold is not None and criterion.is_idle(threshold):
                idle.append(case.id)
        if idle:
            own, them = ("the case's own threshold", "it") if len(idle) == 1 else ("the cases' own thresholds", "them")
            what = f"{criterion.name}: every score reaches {own} ({shorten(', '.join(idle), 80)})"
            told.append(f"{what}: only a comparison with a baseline can fail {them}")
    return told


def _is_built_in(metric: Metric[Any]) -> bool:
    module = type(metric).__module__
    return module.startswith("gate.metrics.") and not module.startswith("gate.metrics.custom")


def _unread(cases: int, part: str, key: str) -> str:
    states = "case states" if cases == 1 else "cases state"
    return f"{cases:,} {states} {part} that no criterion reads: add `{key}` to the criteria, or leave it out"


def place_of_case(case: Case) -> str:
    """Return the file and line of a case, else its id."""
    return str(case.location) if case.location else f"case {case.id!r}"


def rubrics_of(case: Case) -> list[Rubric]:
    """Return the rubrics of a case and of its turns."""
    rubrics = list(case.rubrics)
    for turn in case.turns:
        rubrics += turn.rubrics
    return rubrics


def _check_cases(cases: Sequence[Case], scorers: Sequence[Scorer]) -> None:
    """Raise ConfigError for what a case states and no criterion would read: thresholds or options without a criterion,
    or a rubric without a type, or with a misspelt one."""
    by_name = {scorer.criterion.name: scorer for scorer in scorers}
    reads_rubrics = any(scorer.metric.rubric_type for scorer in scorers)
    for case in cases:
        where = place_of_case(case)
        for name in [*case.thresholds, *case.options]:
            if name in METRICS and name not in by_name:
                hint = f"add `{name}: {{}}` to the criteria"
                raise ConfigError(f"case {case.id!r} states {name}, which is not a criterion", where=where, hint=hint)
            if name not in by_name:
                raise unknown_key(name, list(by_name), f"{where}: case {case.id!r}", noun="criterion")
        for name, threshold in case.thresholds.items():
            _check_own_threshold(case, by_name[name], threshold, where)
        for rubric in rubrics_of(case) if reads_rubrics else ():
            if rubric.type in RUBRIC_TYPES:
                continue
            what, hint = "has no type, so no criterion reads it", f"give it one of {', '.join(RUBRIC_TYPES)}"
            if rubric.type is not None:
                near = closest(rubric.type, RUBRIC_TYPES)
                what, hint = f"has the type {rubric.type!r}", f"did you mean {near!r}?"
                if near is None:
                    continue
            raise ConfigError(f"rubric {rubric.id!r} of case {case.id!r} {what}", where=where, hint=hint)


def _check_own_threshold(case: Case, scorer: Scorer, threshold: float, where: str) -> None:
    """Raise ConfigError if a criterion takes no such threshold from a single case."""
    name, metric = scorer.criterion.name, scorer.metric
    _check_range("threshold", threshold, metric.scale, f"{where}: case {case.id!r}: {name}")
    has_one = f"case {case.id!r} has a threshold for {name}"
    if metric.hard and threshold != 1.0:
        raise ConfigError(f"{has_one}: one occurrence fails the gate", where=where, hint="leave it out")
    if metric.over_trials:
        hint = "give the criterion a threshold"
        raise ConfigError(f"{has_one}, which is judged over the suite", where=where, hint=hint)
    if isinstance(metric, WeightedScore) and not scorer.for_case(case).options.weights:
        what = f"case {case.id!r} demands a {name} (`min_score`) without weights"
        hint = "say what it scores: weights: {tool_accuracy: 0.6, contains: 0.4}"
        raise ConfigError(what, where=where, hint=hint)
