"""The one place here that knows how the product comes from a record to a result, and to its reports.

A version that judges in another way changes `judged`, and nothing else in this folder.
"""

from __future__ import annotations

import json
from typing import Any

import msgspec
from msgspec.structs import replace

from gate.baselines.reference import Reference
from gate.model import BaselineInfo, Result
from gate.pipeline.references import References
from gate.pipeline.terms import own_terms
from gate.pipeline.verdict import accepted, judge_record, load_to_judge, result_of
from gate.records import parse_record
from gate.reports import console, load_report
from tests.recorded.files import Situation

COMMAND = "gate report RECORD"
WIDTH = 100


def judged(situation: Situation) -> Result:
    """The result of a recorded situation, by the rules that its record was closed with."""
    suites, settings = [], None
    for suite in situation.suites:
        record = load_to_judge(parse_record(situation.read(suite.record)))
        terms = replace(own_terms(record), command=COMMAND)
        found = References(
            tuple(
                Reference(
                    msgspec.convert(reference.info, BaselineInfo),
                    tuple(parse_record(situation.read(name)) for name in reference.records),
                    reference.name,
                    reference.of_change,
                )
                for reference in suite.references
            ),
            accepted=suite.accepted,
            expired=suite.expired,
        )
        settings = settings or terms.settings
        suites.append(accepted(judge_record(record, found.all, terms), found))
    assert settings is not None, f"{situation.name} has no suite"
    return result_of(suites, settings, command=COMMAND)


def as_json(result: Result) -> Any:
    """The values of the JSON report."""
    return json.loads(load_report("json")(result))


def as_text(result: Result) -> str:
    """The console's report, without colour."""
    return console.render(result, width=WIDTH)


def as_comment(result: Result) -> str:
    """The comment on a change, in Markdown."""
    return load_report("markdown")(result).replace(f"Agent Gate {result.version}", "Agent Gate VERSION")
