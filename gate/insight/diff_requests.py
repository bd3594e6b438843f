"""Compares the requests to the outside world in the trials of two records, trial by trial: `gate diff-requests`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from gate.baselines.union import trials_of
from gate.config.load import load_config
from gate.errors import MeasureError
from gate.model import Side, Trial
from gate.records import Record, read_record
from gate.reports.replayed import asked_text
from gate.world.cassette import Library
from gate.world.compared import difference_of
from gate.world.options import WorldOptions, store_folder
from gate.world.volatile import Volatile

HINT = "runs record it where the configuration has `world:`, and leave the recordings in the folder world.store"


def compare_requests(before: Path, now: Path, config_path: Path | None, environment: Mapping[str, str]) -> str:
    """Return the comparison of each case's n-th trial with the other record's n-th, for a terminal.

    If a trial was answered from the other record's trial, its own report of differences is used; otherwise the
    recordings are read. Raises MeasureError if no case can be compared.
    """
    records = read_record(before), read_record(now)
    options, root = None, Path()
    if config_path is not None:
        config = load_config(config_path)
        options, root = config.file.world, config.root
    options = options or WorldOptions()
    folder = store_folder(options, root, environment)
    library, volatile = Library(folder), Volatile(options.normalise)
    ours, theirs = map(_by_case, records)
    differing: dict[str, str] = {}
    known = partly = 0
    shared = [case_id for case_id in theirs if case_id in ours]
    for case_id in shared:
        what, is_known, is_whole = "", False, True
        for one, other in zip(ours[case_id], theirs[case_id], strict=False):
            found = _difference(one, other, library, records[1].header.created, volatile)
            if found is not None:
                is_known = True
                what = what or found[0]
                is_whole = is_whole and found[1]
        known += is_known
        if what:
            differing[case_id] = what
        elif not is_whole:
            partly += 1
    if not known:
        raise MeasureError("no case has recorded requests in both records", where=str(folder), hint=HINT)
    return asked_text(known, differing, partly, len(shared) - known)


def _by_case(record: Record) -> dict[str, list[Trial]]:
    """Return the candidate's recorded trials by case, in order of their numbers."""
    found: dict[str, list[Trial]] = {}
    for trial in sorted(trials_of(record), key=lambda trial: trial.number):
        if trial.side is Side.CANDIDATE and trial.replay is not None:
            found.setdefault(trial.case_id, []).append(trial)
    return found


def _difference(before: Trial, now: Trial, library: Library, at: float, volatile: Volatile) -> tuple[str, bool] | None:
    """Return the first difference in the second trial's requests, and True if all were compared; None if unknown."""
    old, new = before.replay, now.replay
    if old is None or new is None:
        return None
    if new.source == old.recording and (new.same or new.difference):
        return new.difference, True
    one, other = library.tape(old.recording), library.tape(new.recording)
    if one is None or other is None:
        return None
    return difference_of(one, other, at, volatile)
