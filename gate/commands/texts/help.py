"""Short pages for `gate help`, for users who have the package but not its repository."""

from __future__ import annotations

CASES = """
Cases: the conversations that the agent must handle (`suite:` in gate.yaml)

cases:
  - id: refund                           # how reports name it; keep it stable
    input: Please refund order A7.       # what the user says
    tools:                               # the expected calls, in order; [] for none
      - {name: look_up_order, args: {order: A7}}
      - {name: refund, args: {order: A7}}
    response: Your refund is on its way. # the expected answer; compares words
  - id: two-turns
    turns:
      - input: Hi, I am Ann.
      - input: What is my name?
        response: Your name is Ann.

`tools`, `response` and `args` are optional: the gate judges only what a case states.
Start with 10 cases: things that must work, and things that went wrong before.
The gate also reads ADK eval sets, promptfoo, DeepEval, EvalView and JSON Lines: `gate import --help`.
"""
CRITERIA = """
Criteria: what a trial must satisfy (`criteria:` in gate.yaml)

criteria:
  tool_trajectory_avg_score: 0.6         # the calls of each case; needs `tools`
  response_match_score: 0.5              # the words of the answer; needs `response`
  contains: {values: ["A7"]}             # text that every answer must contain
  forbidden_tools: {tools: [delete_account]}
  latency: {max: 30}                     # seconds
  cost: {max: 0.05}                      # dollars per trial
  final_response_match_v2: 0.8           # asks a judge; needs `judge: {model: gpt-5-mini}` and its key

A number is a threshold on the suite's mean: below it, the run fails.
Whatever the threshold, a loss against the baseline fails the run, too: fewer cases
pass, or a mean falls. Changes of cost, time or word overlap only warn.
`gate suite` lists what a run would measure; `gate schema` has every key.
"""
AGENT = """
Agent: how the gate calls it (`agent:` in gate.yaml). One of:

agent: {python: support:answer}          # def answer(message): return {"output": …, "tool_calls": […]}
agent: {command: node agent.js}          # one JSON object on stdin, one on stdout
agent:
  http:                                  # a server that you start
    url: http://127.0.0.1:8000/chat
    request: {message: "{{message}}"}
    response: {output: reply, tool_calls: "tools?"}
agent: {openai: {url: "http://127.0.0.1:8000/v1", model: my-agent}}

Other kinds: a2a, agui, adk, langgraph, mcp; `replay: true` scores recorded conversations.

  sources: [support.py, prompts/]        # the agent's files; changes to others cost no runs
  env: [OPENAI_API_KEY]                  # variables that it may read
  executable: .venv                      # its own virtual environment
  timeout: 60                            # seconds per turn

`gate doctor` calls it a few times and shows what it reports.
"""
CI = """
CI: the gate on every change

GitHub    `gate init` writes .github/workflows/gate.yml. On a pull request, the job `check` measures the
          change, compares it with its base, and comments. After a merge, `baseline` stores a baseline.
          Make "gate / check" a required check. The label `gate:accept` accepts a loss.
Others    on a change:             gate run --junit gate-results/junit.xml
          on the default branch:   gate baseline
          Check out the full history (fetch-depth: 0) and set `baseline: {store: git}`.

Until a baseline is stored, the gate runs the base commit's agent alongside the change and compares the two.

Exit codes: 0 pass or inconclusive, 1 blocked, 2 configuration, 3 could not decide,
4 baseline missing or damaged, 5 not published, 6 baseline not stored, 7 untrusted artifact.
"""
BASELINE = """
Baseline: what the agent did before the change

gate baseline                            # measures five trials per case and stores them for this commit
gate run                                 # compares the work tree with the baseline of the commit before it
gate baseline list                       # lists what is stored
gate baseline save                       # stores what the last run measured
gate baseline accept --why "…"           # makes a stored loss the new reference

baseline:
  store: git                             # the branch gate-baselines; `file` keeps them in .gate/baselines
  trials: 5                              # trials stored per case

A baseline belongs to a commit: commit first.
"""
TOPICS = {"cases": CASES, "criteria": CRITERIA, "agent": AGENT, "ci": CI, "baseline": BASELINE}
"""Topic → its page."""
