"""What reaches the pull request when something goes wrong, and that what it says can be done."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from gate.hosts.github import CannotComment
from tests.integration.github.fake_github import Answer, Call, FakeGitHub
from tests.integration.github.test_github_api import HEAD, SUITE, Time, bodies, post

BAD_GATEWAY = Answer(502, {"message": "bad gateway"})


@pytest.fixture
def time() -> Iterator[Time]:
    clock = Time()
    with clock.connections:
        yield clock


# --- requests that may be sent again --------------------------------------------------------------


@pytest.mark.parametrize("fault", [BAD_GATEWAY, Answer(200, lost=True)], ids=["502", "lost"])
def test_who_we_are_is_asked_again(fake: FakeGitHub, time: Time, fault: Answer) -> None:
    fake.add_pull(1, HEAD)
    fake.fail_once(fault, "POST", "graphql")
    assert post(fake, time).problems == ()
    assert len(bodies(fake)) == 1


@pytest.mark.parametrize("fault", [BAD_GATEWAY, Answer(200, lost=True)], ids=["502", "lost"])
def test_an_update_is_sent_again(fake: FakeGitHub, time: Time, fault: Answer) -> None:
    fake.add_pull(1, HEAD)
    post(fake, time, "first")
    fake.fail_once(fault, "PATCH")
    assert post(fake, time, "second", run=11).problems == ()
    [(_, body)] = bodies(fake)
    assert body.endswith("second")


def test_a_locked_conversation_is_called_that(fake: FakeGitHub, time: Time) -> None:
    fake.add_pull(1, HEAD)
    locked = Answer(403, {"message": "Unable to create comment because issue is locked."})
    fake.fail_once(locked, "POST", "/comments")
    [problem] = post(fake, time).problems
    assert isinstance(problem, CannotComment)
    assert "the conversation is locked" in str(problem)
    assert "permissions" not in str(problem)


# --- two jobs at once -----------------------------------------------------------------------------


def beaten_by(fake: FakeGitHub, rival: dict[str, Any], then: Answer | None = None) -> None:
    """Another job's comment is there between our search and our own comment."""

    def is_ours(call: Call) -> bool:
        if call.method != "POST" or not call.path.endswith("/comments"):
            return False
        if rival:
            fake.add_comment(1, rival.pop("login"), rival.pop("body"))
        return then is not None

    fake.faults.append((is_ours, then or Answer(500)))


@pytest.mark.parametrize(("rival_run", "said"), [(9, "ours"), (11, "theirs")])
@pytest.mark.parametrize("lost", [False, True])
def test_of_two_comments_at_once_one_stays_and_says_what_the_newer_run_found(
    fake: FakeGitHub, time: Time, rival_run: int, said: str, lost: bool
) -> None:
    fake.add_pull(1, HEAD)
    post(fake, time, "theirs", run=rival_run)
    [theirs] = fake.comments.pop(1)
    answer = Answer(201, lost=True) if lost else None
    beaten_by(fake, {"login": theirs["user"]["login"], "body": theirs["body"]}, answer)
    done = post(fake, time, "ours", run=10)
    assert done.problems == ()
    [(_, body)] = bodies(fake)
    assert body.endswith(said)


def test_the_faster_of_two_keeps_its_comment(fake: FakeGitHub, time: Time) -> None:
    """It finds the slower one's beside its own, which is for the slower one to take away."""
    fake.add_pull(1, HEAD)
    post(fake, time, "slower", run=11)
    [slower] = fake.comments.pop(1)

    def second_listing(call: Call) -> bool:
        listing = call.method == "GET" and call.path.endswith("/comments")
        if listing and len(fake.comments.get(1, ())) == 1:
            fake.add_comment(1, slower["user"]["login"], slower["body"])
        return False

    fake.faults.append((second_listing, BAD_GATEWAY))
    assert post(fake, time, "faster", run=10, suite=SUITE).problems == ()
    assert [body.rpartition("\n")[2] for _, body in bodies(fake)] == ["faster", "slower"]
