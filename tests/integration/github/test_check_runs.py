"""Check runs beside the comment: one of each suite, on the right commit, saying what the comment says."""

from __future__ import annotations

import pytest

from gate.hosts.base import Annotation, PostCheck, PostFailure, Publication, Stamp, publish
from gate.hosts.checks import NOT_ALLOWED
from tests.integration.github.fake_github import Answer, FakeGitHub
from tests.integration.github.job import suite
from tests.integration.github.scenarios import World, report
from tests.integration.github.test_github_api import HEAD, Time, connect

pytestmark = pytest.mark.slow

CHECKS = {"token": "checks"}


@pytest.fixture
def time() -> Time:
    return Time()


def shown(fake: FakeGitHub) -> list[tuple[str, str, str]]:
    return [(run["name"], run["conclusion"], run["head_sha"]) for run in fake.check_runs]


def post(
    fake: FakeGitHub, time: Time, *effects: PostCheck | PostFailure, run: int = 10, token: str = "checks"
) -> Publication:
    with time.connections:
        host = connect(fake, time, token).check_runs(Stamp(run, 1, HEAD), page="https://github.example/run")
        return publish(effects, host)


def check(suite: str = "support", **parts: object) -> PostCheck:
    given = {"title": "passes", "body": "all is well", "conclusion": "success", **parts}
    return PostCheck(suite, **given)  # type: ignore[arg-type]


# --- through the step -----------------------------------------------------------------------------


@pytest.mark.parametrize(("behaviour", "conclusion", "code"), [("good", "success", 0), ("bad", "failure", 1)])
def test_it_says_what_the_comment_says(recorded: World, behaviour: str, conclusion: str, code: int) -> None:
    done = recorded.pull_request(behaviour, inputs=CHECKS)
    assert done.code == code, done.log
    [run] = recorded.fake.check_runs
    assert (run["conclusion"], run["status"], run["head_sha"]) == (
        conclusion,
        "completed",
        recorded.fake.pulls[1]["head"]["sha"],
    )
    [comment] = recorded.comments()
    heading, lead = comment.splitlines()[1:4:2]
    assert heading in run["output"]["summary"]
    assert lead.partition(",")[0] in run["output"]["summary"]
    assert run["details_url"] == "https://github.example/octo/agents/actions/runs/100"


def test_the_remarks_stand_at_the_cases_lines_once(recorded: World) -> None:
    done = recorded.pull_request("bad", inputs=CHECKS)
    [run] = recorded.fake.check_runs
    assert run["annotations"]
    assert all(one["path"] and one["start_line"] > 1 for one in run["annotations"])
    assert {one["annotation_level"] for one in run["annotations"]} <= {"failure", "warning", "notice"}
    assert not [1 for _, where, _ in done.annotations() if "file" in where]
    assert done.annotations("error"), "what belongs to no line is still the step's"


def test_without_the_permission_it_is_as_ever(recorded: World) -> None:
    done = recorded.pull_request("good")
    assert (done.code, recorded.fake.check_runs) == (0, [])
    assert NOT_ALLOWED in done.log
    assert not done.annotations("warning")
    assert recorded.comments()


def test_it_can_be_switched_off(recorded: World) -> None:
    done = recorded.pull_request("good", inputs={**CHECKS, "check_run": "false"})
    assert recorded.fake.check_runs == []
    assert "check run" not in done.log


def test_an_inconclusive_verdict_is_neutral_or_a_failure_as_configured(world: World) -> None:
    world.repository.files["suite.yaml"] = suite(4)
    assert world.push("good").code == 0
    world.pull_request("slip", 1, inputs={**CHECKS, "trials": "1"})
    world.pull_request("slip", 2, inputs={**CHECKS, "trials": "1", "on_inconclusive": "block"})
    assert [conclusion for _, conclusion, _ in shown(world.fake)] == ["neutral", "failure"]


def test_a_run_that_measured_nothing_fails_the_check_of_each_suite(recorded: World) -> None:
    done = recorded.pull_request("down", inputs=CHECKS)
    assert done.code != 0
    [(_, conclusion, head)] = shown(recorded.fake)
    assert (conclusion, head) == ("failure", recorded.fake.pulls[1]["head"]["sha"])


def test_a_forks_check_is_written_by_the_trusted_half_alone(recorded: World) -> None:
    recorded.pull_request("bad", fork=True)
    assert recorded.fake.check_runs == []
    recorded.fake.tokens["good"].may_check = True
    done = report(recorded)
    assert done.code == 1, done.log
    assert shown(recorded.fake) == [(shown(recorded.fake)[0][0], "failure", recorded.fake.pulls[1]["head"]["sha"])]


def test_the_same_commit_for_two_branches_has_two_checks(recorded: World) -> None:
    recorded.pull_request("good", inputs=CHECKS)
    recorded.fake.pulls[1]["base"]["ref"] = "release-1"
    payload = {"action": "synchronize", "pull_request": recorded.fake.pulls[1]}
    recorded.step(
        "pull_request",
        payload,
        recorded.last.ref,
        recorded.last.sha,
        inputs=CHECKS,
        environment={"GITHUB_RUN_ID": "101"},
    )
    names = [name for name, _, _ in shown(recorded.fake)]
    assert len(set(names)) == 2
    assert names[1] == f"{names[0]} (into release-1)"


def test_the_default_branch_has_its_own(world: World) -> None:
    done = world.push("good", inputs=CHECKS)
    assert done.code == 0, done.log
    [(_, conclusion, head)] = shown(world.fake)
    assert (conclusion in ("success", "neutral"), head) == (True, world.last.sha)


def test_a_check_that_cannot_be_written_takes_nothing_from_verdict_and_comment(recorded: World) -> None:
    for _ in range(5):
        recorded.fake.fail_once(Answer(422, {"message": "Validation Failed"}, lawless=True), "POST", "/check-runs")
    done = recorded.pull_request("bad", inputs=CHECKS)
    assert (done.code, done.outputs["verdict"], recorded.fake.check_runs) == (1, "regressed", [])
    assert recorded.comments()
    assert [1 for _, where, _ in done.annotations("warning") if "not published" in where.get("title", "")]
    assert [1 for _, where, _ in done.annotations() if "file" in where], "the remarks are the step's again"


# --- the API --------------------------------------------------------------------------------------


def test_more_remarks_than_a_request_takes_are_added(fake: FakeGitHub, time: Time) -> None:
    remarks = tuple(Annotation("error", f"c{n}", "worse", "suite.yaml", n + 1) for n in range(120))
    assert post(fake, time, check(annotations=remarks)).problems == ()
    [run] = fake.check_runs
    assert [one["start_line"] for one in run["annotations"]] == list(range(1, 121))


def test_a_newer_run_is_not_written_over(fake: FakeGitHub, time: Time) -> None:
    post(fake, time, check(conclusion="failure"), run=11)
    done = post(fake, time, check(), run=10)
    assert "a newer run" in done.notes[0]
    assert [conclusion for _, conclusion, _ in shown(fake)] == ["failure"]
    post(fake, time, check(), run=12)
    assert [conclusion for _, conclusion, _ in shown(fake)] == ["failure", "success"]


def test_a_late_run_without_a_verdict_leaves_a_newer_one(fake: FakeGitHub, time: Time) -> None:
    post(fake, time, check(), run=11)
    for suites in (None, ("support",)):
        post(fake, time, PostFailure("the agent is down", suites), run=10)
    assert [conclusion for _, conclusion, _ in shown(fake)] == ["success"]


def test_without_known_suites_a_failure_stands_on_those_that_had_a_verdict(fake: FakeGitHub, time: Time) -> None:
    post(fake, time, check("a"), check("b"), run=9)
    post(fake, time, PostFailure("the configuration is broken"), run=10)
    assert [(name[-1], conclusion) for name, conclusion, _ in shown(fake)[2:]] == [("a", "failure"), ("b", "failure")]


def test_a_lost_answer_makes_no_second_check(fake: FakeGitHub, time: Time) -> None:
    fake.fail_once(Answer(201, lost=True), "POST", "/check-runs")
    assert post(fake, time, check()).problems == ()
    assert len(fake.check_runs) == 1


@pytest.mark.parametrize("status", [500, 429])
def test_an_api_that_fails_is_a_problem_that_is_told(fake: FakeGitHub, time: Time, status: int) -> None:
    for _ in range(50):
        fake.fail_once(Answer(status, {"message": "no"}), "POST", "/check-runs")
    done = post(fake, time, check())
    assert ([type(one).__name__ for one in done.problems], fake.check_runs) == (["RestError"], [])
    assert str(status) in str(done.problems[0])


def test_a_strangers_check_of_our_name_is_not_taken_for_ours(fake: FakeGitHub, time: Time) -> None:
    post(fake, time, check(), run=99)
    fake.check_runs[0]["external_id"] = "another application"
    assert post(fake, time, check(conclusion="failure"), run=10).notes == ()
    assert [conclusion for _, conclusion, _ in shown(fake)] == ["success", "failure"]


def test_what_a_suite_is_called_stays_text(fake: FakeGitHub, time: Time) -> None:
    assert post(fake, time, check("a\nb\x1b[31m" + "x" * 500, title="t\n\x1b]0;x\x07" * 200)).problems == ()
    [run] = fake.check_runs
    assert run["name"].isprintable()
    assert len(run["name"]) < 220
    assert run["output"]["title"].isprintable()


@pytest.mark.parametrize(
    ("one", "other"), [("x" * 120 + "a", "x" * 120 + "b"), ("a  b", "a b"), ("a\u200b", "a⟨U+200B⟩"), ("a ", "a")]
)
def test_no_two_suites_have_one_name(fake: FakeGitHub, time: Time, one: str, other: str) -> None:
    """A required check is the latest of its name: one suite's pass would hide what another failed."""
    post(fake, time, check(one, conclusion="failure"), check(other))
    assert len({name for name, *_ in shown(fake)}) == 2


def test_a_suites_own_name_is_not_that_of_another_base(fake: FakeGitHub, time: Time) -> None:
    with time.connections:
        host = connect(fake, time, "checks").check_runs(Stamp(10, 1, HEAD), page="", about="release")
        publish([check("support", conclusion="failure")], host)
    post(fake, time, check("support (release)"))
    assert len({name for name, *_ in shown(fake)}) == 2


def test_of_two_jobs_of_one_run_the_worse_stands(fake: FakeGitHub, time: Time) -> None:
    post(fake, time, check(conclusion="failure"))
    done = post(fake, time, check())
    assert [conclusion for _, conclusion, _ in shown(fake)] == ["failure"]
    assert "another job of this run has written a worse one" in done.notes[0]
    post(fake, time, check(), run=11)
    assert [conclusion for _, conclusion, _ in shown(fake)] == ["failure", "success"], "a later run's is its own"


@pytest.mark.parametrize(
    ("method", "behaviour", "verdict", "code"), [("GET", "bad", "regressed", 1), ("POST", "good", "pass", 0)]
)
def test_where_no_answer_comes_verdict_and_comment_are_as_without(
    recorded: World, method: str, behaviour: str, verdict: str, code: int
) -> None:
    """The connection ends at every attempt. What was written all the same is found, and says what the comment says."""
    for _ in range(20):
        recorded.fake.fail_once(Answer(200, lost=True), method, "/check-runs")
    done = recorded.pull_request(behaviour, inputs=CHECKS)
    assert (done.code, done.outputs["verdict"]) == (code, verdict), done.log
    [comment] = recorded.comments()
    assert comment.splitlines()[1].startswith("### ❌" if code else "### ✅")
    written = [] if method == "GET" else ["failure" if code else "success"]
    assert [conclusion for _, conclusion, _ in shown(recorded.fake)] == written
    titles = [where.get("title", "") for _, where, _ in done.annotations("warning")]
    assert ("Agent Gate: not published" in titles) == (not written)
