"""A process that matches regular expressions for `gate.metrics.patterns`, and can be ended in the middle of one.

Started as a script, with only the standard library. For each line, a JSON array ``[mode, pattern, flags, text]``, it
prints a line: ``1`` for a match, ``0`` for none. The kernel limits the processor time of each match and ends the
process beyond it, so a busy machine makes no difference.
"""

import json
import re
import signal
import sys


def main() -> None:
    limit = float(sys.argv[1])
    for line in sys.stdin.buffer:
        mode, pattern, flags, text = json.loads(line)
        compiled = re.compile(pattern, flags)
        match = compiled.search
        if mode == "whole":
            match = compiled.fullmatch
        signal.setitimer(signal.ITIMER_PROF, limit)
        found = match(text) is not None
        signal.setitimer(signal.ITIMER_PROF, 0)
        sys.stdout.buffer.write(b"1\n" if found else b"0\n")
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
