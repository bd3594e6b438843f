"""Judged metrics that differ only in their question: a table with one class per line."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from gate.judges.prompt import Answer
from gate.metrics.claims import BorneClaims, CitedClaims, ClaimShare
from gate.metrics.domain import Outcome, SupportOutcome
from gate.metrics.graded import Graded
from gate.metrics.judged import JudgedMetric
from gate.metrics.rubric import ConversationProperties


def _made(base: type[JudgedMetric[Any]], summary: str, **attributes: Any) -> type[JudgedMetric[Any]]:
    return type(base.__name__, (base,), {"__doc__": summary, **attributes})


def graded(summary: str, asked: str, **attributes: Any) -> type[JudgedMetric[Any]]:
    """Return a metric that grades one quality of the answers by named levels."""
    return _made(Graded, summary, asked=asked, **attributes)


def outcome(summary: str, counts: Callable[[Outcome], bool]) -> type[JudgedMetric[Any]]:
    """Return a metric of how a support conversation ended."""
    return _made(SupportOutcome, summary, counts=staticmethod(counts))


def properties(summary: str, **texts: str) -> type[JudgedMetric[Any]]:
    """Return a metric of properties that a whole conversation has."""
    return _made(ConversationProperties, summary, properties=texts)


def claim_share(
    summary: str, question: str, fault: Callable[[Any], str | None], answer: type[Answer], **attributes: Any
) -> type[JudgedMetric[Any]]:
    """Return a metric of the claims that have no fault."""
    return _made(ClaimShare, summary, question=question, fault=staticmethod(fault), answer=answer, **attributes)


_CITATIONS = """\
List every factual claim in the agent's answers that a reader would want a source for. Say of each whether the answer
cites a source for it (a link, a document, a numbered reference), and, if it does, whether that source, as shown in the
results of the tools or the conversation, says so; null if it does not cite. A source that appears nowhere is wrong."""


def _not_cited(claim: Any) -> str:
    if claim.cited:
        return ""
    return f"not cited: {claim.claim}"


def _cited_wrongly(claim: Any) -> str | None:
    if not claim.cited:
        return None
    if claim.citation_is_right:
        return ""
    return f"not so: {claim.claim}"


def _not_borne_out(claim: Any) -> str:
    if claim.verdict == "borne_out":
        return ""
    return f"{claim.verdict}: {claim.claim}"


PRESETS: Mapping[str, type[JudgedMetric[Any]]] = {
    # --- qualities, graded by levels ---
    "relevance": graded(
        "How well the answers meet the query, its context and the intent behind it. Range 0–1, typically 0.75.",
        """\
Relevance: do the answers address what the user asked, in the context that the conversation gave, and the intent
behind it? What does not serve the request lowers the grade, however true.""",
    ),
    "clarity": graded(
        "How easy the answers are to understand: order, wording, length. Range 0–1, typically 0.7.",
        """\
Clarity: can the user understand the answers at first reading? Order, plain wording, one thing at a time, neither
too long nor too terse. Whether the content is right does not matter here.""",
    ),
    "accuracy": graded(
        "How correct the answers are, by references, tool results and general knowledge. Range 0–1, typically 0.9.",
        """\
Accuracy: are the statements right? Expected responses, where given, and results of tools count first, then
well-established general knowledge. A wrong figure, name, date or promise weighs heavily.""",
    ),
    "consistency": graded(
        "How well the answers agree with earlier turns. Range 0–1, typically 0.8; several turns only.",
        """\
Consistency: do later answers agree with earlier ones, and with what the user said earlier? A change of mind that
the agent explains by new facts is no lapse.""",
        fewest_turns=2,
        nothing="a conversation of one turn has no earlier turns to agree with",
    ),
    "source_attribution": graded(
        "How correctly the answers attribute content to sources. Range 0–1, typically 0.7.",
        """\
Source attribution: where an answer rests on a document, a policy or a tool's result, does it say which, and is that
the right one? An invented source is a failure. Where nothing rests on a source, grade excellent.""",
    ),
    "follow_up_handling": graded(
        "How well the answers address natural follow-up questions, asked or not. Range 0–1, typically 0.7.",
        """\
Follow-up handling: are natural follow-up questions addressed? A question that the user asks in a later turn is taken in
the context of what was said before, without making the user repeat it. A question that the answer obviously raises
(how long, how much, what next, what if it fails) is answered or offered, and no more than that.""",
    ),
    "detail_level": graded(
        "How well the depth of the answers fits the question; too much is a fault, too. Range 0–1, typically 0.7.",
        """\
Detail level: is the depth right for this question and this user? Enough to act on, with the figures, conditions and
steps that are needed; no detail that the user did not ask for and does not need. A short question to which a short
answer is complete deserves one. Whether the content is right does not matter here.""",
    ),
    "appropriateness": graded(
        "How well the answers fit the situation, the user and the role. Range 0–1, typically 0.8.",
        """\
Appropriateness: do the answers fit the situation, the user's state and the agent's role? Tact, boundaries, no
familiarity or advice that is out of place.""",
    ),
    "engagement": graded(
        "How well the answers engage the user: next steps, fitting questions. Range 0–1, typically 0.6.",
        """\
Engagement: do the answers help the user on? Attention to what the user said, useful next steps, a question where
one is needed; no filler.""",
    ),
    "satisfaction": graded(
        "How satisfied the customer probably is, judging by the customer's messages. Range 0–1, typically 0.7.",
        """\
Satisfaction: from the user's words, tone and whether the matter was settled, how satisfied is this user likely to be
with the service? Judge as the user would, not as an expert.""",
    ),
    "error_handling": graded(
        "How well the agent handles errors. Range 0–1, typically 0.7.",
        """\
Error handling: when a tool failed, a result was odd or the request was impossible, did the agent notice, take a
sensible other way, and say what it could not do? Where nothing went wrong, grade excellent.""",
        reads_tools=True,
    ),
    "api_usage": graded(
        "How well the agent uses tools and interfaces: choice, arguments, number of calls. Range 0–1, typically 0.7.",
        """\
API usage: suitable calls with right arguments, none superfluous, none missing, paging and limits respected.""",
        reads_tools=True,
    ),
    "data_handling": graded(
        "How well the agent handles data: complete, unaltered, no more than needed. Range 0–1, typically 0.8.",
        """\
Data handling: were values carried from results to arguments and answers unaltered and complete, units and formats
kept, and no more personal data used or shown than the task needs?""",
        reads_tools=True,
    ),
    # --- shares of claims ---
    "hallucination": claim_share(
        "Share of the answers' claims about data that the tool results support: 1 means that nothing is invented.",
        """\
List every claim of the agent's answers about data, events or states that the tools could tell: figures, names, dates,
availability, what was done. Say of each whether the results of the tools, or the user's own words, bear it out, do
not mention it, or contradict it. A call that failed bears out nothing. Leave out greetings, questions, offers and
advice.""",
        _not_borne_out,
        BorneClaims,
        sound="claims borne out",
        pass_threshold=0.9,
        reads_tools=True,
        after_calls=True,
        nothing="no tool was called, or the answers claim nothing about what tools returned",
    ),
    "citation_coverage": claim_share(
        "Share of the answers' claims with a citation: cited / claims. Range 0–1, typically 0.8.",
        _CITATIONS,
        _not_cited,
        CitedClaims,
        sound="claims carry a citation",
        pass_threshold=0.8,
        nothing="the answers claim nothing that needs a source",
    ),
    "citation_correctness": claim_share(
        "Share of the citations whose source supports the claim: right / citations. Range 0–1, typically 0.9.",
        _CITATIONS,
        _cited_wrongly,
        CitedClaims,
        sound="citations right",
        pass_threshold=0.8,
        nothing="the answers cite nothing",
    ),
    # --- outcomes of support conversations ---
    "resolution_rate": outcome(
        "1 if the agent resolved the request itself, else 0; the mean is the resolution rate. Typically at least 0.8.",
        lambda answer: answer.outcome == "resolved",
    ),
    "containment_rate": outcome(
        "0 if the agent handed over to a person, else 1: the mean is 1 − escalation rate. Typically at least 0.8.",
        lambda answer: answer.outcome != "escalated",
    ),
    "first_contact_resolution": outcome(
        "1 if the request was resolved without further contact, else 0. Typically at least 0.7 (SQM's benchmark).",
        lambda answer: answer.outcome == "resolved" and not answer.follow_up_needed,
    ),
    # --- properties of a conversation: google-adk asks a cloud service under these names ---
    "multi_turn_task_success_v1": properties(
        "How far the conversation reached its goal: the share of three properties that hold. Range 0–1, typically 0.8.",
        goals="Everything that the user asked for over the conversation, and did not take back, was achieved or "
        "rightly declined.",
        effects="What the agent did agrees with what the user wanted; nothing was done unasked.",
        outcome="The agent told the user the outcome, and what it told agrees with the results of its tools.",
    ),
    "multi_turn_trajectory_quality_v1": properties(
        "How sound the steps were: the share of five properties that hold. Range 0–1, typical threshold 0.8.",
        plan="The steps follow a sensible order: what a step needs was known or obtained before it.",
        economy="No step was repeated or taken without need.",
        memory="What the user or a tool had said in earlier turns was used and not asked for or looked up again.",
        recovery="Where a step failed, the agent noticed and took a reasonable other way, or said so.",
        end="The agent stopped when the matter was settled, neither before nor long after.",
    ),
    "multi_turn_tool_use_quality_v1": properties(
        "How well the agent used tools: the share of five properties that hold. Range 0–1, typical threshold 0.8.",
        choice="Every tool called was a suitable one for what was to be done.",
        arguments="The arguments come from the conversation or earlier results, in the right form, none invented.",
        coverage="No call that the task needed is missing.",
        restraint="No call was superfluous.",
        results="Results were read rightly and used; errors of tools were not taken for results.",
    ),
}

for _name, _preset in PRESETS.items():  # pickled for worker processes, which find its class by this name
    _preset.__module__ = __name__
    _preset.__name__ = _preset.__qualname__ = _name


def __getattr__(name: str) -> type[JudgedMetric[Any]]:
    if name in PRESETS:
        return PRESETS[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
