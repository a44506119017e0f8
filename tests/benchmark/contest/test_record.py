# SPDX-License-Identifier: Apache-2.0
"""The record of a run: saving, loading, and error messages that name the position in an invalid record."""
import copy
import gzip
import json

import pytest

from contest import record
from contest.user_error import UserError


def sample():
    made = record.Record("quick", "2026-11-21T09:00:00+00:00", {"cores": 2})
    made.contestants = {"a": record.Contestant("A", "present", features=["keepalive"]),
                        "b": record.Contestant("B", "absent", "not installed")}
    made.cases = {"small": record.Case("Small", "About.", "wrk", "connections", [100], 3, 1, "a", ["cpu_us"])}
    made.shots = [record.Shot("small", "a", n, 100, {"cpu_us": 5 + n, "p999_us": None}, "server") for n in (1, 2, 3)]
    made.shots[0].samples = [[0.1, 0.5, 1000], [0.2, 0.6, None]]
    made.disqualified = [record.Exclusion("small", "b", "wrong")]
    return made


def test_record_is_loaded_as_saved(tmp_path):
    path = record.save(sample(), tmp_path / "run")
    assert path.name == "record.json"
    for path_or_folder in (path, tmp_path / "run"):
        assert record.load(path_or_folder) == sample()
    assert record.latest(tmp_path) == tmp_path / "run"


def test_record_has_one_line_per_shot(tmp_path):
    text = record.save(sample(), tmp_path).read_text()
    assert sum('"round"' in line for line in text.splitlines()) == 3
    assert json.loads(text)["format"] == 1


def test_large_record_is_compressed_and_replaces_the_plain_file(tmp_path, monkeypatch):
    record.save(sample(), tmp_path)
    monkeypatch.setattr(record, "GZIP_ABOVE", 10)
    path = record.save(sample(), tmp_path)
    assert path.name == "record.json.gz" and [p.name for p in tmp_path.iterdir()] == ["record.json.gz"]
    assert json.loads(gzip.decompress(path.read_bytes())) and record.load(tmp_path) == sample()


def test_record_values_are_in_round_order():
    made = sample()
    assert made.values("small", "a", "cpu_us") == [6, 7, 8] and made.values("small", "a", "cpu_us", 10) == []
    assert made.values("small", "a", "p999_us") == [] and made.is_disqualified("small", "b")


def test_load_ignores_unknown_fields():
    value = record.to_json(sample()) | {"news": 1}
    assert record.from_json(value) == sample()


@pytest.mark.parametrize("location, value, message", [
    (("format",), 2, "record: the format is 2, but this program reads 1"),
    (("mode",), "slow", "record.mode: expected quick, full or custom"),
    (("started",), 5, "record.started: expected a text, found 5"),
    (("environment",), [], "record.environment: expected"),
    (("interrupted",), 1, "record.interrupted: expected true or false"),
    (("contestants", "a", "state"), "here", "record.contestants.a.state: expected present or absent or failed"),
    (("cases", "small", "steps"), ["x"], "record.cases.small.steps[0]: expected a number"),
    (("cases", "small", "metrics"), ["cpu"], "there is no metric 'cpu'"),
    (("cases", "small", "rounds"), True, "record.cases.small.rounds: expected a whole number, found true"),
    (("shots",), {}, "record.shots: expected a list"),
    (("shots", 1, "metrics", "cpu_us"), "x", 'record.shots[1].metrics.cpu_us: expected a number, found "x"'),
    (("shots", 1, "metrics", "speed"), 1, "record.shots[1].metrics: there is no metric 'speed'"),
    (("shots", 1, "case"), "large", "record.shots[1]: there is no case 'large'"),
    (("shots", 1, "contestant"), "c", "record.shots[1]: there is no contestant 'c'"),
    (("shots", 1, "bottleneck"), "disk", "record.shots[1].bottleneck: expected client"),
    (("disqualified", 0, "contestant"), "c", "record.disqualified[0]: there is no contestant 'c'"),
])
def test_load_reports_the_location_of_an_error(location, value, message):
    data = copy.deepcopy(record.to_json(sample()))
    at = data
    for key in location[:-1]:
        at = at[key]
    at[location[-1]] = value
    with pytest.raises(UserError) as complaint:
        record.from_json(data)
    assert message in str(complaint.value)


def test_load_reports_a_missing_field():
    data = record.to_json(sample())
    del data["shots"][2]["step"]
    with pytest.raises(UserError, match=r"record\.shots\[2\]: step is missing"):
        record.from_json(data)


@pytest.mark.parametrize("content, message", [(b"{", "not a record"), (b"\x1f\x8bxx", "not a record"), (b"[]", "expected an object"),
                                           (b"\xff\xfe", "not a record")])
def test_load_names_a_file_that_is_no_record(tmp_path, content, message):
    path = tmp_path / "record.json"
    path.write_bytes(content)
    with pytest.raises(UserError) as complaint:
        record.load(tmp_path)
    assert str(path) in str(complaint.value) and message in str(complaint.value)


def test_load_without_a_record_suggests_a_run(tmp_path):
    with pytest.raises(UserError, match="contest run"):
        record.load(tmp_path)
    with pytest.raises(UserError, match="no such file"):
        record.load(tmp_path / "x")


def test_save_rejects_an_invalid_record(tmp_path):
    made = sample()
    made.shots[0].case = "large"
    with pytest.raises(UserError):
        record.save(made, tmp_path)
    assert not list(tmp_path.iterdir())
