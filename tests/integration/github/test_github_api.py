"""The client against a stateful GitHub that checks both sides by GitHub's own description."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest
from msgspec.structs import replace
from openapi_core import OpenAPI

from gate.errors import PublishError, UntrustedError
from gate.hosts.artifact import read_member
from gate.hosts.base import PostComment, Publication, Stamp, WriteSummary, key_of, mark_of, publish
from gate.hosts.events import Labelled, MeasuringRun
from gate.hosts.github import COMMENT_LIMIT, CannotComment, GitHub, LabelAcceptance, PullRequestHost
from gate.hosts.github import connect as connect_by
from gate.hosts.rest import Rest, RestError
from tests.integration.github.fake_github import DESCRIPTION, WORKFLOW, Answer, FakeGitHub, Identity

HEAD = "a" * 40
BOT = "github-actions[bot]"
SUITE = "evals | support --> `x`"


@dataclass
class Time:
    """A clock that sleeping advances."""

    now: float = 1_000.0
    slept: list[float] = field(default_factory=list)
    connections: ExitStack = field(default_factory=ExitStack)

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


@pytest.fixture
def time() -> Iterator[Time]:
    clock = Time()
    with clock.connections:
        yield clock


def connect(fake: FakeGitHub, time: Time, token: str = "good") -> GitHub:
    headers = {"Authorization": f"Bearer {token}", "Accept": "application/vnd.github+json"}
    rest = time.connections.enter_context(closing(Rest(fake.url, headers, sleep=time.sleep, clock=lambda: time.now)))
    return GitHub(rest, fake.repository, graphql_url=fake.graphql_url)


def post(
    fake: FakeGitHub,
    time: Time,
    body: str = "**pass**",
    *,
    token: str = "good",
    suite: str = SUITE,
    run: int = 10,
    attempt: int = 1,
    head: str = HEAD,
    failed: bool = False,
) -> Publication:
    host = PullRequestHost(connect(fake, time, token), 1, Stamp(run, attempt, head))
    return publish([PostComment(suite, body, failed)], host)


def bodies(fake: FakeGitHub, number: int = 1) -> list[tuple[str, str]]:
    return [(comment["user"]["login"], comment["body"]) for comment in fake.comments.get(number, [])]


# --- one comment per suite, ours alone ------------------------------------------------------------


def test_the_description_that_both_sides_are_held_to_is_one() -> None:
    OpenAPI.from_dict(DESCRIPTION)


def test_a_comment_is_made_and_then_updated_in_place(fake: FakeGitHub, time: Time) -> None:
    fake.add_pull(1, HEAD)
    first = post(fake, time, "one", run=10)
    second = post(fake, time, "two", run=11)
    assert first.problems == second.problems == ()
    assert len(first.urls) == 1
    assert first.urls == second.urls
    [(login, body)] = bodies(fake)
    assert login == BOT
    assert body.endswith("\ntwo")
    assert mark_of(body) == (key_of(SUITE), Stamp(11, 1, HEAD))


def test_each_suite_has_its_own_comment(fake: FakeGitHub, time: Time) -> None:
    fake.add_pull(1, HEAD)
    post(fake, time, "one", suite="a")
    post(fake, time, "two", suite="b")
    post(fake, time, "three", suite="a")
    assert [body.partition("\n")[2] for _, body in bodies(fake)] == ["three", "two"]


def test_our_comment_is_found_on_the_third_page(fake: FakeGitHub, time: Time) -> None:
    fake.add_pull(1, HEAD)
    for number in range(230):
        fake.add_comment(1, "chatty", f"comment {number}")
    post(fake, time, "one")
    for number in range(50):
        fake.add_comment(1, "chatty", f"comment {number}")
    post(fake, time, "two", run=11)
    assert len([body for _, body in bodies(fake) if "agent-gate" in body]) == 1
    listed = [call.query for call in fake.calls if call.method == "GET" and call.path.endswith("/comments")]
    assert {"per_page": "100"} in listed
    assert {"per_page": "100", "page": "3"} in listed


def test_a_marker_of_someone_else_is_not_ours(fake: FakeGitHub, time: Time) -> None:
    """Anyone can copy the invisible line; the comment that they wrote stays theirs."""
    fake.add_pull(1, HEAD)
    post(fake, time, "ours")
    [(_, ours)] = bodies(fake)
    fake.comments[1].clear()
    fake.add_comment(1, "mallory", ours.replace("ours", "**pass** says mallory"))
    post(fake, time, "ours", run=11)
    assert [login for login, _ in bodies(fake)] == ["mallory", BOT]
    assert "says mallory" in bodies(fake)[0][1]


def test_a_marker_inside_our_own_comment_is_not_one(fake: FakeGitHub, time: Time) -> None:
    fake.add_pull(1, HEAD)
    post(fake, time, "first")
    [(_, first)] = bodies(fake)
    fake.comments[1].clear()
    fake.add_comment(1, BOT, f"quoted:\n{first}")
    post(fake, time, "second", run=11)
    assert len(bodies(fake)) == 2


def test_another_token_writes_a_comment_of_its_own(fake: FakeGitHub, time: Time) -> None:
    fake.add_pull(1, HEAD)
    post(fake, time)
    post(fake, time, token="person", run=11)
    assert [login for login, _ in bodies(fake)] == [BOT, "alice"]


def test_a_longer_comment_than_github_takes_is_cut(fake: FakeGitHub, time: Time) -> None:
    fake.add_pull(1, HEAD)
    assert post(fake, time, "ü" * 200_000).problems == ()
    assert len(bodies(fake)[0][1]) == COMMENT_LIMIT


def test_other_effects_are_the_runners(fake: FakeGitHub, time: Time) -> None:
    host = PullRequestHost(connect(fake, time), 1, Stamp(1, 1, HEAD))
    assert publish([WriteSummary("x")], host) == Publication()
    assert fake.calls == []


# --- stale runs -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("run", "attempt"), [(9, 1), (9, 5), (10, 1)])
def test_a_newer_run_is_not_overwritten(fake: FakeGitHub, time: Time, run: int, attempt: int) -> None:
    fake.add_pull(1, HEAD)
    post(fake, time, "newer", run=10, attempt=2)
    done = post(fake, time, "older", run=run, attempt=attempt)
    assert "newer run" in done.notes[0]
    assert bodies(fake)[0][1].endswith("newer")


def test_a_repeated_run_overwrites_its_first_attempt(fake: FakeGitHub, time: Time) -> None:
    fake.add_pull(1, HEAD)
    post(fake, time, "first", run=10, attempt=1)
    post(fake, time, "second", run=10, attempt=2)
    assert bodies(fake)[0][1].endswith("second")


def test_of_two_jobs_of_one_attempt_the_one_that_failed_is_heard(fake: FakeGitHub, time: Time) -> None:
    """As in a matrix whose jobs run the same suite."""
    fake.add_pull(1, HEAD)
    post(fake, time, "pass", run=10)
    post(fake, time, "regressed", run=10, failed=True)
    assert "another job of this run has failed" in post(fake, time, "pass", run=10).notes[0]
    assert [body.splitlines()[1] for _, body in bodies(fake)] == ["regressed"]
    post(fake, time, "pass now", run=10, attempt=2)
    assert [body.splitlines()[1] for _, body in bodies(fake)] == ["pass now"]


def test_nothing_is_said_of_a_head_that_is_gone(fake: FakeGitHub, time: Time) -> None:
    fake.add_pull(1, "f" * 40)
    done = post(fake, time)
    assert "moved on" in done.notes[0]
    assert bodies(fake) == []


# --- permissions ----------------------------------------------------------------------------------


def test_a_token_that_only_reads_is_told_the_line_to_add(fake: FakeGitHub, time: Time) -> None:
    fake.add_pull(1, HEAD)
    done = post(fake, time, token="reader")
    [problem] = done.problems
    assert isinstance(problem, CannotComment)
    assert "pull-requests: write" in problem.hint
    assert time.slept == [], "a missing permission does not come back by waiting"


def test_a_token_that_sees_nothing_is_told_the_line_to_add(fake: FakeGitHub, time: Time) -> None:
    fake.add_pull(1, HEAD)
    fake.tokens["blind"] = Identity(may_read=False)
    [problem] = post(fake, time, token="blind").problems
    assert "pull-requests: write" in problem.hint


def test_a_bad_token_says_so(fake: FakeGitHub, time: Time) -> None:
    [problem] = post(fake, time, token="nonsense").problems
    assert "Bad credentials" in str(problem)


@pytest.mark.parametrize("token", ["", "t\u00f6ken", "a\nb", "a "])
def test_a_token_that_no_request_can_carry_is_a_problem(fake: FakeGitHub, time: Time, token: str) -> None:
    [problem] = post(fake, time, token=token).problems
    assert "Authorization cannot be sent" in str(problem)
    assert fake.calls == []


def test_an_answer_of_another_shape_is_a_problem_not_a_crash(fake: FakeGitHub, time: Time) -> None:
    fake.add_pull(1, HEAD)
    fake.fail_once(Answer(200, {"number": 1}, lawless=True), "GET", "/pulls/1")
    [problem] = post(fake, time).problems
    assert "cannot be read" in str(problem)


# --- limits and failures --------------------------------------------------------------------------


def test_retry_after_is_honoured(fake: FakeGitHub, time: Time) -> None:
    fake.add_pull(1, HEAD)
    fake.fail_once(Answer(429, {"message": "slow down"}, {"Retry-After": "17"}), "POST", "/comments")
    assert post(fake, time).problems == ()
    assert time.slept == [17]
    assert len(bodies(fake)) == 1


def test_a_secondary_limit_without_a_time_waits_a_minute(fake: FakeGitHub, time: Time) -> None:
    fake.add_pull(1, HEAD)
    fake.fail_once(Answer(403, {"message": "You have exceeded a secondary rate limit."}), "POST", "/comments")
    assert post(fake, time).problems == ()
    assert time.slept == [60]


@pytest.mark.parametrize("message", ["You have exceeded a secondary rate limit.", "You have triggered an abuse limit."])
@pytest.mark.parametrize("path", ["/pulls/1", "/comments"])
def test_a_limit_is_never_said_to_be_a_missing_permission(
    fake: FakeGitHub, time: Time, message: str, path: str
) -> None:
    fake.add_pull(1, HEAD)
    for _ in range(4):
        fake.fail_once(Answer(403, {"message": message}, {"Retry-After": "60"}), "GET", path)
    [problem] = post(fake, time).problems
    assert not isinstance(problem, CannotComment)
    assert "rate limit" in str(problem)
    assert "permissions" not in f"{problem} {problem.hint}"


def test_a_comment_that_somebody_deletes_meanwhile_is_written_again(fake: FakeGitHub, time: Time) -> None:
    fake.add_pull(1, HEAD)
    post(fake, time, run=9)
    fake.fail_once(Answer(404, {"message": "Not Found"}, lawless=True), "PATCH", "/comments/")
    assert post(fake, time, "**regressed**").problems == ()
    assert "**regressed**" in bodies(fake)[-1][1]


@pytest.mark.parametrize("answer", [{"number": 1}, {"head": None}, {"head": {"sha": 3}}, {"head": []}])
def test_no_error_of_python_is_shown(fake: FakeGitHub, time: Time, answer: Any) -> None:
    fake.fail_once(Answer(200, answer, lawless=True), "GET", "/pulls/1")
    [problem] = post(fake, time).problems
    assert not re.search(r"Error|Traceback|NoneType|\bstr\b|\bint\b", str(problem)), problem


def test_a_next_page_that_was_read_already_ends_it(fake: FakeGitHub, time: Time) -> None:
    fake.add_pull(1, HEAD)
    here = f'<{fake.url}/repos/{fake.repository}/issues/1/comments?page=2>; rel="next"'
    for _ in range(5):
        fake.fail_once(Answer(200, [], {"Link": here}), "GET", "/comments")
    [problem] = post(fake, time).problems
    assert "was read before" in str(problem)
    assert sum("/comments" in call.path for call in fake.calls) < 5


def test_a_part_of_an_answer_is_none(fake: FakeGitHub, time: Time) -> None:
    fake.add_pull(1, HEAD)
    fake.fail_once(Answer(206, [], lawless=True), "GET", "/comments")
    [problem] = post(fake, time).problems
    assert "HTTP 206" in str(problem)


def test_a_primary_limit_waits_for_its_reset(fake: FakeGitHub, time: Time) -> None:
    fake.add_pull(1, HEAD)
    headers = {"x-ratelimit-remaining": "0", "x-ratelimit-reset": str(int(time.now) + 30)}
    fake.fail_once(Answer(403, {"message": "API rate limit exceeded"}, headers), "GET", "/comments")
    assert post(fake, time).problems == ()
    assert time.slept == [31]


def test_a_limit_that_lasts_too_long_is_a_problem_at_once(fake: FakeGitHub, time: Time) -> None:
    fake.add_pull(1, HEAD)
    headers = {"x-ratelimit-remaining": "0", "x-ratelimit-reset": str(int(time.now) + 3_000)}
    fake.fail_once(Answer(403, {"message": "API rate limit exceeded"}, headers), "POST", "/comments")
    [problem] = post(fake, time).problems
    assert "rate limit" in str(problem)
    assert time.slept == []


def test_reading_is_repeated_after_a_server_error(fake: FakeGitHub, time: Time) -> None:
    fake.add_pull(1, HEAD)
    for _ in range(3):
        fake.fail_once(Answer(502, {"message": "Server Error"}), "GET", "/comments")
    assert post(fake, time).problems == ()
    assert time.slept == [1, 2, 4]


def test_a_server_that_stays_down_is_a_problem(fake: FakeGitHub, time: Time) -> None:
    fake.add_pull(1, HEAD)
    for _ in range(4):
        fake.fail_once(Answer(502, {"message": "Server Error"}), "GET", "/pulls/1")
    [problem] = post(fake, time).problems
    assert "HTTP 502" in str(problem)


def test_a_comment_whose_answer_was_lost_is_not_written_twice(fake: FakeGitHub, time: Time) -> None:
    fake.add_pull(1, HEAD)
    fake.fail_once(Answer(201, lost=True), "POST", "/comments")
    done = post(fake, time)
    assert (done.problems, len(done.urls)) == ((), 1)
    assert len(bodies(fake)) == 1


def test_a_comment_that_a_server_error_swallowed_is_written_again(fake: FakeGitHub, time: Time) -> None:
    fake.add_pull(1, HEAD)
    fake.fail_once(Answer(500, {"message": "Server Error"}), "POST", "/comments")
    assert post(fake, time).problems == ()
    assert len(bodies(fake)) == 1


def test_a_host_that_is_away_is_a_problem(time: Time) -> None:
    rest = time.connections.enter_context(closing(Rest("http://127.0.0.1:9", {}, sleep=time.sleep)))
    with pytest.raises(RestError, match="cannot be reached") as caught:
        rest.get("x")
    assert not caught.value.executed
    assert time.slept == [1, 2, 4]


def test_a_page_on_another_host_is_refused(fake: FakeGitHub, time: Time) -> None:
    fake.add_pull(1, HEAD)
    elsewhere = {"Link": '<http://attacker.example/x>; rel="next"'}
    fake.fail_once(Answer(200, [], elsewhere), "GET", "/comments")
    [problem] = post(fake, time).problems
    assert "another host" in str(problem)


def test_no_redirect_of_the_api_is_followed(fake: FakeGitHub, time: Time) -> None:
    """Whoever can make it answer so would be told the token."""
    fake.add_pull(1, HEAD)
    with FakeGitHub() as thief:
        thief.add_pull(1, HEAD)
        target = {"Location": f"{thief.url}/repos/{thief.repository}/pulls/1"}
        fake.fail_once(Answer(302, headers=target, lawless=True), "GET", "/pulls/1")
        [problem] = post(fake, time).problems
    assert "HTTP 302" in str(problem)
    assert (thief.calls, bodies(fake)) == ([], [])


# --- labels ---------------------------------------------------------------------------------------


def acceptance(fake: FakeGitHub, time: Time, given: Labelled | None = None, head: str = HEAD) -> LabelAcceptance | None:
    return connect(fake, time).acceptance(1, "gate:accept", given, head)


@pytest.mark.parametrize(("login", "counts"), [("alice", True), ("wendy", True), ("reed", False), ("stranger", False)])
def test_a_label_counts_when_someone_who_may_write_set_it(
    fake: FakeGitHub, time: Time, login: str, counts: bool
) -> None:
    fake.add_pull(1, HEAD)
    fake.add_run(1, HEAD, "pull_request", created_at="2026-01-01T00:00:00Z")
    fake.set_label(1, "gate:accept", login, "2026-02-03T04:05:06Z")
    found = acceptance(fake, time)
    assert found is not None
    assert (found.by, found.at) == (login, datetime(2026, 2, 3, 4, 5, 6, tzinfo=UTC))
    assert (found.ignored == "") is counts


@pytest.mark.parametrize("given", [None, Labelled("Gate:Accept", "alice")])
def test_a_label_is_the_same_in_any_case(fake: FakeGitHub, time: Time, given: Labelled | None) -> None:
    """GitHub does not tell them apart: nobody can make both."""
    fake.add_pull(1, HEAD)
    fake.add_run(1, HEAD, "pull_request", created_at="2026-01-01T00:00:00Z")
    fake.set_label(1, "Gate:Accept", "alice", "2026-02-03T04:05:06Z")
    found = acceptance(fake, time, given)
    assert found is not None and found.ignored == ""


def test_a_label_that_is_not_there_accepts_nothing(fake: FakeGitHub, time: Time) -> None:
    fake.add_pull(1, HEAD)
    fake.set_label(1, "gate:accept", "alice")
    fake.pulls[1]["labels"].clear()
    assert acceptance(fake, time) is None


def test_the_last_one_who_set_the_label_counts(fake: FakeGitHub, time: Time) -> None:
    """A writer's label that was removed and set again by a reader is the reader's; over several pages of events."""
    fake.add_pull(1, HEAD)
    fake.add_event(1, "labeled", "alice", "2026-01-01T00:00:00Z", label={"name": "gate:accept", "color": "ffffff"})
    for _ in range(150):
        fake.add_event(1, "labeled", "alice", "2026-01-01T00:00:00Z", label={"name": "other", "color": "ffffff"})
    fake.set_label(1, "gate:accept", "reed")
    found = acceptance(fake, time)
    assert found is not None
    assert (found.by, bool(found.ignored)) == ("reed", True)


GIVEN = Labelled("gate:accept", "alice")


def test_the_event_of_setting_it_gives_the_label_to_its_own_head(fake: FakeGitHub, time: Time) -> None:
    fake.add_pull(1, HEAD)
    fake.set_label(1, "gate:accept", "alice", "2026-01-02T00:00:00Z")
    fake.add_run(1, HEAD, "pull_request", created_at="2026-01-02T00:00:05Z")  # of setting it
    found = acceptance(fake, time, GIVEN)
    assert found is not None and found.ignored == ""
    moved = acceptance(fake, time, GIVEN, "c" * 40)
    assert moved is not None and "set it again" in moved.ignored, "pushed to since the event"
    other = acceptance(fake, time, Labelled("bug", "alice"))
    assert other is not None and "set it again" in other.ignored, "another label gives nothing"
    twice = acceptance(fake, time, Labelled("gate:accept", "wendy"))
    assert twice is not None and "somebody else" in twice.ignored


@pytest.mark.slow
@pytest.mark.parametrize("event", ["head_ref_force_pushed", "head_ref_deleted", "head_ref_restored"])
def test_a_head_that_moved_since_is_not_what_the_label_was_set_on(fake: FakeGitHub, time: Time, event: str) -> None:
    """It may be the same commit again."""
    fake.add_pull(1, HEAD)
    fake.add_run(1, HEAD, "pull_request", created_at="2026-01-01T00:00:00Z")
    fake.set_label(1, "gate:accept", "alice", "2026-01-02T00:00:00Z")
    assert acceptance(fake, time, GIVEN).ignored == acceptance(fake, time).ignored == ""  # type: ignore[union-attr]
    fake.add_event(1, event, "reed", "2026-01-03T00:00:00Z", label=None)
    for given in (GIVEN, None):
        found = acceptance(fake, time, given)
        assert found is not None and "set it again" in found.ignored


def test_another_event_neither_gives_nor_takes_it(fake: FakeGitHub, time: Time) -> None:
    """The head had a run before the label was set; one of the same moment, or of another branch, says nothing."""
    fake.add_pull(1, HEAD)
    fake.set_label(1, "gate:accept", "alice", "2026-01-02T00:00:00Z")
    fake.add_run(2, HEAD, "pull_request", created_at="2026-01-02T00:00:12Z")  # pushed right after the label
    fake.add_run(3, HEAD, "pull_request", created_at="2025-01-01T00:00:00Z", head_branch="other")
    found = acceptance(fake, time)
    assert found is not None and "set it again" in found.ignored
    fake.add_run(1, HEAD, "pull_request", created_at="2026-01-01T00:00:00Z")
    found = acceptance(fake, time)
    assert found is not None and found.ignored == ""


def counts(fake: FakeGitHub, time: Time) -> bool:
    found = acceptance(fake, time)
    assert found is not None
    assert found.ignored in ("", "it was set before the latest change; set it again")
    return not found.ignored


def test_a_head_that_was_moved_over_before_the_label_must_have_had_a_run_since(fake: FakeGitHub, time: Time) -> None:
    """Pushed, moved over, labelled on the other commit, and pushed again: the last is no event."""
    fake.add_pull(1, HEAD)
    fake.add_run(1, HEAD, "pull_request", created_at="2026-01-01T00:00:00Z")
    fake.add_event(1, "head_ref_force_pushed", "reed", "2026-01-01T01:00:00Z", label=None)
    fake.set_label(1, "gate:accept", "alice", "2026-01-02T00:00:00Z")
    assert not counts(fake, time)
    fake.add_run(3, HEAD, "pull_request", created_at="2026-01-01T02:00:00Z")
    assert counts(fake, time), "moved back to it before the label"


@pytest.mark.parametrize(
    ("made", "accepted"),
    [("2026-01-01T00:00:01Z", False), ("2026-01-01T00:00:00Z", False), ("2025-12-31T00:00:00Z", True)],
)
def test_a_run_that_was_made_after_its_head_was_moved_over_says_nothing(
    fake: FakeGitHub, time: Time, made: str, accepted: bool
) -> None:
    """Of two pushes at once, the first one's run may be younger than the event of the second."""
    fake.add_pull(1, HEAD)
    fake.add_event(1, "head_ref_force_pushed", "reed", "2025-12-31T23:59:59Z", label=None)
    fake.add_run(2, "c" * 40, "pull_request", created_at=made, head_branch=fake.pulls[1]["head"]["ref"])
    fake.add_run(1, HEAD, "pull_request", created_at="2026-01-01T00:00:00Z")
    fake.set_label(1, "gate:accept", "alice", "2026-01-02T00:00:00Z")
    assert counts(fake, time) is accepted


def other_runs(fake: FakeGitHub, count: int) -> None:
    """Of a branch of the same name in another fork, and newer."""
    about = {"head_branch": fake.pulls[1]["head"]["ref"], "created_at": "2026-01-03T00:00:00Z"}
    for n in range(count):
        fake.add_run(10_000 - n, "c" * 40, "pull_request", repository="eve/agents", **about)


@pytest.mark.slow
def test_a_head_whose_runs_are_too_far_back_to_be_compared_is_not_known(
    fake: FakeGitHub, time: Time, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gate.hosts.github.MOST_RUNS", 150)
    fake.add_pull(1, HEAD)
    other_runs(fake, 150)
    fake.add_run(1, HEAD, "pull_request", created_at="2026-01-01T00:00:00Z")
    fake.set_label(1, "gate:accept", "alice", "2026-01-02T00:00:00Z")
    assert not counts(fake, time)
    del fake.runs[0]
    assert counts(fake, time)


@pytest.mark.slow
def test_runs_of_other_forks_hide_none_of_a_pull_requests_own_in_silence(
    fake: FakeGitHub, time: Time, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gate.hosts.github.MOST_RUNS", 150)
    fake.add_pull(1, HEAD)
    other_runs(fake, 150)
    fake.add_run(1, HEAD, "pull_request")
    github = connect(fake, time)
    pull = github.pull_request(1)
    with pytest.raises(PublishError, match="none of those listed counts"):
        github.runs_on(pull, WORKFLOW)
    del fake.runs[0]
    assert [run.id for run in github.runs_on(pull, WORKFLOW)] == [1]


def test_a_run_in_another_fork_says_nothing_of_this_head(fake: FakeGitHub, time: Time) -> None:
    """Its branch may have the same name."""
    pull = fake.add_pull(1, HEAD, head_repository="mallory/agents")
    branch = pull["head"]["ref"]
    for n, repository in enumerate(("eve/agents", "octo/agents"), 1):
        about = {"created_at": "2026-01-01T00:00:00Z", "head_branch": branch, "repository": repository}
        fake.add_run(n, HEAD, "pull_request", **about)
    fake.set_label(1, "gate:accept", "alice", "2026-01-02T00:00:00Z")
    assert not counts(fake, time)
    fake.add_run(3, HEAD, "pull_request", **about | {"repository": "mallory/agents"})
    assert counts(fake, time)


def test_a_token_that_may_not_see_runs_is_told_the_permission(fake: FakeGitHub, time: Time) -> None:
    fake.add_pull(1, HEAD)
    fake.set_label(1, "gate:accept", "alice", "2026-01-02T00:00:00Z")
    fake.fail_once(Answer(403, {"message": "Resource not accessible by integration"}), path="actions/runs")
    found = acceptance(fake, time)
    assert found is not None and "permissions: {actions: read}" in found.ignored


def test_a_run_is_a_pull_requests_own_only_where_no_other_could_have_started_it(fake: FakeGitHub, time: Time) -> None:
    fake.add_pull(1, HEAD, branch="change")
    fake.add_run(1, HEAD, "pull_request")
    github = connect(fake, time)
    [run] = github.runs_of(HEAD, "pull_request", WORKFLOW)
    assert github.measured_for(run, github.pull_request(1))
    assert not github.measured_for(replace(run, head_branch="twin"), github.pull_request(1))
    fake.add_pull(2, "c" * 40, branch="change", state="closed")
    assert github.measured_for(run, github.pull_request(1)), "it went onto the same base"
    fake.add_event(2, "base_ref_changed", "reed", "2026-01-01T00:00:00Z", label=None)
    assert not github.measured_for(run, github.pull_request(1)), "it went onto another once"
    fake.events.clear()
    fake.add_pull(3, HEAD, branch="change", onto="evil", state="closed")
    assert not github.measured_for(run, github.pull_request(1))


@pytest.mark.parametrize(
    ("path", "body"),
    [("actions/runs", {"workflow_runs": [{"id": 1}]}), ("actions/runs", {"workflow_runs": [7]}), ("/pulls", [{}])],
)
def test_an_answer_that_cannot_be_read_is_an_error_of_publishing(
    fake: FakeGitHub, time: Time, path: str, body: Any
) -> None:
    github = connect(fake, time)
    fake.fail_once(Answer(200, body, lawless=True), path=path)
    with pytest.raises(PublishError, match="cannot be read"):
        github.runs_of(HEAD, "pull_request", WORKFLOW) if "runs" in path else github.merged_pull_request(HEAD)


def test_the_pull_request_that_became_a_commit_is_found(fake: FakeGitHub, time: Time) -> None:
    closed = {"state": "closed", "merged_at": "2026-01-01T00:00:00Z"}
    fake.add_pull(1, HEAD, merge_commit_sha="c" * 40, **closed)
    fake.add_pull(2, HEAD, merge_commit_sha="d" * 40, **closed)
    fake.add_pull(3, HEAD, merge_commit_sha="e" * 40)
    github = connect(fake, time)
    assert github.merged_pull_request(HEAD) is None
    merged = github.merged_pull_request("d" * 40)
    assert merged is not None and (merged.number, merged.head) == (2, HEAD)
    assert github.merged_pull_request("e" * 40) is None, "it is still open"


def test_only_sound_runs_of_the_workflow_on_our_own_commit_count(fake: FakeGitHub, time: Time) -> None:
    other = "c" * 40
    fake.add_run(1, HEAD, "pull_request")
    fake.add_run(2, HEAD, "pull_request", conclusion="failure")
    fake.add_run(3, HEAD, "pull_request", repository="mallory/agents")
    fake.add_run(4, HEAD, "pull_request", path=".github/workflows/other.yml")
    fake.add_run(5, HEAD, "push")
    fake.add_run(6, other, "pull_request")
    fake.add_run(7, HEAD, "pull_request", path=f"{WORKFLOW}@refs/pull/1/merge", run_attempt=3)
    github = connect(fake, time)
    found = github.runs_of(HEAD, "pull_request", WORKFLOW)
    assert [(run.id, run.attempt) for run in found] == [(7, 3), (1, 1)], "the newest first"


# --- the trusted half -----------------------------------------------------------------------------


def run_of(**changes: Any) -> MeasuringRun:
    parts = {
        "id": 5,
        "attempt": 1,
        "head": "d" * 40,
        "head_branch": "patch",
        "head_repository": "mallory/agents",
        "head_repository_id": 99,
    }
    return MeasuringRun(**(parts | changes))


@pytest.mark.parametrize("known", [True, False])
def test_the_pull_request_of_a_fork_is_derived_again(fake: FakeGitHub, time: Time, known: bool) -> None:
    fake.commits_know_forks = known
    fake.add_pull(1, "d" * 40, head_repository="mallory/agents", branch="patch", state="closed")
    fake.add_pull(2, "e" * 40, head_repository="mallory/agents", branch="patch")
    fake.add_pull(3, "d" * 40, head_repository="mallory/agents", branch="patch")
    found = connect(fake, time).pull_request_of(run_of())
    assert found is not None
    assert found.number == 3


@pytest.mark.parametrize("stranger", [("eve/agents", "patch"), ("mallory/agents", "copy"), ("eve/agents", "copy")])
@pytest.mark.parametrize("known", [True, False])
def test_a_pull_request_of_the_same_commit_from_elsewhere_changes_nothing(
    fake: FakeGitHub, time: Time, stranger: tuple[str, str], known: bool
) -> None:
    """Anybody can open one with somebody else's head commit, and would silence the report on the first."""
    fake.commits_know_forks = known
    repository, branch = stranger
    fake.add_pull(1, "d" * 40, head_repository=repository, branch=branch)
    assert connect(fake, time).pull_request_of(run_of()) is None
    fake.add_pull(2, "d" * 40, head_repository="Mallory/agents", branch="patch")
    fake.pulls[2]["head"]["label"] = "mallory:patch"  # GitHub does not tell capitals apart
    found = connect(fake, time).pull_request_of(run_of())
    assert found is not None
    assert found.number == 2


def test_a_pull_request_whose_fork_was_deleted_after_the_run_is_found(fake: FakeGitHub, time: Time) -> None:
    pull = fake.add_pull(1, "d" * 40, head_repository="mallory/agents", branch="patch")
    gone = {**pull, "head": {**pull["head"], "repo": None}}  # as GitHub answers, whatever its description says
    fake.fail_once(Answer(200, [gone], lawless=True), path="/pulls")
    found = connect(fake, time).pull_request_of(run_of())
    assert found is not None
    assert found.number == 1


def test_a_head_that_moved_on_has_no_pull_request(fake: FakeGitHub, time: Time) -> None:
    fake.add_pull(1, "e" * 40, head_repository="mallory/agents", branch="patch")
    assert connect(fake, time).pull_request_of(run_of()) is None


def test_two_pull_requests_of_one_head_are_refused(fake: FakeGitHub, time: Time) -> None:
    for number in (1, 2):
        fake.add_pull(number, "d" * 40, head_repository="mallory/agents", branch="patch", onto=f"onto-{number}")
    with pytest.raises(UntrustedError, match="2 open pull requests"):
        connect(fake, time).pull_request_of(run_of())


def test_a_pull_request_to_another_repository_is_not_ours(fake: FakeGitHub, time: Time) -> None:
    pull = fake.add_pull(1, "d" * 40, head_repository="mallory/agents", branch="patch")
    pull["base"] = {**pull["base"], "repo": {**pull["base"]["repo"], "full_name": "mallory/agents"}}
    assert connect(fake, time).pull_request_of(run_of()) is None


def zipped(**members: bytes) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name.replace("__", "."), content)
    return stream.getvalue()


def fetch(fake: FakeGitHub, time: Time) -> bytes:
    return read_member(connect(fake, time).artifact(run_of(), "gate-record"), "record.jsonl", "here")


def test_the_record_is_read_out_of_the_artifact(fake: FakeGitHub, time: Time) -> None:
    fake.add_artifact(5, "coverage", zipped(record__jsonl=b"no"))
    fake.add_artifact(5, "gate-record", zipped(record__jsonl=b"of the first attempt"))
    fake.add_artifact(5, "gate-record", zipped(record__jsonl=b"of the second", other=b"x"))
    assert fetch(fake, time) == b"of the second"


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ({"expired": True}, "none"),
        ({"digest": "sha256:" + "0" * 64}, "digest"),
        ({"size_in_bytes": 10**9}, "at most"),
        ({"workflow_run": {"head_sha": "c" * 40}}, "head_sha"),
        ({"workflow_run": {"head_repository_id": 3}}, "head_repository_id"),
        ({"workflow_run": {"id": 6}}, "id is 6"),
    ],
)
def test_an_artifact_that_is_not_the_runs_is_refused(
    fake: FakeGitHub, time: Time, parts: dict[str, Any], said: str
) -> None:
    artifact = fake.add_artifact(
        5, "gate-record", zipped(record__jsonl=b"x"), workflow_run=parts.pop("workflow_run", {})
    )
    artifact.update(parts)
    with pytest.raises(UntrustedError, match=said):
        fetch(fake, time)


def test_an_artifact_without_digest_is_read(fake: FakeGitHub, time: Time) -> None:
    fake.add_artifact(5, "gate-record", zipped(record__jsonl=b"x"))["digest"] = None
    assert fetch(fake, time) == b"x"


def test_no_artifact_is_said_with_what_to_do(fake: FakeGitHub, time: Time) -> None:
    with pytest.raises(UntrustedError, match="upload-artifact"):
        fetch(fake, time)


def test_a_download_beyond_the_limit_stops(fake: FakeGitHub, time: Time, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gate.hosts.github.MAX_ARCHIVE_BYTES", 100)
    artifact = fake.add_artifact(5, "gate-record", b"x" * 10_000)
    artifact["size_in_bytes"] = 50
    with pytest.raises(UntrustedError, match="more than 100 bytes"):
        fetch(fake, time)


def test_the_login_is_asked_once(fake: FakeGitHub, time: Time) -> None:
    github = connect(fake, time)
    assert [github.login(), github.login()] == [BOT, BOT]
    assert len(fake.calls) == 1


def test_a_token_of_nobody_is_a_problem(fake: FakeGitHub, time: Time) -> None:
    fake.tokens["good"] = Identity("")
    with pytest.raises(PublishError, match="nobody"):
        connect(fake, time).login()


def test_what_states_no_address_of_the_api_still_asks_its_own_server(certificate: Path) -> None:
    """A company's server: its token is nothing that github.com should see."""
    with FakeGitHub(certificate=certificate) as fake:
        fake.add_pull(1, HEAD)
        server = fake.url.removesuffix("/api/v3")
        trusted = {"SSL_CERT_FILE": str(certificate / "cert.pem"), "GITHUB_REPOSITORY": fake.repository}
        with closing(connect_by({**trusted, "GITHUB_SERVER_URL": server}, "good")) as github:
            assert (github.pull_request(1).head, github.login()) == (HEAD, BOT)
    assert fake.violations == []


# --- the fake itself ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "issues/1/comments", {"body": 5}),
        ("POST", "issues/1/comments", {"text": "x"}),
        ("GET", "issues/one/comments", None),
        ("GET", "issues/1/comments?per_page=101", None),
        ("PATCH", "issues/comments/1000", {}),
        ("GET", "issues/1/reactions", None),
    ],
)
def test_the_fake_notices_requests_that_github_would_not_understand(
    time: Time, method: str, path: str, body: Any
) -> None:
    with FakeGitHub() as fake:
        fake.add_pull(1, HEAD)
        fake.add_comment(1, BOT, "x")
        url = f"{fake.url}/repos/{fake.repository}/{path}"
        with httpx.Client(headers={"Authorization": "Bearer good"}) as client, suppress(httpx.HTTPError):
            client.request(method, url, json=body)
        assert fake.violations


def test_the_fake_notices_its_own_answers_that_github_would_not_give(time: Time) -> None:
    with FakeGitHub() as fake:
        fake.add_pull(1, HEAD)
        del fake.pulls[1]["html_url"]
        connect(fake, time).pull_request(1)
        assert "html_url" in fake.violations[0]
