"""A judge that is held to people's labels: `gate calibrate`, and what it changes in runs; a real judge over HTTP."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.conftest import Project, first_of
from tests.integration.judges.judge_stub import JudgeStub, Reply, Request, chat

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "choose-metrics.md"
AGENT = "def answer(message):\n    return 'fine' if int(message.rpartition(' ')[2]) % 4 else 'wrong'\n"
METRIC = "final_response_match_v2"
TABLE = ((50, "pass", "fine"), (3, "pass", "wrong"), (4, "fail", "fine"), (43, "fail", "wrong"))
"""How many labelled answers there are of each kind; the judge holds ``fine`` to be valid."""


def verdict(request: Request) -> Reply:
    valid = "fine" in request.fenced["agent's response"]
    return chat({"reasoning": "as told", "is_the_agent_response_valid": "valid" if valid else "invalid"})


@pytest.fixture
def stub() -> Iterator[JudgeStub]:
    with JudgeStub() as judge:
        judge.answer = verdict
        yield judge


@pytest.fixture
def judged(project: Project, stub: JudgeStub) -> Project:
    """40 cases, of which the judge passes 30."""
    cases = [{"id": f"case {n}", "input": f"case {n}", "response": "fine"} for n in range(1, 41)]
    project.write("evals/suite.yaml", {"cases": cases})
    project.write("support.py", AGENT)
    configure(project, stub)
    labels(project)
    return project


def configure(project: Project, stub: JudgeStub, model: str = "judge-1", **criterion: Any) -> None:
    project.write(
        "gate.yaml",
        {
            "suite": "evals",
            "agent": {"python": "support:answer"},
            "trials": 1,
            "judge": {"model": model, "base_url": stub.url, "num_samples": 1, "price": {"input": 0, "output": 0}},
            "criteria": {METRIC: {"threshold": 0.7, **criterion}},
        },
    )


def labels(project: Project, table: tuple[tuple[int, str, str], ...] = TABLE) -> None:
    lines = []
    for count, label, answer in table:
        for n in range(count):
            said = {"user": f"question {n}", "answer": f"{answer} {n}", "expected": "fine", "label": label}
            lines.append(json.dumps(said))
    project.write("labels.jsonl", "\n".join(lines) + "\n")


def calibrate(project: Project) -> str:
    ran = project.gate("calibrate", "labels.jsonl", "--metric", METRIC)
    assert ran.code == 0, ran.err
    return ran.out


@pytest.mark.slow
def test_the_page_shows_what_calibrating_says(judged: Project) -> None:
    said = calibrate(judged)
    command = rf"\$ gate calibrate labels.jsonl --metric {METRIC}\n"
    shown = re.search(rf"```console\n{command}(.*?)```", PAGE.read_text(), re.S)
    assert shown
    assert said.replace(str(judged.root), "…").replace("…/calibration.json", "calibration.json") == shown[1]


def test_a_judge_that_nobody_compared_with_people_blocks_and_is_said_so_once(judged: Project) -> None:
    _, result = judged.result("run")
    [suite] = result["suites"]
    told = [warning for warning in suite["warnings"] if "compared with people" in warning]
    assert told == [f"blocks by a judge that was never compared with people: {METRIC} (`gate calibrate`)"]
    assert suite["criteria"][1]["judge"] is None


@pytest.mark.slow
def test_a_calibrated_judge_is_corrected_and_its_scores_stay(judged: Project) -> None:
    _, before = judged.result("run")
    calibrate(judged)
    code, result = judged.result("run")
    [suite] = result["suites"]
    row = suite["criteria"][1]
    assert code == 0
    assert not [warning for warning in suite["warnings"] if "compared with people" in warning]
    assert row["candidate"] == before["suites"][0]["criteria"][1]["candidate"]
    known = row["judge"]
    assert (known["agreed"], known["labels"]) == (93, 100)
    assert known["kappa"] == pytest.approx(0.859, abs=1e-3)
    assert known["candidate"]["value"] == pytest.approx((0.75 + 43 / 47 - 1) / (50 / 53 + 43 / 47 - 1))
    assert known["candidate"]["low"] < 0.75 < known["candidate"]["high"]
    files = {form: f"report.{form}" for form in ("junit", "html", "markdown")}
    shown = judged.gate("run", "-v", *(f"--report={form}={name}" for form, name in files.items())).out
    said = re.search(r"\*(judge agrees with people .*?)\*", PAGE.read_text())
    assert said
    for text in (shown, *((judged.root / name).read_text() for name in files.values())):
        assert said[1] in " ".join(text.replace("\\", "").split())


@pytest.mark.slow
def test_a_record_is_judged_by_the_calibration_that_its_run_had(judged: Project) -> None:
    calibrate(judged)
    judged.result("run", "--record", "r.jsonl")
    first = json.loads((judged.root / "result.json").read_text())
    (judged.root / "calibration.json").unlink()
    _, again = judged.result("report", "r.jsonl")
    assert again["suites"][0]["criteria"] == first["suites"][0]["criteria"]


@pytest.mark.slow
def test_another_judge_is_not_calibrated_by_it(judged: Project, stub: JudgeStub) -> None:
    calibrate(judged)
    configure(judged, stub, model="judge-2")
    _, result = judged.result("run")
    [suite] = result["suites"]
    assert suite["criteria"][1]["judge"] is None
    gone = "its calibration is of another judge, wording or options and no longer applies"
    assert any(f"{METRIC}: {gone}" in warning for warning in suite["warnings"])


@pytest.mark.slow
@pytest.mark.parametrize("model", ["judge-1-2026-01", "judge-1-2026-09"])
def test_another_model_under_the_judges_name_is_not_calibrated_by_it(
    judged: Project, stub: JudgeStub, model: str
) -> None:
    def answer(request: Request) -> Reply:
        reply = verdict(request)
        reply.body["model"] = answering
        return reply

    stub.answer, answering = answer, "judge-1-2026-01"
    calibrate(judged)
    answering = model
    _, result = judged.result("run")
    [suite] = result["suites"]
    is_other = model != "judge-1-2026-01"
    assert (suite["criteria"][1]["judge"] is None) == is_other
    told = [warning for warning in suite["warnings"] if "another model than the one that answered" in warning]
    assert len(told) == is_other


@pytest.mark.slow
def test_another_threshold_is_not_calibrated_by_it(judged: Project, stub: JudgeStub) -> None:
    calibrate(judged)
    configure(judged, stub, threshold=0.8)
    _, result = judged.result("run")
    [suite] = result["suites"]
    assert suite["criteria"][1]["judge"] is None
    told = f"{METRIC}: its calibration is of the threshold 0.7: run `gate calibrate` again: nothing is corrected"
    assert told in suite["warnings"]


@pytest.mark.slow
def test_below_min_kappa_it_reports_only(judged: Project, stub: JudgeStub) -> None:
    labels(judged, ((20, "pass", "fine"), (20, "pass", "wrong"), (20, "fail", "fine"), (20, "fail", "wrong")))
    configure(judged, stub, min_kappa=0.4, threshold=0.99)
    (judged.root / "gate.yaml").write_text(
        json.dumps(
            {
                **json.loads((judged.root / "gate.yaml").read_text()),
                "criteria": {METRIC: {"threshold": 0.99, "min_kappa": 0.4}, "latency": {"max": 60}},
            }
        )
    )
    calibrate(judged)
    code, result = judged.result("run")
    [suite] = result["suites"]
    row = next(row for row in suite["criteria"] if row["criterion"]["name"] == METRIC)
    assert code == 0
    assert row["criterion"]["blocking"] is False
    assert any("does not reach 0.4" in warning for warning in suite["warnings"])


@pytest.mark.slow
@pytest.mark.parametrize(
    "agreement",
    first_of(
        [
            {"both_pass": -1, "both_fail": 0, "only_judge": 0, "only_people": 0},
            {"both_pass": 0, "both_fail": 0, "only_judge": 0, "only_people": 0},
            {"both_pass": 10**9, "both_fail": 0, "only_judge": 0, "only_people": 0},
            {"both_pass": "many", "both_fail": 0, "only_judge": 0, "only_people": 0},
            [],
        ],
        2,
    ),
)
def test_a_damaged_calibration_is_refused_in_one_line(judged: Project, agreement: Any) -> None:
    calibrate(judged)
    path = judged.root / "calibration.json"
    data = json.loads(path.read_text())
    [entry] = data["calibrations"].values()
    entry["agreement"] = agreement
    path.write_text(json.dumps(data))
    ran = judged.gate("run")
    assert ran.code == 2
    assert ran.err.count("\n") == 1
    assert "calibration.json" in ran.err and "gate calibrate" in ran.err


@pytest.mark.slow
@pytest.mark.parametrize("entry", [{}, [], {"criterion": METRIC, "agreement": 1}])
def test_calibrating_again_replaces_a_damaged_entry(judged: Project, entry: Any) -> None:
    calibrate(judged)
    path = judged.root / "calibration.json"
    whole = json.loads(path.read_text())
    path.write_text(json.dumps({**whole, "calibrations": dict.fromkeys(whole["calibrations"], entry)}))
    calibrate(judged)
    assert json.loads(path.read_text()) == whole


@pytest.mark.parametrize("text", first_of(["", "[1", "{}"]))
def test_a_file_that_is_no_calibration_is_to_be_moved_away_before_the_judge_is_asked(
    judged: Project, stub: JudgeStub, text: str
) -> None:
    judged.write("calibration.json", text)
    ran = judged.gate("calibrate", "labels.jsonl", "--metric", METRIC)
    assert ran.code == 2
    assert "calibration.json" in ran.err and "move the file away" in ran.err
    assert not stub.requests


@pytest.mark.parametrize("label", first_of([2, -5, 1e6]))
def test_a_label_on_another_scale_is_refused_before_the_judge_is_asked(
    judged: Project, stub: JudgeStub, label: float
) -> None:
    judged.write("labels.jsonl", f'{{"answer": "fine", "label": 1}}\n{{"answer": "wrong", "label": {label}}}\n')
    ran = judged.gate("calibrate", "labels.jsonl", "--metric", METRIC)
    assert ran.code == 2
    assert "labels.jsonl:2" in ran.err and "0 to 1" in ran.err
    assert not stub.requests and not (judged.root / "calibration.json").exists()


def test_calibrating_keeps_to_the_budget(judged: Project, stub: JudgeStub) -> None:
    configuration = json.loads((judged.root / "gate.yaml").read_text())
    judged.write("gate.yaml", {**configuration, "budget": {"judge_calls": 40}})
    said = calibrate(judged)
    assert len(stub.requests) == 40
    assert "44 labels, 56 not measured" in said, "four answers have two labels and are asked about once"
    assert "nothing is corrected: the judge measured 44 of 100 labelled answers" in said


# --- in a change that is judged by its base's rules -----------------------------------------------

LENIENT = ((50, "pass", "fine"), (0, "pass", "wrong"), (25, "fail", "fine"), (25, "fail", "wrong"))
"""The judge passes half of what people fail, so that less is right than it says."""
FLATTERING = ((50, "pass", "fine"), (50, "pass", "wrong"), (0, "fail", "fine"), (50, "fail", "wrong"))
"""As if it failed half of what people pass, so that more were right than it says."""


def shown(project: Project, *arguments: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The suite, and its criterion that a judge scores."""
    project.commit("as it is")
    _, result = project.result("run", *arguments)
    [suite] = result["suites"]
    return suite, suite["criteria"][1]


@pytest.mark.slow
@pytest.mark.parametrize("change", first_of(["flatters", "deletes"]))
def test_a_change_cannot_loosen_by_a_calibration_of_its_own(judged: Project, stub: JudgeStub, change: str) -> None:
    configure(judged, stub, threshold=0.7)
    labels(judged, LENIENT)
    calibrate(judged)
    judged.write(".gitignore", ".gate/\nresult.json\n__pycache__/\n")
    suite, honest = shown(judged)
    assert honest["judge"]["candidate"]["value"] == pytest.approx(0.5), "30 of 40 by the judge, 20 by people"
    assert suite["verdict"] == "below_threshold", "the corrected mean decides"
    judged.git("checkout", "-q", "-b", "change")
    if change == "deletes":
        (judged.root / "calibration.json").unlink()
    else:
        labels(judged, FLATTERING)
        calibrate(judged)
    suite, loose = shown(judged)
    assert suite["verdict"] == "pass", "by rules of its own it would pass"
    suite, row = shown(judged, "--rules-from", "main")
    assert (suite["verdict"], row["judge"]["candidate"]) == ("below_threshold", honest["judge"]["candidate"])
    assert row["candidate"] == loose["candidate"], "the scores themselves are the same"
    assert any("calibration.json" in line for line in suite["changes"]), suite["changes"]


@pytest.mark.slow
def test_a_first_calibration_corrects_once_it_is_merged(judged: Project, stub: JudgeStub) -> None:
    configure(judged, stub, threshold=0.9)
    judged.write(".gitignore", ".gate/\nresult.json\n__pycache__/\n")
    judged.commit()
    judged.git("checkout", "-q", "-b", "change")
    labels(judged, FLATTERING)
    calibrate(judged)
    assert shown(judged)[0]["verdict"] == "pass"
    suite, row = shown(judged, "--rules-from", "main")
    assert (suite["verdict"], row["judge"]) == ("below_threshold", None), (
        "thirty of forty, where nine of ten are wanted"
    )
    assert any("its calibration corrects its scores once it is merged" in line for line in suite["warnings"])
