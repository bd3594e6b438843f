"""The settings of the judge and their sources. Makes no calls."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Annotated

from msgspec import Struct
from pydantic import Field

from gate.errors import ConfigError
from gate.formats.durations import Seconds
from gate.model.defaults import OPENAI_URL
from gate.model.strict import StrictModel
from gate.security.environment import is_withheld
from gate.system.prices import price

DEFAULT_MODEL = "gpt-5-mini"
MODERATION_MODEL = "omni-moderation-latest"
"""The model of ``safety_v1: {backend: moderation}``."""
NO_KEY = "no-key"
"""Sent to the user's own endpoints that need no key."""
CALIBRATION_FILE = "calibration.json"
"""File in which `gate calibrate` stores its result: in the configuration's folder, so that it is reviewed with it."""
FRAME_VERSION = 1
"""The version of the text around every question; raise it when `prompt.py` changes that text."""
USER_VERSION = 1
"""The version of the text that asks for a simulated user's next message; raise it when that text changes."""
_FORMER_SAMPLING = {"top_p": None, "seed": None, "max_output_tokens": None}
"""Removed options, with their defaults, which stay in the fingerprints so that they equal those in older records."""


class Price(StrictModel):
    """US dollars per million tokens, for models that the price list does not know."""

    input: float = Field(ge=0)
    """Price of input tokens."""
    output: float = Field(ge=0)
    """Price of output tokens."""


class Juror(StrictModel):
    """A further judge model. What is left out is as in ``judge``."""

    model: str = Field(min_length=1)
    """The model's name."""
    base_url: str | None = None
    """Its endpoint."""
    api_key_env: str | None = None
    """Name of the environment variable with its key."""
    price: Price | None = None
    """Its price."""


class Sampling(StrictModel):
    """The sampling of the model. Left out: the server's default, and nothing is sent."""

    temperature: float | None = Field(default=None, ge=0, le=2)
    """Sampling temperature."""


class ModelConfig(Sampling):
    """ADK's ``judge_model_config`` of one criterion."""

    top_p: float | None = Field(default=None, gt=0, le=1)
    """Nucleus sampling: the share of probability to sample from."""
    seed: int | None = None
    """Seed; sample *i* (from 0) is sent ``seed + i``, so that votes differ."""
    max_output_tokens: int | None = Field(default=None, ge=1)
    """Largest number of tokens in an answer."""


class JudgeModelOptions(StrictModel):
    """ADK's ``judge_model_options`` of one criterion, laid over the run's judge."""

    judge_model: str | None = None
    """The model's name. Default: the run's judge."""
    judge_model_config: ModelConfig | None = None
    """The sampling of the model."""
    num_samples: int | None = Field(default=None, ge=1, le=100)
    """Votes per question and model."""
    parallelism_limit: int | None = Field(default=None, ge=1)
    """The most calls at a time for one question; ``judge.concurrency`` bounds the whole run."""


class JudgeOptions(Sampling):
    """``judge:`` of the configuration: the one judge of a run, used by every metric that asks a model."""

    model: str | None = None
    """Its name; required with a ``base_url`` of your own. Default: ``GATE_JUDGE_MODEL``, else ``gpt-5-mini``."""
    base_url: str | None = None
    """Any OpenAI-compatible endpoint. Default: ``GATE_JUDGE_BASE_URL``, ``OPENAI_BASE_URL``, else OpenAI."""
    api_key_env: str | None = None
    """Name of the environment variable with the key. Default: ``GATE_JUDGE_API_KEY``, then ``OPENAI_API_KEY``."""
    price: Price | None = None
    """US dollars per million tokens. Default: the list price of the model, by genai-prices."""
    jury: tuple[Juror, ...] = ()
    """More models; each gives ``num_samples`` votes."""
    num_samples: int | None = Field(default=None, ge=1, le=100)
    """Votes per question and model. Default: the metric's: 5 for ADK's names, else 3."""
    concurrency: int = Field(default=8, ge=1, le=1000)
    """Largest number of concurrent calls, over the whole run."""
    retries: int = Field(default=4, ge=0, le=20)
    """More attempts after 429, 5xx, a timeout or a broken connection."""
    timeout: Annotated[Seconds, Field(le=3600)] = 60.0
    """Longest time for an attempt, in seconds or as ``60s``, ``2m``."""


class SimulatedUserOptions(Sampling):
    """``simulated_user:`` of the configuration: who plays the user of a scenario. Left out: as in ``judge``."""

    model: str | None = None
    """The model that plays the user. Default: the judge's."""
    base_url: str | None = None
    """Its OpenAI-compatible endpoint."""
    api_key_env: str | None = None
    """Name of the environment variable with its key."""
    price: Price | None = None
    """US dollars per million tokens. Default: the list price of the model, by genai-prices."""
    max_turns: int = Field(default=20, ge=1, le=100)
    """Largest number of turns, the first one included."""

    def as_judge(self, judge: JudgeOptions | None) -> JudgeOptions:
        """Return the options for calling the model: its own over the judge's."""
        base = judge or JudgeOptions()
        own = {name: value for name, value in self if name != "max_turns" and value is not None}
        if self.model is not None or self.base_url is not None:
            base = base.model_copy(update={"price": None})
        return base.model_copy(update={"temperature": None, "jury": (), **own})


class Member(Struct, frozen=True):
    """One model of the jury with the data that a call to it needs."""

    model: str
    base_url: str
    api_key: str
    price: Price | None = None

    def __repr__(self) -> str:
        return f"Member({self.model!r} at {self.base_url!r})"


def members(options: JudgeOptions, environment: Mapping[str, str]) -> tuple[Member, ...]:
    """Return the jury, the first model first.

    Raises:
        ConfigError: there is neither a key nor the user's own endpoint, or an endpoint has no model.
    """
    base_url = options.base_url or environment.get("GATE_JUDGE_BASE_URL") or environment.get("OPENAI_BASE_URL")
    model = options.model or environment.get("GATE_JUDGE_MODEL")
    if base_url and not model:
        raise ConfigError(
            f"no judge model is set for {base_url}", where="judge", hint="set judge.model or GATE_JUDGE_MODEL"
        )
    first = Juror(model=model or DEFAULT_MODEL, base_url=base_url, api_key_env=options.api_key_env, price=options.price)
    return tuple(_member(juror, first, environment) for juror in (first, *options.jury))


def _member(juror: Juror, first: Juror, environment: Mapping[str, str]) -> Member:
    named = juror.api_key_env or first.api_key_env
    key = environment.get(named, "") if named and not is_withheld(named) else ""
    if named and not key:
        raise ConfigError(f"the environment variable {named} with the judge's key is empty", where="judge")
    key = key or environment.get("GATE_JUDGE_API_KEY") or environment.get("OPENAI_API_KEY") or ""
    base_url = juror.base_url or first.base_url
    if not key and not base_url:
        raise ConfigError(
            "the judge's key is not set",
            where="judge",
            hint="set OPENAI_API_KEY, or judge.base_url for your own endpoint",
        )
    return Member(juror.model, base_url or OPENAI_URL, key or NO_KEY, juror.price)


def is_set_up(options: JudgeOptions | None, environment: Mapping[str, str]) -> bool:
    """True if the configuration or the environment mentions a judge."""
    return options is not None or any(environment.get(name) for name in _VARIABLES)


_VARIABLES = ("GATE_JUDGE_BASE_URL", "OPENAI_BASE_URL", "GATE_JUDGE_MODEL", "GATE_JUDGE_API_KEY", "OPENAI_API_KEY")


def check(
    options: JudgeOptions | None, environment: Mapping[str, str], *, needed_by: Sequence[str], usd: float | None = None
) -> None:
    """Refuse a run whose judge could not be called, or whose bill could not be limited, before anything runs.

    ``needed_by`` names the criteria that use a judge; if it is empty, nothing is checked.

    Raises:
        ConfigError: there is neither a key nor an explicit endpoint, or a budget in dollars has a model without a known
            price.
    """
    if not needed_by:
        return
    try:
        jury = members(options or JudgeOptions(), environment)
    except ConfigError as error:
        raise ConfigError(f"{error.what} (needed by {', '.join(needed_by)})", where="judge", hint=error.hint) from None
    if usd is None:
        return
    for member in jury:
        if cost_of(member, 1000, 1000) is None:
            raise ConfigError(
                f"budget.usd cannot bound the judge {member.model!r}: its price is unknown",
                where="judge",
                hint="set judge.price: {input: …, output: …}, US dollars per million tokens; 0 for your own model",
            )


def cost_of(member: Member, input_tokens: int, output_tokens: int) -> float | None:
    """Return US dollars for these tokens, at the stated price or the list price; None if the price is unknown."""
    if member.price is not None:
        return (member.price.input * input_tokens + member.price.output * output_tokens) / 1e6
    return price(member.model, input_tokens, output_tokens)


def fingerprint(options: JudgeOptions | None, environment: Mapping[str, str]) -> str:
    """Return a fingerprint of all that makes judgements comparable: models, endpoints, sampling and the text around
    questions.

    A metric's own question is covered by its version, and a criterion's ``judge_model_options`` by its options.
    """
    options = options or JudgeOptions()
    sampling = _FORMER_SAMPLING | options.model_dump(include={"temperature", "num_samples"})
    sampling["moderation_model"] = MODERATION_MODEL
    jury = [[member.model, member.base_url] for member in members(options, environment)]
    text = json.dumps([FRAME_VERSION, jury, sampling], sort_keys=True, ensure_ascii=True)
    return "judge:" + hashlib.sha256(text.encode()).hexdigest()[:16]


def fingerprint_of_user(
    options: SimulatedUserOptions | None, judge: JudgeOptions | None, environment: Mapping[str, str]
) -> str:
    """Return a fingerprint of all that makes conversations with a simulated user comparable."""
    options = options or SimulatedUserOptions()
    played = options.as_judge(judge)
    model = members(played, environment)[0]
    sampling = _FORMER_SAMPLING | played.model_dump(include={"temperature"})
    text = json.dumps([USER_VERSION, model.model, model.base_url, sampling, options.max_turns], sort_keys=True)
    return "user:" + hashlib.sha256(text.encode()).hexdigest()[:16]
