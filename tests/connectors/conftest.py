"""Where the environments are that `make connectors` builds."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.conftest import Project


def _interpreter(variable: str) -> Path:
    named = os.environ.get(variable)
    if not named:
        pytest.skip(f"{variable} names no environment: run `make connectors`")
    return Path(named)


@pytest.fixture(scope="session")
def frameworks() -> Path:
    """The interpreter with the frameworks of agents."""
    return _interpreter("GATE_FRAMEWORKS_PYTHON")


@pytest.fixture(scope="session")
def agui() -> Path:
    """The interpreter with the AG-UI servers that need an older library of the protocol than others."""
    return _interpreter("GATE_AGUI_PYTHON")


@pytest.fixture(scope="session")
def agentevals() -> Path:
    """The command of agentevals, an evaluator of traces."""
    return _interpreter("GATE_AGENTEVALS_PYTHON").parent / "agentevals"


@pytest.fixture(scope="session")
def adk() -> Path:
    """The interpreter with google-adk and its servers."""
    return _interpreter("GATE_ADK_PYTHON")


@pytest.fixture(scope="session")
def crewai() -> Path:
    """The interpreter with CrewAI, which pins libraries that other frameworks have newer."""
    return _interpreter("GATE_CREWAI_PYTHON")


@pytest.fixture(scope="session")
def buckets() -> Path:
    """The interpreter of the environment with the servers of object stores."""
    return _interpreter("GATE_BUCKETS_PYTHON")


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    yield Project(tmp_path)
