"""The work tree of the base commit, made when the schedule first asks for the base agent."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

from gate.baselines.pairing import Reference
from gate.config.base_policy import place_of
from gate.pipeline.session import LOCAL_KINDS, Session


class BaseTree:
    """The base commit's work tree, made when the schedule first asks for its agent and removed with the run."""

    def __init__(self, session: Session, reference: Reference, stack: ExitStack) -> None:
        self._session, self._stack = session, stack
        self._commit = reference.info.commit
        self._root: Path | None = None
        local = session.config.agent_kind in LOCAL_KINDS
        sourced = any(record.header.agent for record in reference.records)  # recorded people cannot be run again
        possible = bool(local and sourced and self._commit and session.git.resolve(self._commit))
        # With pointers in place of its files the base would do worse than it did, and hide what the change breaks.
        maimed = possible and session.git.has_only_pointers()
        self.possible = possible and not maimed
        self.note = "the base commit's agent is not run again: it has files in LFS, and git-lfs is not installed"
        self.note = self.note if maimed else ""

    def root(self) -> Path:
        """The configuration's folder as it was at the base commit."""
        if self._root is None:
            assert self._commit is not None
            tree = self._stack.enter_context(self._session.git.worktree(self._commit, content=True))
            self._root = tree / place_of(self._session.config.path)[1].parent
        return self._root
