"""Asks the judge which of two agents' answers to a case is better, in both orders. The judge sees no agent names."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Literal

from msgspec.structs import replace

from gate.config.load import Config
from gate.errors import MeasureError
from gate.insight.lineup import Contender, SharedCases, common_cases
from gate.judges.client import Judge
from gate.judges.options import JudgeOptions
from gate.judges.options import check as check_judge
from gate.judges.prompt import Answer, Answers, Question
from gate.metrics.judged import conversation, rationale
from gate.model import Trial
from gate.model.lineup import OrderedVote
from gate.pipeline.budget import judge_of
from gate.pipeline.journal import redactor_of
from gate.pipeline.terms import own_terms
from gate.security.limits import shorten
from gate.security.redact import Redactor

AT_ONCE = 200
"""Maximum number of questions in memory; the judge's own limits set the number of concurrent requests."""
MAX_ERROR_CHARS = 300
INSTRUCTIONS = """\
Two agents were given the same task, each in a conversation of its own. Compare how well they served the user: whether \
the task was done, whether what was said is true and follows from the tools' results, whether the actions were needed \
and right, and whether it was clear and no longer than it had to be. Length, style and the place of an answer are no \
merits. Answer "first" or "second" for the better one, and "neither" if they are equally good or equally bad."""


class Preferred(Answer):
    """A judge's answer about two answers."""

    reasoning: str
    preferred: Literal["first", "second", "neither"]


_Match = tuple[OrderedVote, str, str]
"""A vote that is still to be given, and the conversations shown first and second."""


async def ask_preferences(
    contenders: Sequence[Contender], config: Config, environment: Mapping[str, str]
) -> tuple[list[OrderedVote], float | None]:
    """Return the votes on every pair for every case that both answered, in both orders, and the cost of the judge.

    Each agent's first answered trial of a case is shown. A question that could not be answered is a vote with an error.

    Raises:
        ConfigError: no judge can be asked.
        MeasureError: a record has no answers.
    """
    options = config.file.judge or JudgeOptions()
    check_judge(options, environment, needed_by=["--prefer"], usd=config.file.budget.usd)
    _check_answers(contenders)
    matches = _matches(common_cases(contenders, own_terms(contenders[0].record)))
    redactor, votes = redactor_of(environment), list[OrderedVote]()
    async with judge_of(config, environment) as judge:
        for start in range(0, len(matches), AT_ONCE):
            asked = [_vote(judge, *match, redactor) for match in matches[start : start + AT_ONCE]]
            votes += await asyncio.gather(*asked)
        return votes, judge.cost_usd


def _check_answers(contenders: Sequence[Contender]) -> None:
    for one in contenders:
        if one.record.header.stripped:
            what = f"{one.name}: a stored baseline holds no answers that a judge could read"
            raise MeasureError(what, where=one.source, hint="name the record that `gate run` wrote")


def _matches(common: SharedCases) -> list[_Match]:
    """Return both orders of every pair and case, shuffled: if a budget ends, some of each pair remain."""
    found = []
    pairs = list(combinations(range(len(common.trials)), 2))
    for case in common.cases:
        shown = [_answer(trials.get(case.id, ())) for trials in common.trials]
        for one, other in pairs:
            mine, theirs = shown[one], shown[other]
            if mine is not None and theirs is not None:
                found.append((OrderedVote(case.id, one, other, None), mine, theirs))
                found.append((OrderedVote(case.id, other, one, None), theirs, mine))
    return found


def _answer(trials: Sequence[Trial]) -> str | None:
    """Return the conversation of the first answered trial."""
    for trial in trials:
        if trial.answered and trial.invocations:
            return conversation(trial.invocations)
    return None


def _is_settled(answers: Sequence[Preferred], to_come: int) -> bool:
    """Return True if one answer leads by more votes than are still to come."""
    counts = Counter(one.preferred for one in answers).most_common(2)
    if not counts:
        return False
    (_, most), *others = counts
    return most > to_come + sum(votes for _, votes in others)


async def _vote(judge: Judge, vote: OrderedVote, first: str, second: str, redactor: Redactor) -> OrderedVote:
    """Return the vote as given by the majority of the judge's answers; for neither if they are split."""
    question = Question(
        "preferred",
        INSTRUCTIONS,
        (("first conversation", first), ("second conversation", second)),
        Preferred,
        settled=_is_settled,
    )
    answers: Answers[Preferred] = await judge.ask(question)
    if answers.failure is not None:
        error = redactor.redact(shorten(answers.failure, MAX_ERROR_CHARS))
        return replace(vote, error=error)
    (most, votes), *rest = Counter(one.preferred for one in answers.readable).most_common()
    preferred = {"first": vote.first, "second": vote.second}.get(most)
    if rest and rest[0][1] == votes:
        preferred = None
    reason = next((one.reasoning for one in answers.readable if one.preferred == most), "")
    return replace(vote, preferred=preferred, reason=redactor.redact(rationale(reason)))
