"""The record: everything that a run measured, as lines of JSON; journal, shard, baseline and artifact alike."""

from gate.records.model import FORMAT, Footer, Header, PlannedCase, Record, Run, cases_of, count, difference
from gate.records.reader import (
    RecordReader,
    away,
    fold_record,
    is_closed,
    iter_trials,
    lines_of,
    parse_record,
    read_header,
    read_record,
)
from gate.records.transform import (
    Digest,
    assign_shards,
    digest_of,
    digested,
    from_digest,
    merge,
    redacted,
    strip,
    to_record,
)
from gate.records.writer import RecordWriter, record_lines, write_record

__all__ = [
    "FORMAT",
    "Digest",
    "Footer",
    "Header",
    "PlannedCase",
    "Record",
    "RecordReader",
    "RecordWriter",
    "Run",
    "assign_shards",
    "away",
    "cases_of",
    "count",
    "difference",
    "digest_of",
    "digested",
    "fold_record",
    "from_digest",
    "is_closed",
    "iter_trials",
    "lines_of",
    "merge",
    "parse_record",
    "read_header",
    "read_record",
    "record_lines",
    "redacted",
    "strip",
    "to_record",
    "write_record",
]
