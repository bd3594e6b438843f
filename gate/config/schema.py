"""The keys of gate.yaml as pydantic models. Each plugin declares its own options."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, field_validator

from gate.baselines import StoreOptions, store_models
from gate.baselines.file import FileOptions
from gate.baselines.ledger import MOST_DAYS
from gate.config.production import MonitorSection
from gate.errors import kind_of
from gate.formats.durations import Seconds
from gate.judges.options import JudgeOptions, SimulatedUserOptions
from gate.model import Scale
from gate.model.defaults import ALPHA, CONFIRM_AFTER, MAX_ERROR_RATE, ON_INCONCLUSIVE, POWER_DROP, POWER_FIND, REMOTE
from gate.model.strict import FileBelow, StrictModel, one_or_more
from gate.model.strictness import DOWN, FREE, UP, Tightens, steps
from gate.scoring.options import ExecutorOptions
from gate.security.files import OWN_FOLDER
from gate.suites import Selection
from gate.suites.messages import FieldPaths
from gate.world.options import WorldOptions

PASS_RATE_MARGIN = Scale.BINARY.default_margin
"""The loss of pass rate that still counts as unchanged, if the configuration gives none."""


def unstated() -> Any:
    """Return the default of a section: all of its defaults, validated with the file, so that no validator is built for
    it."""
    return Field(default_factory=dict, validate_default=True)


NO_STORE = "none"
"""Value of ``baseline.store``: baselines are neither stored nor looked up."""


class PowerSection(StrictModel):
    """`power: {drop: 0.2, find: 0.8}`: the stored trials grow until so large a drop is found in so many changes."""

    drop: float = Field(default=POWER_DROP, gt=0, le=1)
    """Drop in the pass rate to find, 0 to 1."""
    find: float = Field(default=POWER_FIND, ge=0.5, le=0.99)
    """Share of such changes that the gate should find."""


class BaselineSection(StrictModel):
    """The store of baselines, and what to do without one. The options of the store are among these keys."""

    model_config = ConfigDict(extra="allow")

    store: str = "file"
    """Store of the records: a folder (``file``), a branch of the repository (``git``), ``none``, or a plugin's. In
    CI the default is ``git``, unless the folder is in the clone."""
    remote: str = REMOTE
    """Remote that holds the default branch and the branch of the git store."""
    on_missing: Annotated[Literal["warn", "fail"], steps("warn", "fail")] = "warn"
    """Without a baseline: judge only by thresholds and say so (``warn``), or end with exit code 4 (``fail``)."""
    rerun: Literal["auto", "never", "match"] = "auto"
    """Run the base commit's agent, too: if possible (``auto``), always (``match``; exit code 2 if impossible) or
    ``never``. If nothing is stored, its trials are the baseline."""
    against: Annotated[str | None, FREE] = None
    """A commit, branch or tag to compare with. Default: the merge base."""
    trials: Literal["auto", "off"] | Annotated[int, Field(ge=1, le=100)] = "auto"
    """Trials per case that the default branch stores; it runs missing ones, and they count in its verdict. ``auto``: 5,
    and up to 10 more in each further run of the same agent, up to 25, until ``baseline.power`` is reached and few
    unchanged agents are inconclusive; none beyond an exact number of ``trials``. ``off``: none."""
    power: PowerSection = unstated()
    """The power that the stored trials should reach, with 5 to 25 per case; under ``trials: auto``."""

    accept_days: Annotated[int, DOWN] = Field(default=90, ge=1, le=MOST_DAYS)
    """Number of days for which an accepted regression counts; ``gate baseline accept --until`` shortens it.
    Afterwards, the acceptance is void."""

    require_provenance: Annotated[Literal["off", "warn", "block"], steps("off", "warn", "block")] = "warn"
    """Proof that a baseline needs. ``warn``: compare with an unproven one only until a proven one exists, with a
    note. ``block``: never; exit code 4. The default is ``off`` if nothing can be proven: outside GitHub, in other
    stores than ``git``, and without ``key``."""
    key: str = Field(default="", pattern=r"^(-----BEGIN PUBLIC KEY-----[A-Za-z0-9+/=\s]+-----END PUBLIC KEY-----\s*)?$")
    """Public ed25519 key as PEM text; baselines signed with its private key are proven."""
    workflows: list[str] = []
    """Workflow files whose runs prove baselines, such as ``.github/workflows/gate.yml``. Default: the one that
    runs, and those of the default branch that name the gate."""

    @field_validator("trials", "require_provenance", mode="before")
    @classmethod
    def _off(cls, value: Any) -> Any:
        return "off" if value in (False, 0) else value  # YAML reads a bare off as false

    @property
    def options(self) -> Mapping[str, Any]:
        """The options of stores, as written."""
        return self.model_extra or {}

    @property
    def folder(self) -> str:
        """The file store's folder: files in it are no part of the agent."""
        return FileOptions.model_validate({"path": self.options["path"]} if "path" in self.options else {}).path

    def options_of(self, model: type[BaseModel]) -> dict[str, Any]:
        """Return the options that a store's model has, as written."""
        return {name: value for name, value in self.options.items() if name in model.model_fields}

    def models(self) -> list[type[StoreOptions]]:
        """Return the models that the store's options may belong to. Raises the same as `store_models`."""
        return store_models(self.store, self.options)


class GateSection(StrictModel):
    """The decision: error rate, margins, and what an inconclusive answer does."""

    alpha: Annotated[float, UP] = Field(default=ALPHA, gt=0, lt=0.5)
    """Largest probability that a job calls an unchanged agent regressed, over all its suites; at most 0.01 for a
    release."""
    family: Annotated[int, DOWN] = Field(default=1, ge=1, le=1000)
    """Number of jobs that measure parts of one decision and share ``alpha``."""
    on_inconclusive: Annotated[Literal["warn", "block"], steps("warn", "block")] = ON_INCONCLUSIVE
    """The effect of an inconclusive verdict: exit 0 with a loud warning, or exit 1."""
    max_error_rate: Annotated[float, DOWN] = Field(default=MAX_ERROR_RATE, ge=0, le=1)
    """Share of trials that may end in an infrastructure error; above it, the verdict is ``error``."""
    confirm_after: Annotated[Seconds, Field(le=3600)] = CONFIRM_AFTER
    """Pause before the gate confirms agent failures, in seconds or as ``500ms``, ``2m``."""
    pass_rate_margin: Annotated[float | None, Tightens("down", unset=PASS_RATE_MARGIN)] = Field(
        default=None, ge=0, le=1
    )
    """Drop in the pass rate that still counts as unchanged, 0 to 1. Default: the larger of 0.10 and two cases'
    worth."""


class BudgetSection(StrictModel):
    """Upper bounds on what a run may spend; checked before spending."""

    usd: float | None = Field(default=None, gt=0)
    """US dollars for agent and judge together, as reported or by list price."""
    tokens: int | None = Field(default=None, gt=0)
    """Tokens of the agent, input and output."""
    minutes: float | None = Field(default=None, gt=0)
    """Minutes that the run may take."""
    runs: int | None = Field(default=None, gt=0)
    """Agent runs, both sides together."""
    judge_calls: int | None = Field(default=None, gt=0)
    """Judge calls, including retries."""


class TrialsSection(StrictModel):
    """`trials: {max: N}`: screen once, rerun what is suspicious, at most N epochs."""

    max: int = Field(ge=1, le=100)
    """The largest number of epochs."""


def _check_trials(trials: Mapping[str, Any]) -> None:
    """Check the trials before the union does: its error would be about the first branch, not the intended one."""
    for key in trials:
        if key not in TrialsSection.model_fields:
            raise ValueError(f"unknown key {key!r} (known: max)")
    try:
        TrialsSection.model_validate(dict(trials))
    except ValidationError:
        raise ValueError("max must be a whole number from 1 to 100") from None


class QuarantineEntry(StrictModel):
    """A case that is known to be broken: shown, but it does not block until the date has passed."""

    case: str
    """The case's id."""
    owner: str = Field(min_length=1)
    """The person who will fix it."""
    reason: str = Field(min_length=1)
    """The defect."""
    expires: date = Field(examples=["2026-12-31"])
    """The last day on which the case does not block, such as ``2026-12-31``."""


class File(StrictModel):
    """The configuration file as written. What does not state otherwise is a rule, and a change cannot loosen it."""

    name: Annotated[str | None, FREE] = None
    """The suite's id in baselines and comments; unique in a repository. Default: the paths under ``suite``."""
    suite: Annotated[list[str], BeforeValidator(one_or_more), FREE] = Field(examples=["evals/"])
    """Files or folders with cases, in any format; one path or a list."""
    format: Annotated[str | None, FREE] = None
    """The format of all suite files, also a plugin's. Default: the first built-in one that recognises a file."""
    fields: Annotated[FieldPaths | None, FREE] = None
    """Paths to id, trial, messages and expected calls in rows of recorded messages."""
    agent: Annotated[dict[str, Any], FREE] = Field(min_length=1, examples=[{"python": "agent:answer"}])
    """The agent under test: one kind and its options."""
    setup: Annotated[str | None, FREE] = None
    """Commands that install the agent; the action runs them first."""
    criteria: dict[str, Any] | None = None
    """Metrics with thresholds and options, or the path of a file with them. Default: the suite's own, else ADK's."""
    tool_categories: dict[str, list[str]] = {}
    """Category → names of tools, for expected and forbidden tools."""
    trials: Literal["auto"] | int | TrialsSection = "auto"
    """``auto``: one epoch, reruns of suspicious cases, at most three epochs. ``{max: N}``: the same, at most N epochs.
    ``N``: exactly N epochs and one look."""
    baseline: BaselineSection = unstated()
    """The baseline store, and the baseline to compare with."""
    gate: GateSection = unstated()
    """The decision: error rate, margins, and what an inconclusive verdict does."""
    judge: JudgeOptions | None = None
    """The model that scores judged metrics."""
    simulated_user: SimulatedUserOptions | None = None
    """The model that plays the user of a scenario. Default: the judge's."""
    budget: BudgetSection = unstated()
    """Upper bounds of a run, checked before each trial."""
    select: Selection | None = None
    """The cases to run. Default: all."""
    quarantine: list[QuarantineEntry] = []
    """Cases known to be broken: shown, but not blocking until a date."""
    executor: Annotated[ExecutorOptions, FREE] = unstated()
    """Processes that score recorded trials."""
    reports: dict[str, FileBelow] = {}
    """Reports to write after every run: name → file, below the configuration file's folder."""
    publish: dict[str, dict[str, Any]] = {}
    """Hosts to publish the result on: a name, a list, or names with the host's options."""
    monitor: Annotated[MonitorSection, FREE] = unstated()
    """Production monitoring by the same criteria: traces, sample, limits, alerts."""
    world: Annotated[WorldOptions | None, FREE] = None
    """Recording and replaying the agent's models and tools."""
    output: Annotated[str, FREE] = OWN_FOLDER
    """Folder for records and reports, relative to the configuration file."""

    @field_validator("publish", mode="before")
    @classmethod
    def _names_or_options(cls, value: Any) -> Any:
        names = one_or_more(value)
        if not isinstance(names, list | Mapping):
            return value
        named = {}
        for name in names:
            if not isinstance(name, str):
                raise ValueError(f"expected names of hosts, found {kind_of(name)} (as in publish: {{github: {{}}}})")
            options = value[name] if isinstance(value, Mapping) else None
            named[name] = {} if options is None else options
        return named

    @field_validator("suite")
    @classmethod
    def _not_empty(cls, value: list[str]) -> list[str]:
        if not value:
            raise ValueError("name at least one file or folder")
        return value

    @field_validator("trials", mode="before")
    @classmethod
    def _auto_or_a_number(cls, value: Any) -> Any:
        if isinstance(value, Mapping):
            _check_trials(value)
        elif isinstance(value, int) or str(value).isdecimal():
            if isinstance(value, bool) or not 1 <= int(value) <= 1000:
                raise ValueError("a number of trials is between 1 and 1000")
        elif value != "auto" and not isinstance(value, TrialsSection):
            raise ValueError(f"{value!r} is neither 'auto' nor a whole number from 1")
        return value
