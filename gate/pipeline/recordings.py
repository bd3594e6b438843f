"""Which recordings of the outside world stored records still name, and the removal of others as a baseline is saved."""

from __future__ import annotations

from collections.abc import Mapping

from gate.baselines import Store
from gate.config.load import Config
from gate.errors import GateError
from gate.reports.formatting import count
from gate.system.clock import now
from gate.world.options import store_folder
from gate.world.pruning import owner_name, prune


def prune_recordings(config: Config, store: Store, environment: Mapping[str, str]) -> str:
    """Keeps the folder of recordings within `world.keep_megabytes`, and returns what was done in words, if anything.

    A record that cannot be read may name any of them: then nothing is removed, and that is said.
    """
    options = config.file.world
    if options is None:
        return ""
    folder, most = store_folder(options, config.root, environment), options.keep_megabytes * 1_000_000
    owner = owner_name(config.root / config.path.name)
    try:
        done = prune(folder, owner, most, lambda: _vouched(store), now().timestamp())
    except GateError as error:
        return f"no recordings were removed, since the stored records cannot be read: {error}"
    said = f"removed {count(done.files, 'recording')} ({_megabytes(done.bytes)}) that no stored record names"
    over = f"recordings take {_megabytes(done.left_bytes)}, over world.keep_megabytes, and are in use"
    return "; ".join([*([said] if done.files else []), *([over] if done.left_bytes > most else [])])


def _vouched(store: Store) -> frozenset[str]:
    """The runs whose recordings some stored record names."""
    entries = store.entries()
    store.bring(entries)
    trials = (trial for entry in entries for trial in store.read(entry).trials if trial.replay is not None)
    return frozenset(trial.replay.recording.partition(":")[0] for trial in trials if trial.replay is not None)


def _megabytes(size: int) -> str:
    return f"{size / 1e6:,.1f} MB"
