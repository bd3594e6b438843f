import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from gate.config.criteria import Setting
from gate.errors import ConfigError
from gate.metrics import METRICS, load_metric
from gate.metrics.base import Metric
from tests.unit.config.build import scorers_of

REFERENCE = Path(__file__).parents[3] / "docs" / "reference"
_ADK = """
tool_trajectory_avg_score response_match_score response_evaluation_score safety_v1 final_response_match_v2
rubric_based_final_response_quality_v1 rubric_based_tool_use_quality_v1 rubric_based_multi_turn_trajectory_quality_v1
hallucinations_v1 per_turn_user_simulator_quality_v1 multi_turn_task_success_v1 multi_turn_trajectory_quality_v1
multi_turn_tool_use_quality_v1 tool_call_count_v1 inference_call_count_v1 token_usage_v1 invocation_duration_v1
"""
ADK_NAMES = _ADK.split()


def test_every_metric_loads_and_explains_itself() -> None:
    kinds = {name: load_metric(name) for name in METRICS}
    assert [name for name, kind in kinds.items() if not (issubclass(kind, Metric) and kind.__doc__)] == []


def test_every_metric_has_a_section_in_the_guide() -> None:
    pages = "".join(page.read_text() for page in REFERENCE.glob("*.md"))
    headings = "".join(re.findall(r"^##+ .*", pages, re.MULTILINE))
    assert [name for name in METRICS if f"`{name}`" not in headings] == []


def test_every_name_of_google_adk_is_registered() -> None:
    assert set(ADK_NAMES) <= set(METRICS)


def test_options_without_a_default_have_an_example_that_is_taken_as_written() -> None:
    for name in METRICS:
        model = load_metric(name).options_type
        needed = {key: field.examples for key, field in model.model_fields.items() if field.is_required()}
        assert all(needed.values()), name
        model.model_validate({key: examples[0] for key, examples in needed.items() if examples})


def test_an_unknown_name_is_refused_with_the_nearest_known_one() -> None:
    with pytest.raises(ConfigError, match=re.escape("(did you mean 'tool_trajectory_avg_score'?)")):
        load_metric("tool_trajectry_avg_score")


@pytest.mark.slow
def test_metrics_load_nothing_that_they_do_not_use() -> None:
    heavy = ("jsonschema", "openai", "gate.metrics.trajectory")
    code = f"import sys, gate.metrics; sys.exit(any(module in sys.modules for module in {heavy}))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def examples() -> list[str]:
    pages = ((REFERENCE / name).read_text() for name in ("metrics.md", "judged-metrics.md"))
    return [text for page in pages for text in re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)]


def test_every_example_of_the_guide_is_taken_as_written() -> None:
    for example in [text for text in examples() if "checks:" not in text]:
        raw = yaml.safe_load(example)
        scorers = scorers_of(raw.get("criteria", raw), (), Setting())
        assert [scorer.criterion.name for scorer in scorers] == list(raw.get("criteria", raw)), example


def test_there_are_examples() -> None:
    assert len(examples()) >= 2
