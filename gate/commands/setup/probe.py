"""Runs a few trials of the configured agent and describes its reports: text, calls, usage, cost, sessions, traces."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from secrets import token_hex

from msgspec.structs import replace

from gate.commands.setup.checkup import Checkup, note, ok, problem
from gate.commands.setup.remedies import remedy_for
from gate.config.load import Config
from gate.config.resolve import Plan
from gate.config.schema import BudgetSection
from gate.judges.meter import Budget as JudgeBudget
from gate.model import Case, Invocation, Trial, Turn, total_usage
from gate.pipeline.budget import RunBudget
from gate.pipeline.execute import Job
from gate.pipeline.trials import TrialRunner
from gate.reports.formatting import agree, count, dollars
from gate.system.prices import turn_cost

AREA = "agent"
QUESTION = (
    "Which code word did I give you in this conversation? Answer with the code word alone, or say that I gave none."
)
RETURN_CALLS = "return tool_calls ([] if there were none), or receive its spans: agent.traces: true"


async def probe(
    config: Config, plan: Plan, environment: Mapping[str, str]
) -> tuple[list[Checkup], Sequence[Trial] | None]:
    """Run the suite's first case, then a conversation of two turns, then its last question alone.

    Returns:
        The findings, and the three trials; None if one failed.

    Raises:
        GateError: the agent cannot be started.
    """
    case, word, trials = plan.suite.cases[0], f"plum-{token_hex(3)}", list[Trial]()
    told = f"Please remember this code word: {word}. Answer with OK alone."
    memory = replace(_bare(case), id="gate-doctor-memory", turns=(Turn(told), Turn(QUESTION)))
    apart = replace(_bare(case), id="gate-doctor-apart", turns=(Turn(QUESTION),))
    scorers = tuple(s for s in plan.scorers if not s.needs_judge and not s.parts and not s.metric.over_trials)
    asked = replace(plan, suite=replace(plan.suite, cases=(case, memory, apart)), scorers=scorers)
    budget = RunBudget(BudgetSection(), JudgeBudget())
    async with TrialRunner(config, asked, environment, budget) as runner:
        for one in (case, memory, apart):
            async for trial, _ in runner.run([Job(one, 1)]):
                trials.append(trial)
            failed = trials[-1].error
            if failed is not None:
                error = f"{failed.kind.value}: {failed.message}"
                return [problem(AREA, "answers", error, remedy_for(error, config.path.name, environment))], None
        notes = runner.notes
    turns = trials[0].invocations
    found = [_text(config, turns), _calls(config, turns), *_usage(turns)]
    found += [*_sessions(plan, word, trials), _traces(config, notes)]
    return found, trials


def _bare(case: Case) -> Case:
    """Return the case without its expectations; the agent may need its state and metadata."""
    return Case("", case.turns, state=case.state, metadata=case.metadata, app=case.app)


MAPPED = ("http", "mcp", "langgraph")
"""The kinds of agents whose answers are mapped by the configuration."""


def _text(config: Config, turns: Sequence[Invocation]) -> Checkup:
    said = [turn.text for turn in turns if turn.text.strip()]
    if not said:
        remedy = "return it as output"
        if config.agent_kind in MAPPED:
            remedy += f", or name its path under agent.{config.agent_kind}.response.output"
        return note(AREA, "text", "the answers have no text", remedy)
    have = agree(len(turns), "has", "have")
    found = f"{len(said)} of {count(len(turns), 'answer')} {have} text; the first has {len(said[0]):,} characters"
    return ok(AREA, "text", found)


def _calls(config: Config, turns: Sequence[Invocation]) -> Checkup:
    made = [call for turn in turns for call in turn.tool_calls]
    if made:
        names = sorted({call.name for call in made})
        results = sum(call.result is not None for call in made)
        return ok(AREA, "tool calls", f"reported: {', '.join(names[:5])}; {results} of {len(made)} with results")
    if all(turn.reports_calls for turn in turns) or config.agent.reports_calls:
        return ok(AREA, "tool calls", "reported: none were made")
    return note(AREA, "tool calls", "not reported: criteria on tool calls cannot be measured", RETURN_CALLS)


def _usage(turns: Sequence[Invocation]) -> list[Checkup]:
    usage = total_usage(turn.usage for turn in turns)
    if usage is None or usage.tokens is None:
        what = "no token counts: budget.tokens and `tokens` cannot be measured"
        found = note(AREA, "usage", what, "return usage: {input_tokens, output_tokens}")
    else:
        model = f"model {usage.model}" if usage.model else "no model named"
        found = ok(AREA, "usage", f"{usage.input_tokens or 0:,} tokens in, {usage.output_tokens or 0:,} out, {model}")
    costs = [turn_cost(turn.usage) for turn in turns]
    known = [cost for cost in costs if cost is not None]
    if known and len(known) == len(costs):
        return [found, ok(AREA, "cost", f"{dollars(sum(known))} for {count(len(turns), 'answer')}")]
    what = "neither reported nor known from a list price: budget.usd and `cost` cannot be measured"
    return [found, note(AREA, "cost", what, "return cost_usd, or usage with model")]


def _sessions(plan: Plan, word: str, trials: Sequence[Trial]) -> list[Checkup]:
    _, memory, apart = trials
    remembers = word in memory.invocations[-1].text
    leaks = any(word in turn.text for turn in apart.invocations)
    found = []
    if remembers:
        found.append(ok(AREA, "memory", "the second turn of a conversation knows the first"))
    elif any(len(case.turns) > 1 for case in plan.suite.cases):
        remedy = "use session_id, or messages, which has the history"
        found.append(note(AREA, "memory", "the second turn could not repeat a word from the first", remedy))
    if leaks:
        what = "another session knows what was said in the first: trials are not independent"
        found.append(problem(AREA, "sessions", what, "keep one history per session_id"))
    elif remembers:
        found.append(ok(AREA, "sessions", "kept separate: another session does not know it"))
    return found


def _traces(config: Config, notes: Sequence[str]) -> Checkup:
    if config.agent.traces is None:
        return note(AREA, "traces", "not received (set agent.traces: true if the agent exports OpenTelemetry)")
    if notes:
        return problem(AREA, "traces", notes[0], "let the agent export to OTEL_EXPORTER_OTLP_ENDPOINT")
    return ok(AREA, "traces", "received")
