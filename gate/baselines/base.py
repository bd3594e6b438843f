"""The settings and entries of a store of baselines, and the rules on which records may be stored."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from pathlib import Path
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from gate.baselines.fingerprint import with_tools
from gate.decision.stored_epochs import rounds_of_outages
from gate.errors import BaselineError, BaselineWriteError
from gate.model import STORED, Side, Trial
from gate.model.defaults import REMOTE
from gate.model.strict import StrictModel
from gate.records import Record, strip
from gate.records.keys import key_of
from gate.security.limits import shorten
from gate.system.git import COMMIT_ID

POOL = 5
"""The most records of one agent that are pooled."""
ANCHOR_SEARCH = 10
"""The most records to read in search of an anchor that covers the suite with enough trials."""
ENOUGH_TRIALS = 5.0
"""Average trials per case that make a record a good anchor: a loss against a thin one would go unseen."""
SUFFIX = ".jsonl"
"""The suffix of a record's file."""
AGAIN = "save it again"
"""The hint for a damaged baseline that was moved aside."""


class StoreOptions(StrictModel):
    """Base of a store's options, which stand beside ``baseline.store``: unknown keys rejected."""


class StoreSettings(Struct, frozen=True):
    """The settings that a store may need; each uses those that concern it."""

    root: Path
    """The folder of the configuration, to which paths are relative."""
    environment: Mapping[str, str] = field(default_factory=dict)
    remote: str = REMOTE
    """Name, URL or path of the repository's remote."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """The options next to ``store`` in the configuration, for the store's own `BlobStore.Options`."""
    token: str = ""
    """Signs in to remotes on ``server``; on other servers, or if empty, git signs in as configured."""
    server: str = "https://github.com"
    """The only server that ever receives the token, as the remote may come from an untrusted configuration."""

    def __repr__(self) -> str:
        return f"StoreSettings(root={self.root!r}, options={self.options!r})"  # without secrets


class Entry(Struct, frozen=True):
    """One stored baseline."""

    suite_id: str
    commit: str | None
    created: float
    """Unix time."""
    where: str
    """The entry's name inside its store."""

    @property
    def key(self) -> str:
        """Return the name of the record's file, without suffix."""
        return key_of(self.commit)


class RewrittenError(BaselineError):
    """A record that differs from the one that was proven for its commit."""


class Trust(Struct, frozen=True):
    """Provenance of a suite's records."""

    unproven: tuple[str, ...] = ()
    """Keys of records that are used for comparison although nothing proves them."""
    told: tuple[tuple[str, str], ...] = ()
    """Records that were left out or are doubtful, each with the reason."""
    troubles: tuple[str, ...] = ()
    """Reasons not to believe a pass: a record was rewritten or removed, or no proof could be looked up."""
    reason: str = ""
    """The reason why the unproven records have no proof, if known."""
    required: bool = False
    """True if only proven records may be used for comparison."""


Say = Callable[[str], None]


def silent(_line: str) -> None:
    """Say nothing."""


def thickness(record: Record) -> float:
    """Return the mean number of the record's own trials per case in epochs."""
    own = sum(trial.is_of_epoch for trial in record.trials)
    return own / max(1, len(record.header.plan))


def storable(record: Record, scope: Set[str] | None = None) -> Record:
    """Return the form in which a record is kept. Raises `BaselineWriteError` if it is not fit to be a baseline.

    ``scope``: see `BlobStore.save`.

    Left out are trials of the base commit's agent, since they are not of this commit, and epochs for later changes that
    an outage spoiled.
    """
    header = record.header
    down = rounds_of_outages(record.trials)
    own = []
    for trial in record.trials:
        is_spoiled = trial.tag == STORED and trial.round in down
        if trial.side is Side.CANDIDATE and not is_spoiled:
            own.append(trial)
    problem = _unfit(record, own, scope)
    if problem:
        raise BaselineWriteError(f"not a baseline: {problem}", where=header.suite_id)
    agent = header.agent
    if not header.stripped:
        agent = with_tools(agent, own)
    return strip(replace(record, header=replace(header, agent=agent), trials=tuple(own)))


def _unfit(record: Record, own: Sequence[Trial], scope: Set[str] | None) -> str:
    """Return the first reason why a record with these trials of its own cannot be a baseline; empty if it can."""
    header, footer = record.header, record.footer
    if same_as(record):
        return f"nothing was run for it: its trials are those of {same_as(record)[:12]}, which are stored"
    if shard_of(record):
        return shard_of(record)
    if footer is None:
        return "it was not closed: continue the run with --resume"
    if footer.stopped:
        return f"its run was stopped: {footer.stopped}"
    if header.dirty:
        return "it was measured with uncommitted changes: run again once `git status` lists none"
    planned = header.contents.keys()
    if header.selected and not (scope and scope <= planned):
        return f"it holds a selection of the suite, {len(planned)} cases: run all that the configuration names"
    missing = planned - {trial.case_id for trial in own}
    if missing:
        return f"{len(missing)} of its cases were not run"
    if not own:
        return "it holds no trial"
    if outage_in(record):
        return outage_in(record)
    if header.commit is not None and not COMMIT_ID.fullmatch(header.commit):
        return f"its commit is not one: {header.commit[:60]!r}"
    return ""


def same_as(record: Record) -> str:
    """Return the commit whose stored trials the record repeats; empty if the trials are its own."""
    if record.footer is None:
        return ""
    return str(record.footer.terms.get("same_as", ""))


def shard_of(record: Record) -> str:
    """Return a sentence if the record holds a shard's part of the cases; else empty."""
    number, shards = record.header.shard
    if (number, shards) == (1, 1):
        return ""
    return f"it is shard {number} of {shards}: merge the shards first"


def outage_in(record: Record) -> str:
    """Return a sentence if most cases of a record were never answered; else empty.

    No comparison with such a record means anything.
    """
    plan, own = record.header.plan, [trial for trial in record.trials if trial.side is Side.CANDIDATE]
    answered = {trial.case_id for trial in own if trial.answered}
    silent = [case.id for case in plan if case.id not in answered]
    if 2 * len(silent) <= len(plan):
        return ""
    errors = [trial.error.message for trial in own if trial.error is not None]
    said = ""
    if errors and errors[0]:
        said = f" ({shorten(errors[0], 120)})"
    return f"it holds an outage: {len(silent)} of {len(plan)} cases were never answered{said}"


def misplaced(where: str) -> BaselineError:
    what = "the stored baseline belongs to another suite or commit than its name says"
    return BaselineError(what, where=where, hint="move it away, then save again from a run of this suite")
