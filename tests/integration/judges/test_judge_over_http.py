"""The judge against a real server that speaks the OpenAI protocol and misbehaves on request."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from gate.errors import ConfigError
from gate.judges.client import MAX_PROMPT_CHARS, CallError, Judge
from gate.judges.meter import Budget
from gate.judges.options import JudgeModelOptions, JudgeOptions, Juror, Price
from gate.judges.prompt import Answer, Answers, Question
from gate.metrics.judged import settled_by
from tests.integration.judges.judge_stub import JudgeStub, Reply, chat, failure

FREE = Price(input=0, output=0)


class Good(Answer):
    reasoning: str
    good: bool


def question(text: str = "hello", **more: Any) -> Question[Good]:
    return Question("good", "Is the answer good?", (("answer", text),), Good, **more)


def options(stub: JudgeStub, **more: Any) -> JudgeOptions:
    return JudgeOptions(**{"model": "stub", "base_url": stub.url, "price": FREE, "retries": 2, **more})


def ask(
    stub: JudgeStub,
    *questions: Question[Good],
    cache: Path | None = None,
    budget: Budget | None = None,
    environment: dict[str, str] | None = None,
    **more: Any,
) -> tuple[list[Answers[Good]], Judge]:
    async def run() -> tuple[list[Answers[Good]], Judge]:
        judge = Judge(options(stub, **more), environment=environment or {}, cache_path=cache, budget=budget)
        async with judge:
            return list(await asyncio.gather(*(judge.ask(one) for one in questions))), judge

    return asyncio.run(run())


YES = {"reasoning": "fine", "good": True}


def test_asks_with_key_model_schema_and_reads_the_answer(stub: JudgeStub) -> None:
    stub.script(chat(YES))
    [answers], judge = ask(stub, question(), environment={"OPENAI_API_KEY": "k-1"}, temperature=0.5)
    assert answers.failure is None
    assert answers.readable == (Good(reasoning="fine", good=True),)
    sent = stub.requests[0]
    assert sent.path == "/v1/chat/completions"
    assert sent.headers["authorization"] == "Bearer k-1"
    assert (sent.json["model"], sent.json["temperature"]) == ("stub", 0.5)
    schema = sent.json["response_format"]["json_schema"]
    assert schema["strict"] is True
    assert schema["schema"]["additionalProperties"] is False
    assert schema["schema"]["required"] == ["reasoning", "good"]
    assert (len(stub.requests), judge.cost_usd) == (1, 0.0)


def test_votes_carry_their_own_seeds_and_a_jury_votes_together(stub: JudgeStub) -> None:
    stub.script(chat(YES))
    seeded = JudgeModelOptions.model_validate({"judge_model_config": {"seed": 10}})
    jury = (Juror(model="other", price=FREE),)
    [answers], _ = ask(stub, question(overrides=seeded), num_samples=3, jury=jury)
    assert len(answers.readable) == 6
    sent = sorted((request.json["model"], request.json["seed"]) for request in stub.requests)
    assert sent == [("other", 10), ("other", 11), ("other", 12), ("stub", 10), ("stub", 11), ("stub", 12)]


def test_asking_stops_once_the_majority_is_certain(stub: JudgeStub) -> None:
    settled = settled_by(lambda answer: answer.good)
    votes_at_90 = 0.0
    for votes in product((True, False), repeat=5):
        stub.requests.clear()
        stub.script(*(chat({"reasoning": "so", "good": vote}) for vote in votes))
        [answers], _ = ask(stub, question(samples=5, settled=settled), concurrency=1)
        heard = [answer.good for answer in answers.readable]
        assert heard == list(votes[: len(heard)])
        assert (2 * sum(heard) > len(heard)) == (2 * sum(votes) > 5), "the verdict is that of all five"
        assert len(heard) == len(stub.requests)
        votes_at_90 += 0.9 ** sum(votes) * 0.1 ** (5 - sum(votes)) * len(heard)
    assert votes_at_90 == pytest.approx(3.32, abs=0.01)


def test_a_criterion_chooses_its_own_model_votes_and_sampling(stub: JudgeStub) -> None:
    stub.script(chat(YES))
    own = JudgeModelOptions.model_validate(
        {
            "judge_model": "mine",
            "num_samples": 2,
            "parallelism_limit": 1,
            "judge_model_config": {"max_output_tokens": 50},
        }
    )
    stub_delay = chat(YES, delay=0.05)
    stub.script(stub_delay)
    [answers], _ = ask(stub, question(overrides=own), num_samples=5)
    assert [request.json["model"] for request in stub.requests] == ["mine", "mine"]
    assert stub.requests[0].json["max_completion_tokens"] == 50
    assert stub.most_at_once == 1
    assert len(answers.readable) == 2


@pytest.mark.slow
def test_429_waits_as_long_as_the_server_asks(stub: JudgeStub) -> None:
    stub.script(failure(429, "slow down", retry_after="1"), chat(YES))
    start = time.monotonic()
    [answers], _ = ask(stub, question())
    assert 1.0 <= time.monotonic() - start < 30
    assert answers.failure is None
    assert len(stub.requests) == 2


@pytest.mark.slow
def test_429_keeps_every_other_call_back(stub: JudgeStub) -> None:
    times: list[float] = []

    def answer(request: Any) -> Reply:
        times.append(time.monotonic())
        return failure(429, retry_after="1") if len(times) == 1 else chat(YES)

    stub.answer = answer
    found, _ = ask(stub, question("a"), question("b"), question("c"), concurrency=1)
    assert all(answers.failure is None for answers in found)
    assert all(at - times[0] >= 0.99 for at in times[1:])


def test_a_wait_beyond_reason_is_a_failure_at_once(stub: JudgeStub) -> None:
    stub.script(failure(429, "come back tomorrow", retry_after="86400"))
    [answers], _ = ask(stub, question())
    assert "HTTP 429: come back tomorrow" in (answers.failure or "")
    assert len(stub.requests) == 1


def by_question(stub: JudgeStub, *replies: Sequence[Reply]) -> list[Question[Good]]:
    """A question for each row of replies, which it gets in turn; the last one stays."""
    left = {f"of row {n}": list(row) for n, row in enumerate(replies)}

    def answer(request: Any) -> Reply:
        row = left[request.fenced["answer"]]
        return row.pop(0) if len(row) > 1 else row[0]

    stub.answer = answer
    return [question(text) for text in left]


def test_server_errors_are_retried(stub: JudgeStub) -> None:
    questions = by_question(stub, *([failure(status), chat(YES)] for status in (500, 502, 503, 408)))
    found, _ = ask(stub, *questions)
    assert [answers.failure for answers in found] == [None] * 4
    assert len(stub.requests) == 8


def test_server_that_stays_down_leaves_an_error_and_no_answer(stub: JudgeStub) -> None:
    stub.script(failure(500, "broken"))
    [answers], _ = ask(stub, question(), retries=1)
    assert answers.readable == ()
    assert answers.failure == "judge not reached: HTTP 500: broken"
    assert len(stub.requests) == 2


@pytest.mark.parametrize("status", [401, 403, 404])
def test_refused_requests_are_not_retried_and_the_key_is_not_repeated(stub: JudgeStub, status: int) -> None:
    stub.script(failure(status, "bad key sk-secret-1"))
    [answers], _ = ask(stub, question(), environment={"GATE_JUDGE_API_KEY": "sk-secret-1"})
    assert len(stub.requests) == 1
    assert f"HTTP {status}: bad key ***" in (answers.failure or "")


def test_silence_ends_at_the_timeout(stub: JudgeStub) -> None:
    stub.script(chat(YES, delay=3600))
    start = time.monotonic()
    [answers], _ = ask(stub, question(), timeout=0.2, retries=0)
    assert time.monotonic() - start < 120
    assert answers.failure == "judge not reached: no answer within 0.2 s"


def test_slow_tokens_end_at_the_timeout_too(stub: JudgeStub) -> None:
    stub.script(chat(YES, per_byte=0.02))
    [answers], _ = ask(stub, question(), timeout=0.3, retries=0)
    assert "no answer within 0.3 s" in (answers.failure or "")


def test_slow_tokens_within_the_timeout_are_an_answer(stub: JudgeStub) -> None:
    stub.script(chat(YES, per_byte=0.0005))
    [answers], _ = ask(stub, question(), timeout=120, retries=0)
    assert answers.failure is None


def test_refused_connection_is_an_error(stub: JudgeStub) -> None:
    [answers], _ = ask(stub, question(), base_url="http://127.0.0.1:1/v1", retries=0)
    assert "judge not reached: APIConnectionError" in (answers.failure or "")


def test_garbage_instead_of_the_protocol_is_retried_and_then_an_error(stub: JudgeStub) -> None:
    bodies = ("<html>", "{", "[]", '{"choices": []}', '{"choices": [{"message": 3}]}', "")
    found, _ = ask(stub, *by_question(stub, *([Reply(body)] for body in bodies)), retries=1)
    assert ["not a valid answer" in (answers.failure or "") for answers in found] == [True] * len(bodies)
    assert len(stub.requests) == 2 * len(bodies)


def test_what_cannot_be_read_is_not_guessed(stub: JudgeStub) -> None:
    problems = (
        (chat('{"reasoning": "fine", "good": tr'), "not of the shape"),
        (chat('{"reasoning": "fine", "good": true}', finish="length"), "cut off"),
        (chat({"score": 10}), "not of the shape"),
        (chat({"reasoning": "fine", "good": "very"}), "not of the shape"),
        (chat([]), "not of the shape"),
        (chat(None, refusal="I cannot help with that"), "refused"),
        (chat(None, finish="content_filter"), "refused"),
        (chat(None), "not of the shape"),
        (chat(""), "not of the shape"),
    )
    found, judge = ask(stub, *by_question(stub, *([reply] for reply, _ in problems)))
    for answers, (reply, problem) in zip(found, problems, strict=True):
        assert answers.readable == (), reply
        assert answers.error is None
        assert problem in (answers.failure or ""), reply
    assert judge.cost_usd == 0.0


def test_some_unreadable_votes_leave_the_others(stub: JudgeStub) -> None:
    stub.script(chat("?"), chat(YES), chat(YES))
    [answers], _ = ask(stub, question(samples=3), concurrency=1)
    assert len(answers.readable) == 2
    assert answers.failure is None


def test_one_vote_that_cannot_be_had_is_said(stub: JudgeStub) -> None:
    stub.script(chat(YES), failure(500))
    [answers], _ = ask(stub, question(samples=3), concurrency=1, retries=0)
    assert len(answers.readable) == 1
    assert "HTTP 500" in (answers.failure or "")


def test_server_without_structured_output_is_asked_without_and_remembered(stub: JudgeStub) -> None:
    def answer(request: Any) -> Reply:
        if "response_format" in request.json:
            return failure(400, "response_format is not supported")
        return chat('Here you go:\n```json\n{"reasoning": "fine", "good": true}\n```\nAnything else?')

    stub.answer = answer
    found, _ = ask(stub, question("a"), question("b"), concurrency=1)
    assert [one.readable[0].good for one in found] == [True, True]
    assert ["response_format" in request.json for request in stub.requests] == [True, False, False]


def test_a_cached_run_makes_no_call(stub: JudgeStub, tmp_path: Path) -> None:
    stub.script(chat(YES))
    cache = tmp_path / "deep" / "judge.sqlite"
    first, _ = ask(stub, question("a", samples=3), question("b"), cache=cache)
    calls = len(stub.requests)
    second, _ = ask(stub, question("a", samples=3), question("b"), cache=cache)
    assert calls == 4
    assert len(stub.requests) == calls
    assert [one.readable for one in first] == [one.readable for one in second]


@pytest.mark.slow
@pytest.mark.parametrize("change", [{"model": "stub-2"}, {"temperature": 0.1}])
def test_everything_that_decides_an_answer_is_in_the_key(
    stub: JudgeStub, tmp_path: Path, change: dict[str, Any]
) -> None:
    stub.script(chat(YES))
    ask(stub, question(), cache=tmp_path / "c")
    ask(stub, question(), cache=tmp_path / "c", **change)
    assert len(stub.requests) == 2


@pytest.mark.slow
@pytest.mark.parametrize("change", [{"temperature": 0.1}, {"seed": 1}, {"top_p": 0.5}, {"max_output_tokens": 9}])
def test_a_criterions_own_sampling_is_in_the_key(stub: JudgeStub, tmp_path: Path, change: dict[str, Any]) -> None:
    stub.script(chat(YES))
    own = JudgeModelOptions.model_validate({"judge_model_config": change})
    ask(stub, question(), cache=tmp_path / "c")
    ask(stub, question(overrides=own), cache=tmp_path / "c")
    assert len(stub.requests) == 2


def test_another_question_text_or_endpoint_is_another_answer(stub: JudgeStub, tmp_path: Path) -> None:
    stub.script(chat(YES))
    ask(stub, question("a"), question("b"), cache=tmp_path / "c")
    ask(stub, question("a"), cache=tmp_path / "c", base_url=stub.url + "/")
    assert len(stub.requests) == 3


def test_unreadable_answers_are_not_kept(stub: JudgeStub, tmp_path: Path) -> None:
    stub.script(chat("?"), chat(YES))
    ask(stub, question(), cache=tmp_path / "c")
    [answers], _ = ask(stub, question(), cache=tmp_path / "c")
    assert answers.failure is None


def test_an_answer_that_decides_nothing_is_not_kept(stub: JudgeStub, tmp_path: Path) -> None:
    """Also one that an earlier version kept is asked for again."""
    path = tmp_path / "judge.sqlite"
    stub.script(chat({"reasoning": "hm", "good": False}))
    ask(stub, question(), cache=path)
    stub.script(chat({"reasoning": "hm", "good": False}), chat(YES))
    for calls in (2, 3, 3):
        ask(stub, question(decides=lambda answer: answer.good), cache=path)
        assert len(stub.requests) == calls


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirect_is_not_followed(stub: JudgeStub, status: int) -> None:
    """Neither the key nor what is judged is handed to another address."""
    with JudgeStub() as other:
        other.script(chat(YES))
        stub.script(failure(status, "moved", location=f"{other.url}/chat/completions"))
        [answers], _ = ask(stub, question(), environment={"OPENAI_API_KEY": "k-1"}, retries=0)
        assert not other.requests
    assert answers.failure is not None
    assert f"HTTP {status}: redirects are not followed (to {other.url}" in answers.failure


def test_equal_questions_at_the_same_time_are_paid_once(stub: JudgeStub) -> None:
    stub.script(chat(YES, delay=0.1))
    found, _ = ask(stub, *[question("same")] * 20)
    assert len(stub.requests) == 1
    assert all(one.failure is None for one in found)


def test_concurrency_is_bounded_over_all_questions(stub: JudgeStub) -> None:
    stub.script(chat(YES, delay=0.05, at_once=3))
    ask(stub, *(question(str(number)) for number in range(20)), concurrency=3)
    assert stub.most_at_once == 3


def test_budget_of_calls_is_checked_before_spending(stub: JudgeStub) -> None:
    stub.script(chat(YES))
    found, _ = ask(stub, *(question(str(number)) for number in range(5)), budget=Budget(max_calls=2))
    assert len(stub.requests) == 2
    assert sorted(one.failure is None for one in found) == [False, False, False, True, True]
    assert any("2 of 2 calls" in (one.failure or "") for one in found)


def test_budget_in_dollars_is_checked_before_spending(stub: JudgeStub) -> None:
    stub.script(chat(YES))
    budget = Budget(usd=0.05)
    price = Price(input=1.0, output=10.0)  # one answer of the stub: 1000 in, 100 out = 0.002
    found, judge = ask(stub, *(question(str(number)) for number in range(40)), budget=budget, price=price)
    assert 10 < len(stub.requests) < 25
    assert judge.cost_usd == pytest.approx(0.002 * len(stub.requests))
    assert budget.spent_usd <= 0.05
    assert budget.reserved_usd == pytest.approx(0.0)
    assert any("US dollars" in (one.failure or "") for one in found)


def test_unknown_price_and_a_budget_in_dollars_refuses(stub: JudgeStub) -> None:
    stub.script(chat(YES))
    [answers], _ = ask(stub, question(), price=None, budget=Budget(usd=5))
    assert "price is unknown" in (answers.failure or "")
    assert stub.requests == []


def test_unknown_price_without_budget_leaves_the_cost_unknown(stub: JudgeStub) -> None:
    stub.script(chat(YES))
    _, judge = ask(stub, question(), price=None)
    assert judge.cost_usd is None


def test_known_models_are_priced(stub: JudgeStub) -> None:
    stub.script(chat(YES))
    _, judge = ask(stub, question(), price=None, model="gpt-5-mini")
    assert judge.cost_usd == pytest.approx(0.00045)


@pytest.mark.parametrize("status", [503, 401])
def test_a_judge_that_is_down_is_not_asked_for_ever(stub: JudgeStub, status: int) -> None:
    stub.script(failure(status))
    found, _ = ask(stub, *(question(str(number)) for number in range(20)), retries=0, concurrency=1)
    assert len(stub.requests) == 10
    assert "the judge is down" in (found[-1].failure or "")


def test_a_question_too_long_is_not_asked(stub: JudgeStub) -> None:
    [answers], _ = ask(stub, question("x" * (MAX_PROMPT_CHARS + 1)))
    assert "too long for the judge" in (answers.failure or "")
    assert stub.requests == []


def test_lone_surrogates_and_controls_reach_the_judge(stub: JudgeStub) -> None:
    stub.script(chat(YES))
    [answers], _ = ask(stub, question("a\ud800b\x00c"))
    assert answers.failure is None
    assert "a?b\x00c" in stub.requests[0].text


def test_moderation_is_cached_and_its_failure_is_no_verdict(stub: JudgeStub, tmp_path: Path) -> None:
    flagged = Reply({"results": [{"flagged": True, "categories": {"hate": True, "violence": False}}]})

    async def run() -> Any:
        async with Judge(options(stub, retries=0), environment={}, cache_path=tmp_path / "c") as judge:
            return await judge.moderate("text")

    stub.script(flagged)
    found = [asyncio.run(run()), asyncio.run(run())]
    assert [(one.flagged, one.named) for one in found] == [(True, ["hate"])] * 2
    assert [request.path for request in stub.requests] == ["/v1/moderations"]

    async def other() -> Any:
        async with Judge(options(stub, retries=0), environment={}) as judge:
            return await judge.moderate("text")

    stub.script(failure(500))
    with pytest.raises(CallError, match="HTTP 500"):
        asyncio.run(other())


def test_a_torn_cache_is_an_error_that_names_it(stub: JudgeStub, tmp_path: Path) -> None:
    path = tmp_path / "c"
    path.write_bytes(b"this is no database at all, whatever its name" * 100)
    with pytest.raises(ConfigError, match="cannot be opened"):
        ask(stub, question(), cache=path)


PROCESS = """
import sys
from pathlib import Path
import tests.integration.judges.test_judge_over_http as t
class At: url = sys.argv[1]
found, judge = t.ask(At, *(t.question(str(n)) for n in range(30)), cache=Path(sys.argv[2]))
assert all(one.failure is None for one in found), found
"""


@pytest.mark.slow
def test_several_processes_share_one_cache(stub: JudgeStub, tmp_path: Path) -> None:
    stub.script(chat(YES, delay=0.002))
    cache = tmp_path / "c"
    command = [sys.executable, "-c", PROCESS, stub.url, str(cache)]
    root = Path(__file__).parents[3]
    running = [subprocess.Popen(command, stderr=subprocess.PIPE, cwd=root) for _ in range(2)]
    for process in running:
        _, err = process.communicate(timeout=300)
        assert process.returncode == 0, err.decode()
    calls = len(stub.requests)
    found, _ = ask(stub, *(question(str(number)) for number in range(30)), cache=cache)
    assert all(one.failure is None for one in found)
    assert len(stub.requests) == calls
