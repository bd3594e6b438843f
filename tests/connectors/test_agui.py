"""AG-UI servers as three frameworks ship them, the model scripted: threads, calls and results from their events."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.conftest import Project
from tests.connectors.models import USAGE, scripted_model
from tests.connectors.servers import EXACT, FROM_MODEL, ORDERS, ask, errors_of, served, turns_of, two_turns

pytestmark = pytest.mark.connectors
SERVERS = {"pydantic-ai": "frameworks", "langgraph": "agui", "microsoft": "agui"}
"""Framework → the environment that has its adapter; they have different versions of the protocol's library."""


@pytest.fixture(scope="module", params=SERVERS)
def server(request: pytest.FixtureRequest) -> Iterator[str]:
    python: Path = request.getfixturevalue(SERVERS[request.param])
    with (
        scripted_model() as model,
        served(python, "agui_server.py", {"MODEL_URL": model}, arguments=[request.param]) as url,
    ):
        yield url


def test_threads_do_not_mix(project: Project, server: str) -> None:
    """Sixty-four threads of two turns at once, each answered from its own history."""
    cases = [two_turns(order, FROM_MODEL) for order in ORDERS]
    ran = ask(project, {"agui": f"{server}/agent"}, cases, criteria=EXACT)
    assert ran.code == 0, ran.out + ran.err
    turns = turns_of(project)
    assert set(turns) == set(ORDERS)
    for order in ORDERS:
        assert [one["response"] for one in turns[order]] == [[text.format(order)] for text in FROM_MODEL]
        assert [call["result"] for one in turns[order] for call in one["calls"]] == [
            f"{order} has shipped",
            f"{order}x has shipped",
        ]


def test_tokens_are_read_where_the_run_states_them(project: Project, agui: Path) -> None:
    with (
        scripted_model() as model,
        served(agui, "agui_server.py", {"MODEL_URL": model}, arguments=["langgraph"]) as url,
    ):
        ran = ask(project, {"agui": f"{url}/agent"}, [two_turns("A1", FROM_MODEL)], criteria=EXACT)
    assert ran.code == 0, ran.out + ran.err
    assert [(one["usage"]["input_tokens"], one["usage"]["output_tokens"]) for one in turns_of(project)["A1"]] == [
        (2 * USAGE[0], 2 * USAGE[1])
    ] * 2


def test_a_run_that_fails_and_a_wrong_path_are_one_line_each(project: Project, server: str) -> None:
    case = {"id": "a", "input": "no model today", "response": "x"}
    failed = ask(project, {"agui": f"{server}/agent"}, [case])
    said = errors_of(project)["a"]
    assert failed.code != 0
    assert "no model today" in said or "the stream broke off" in said or "reports an error" in said
    assert "\n" not in said
    lost = ask(project, {"agui": f"{server}/nowhere"}, [case])
    assert lost.code == 3
    assert "HTTP 404" in errors_of(project)["a"]
    assert "Traceback" not in failed.err + lost.err
