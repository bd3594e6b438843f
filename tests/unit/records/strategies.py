"""Records for hypothesis: every field of every noun, with any value that the format holds."""

from __future__ import annotations

from hypothesis import strategies as st

from gate import model
from gate.model.calibration import MAX_LABELS, GradedLabels, JudgeCalibration
from gate.records import Footer, Header, PlannedCase, Record, Run

COUNTS = st.integers(0, 2**53)
ORDINALS = st.integers(1, 2**53)
FLAGS = st.booleans()
texts = st.text(max_size=6)
finite = st.floats(allow_nan=False, allow_infinity=False)
amounts = st.floats(0, allow_infinity=False)
json_values = st.recursive(
    st.none() | FLAGS | st.integers(-(2**60), 2**60) | finite | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)


def some(values: st.SearchStrategy, most: int = 2) -> st.SearchStrategy:  # type: ignore[type-arg]
    return st.lists(values, max_size=most).map(tuple)


calls = st.builds(
    model.ToolCall,
    texts,
    json_values,
    st.none() | texts,
    json_values,
    st.none() | texts,
    st.none() | amounts,
    st.none() | texts,
    FLAGS,
)
parts = some(st.builds(model.Part, texts, FLAGS))
usages = st.builds(
    model.Usage,
    st.none() | COUNTS,
    st.none() | COUNTS,
    st.none() | amounts,
    st.none() | COUNTS,
    st.none() | texts,
    system=st.none() | texts,
    cut_off=FLAGS,
)
digests = st.just("") | st.text("0123456789abcdef", min_size=1, max_size=32)
turns = st.builds(
    model.Invocation,
    user=texts,
    response=parts,
    tool_calls=some(calls),
    intermediate=parts,
    usage=st.none() | usages,
    duration=st.none() | amounts,
    reports_calls=FLAGS,
    unseen=some(st.sampled_from(model.PARTS)),
    foreign=some(st.builds(model.ForeignScore, scorer=texts, value=finite, reason=texts)),
)
replays = st.builds(
    model.Replay,
    source=texts,
    replayed=COUNTS,
    live=COUNTS,
    difference=texts,
    recording=texts,
    saved_usd=st.none() | amounts,
    tools=some(texts),
    tools_changed=some(texts),
)
labels = st.integers(0, MAX_LABELS)
calibrations = st.builds(
    JudgeCalibration,
    *[labels] * 4,
    graded=st.none()
    | st.builds(
        GradedLabels,
        labels=st.integers(2, MAX_LABELS),
        bias=st.floats(-100, 100),
        sd=st.floats(0, 100),
        correlation=st.floats(-1, 1),
    ),
)
criteria = st.builds(
    model.Criterion,
    name=texts,
    metric=texts,
    scale=st.sampled_from(model.Scale),
    direction=st.sampled_from(model.Direction),
    threshold=st.none() | finite,
    limit=st.none() | finite,
    quantiles=some(st.tuples(st.floats(0, 1, exclude_min=True, exclude_max=True), finite)),
    margin=st.none() | finite,
    pass_threshold=st.none() | finite,
    blocking=FLAGS,
    blocks_regression=FLAGS,
    ratchet=FLAGS,
    hard=FLAGS,
    fingerprint=texts,
    reads_tools=FLAGS,
    absence=FLAGS,
    lexical=FLAGS,
    k=st.integers(0, 25),
    parts=some(texts),
    calibration=st.none() | calibrations,
)
cases = st.builds(
    PlannedCase,
    id=texts,
    fingerprint=texts,
    tags=st.frozensets(texts, max_size=2).map(sorted).map(tuple),
    complexity=st.sampled_from(model.Complexity),
    at=st.none() | st.tuples(texts) | st.tuples(texts, ORDINALS),
    hint=st.none() | amounts,
    shard=ORDINALS,
    thresholds=st.dictionaries(texts, finite, max_size=2),
    expected=some(st.none() | some(calls)).filter(lambda turns: not turns or any(turn is not None for turn in turns)),
    equivalent=texts,
    cluster=texts,
    responses=some(st.none() | texts),
)
headers = st.builds(
    Header,
    suite_id=texts,
    plan=st.lists(cases, min_size=1, max_size=3, unique_by=lambda case: case.id).map(tuple),
    criteria=st.lists(criteria, max_size=2, unique_by=lambda criterion: criterion.name).map(tuple),
    run_id=texts,
    gate_version=texts,
    commit=st.none() | texts,
    base_commit=st.none() | texts,
    dirty=FLAGS,
    agent=texts,
    seed=st.integers(-(2**53), 2**53),
    shard=st.lists(ORDINALS, min_size=2, max_size=2).map(sorted).map(tuple),
    epochs=COUNTS,
    created=amounts,
    selected=FLAGS,
    scope=texts,
    whole=COUNTS,
    stripped=FLAGS,
    definition=texts,
    subject=texts,
    branch=texts,
    version=texts,
    runs=st.lists(st.builds(Run, texts, amounts, COUNTS), max_size=2, unique_by=lambda run: run.id).map(tuple),
)


models = some(st.tuples(texts, texts))


def scores_of(scale: model.Scale | None) -> st.SearchStrategy[model.Score]:
    low, high = scale.range if scale else (-1e300, 1e300)
    values = st.none() | st.floats(low, high, allow_infinity=False)
    details = st.dictionaries(texts, json_values, max_size=2)
    return st.builds(model.Score, values, texts, st.none() | texts, some(st.none() | finite), details, models)


@st.composite
def records(draw: st.DrawFn) -> Record:
    header = draw(headers)
    scales = {criterion.name: criterion.scale for criterion in header.criteria}
    ids = st.sampled_from([case.id for case in header.plan])
    keys = st.lists(st.tuples(ids, ORDINALS, st.sampled_from(model.Side)), max_size=3, unique=True)
    names = st.lists(texts | st.sampled_from([*scales, "other"]), max_size=2, unique=True)
    trials = tuple(
        model.Trial(
            case_id,
            number,
            round=draw(ORDINALS),
            tag=draw(texts),
            side=side,
            invocations=draw(some(turns)),
            scores={name: draw(scores_of(scales.get(name))) for name in draw(names)},
            error=draw(st.none() | st.builds(model.TrialError, st.sampled_from(model.ErrorKind), texts)),
            duration=draw(st.none() | amounts),
            attempts=draw(COUNTS),
            started=draw(st.none() | amounts),
            again=draw(FLAGS),
            answer=draw(digests),
            process=draw(digests),
            log=draw(texts),
            replay=draw(st.none() | replays),
            users=draw(models),
            earlier=draw(some(some(turns))),
        )
        for case_id, number, side in draw(keys)
    )
    errors = sum(trial.error is not None for trial in trials)
    rounds = max((trial.round for trial in trials), default=0)
    terms = st.dictionaries(texts, json_values, max_size=2)
    cost = draw(st.none() | amounts)
    footer = Footer(len(trials), errors, rounds, draw(amounts), cost, draw(texts), terms=draw(terms))
    return Record(header, trials, footer)
