"""The judge of a run: sends questions to an OpenAI-compatible endpoint, with retries, counting and a cache.

Knows the protocol and its failures; `prompt.py` words the questions, and the metrics interpret the answers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakValueDictionary

from pydantic import BaseModel, Field, ValidationError

from gate.formats.endings import FILTER, cut_off_by
from gate.judges.asking import note_model
from gate.judges.cache import Cache, key_of
from gate.judges.meter import Budget, Limiter
from gate.judges.options import MODERATION_MODEL, JudgeOptions, Member, ModelConfig, cost_of, fingerprint, members
from gate.judges.prompt import A, Answers, Question, read_answer, render, schema_of, without_thoughts
from gate.model.conversation import is_blank
from gate.security.escape import one_line
from gate.security.limits import MAX_ANSWER_BYTES, shorten
from gate.security.redact import redact
from gate.system.http import retry_after

if TYPE_CHECKING:
    from openai import AsyncOpenAI

B = TypeVar("B", bound=BaseModel)
Send = Callable[..., Awaitable[Any]]
"""Sends a request and returns the client's raw response."""

MAX_PROMPT_CHARS = 400_000
"""A longer question is not sent, and its score is not measured."""
MAX_WAIT = 120.0
"""The longest Retry-After to wait for, in seconds; a longer one counts as a failure."""
GIVE_UP_AFTER = 10
"""Number of calls failing in a row, retries included, after which the judge counts as down for the rest of the run."""
EXPECTED_OUTPUT_TOKENS = 1000
"""Tokens reserved for one answer under a budget in dollars, if ``max_output_tokens`` sets no limit."""


MOST_OF_NAME = 200
"""The most characters kept of a model's name."""


class _Message(BaseModel):
    content: str | None = None
    refusal: str | None = None


class _Choice(BaseModel):
    message: _Message
    finish_reason: str | None = None


class _Tokens(BaseModel):
    prompt_tokens: int = Field(default=0, ge=0)
    completion_tokens: int = Field(default=0, ge=0)


class _Completion(BaseModel):
    """The fields of a chat completion that are read."""

    choices: list[_Choice] = Field(min_length=1)
    usage: _Tokens | None = None
    model: str | None = None
    """The name by which the model answered: a requested name may lead to another model later."""


class Moderation(BaseModel):
    """The moderation endpoint's answer about a text."""

    flagged: bool
    categories: dict[str, bool | None] = {}

    @property
    def named(self) -> list[str]:
        """Return the categories for which the text was flagged."""
        return sorted([name for name, hit in self.categories.items() if hit])

    @property
    def is_against(self) -> bool:
        """True if the answer flags the text, or names a category for it although it says that it does not."""
        return self.flagged or bool(self.named)


class _Moderations(BaseModel):
    results: list[Moderation] = Field(min_length=1)
    model: str | None = None
    """As in `_Completion`."""


class CallError(Exception):
    """A call that failed for good; it becomes the error of an answer or of a trial."""

    def __init__(self, message: str, *, billed: bool = False) -> None:
        super().__init__(message)
        self.billed = billed
        """True if the server may have charged for it."""


class RefusedError(CallError):
    """The server rejects the request: wrong key, unknown model, too long. Not worth repeating."""


class TransientError(CallError):
    """A failure worth another attempt; ``wait`` is the server's requested wait in seconds."""

    def __init__(self, message: str, *, wait: float | None = None, billed: bool = False) -> None:
        super().__init__(message, billed=billed)
        self.wait = wait


class Judge:
    """Calls the jury of a run; for ``async with``, once per run. Nothing is sent before the first question.

    Raises:
        ConfigError: there is neither a key nor an explicit endpoint, or a cache cannot be opened.
    """

    def __init__(
        self,
        options: JudgeOptions | None,
        *,
        environment: Mapping[str, str],
        cache_path: Path | None = None,
        budget: Budget | None = None,
    ) -> None:
        self.options = options = options or JudgeOptions()
        self.fingerprint = fingerprint(options, environment)
        self._jury = members(options, environment)
        self._budget = budget if budget is not None else Budget()
        self._cache = Cache(cache_path)
        self._limiter = Limiter(options.concurrency)
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._clients: dict[tuple[str, str], AsyncOpenAI] = {}
        self._plain: set[tuple[str, str]] = set()
        self._unpriced = False
        self._failures = 0

    async def __aenter__(self) -> Judge:
        return self

    async def __aexit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._cache.close()
        for client in self._clients.values():
            await client.close()

    @property
    def cost_usd(self) -> float | None:
        """Return the cost of judging so far; None if a model without a known price answered."""
        return None if self._unpriced else self._budget.spent_usd

    async def ask(self, question: Question[A]) -> Answers[A]:
        """Return the votes on a question, as many as settle it. Never raises for a failure of a judge or its server:
        see `Answers.failure`."""
        messages = render(question)
        size = _size(messages)
        if size > MAX_PROMPT_CHARS:
            return Answers(error=f"too long for the judge: {size:,} of {MAX_PROMPT_CHARS:,} characters")
        votes = question.overrides.num_samples or self.options.num_samples or question.samples
        at_once = asyncio.Semaphore(question.overrides.parallelism_limit or self.options.concurrency)

        async def vote(member: Member, number: int) -> A | str | CallError:
            async with at_once:
                try:
                    return await self._vote(question, member, number, messages)
                except CallError as failure:
                    return failure

        jury = self._jury_for(question)
        to_come = [(member, number) for number in range(votes) for member in jury]
        readable: list[A] = []
        unreadable: list[str] = []
        while to_come:
            wave = _next_wave(len(to_come), of=votes * len(jury), may_stop=question.settled is not None)
            found = await asyncio.gather(*(vote(member, number) for member, number in to_come[:wave]))
            to_come = to_come[wave:]
            error = None
            for item in found:
                if isinstance(item, CallError):
                    error = error or f"judge not reached: {item}"
                elif isinstance(item, str):
                    unreadable.append(item)
                else:
                    readable.append(item)
            if error is not None:
                return Answers(tuple(readable), tuple(unreadable), error)
            if question.settled is not None and question.settled(readable, len(to_come)):
                break
        return Answers(tuple(readable), tuple(unreadable))

    async def moderate(self, text: str) -> Moderation:
        """Return the first endpoint's moderation of a text. Raises `CallError`."""
        member, model = self._jury[0], MODERATION_MODEL
        text = text.encode("utf-8", "replace").decode()
        key = key_of(["moderation", member.base_url, model, text])
        async with self._lock(key):
            found = self._remembered(key, _Moderations)
            if found is None:
                found = await self._attempts(
                    partial(self._moderated, member, model, text), _Moderations, member, key, estimate=0.0
                )
                self._cache.put(key, found.model_dump())
        _note_answer(model, found)
        return found.results[0]

    async def complete(self, messages: list[dict[str, str]]) -> str:
        """Return the first model's next message as plain text; never cached, because every conversation is different.

        Raises:
            CallError: the call failed, or the message is empty.
        """
        member, sampling = self._jury[0], self._sampling(None)
        spoken = [{**one, "content": one["content"].encode("utf-8", "replace").decode()} for one in messages]
        size = _size(spoken)
        if size > MAX_PROMPT_CHARS:
            raise CallError(f"too long for the model: {size:,} of {MAX_PROMPT_CHARS:,} characters")
        send = partial(self._chat, member, messages=spoken, **sampling)
        estimate = self._estimate(member, spoken, sampling)
        found = await self._attempts(send, _Completion, member, key_of(["complete", spoken]), estimate)
        _note_answer(member.model, found)
        choice = found.choices[0]
        cut_off = cut_off_by(choice.finish_reason)
        if choice.message.refusal or cut_off == FILTER:
            raise CallError("the model refused")
        if cut_off:
            raise CallError("the model's message was cut off")
        text = without_thoughts(choice.message.content or "").strip()
        if is_blank(text):
            raise CallError("the model returned nothing")
        return text

    def _jury_for(self, question: Question[Any]) -> tuple[Member, ...]:
        model = question.overrides.judge_model
        if model is None:
            return self._jury
        first = self._jury[0]
        return (Member(model, first.base_url, first.api_key, first.price if model == first.model else None),)

    async def _vote(
        self, question: Question[A], member: Member, number: int, messages: list[dict[str, str]]
    ) -> A | str:
        """Return one vote, or the reason why it could not be read. Raises `CallError`."""
        sampling = self._sampling(question.overrides.judge_model_config, number)
        schema = {"name": question.name, "schema": schema_of(question.answer), "strict": True}
        key = key_of(["chat", member.base_url, member.model, messages, schema, sampling, number])
        async with self._lock(key):
            remembered = self._remembered(key, _Completion)
            if remembered is not None:
                _note_answer(member.model, remembered)
                kept = _read(remembered.choices[0], question.answer)
                if not isinstance(kept, str) and question.decides(kept):
                    return kept
            estimate = self._estimate(member, messages, sampling)
            send = partial(self._structured, member, schema, messages=messages, **sampling)
            found = await self._attempts(send, _Completion, member, key, estimate)
            _note_answer(member.model, found)
            vote = _read(found.choices[0], question.answer)
            if not isinstance(vote, str) and question.decides(vote):
                self._cache.put(key, found.model_dump())
        return vote

    def _sampling(self, own: ModelConfig | None, number: int = 0) -> dict[str, Any]:
        """Return the parameters to send: the criterion's ``own``, else the run's; unset ones are left to the server."""
        chosen: dict[str, Any] = {}
        for name in ModelConfig.model_fields:
            value = getattr(own, name, None)
            if value is None:
                value = getattr(self.options, name, None)
            if value is not None:
                chosen[name] = value
        if "seed" in chosen:
            chosen["seed"] += number
        if "max_output_tokens" in chosen:
            chosen["max_completion_tokens"] = chosen.pop("max_output_tokens")
        return chosen

    async def _moderated(self, member: Member, model: str, text: str) -> Any:
        return await self._client(member).moderations.with_raw_response.create(model=model, input=text)

    async def _chat(self, member: Member, **request: Any) -> Any:
        create: Any = self._client(member).chat.completions.with_raw_response.create
        return await create(model=member.model, **request)

    async def _structured(self, member: Member, schema: dict[str, Any], **request: Any) -> Any:
        """Return the response to a request for structured output; without it from a server that has rejected it."""
        from openai import BadRequestError, UnprocessableEntityError  # weight: 400 ms

        where = (member.base_url, member.model)
        if where not in self._plain:
            structured = {"type": "json_schema", "json_schema": schema}
            try:
                return await self._chat(member, **request, response_format=structured)
            except (BadRequestError, UnprocessableEntityError):
                pass
        response = await self._chat(member, **request)
        self._plain.add(where)
        return response

    async def _attempts(self, send: Send, shape: type[B], member: Member, key: str, estimate: float | None) -> B:
        """Return the result of one call with its retries. Raises `CallError`."""
        for attempt in range(self.options.retries + 1):
            try:
                found = await self._attempt(send, shape, member, estimate)
            except TransientError as failure:
                if attempt == self.options.retries or (failure.wait or 0.0) > MAX_WAIT:
                    self._failures += 1
                    raise
                await self._wait(failure, attempt, key)
            except RefusedError:
                self._failures += 1
                raise
            else:
                self._failures = 0
                return found
        raise AssertionError("the last attempt returns or raises")

    async def _wait(self, failure: TransientError, attempt: int, key: str) -> None:
        """Wait as the server asked, for all calls; else exponentially, with a jitter derived from the key."""
        if failure.wait is not None:
            self._limiter.pause(failure.wait)
            await asyncio.sleep(failure.wait)
        else:
            spread = 0.75 + 0.25 * int(key[:8], 16) / 0xFFFFFFFF
            await asyncio.sleep(min(0.5 * 2.0**attempt, 8.0) * spread)

    async def _attempt(self, send: Send, shape: type[B], member: Member, estimate: float | None) -> B:
        async with self._limiter.turn():
            if self._failures >= GIVE_UP_AFTER:
                raise CallError(f"the judge is down: {self._failures} calls in a row failed")
            refusal = await self._budget.reserve(estimate)
            if refusal is not None:
                raise CallError(refusal)
            cost: float | None = None
            try:
                found = _parse(shape, await self._send(send, member))
                cost = self._count(member, found)
            except CallError as failure:
                cost = None if failure.billed else 0.0
                raise
            finally:
                self._budget.settle(estimate, cost)
        return found

    async def _send(self, send: Send, member: Member) -> bytes:
        """Make one attempt; errors become `TransientError` if worth repeating, else `RefusedError`."""
        import openai  # weight: 400 ms

        try:
            async with asyncio.timeout(self.options.timeout):
                content: bytes = (await send()).content
        except TimeoutError:
            raise TransientError(f"no answer within {self.options.timeout:g} s", billed=True) from None
        except openai.APIStatusError as error:
            if 300 <= error.status_code < 400:
                place = redact(shorten(error.response.headers.get("location", "nowhere"), 200))
                raise RefusedError(f"HTTP {error.status_code}: redirects are not followed (to {place})") from None
            said = shorten(_said(error.body, error.message).replace(member.api_key, "***"), 200)
            message = f"HTTP {error.status_code}: {said}"
            if error.status_code in (408, 409, 429) or error.status_code >= 500:
                raise TransientError(message, wait=retry_after(error.response.headers)) from None
            raise RefusedError(message) from None
        except openai.APIError as error:
            what = f"{type(error).__name__} at {redact(member.base_url)}: {shorten(str(error), 200)}"
            raise TransientError(what, billed=True) from None
        if len(content) > MAX_ANSWER_BYTES:
            raise CallError(f"an answer of {len(content):,} bytes", billed=True)
        return content

    def _count(self, member: Member, found: BaseModel) -> float | None:
        """Return an answer's cost in US dollars, and note if it is unknown: None. Moderation is free."""
        if not isinstance(found, _Completion):
            return 0.0
        tokens = found.usage
        cost = cost_of(member, tokens.prompt_tokens, tokens.completion_tokens) if tokens is not None else None
        self._unpriced = self._unpriced or cost is None
        return cost

    def _estimate(self, member: Member, messages: list[dict[str, str]], sampling: dict[str, Any]) -> float | None:
        """Return the estimated cost of a call; computed only for a budget in dollars."""
        if self._budget.usd is None:
            return None
        return cost_of(member, _size(messages) // 3, sampling.get("max_completion_tokens", EXPECTED_OUTPUT_TOKENS))

    def _client(self, member: Member) -> AsyncOpenAI:
        from openai import AsyncOpenAI, DefaultAsyncHttpxClient  # weight: 400 ms

        where = (member.base_url, member.api_key)
        if where not in self._clients:
            self._clients[where] = AsyncOpenAI(
                base_url=member.base_url,
                api_key=member.api_key,
                max_retries=0,
                timeout=self.options.timeout,
                http_client=DefaultAsyncHttpxClient(follow_redirects=False),  # key and material stay at this address
            )
        return self._clients[where]

    def _lock(self, key: str) -> asyncio.Lock:
        """Return the lock that equal questions share: the first one pays, the others read the cache."""
        return self._locks.setdefault(key, asyncio.Lock())

    def _remembered(self, key: str, shape: type[B]) -> B | None:
        try:
            return shape.model_validate(self._cache.get(key))
        except ValidationError:
            return None


def _note_answer(asked: str, found: _Completion | _Moderations) -> None:
    """Note the name by which a model answered, if the server states one."""
    if found.model:
        note_model(asked, one_line(redact(found.model), MOST_OF_NAME))


def _size(messages: list[dict[str, str]]) -> int:
    """Return the number of characters in messages."""
    return sum(len(message["content"]) for message in messages)


def _next_wave(left: int, *, of: int, may_stop: bool) -> int:
    """Return the number of votes to request at once: first as many as may settle it, then half of the remaining
    ones."""
    if not may_stop:
        return left
    return (of + 1) // 2 if left == of else max(1, left // 2)


def _parse(shape: type[B], body: bytes) -> B:
    try:
        return shape.model_validate_json(body)
    except ValidationError:
        said = shorten(body.decode("utf-8", "replace"), 80)
        raise TransientError(f"not a valid answer: {said!r}", billed=True) from None


def _read(choice: _Choice, shape: type[A]) -> A | str:
    """Return the vote in a completion, or the reason why there is none."""
    message = choice.message
    cut_off = cut_off_by(choice.finish_reason)
    if message.refusal or cut_off == FILTER:
        return "the judge refused"
    if cut_off:
        return "the judge's answer was cut off"
    answer = read_answer(message.content or "", shape)
    return answer if answer is not None else "the judge's answer is not of the shape asked for"


def _said(body: object, message: str) -> str:
    """Return a server's error message, found anywhere in the body; else the client's own message."""
    inner = body.get("error", body) if isinstance(body, dict) else None
    return str(inner["message"]) if isinstance(inner, dict) and "message" in inner else message
