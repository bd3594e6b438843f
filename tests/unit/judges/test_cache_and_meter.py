from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from gate.errors import ConfigError
from gate.judges.cache import Cache, key_of
from gate.judges.meter import Budget, Limiter
from gate.judges.options import Member, Price, cost_of


def test_what_is_put_is_found_again_by_another_process_to_come(tmp_path: Path) -> None:
    with closing(Cache(tmp_path / "deep" / "c")) as cache:
        assert cache.get("k") is None
        cache.put("k", {"text": "ü\n"})
        cache.put("k", {"text": "newer"})
    with closing(Cache(tmp_path / "deep" / "c")) as cache:
        assert cache.get("k") == {"text": "newer"}


def test_without_a_path_it_lasts_as_long_as_the_run() -> None:
    with closing(Cache(None)) as cache:
        cache.put("k", {"a": 1})
        assert cache.get("k") == {"a": 1}


def test_a_row_that_is_no_object_is_a_miss(tmp_path: Path) -> None:
    with closing(Cache(tmp_path / "c")) as cache:
        for text in ("[1]", "{", "null"):
            sqlite3.connect(tmp_path / "c", isolation_level=None).execute(
                "INSERT OR REPLACE INTO answers VALUES ('k', ?)", (text,)
            )
            assert cache.get("k") is None


def test_a_folder_is_no_cache(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be opened"):
        Cache(tmp_path)


def test_keys_are_of_content_not_of_order() -> None:
    assert key_of({"a": 1, "b": "\ud800"}) == key_of({"b": "\ud800", "a": 1})
    assert key_of(["ab", "c"]) != key_of(["a", "bc"])


def test_a_call_beyond_the_budget_waits_for_those_in_flight_and_is_then_refused_or_let_through() -> None:
    async def run() -> list[str | None]:
        budget = Budget(usd=1.0)
        assert await budget.reserve(0.6) is None
        waiting = asyncio.create_task(budget.reserve(0.6))
        await asyncio.sleep(0)
        assert not waiting.done()
        budget.settle(0.6, 0.3)  # cheaper than thought
        first = await waiting
        late = asyncio.create_task(budget.reserve(0.2))
        await asyncio.sleep(0)
        budget.settle(0.6, None)  # its price never came: the estimate stands
        return [first, await late]

    first, late = asyncio.run(run())
    assert first is None
    assert "0.9000 of 1.0000 US dollars" in (late or "")


def test_what_the_agent_spends_of_the_same_dollars_counts() -> None:
    budget = Budget(usd=1.0, agent_usd=0.7)
    assert asyncio.run(budget.reserve(0.2)) is None
    budget.settle(0.2, 0.2)
    assert "0.9000 of 1.0000" in (asyncio.run(budget.reserve(0.2)) or "")
    assert budget.spent_usd == 0.2


def test_rounding_leaves_nothing_reserved() -> None:
    async def run() -> Budget:
        budget = Budget(usd=10.0)
        for _ in range(100):
            assert await budget.reserve(0.1) is None
            assert await budget.reserve(0.017) is None
            budget.settle(0.1, 0.0)
            budget.settle(0.017, 0.0)
        return budget

    assert asyncio.run(run()).reserved_usd == 0.0


def test_the_limiter_counts_and_pauses() -> None:
    async def run() -> tuple[int, float]:
        limiter, inside, most = Limiter(2), 0, 0
        clock = asyncio.get_running_loop().time

        async def call() -> None:
            nonlocal inside, most
            async with limiter.turn():
                inside += 1
                most = max(most, inside)
                await asyncio.sleep(0.01)
                inside -= 1

        await asyncio.gather(*(call() for _ in range(6)))
        start = clock()
        limiter.pause(0.1)
        await call()
        return most, clock() - start

    most, waited = asyncio.run(run())
    assert most == 2
    assert waited >= 0.1


def test_stated_prices_come_first() -> None:
    member = Member("gpt-5-mini", "u", "k", Price(input=2, output=4))
    assert cost_of(member, 1_000_000, 500_000) == 4.0
    assert cost_of(Member("gpt-5-mini", "u", "k"), 1_000_000, 0) == pytest.approx(0.25)
    assert cost_of(Member("unheard-of", "u", "k"), 1, 1) is None
