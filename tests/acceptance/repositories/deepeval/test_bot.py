from deepeval import assert_test
from deepeval.metrics import AnswerRelevancyMetric
from deepeval.test_case import LLMTestCase


def test_order() -> None:
    assert_test(LLMTestCase(input="Where is A1?", actual_output="A1 has shipped."), [AnswerRelevancyMetric()])
