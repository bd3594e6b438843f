"""Decides: pass, regressed or inconclusive, at a stated error rate. Pure: no network, clock, environment or disk.

A `Comparison` is one suite against one reference. `next_round` returns the trials to run next; `next_step` returns
those, or the verdict if there are none; `verdict_on` returns the whole result on the trials so far. The modules, in the
order of their use:

- `settings` and `comparison`: the rules, and the trials of both sides. `copies` and `coupling` find trials that are
  not independent draws; `correction` corrects the scores of a calibrated judge.
- `prepare`: completes the scores (`all_pass`, `consistency`) and leaves out what does not count (`unseen` tool calls,
  incomplete `stored_epochs`, failures in `outages`).
- `sequential`: the test of the paired cases, which `engine` runs on plain numbers.
- `findings` and `thresholds`: the facts on each criterion; `rows` and `cases`: its result, and that of each case.
- `crashes`, `problems` and `gaps`: agent failures, and what kept the suite from being measured or compared.
- `rules`: the first that applies gives the verdict; `causes` has its grounds, `verdict` assembles the result.
- `warnings`, `changes`, `course`, `tags`, `pairs`, `estimates`: facts that change no verdict.
- `power`: the drops that stored trials can show, estimated.
"""

from gate.decision.comparison import Comparison
from gate.decision.engine.state import CONCURRENT, More, Request
from gate.decision.next_step import confirmation, next_round, next_step, trials_in_outage, verdict_on
from gate.decision.outcomes import PASS_RATE
from gate.decision.rules import exit_code
from gate.decision.settings import Settings
