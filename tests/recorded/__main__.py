"""The recorded situations, judged by this version: which results differ, and how.

python -m tests.recorded [check] [NAME ...]    what differs from the results that were agreed on; 1 if anything does
python -m tests.recorded update [NAME ...]     takes the results of this version for agreed on
python -m tests.recorded record [NAME ...]     records situations anew, by running what the catalogue says
python -m tests.recorded list                  each situation with its source and outcome
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from tests.recorded import files
from tests.recorded.agreement import changed, result_of, update
from tests.recorded.differences import outcome, told


def main(words: Sequence[str]) -> int:
    """The exit code: 1 if a result differs, 2 for words that mean nothing here."""
    command, *chosen = words or ("check",)
    if command not in ("check", "update", "record", "list"):
        command, chosen = "check", list(words)
    if command == "record":
        from tests.recorded.recorder import record  # starts projects, servers and pytest

        return record(chosen)
    known = files.names()
    if unknown := set(chosen) - set(known):
        print(f"no such situation: {', '.join(sorted(unknown))}", file=sys.stderr)
        return 2
    names = chosen or known
    if command == "list":
        for name in names:
            situation = files.load(name)
            about = situation.about
            print(" | ".join((name, about.source, outcome(result_of(situation)), about.about)))
        return 0
    if command == "update":
        rewritten = update(names)
        print(f"{len(names)} situations, {len(rewritten)} rewritten", *rewritten, sep="\n  ")
        return 0
    changes = [change for name in names if (change := changed(name)) is not None]
    print(*told(changes, len(names)), sep="\n")
    return 1 if changes else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
