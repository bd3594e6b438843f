"""The keys of promptfoo's files that are ignored on purpose, each with the reason."""

from __future__ import annotations

from gate.formats.reading import Ignored

IGNORED = Ignored(
    {
        "of how promptfoo runs and keeps an evaluation": (
            "outputPath sharing writeLatestResults $schema tags env.* evaluateOptions.* commandLineOptions.* "
            "tracing.* derivedMetrics.* evalId $.config shareableUrl $.vars $.runtimeOptions results.timestamp "
            "results.stats results.prompts results.table"
        ),
        "how to reach the agent, which `agent` in gate.yaml says": "providers.* targets.*",
        "for people": "description",
        "of an evaluation or a result; a test's own is carried over": "metadata",
        "read where an assertion names one": "assertionTemplates",
        "listed with the test, unless it changes nothing here": "options.*",
        "of a result: its test, its answer and promptfoo's verdict are read": (
            "results.id results.promptId results.promptIdx results.testIdx results.score results.namedScores "
            "results.cost results.tokenUsage results.error results.failureReason results.evalId results.description "
            "prompt.config prompt.id prompt.provider prompt.metrics provider.* response.raw response.metadata "
            "response.finishReason response.logProbs response.latencyMs response.prompt response.guardrails "
            "response.error response.isRefusal response.cached response.tokenUsage.numRequests "
            "response.tokenUsage.completionDetails"
        ),
        "read of a row that was answered": "results.success results.latencyMs",
        "in the other counts": "response.tokenUsage.total response.tokenUsage.cached",
        "read for the calls of the row that each is of": "traces",
        "read where promptfoo failed an answer": "gradingResult",
        "a result has its variables once more, filled in": "testCase.vars",
    }
)
