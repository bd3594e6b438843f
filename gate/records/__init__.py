"""The record: all measurements of a run, as lines of JSON; journal, shard, baseline and artifact alike."""

from gate.records.model import FORMAT, Footer, Header, PlannedCase, Record, Run, cases_of, difference, footer_of
from gate.records.reader import (
    RecordReader,
    away,
    fold_record,
    is_closed,
    iter_trials,
    lines_of,
    parse_record,
    read_closed_part,
    read_header,
    read_record,
)
from gate.records.shards import assign_shards, merge
from gate.records.transform import (
    bare,
    digested,
    redacted,
    strip,
    to_record,
)
from gate.records.writer import RecordWriter, record_lines, write_record
