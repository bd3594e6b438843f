"""The keys of promptfoo's files that are ignored on purpose, each with the reason."""

from __future__ import annotations

from gate.formats.reading import Ignored

_RUN, _AGENT = (
    "of how promptfoo runs and keeps an evaluation",
    "how to reach the agent, which `agent` in gate.yaml says",
)
_ROW = "of a result: its test, its answer and promptfoo's verdict are read"
IGNORED = Ignored(
    {
        **dict.fromkeys(("outputPath", "sharing", "writeLatestResults", "$schema", "tags", "env.*"), _RUN),
        **dict.fromkeys(("evaluateOptions.*", "commandLineOptions.*", "tracing.*", "derivedMetrics.*"), _RUN),
        **dict.fromkeys(("providers.*", "targets.*"), _AGENT),
        "description": "for people",
        "metadata": "of an evaluation or a result; a test's own is carried over",
        "assertionTemplates": "read where an assertion names one",
        "options.*": "listed with the test, unless it changes nothing here",
        **dict.fromkeys(("evalId", "$.config", "shareableUrl", "$.vars", "$.runtimeOptions"), _RUN),
        **dict.fromkeys(("results.timestamp", "results.stats", "results.prompts", "results.table"), _RUN),
        **dict.fromkeys(("results.id", "results.promptId", "results.promptIdx", "results.testIdx"), _ROW),
        **dict.fromkeys(("results.success", "results.latencyMs"), "read of a row that was answered"),
        **dict.fromkeys(("results.score", "results.namedScores", "results.cost", "results.tokenUsage"), _ROW),
        **dict.fromkeys(("results.error", "results.failureReason", "results.evalId", "results.description"), _ROW),
        **dict.fromkeys(("prompt.config", "prompt.id", "prompt.provider", "prompt.metrics", "provider.*"), _ROW),
        **dict.fromkeys(("response.raw", "response.metadata", "response.finishReason", "response.logProbs"), _ROW),
        **dict.fromkeys(("response.latencyMs", "response.prompt", "response.guardrails", "response.error"), _ROW),
        **dict.fromkeys(("response.isRefusal", "response.cached"), _ROW),
        **dict.fromkeys(("response.tokenUsage.total", "response.tokenUsage.cached"), "in the other counts"),
        **dict.fromkeys(("response.tokenUsage.numRequests", "response.tokenUsage.completionDetails"), _ROW),
        "traces": "read for the calls of the row that each is of",
        "gradingResult": "read where promptfoo failed an answer",
        "testCase.vars": "a result has its variables once more, filled in",
    }
)
