"""The shipped example: a stochastic agent, its stored baseline, a variant that is blocked and one that is not."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys

import pytest

from tests.acceptance.conftest import REPOSITORY, Project, first_of

EXAMPLE = REPOSITORY / "examples" / "support-agent"


@pytest.fixture
def example(project: Project) -> Project:
    shutil.copytree(EXAMPLE, project.root, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__", ".gate"))
    return project


def test_it_has_a_suite_worth_the_name(example: Project) -> None:
    described = example.gate("suite")
    assert "25 cases" in described.out


@pytest.mark.parametrize("seed", first_of(["11", "12", "13"]))
def test_the_careless_variant_is_blocked_and_the_rephrased_one_is_not(example: Project, seed: str) -> None:
    for prompt, blocked in (("current", False), ("rephrased", False), ("regressed", True)):
        code, result = example.result("run", SUPPORT_SEED=seed, SUPPORT_PROMPT=f"prompts/{prompt}.txt")
        assert (code == 1) is blocked, (prompt, result["suites"][0]["headline"])
        assert result["suites"][0]["baseline"]["trials_per_case"] == 5
    broken = {case["id"] for case in result["suites"][0]["cases"] if case["status"] == "broken"}
    assert broken
    assert all(case.startswith("refund") for case in broken), broken


@pytest.mark.slow
def test_the_stored_baseline_was_measured_as_the_gate_measures_now(example: Project) -> None:
    ran = example.gate("run", SUPPORT_SEED="2")
    assert ran.code == 0, ran.out + ran.err
    _, result = example.result("run", SUPPORT_SEED="2")
    (suite,) = result["suites"]
    assert suite["baseline"]["trials_per_case"] == 5
    for text in (ran.out, json.dumps(suite)):
        assert "not comparable" not in text
        assert "its options or judge changed" not in text


@pytest.mark.slow
def test_the_demo_shows_all_three_verdicts() -> None:
    ran = subprocess.run(
        [sys.executable, str(REPOSITORY / "examples" / "demo.py")],
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    for verdict in ("support-agent  pass", "support-agent  regressed", "support-agent  inconclusive"):
        assert verdict in ran.stdout
