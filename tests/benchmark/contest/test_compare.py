# SPDX-License-Identifier: Apache-2.0
"""Compares two records: significant regressions are reported, and noise is not."""
import copy
import json

import pytest

import sample_record
from contest import cli, compare, record as records
from contest.record import Exclusion
from contest.results import Results


@pytest.fixture(scope="module")
def base():
    made = sample_record.make()
    made.shots = [s for s in made.shots if s.case in ("small", "close", "paced", "gwan-100") and s.contestant in ("monkey", "nginx", "thttpd")]
    return made


@pytest.fixture
def other(base):
    return copy.deepcopy(base)


def scale(record, metric, by, case="close", contestant="monkey", step=None):
    for shot in record.shots:
        if (shot.case, shot.contestant) == (case, contestant) and step in (None, shot.step):
            shot.metrics[metric] *= by


def run(tmp_path, base, other, *arguments):
    paths = [str(records.save(r, tmp_path / name)) for name, r in (("before", base), ("after", other))]
    return cli.main(["compare", *paths, *arguments])


def found(base, other, case="close", contestant="monkey", metric="cpu_us", step=None):
    return compare.change(Results(base), Results(other), case, contestant, step, metric)


def test_compare_identical_runs_shows_no_change(base, other, tmp_path, capsys):
    assert run(tmp_path, base, other, "--fail-on-regression") == 0
    out = capsys.readouterr().out
    assert "0 better, 0 worse" in out and "No regression" in out and "by chance" in out


def test_compare_more_cpu_is_a_regression(base, other, tmp_path, capsys):
    scale(other, "cpu_us", 1.5)
    assert run(tmp_path, base, other) == 0
    assert run(tmp_path, base, other, "--fail-on-regression") == 1
    out = capsys.readouterr().out
    assert "Regression: close: Monkey" in out and "= 1.50 × before" in out and "50 % more CPU time per request than before" in out


def test_compare_less_cpu_is_no_regression(base, other, tmp_path):
    scale(other, "cpu_us", .5)
    assert run(tmp_path, base, other, "--fail-on-regression") == 0
    assert found(base, other).verdict == "better"


def test_compare_overlapping_intervals_are_no_change(base, other):
    scale(other, "cpu_us", 1.005)
    change = found(base, other)
    assert (change.verdict, change.why) == ("same", "the intervals overlap") and change.ratio == pytest.approx(1.005)


def test_compare_only_our_cpu_is_a_regression(base, other, tmp_path):
    scale(other, "cpu_us", 1.5, contestant="nginx")
    scale(other, "rate", .5)
    assert run(tmp_path, base, other, "--fail-on-regression") == 0
    assert found(base, other, metric="rate").verdict == "worse"
    assert found(base, other, contestant="nginx").verdict == "worse"


def test_compare_tolerance_limits_regressions(base, other, tmp_path):
    scale(other, "cpu_us", 1.5)
    assert run(tmp_path, base, other, "--fail-on-regression", "--tolerance", "60") == 0
    assert run(tmp_path, base, other, "--fail-on-regression", "--tolerance", "40") == 1


def test_compare_finds_regressions_in_hidden_metrics(base, other, tmp_path):
    scale(other, "cpu_us", 1.5)
    assert run(tmp_path, base, other, "--fail-on-regression", "--metric", "rate") == 1
    assert run(tmp_path, base, other, "--fail-on-regression", "--case", "paced") == 0


def test_compare_shows_changed_steps_of_a_sweep(base, other, tmp_path, capsys):
    scale(other, "cpu_us", 1.5, "small", step=1000.)
    run(tmp_path, base, other)
    assert "small @1,000" in capsys.readouterr().out
    assert found(base, other, "small", step=1000.).verdict == "worse"
    assert found(base, other, "small", step=10.).verdict == "same"


def test_compare_uses_only_common_steps(base, other):
    other.shots = [s for s in other.shots if s.step != 1000.]
    change = found(base, other, "small")
    assert change.ratio == pytest.approx(1) and change.verdict == "same"


@pytest.mark.parametrize("metric, case, contestant, why", [
    ("rate", "gwan-100", "monkey", "the client was the bottleneck"), ("rate", "paced", "monkey", "set by the client"),
    ("cpu_us", "gwan-100", "thttpd", "disqualified"), ("p99_us", "close", "monkey", "in a closed loop")])
def test_compare_invalid_comparison_is_unclear(base, other, metric, case, contestant, why):
    scale(other, metric, 3, case, contestant)
    change = found(base, other, case, contestant, metric)
    assert change.verdict == "unclear" and why in change.why


def test_compare_too_few_rounds_are_unclear(base, other):
    scale(other, "cpu_us", 3)
    other.shots = [s for s in other.shots if s.round <= 2]
    assert found(base, other).why == "too few rounds"


def test_compare_notes_changes_of_unchanged_programs(base, other, tmp_path, capsys):
    for name in ("monkey", "nginx"):
        scale(other, "cpu_us", 1.4, contestant=name)
    run(tmp_path, base, other)
    assert "programs that did not change have other CPU times as well: nginx in close (1.40 ×)" in capsys.readouterr().out
    other.contestants["nginx"].version = "2.0"
    run(tmp_path, base, other)
    out = capsys.readouterr().out
    assert "did not change" not in out and "nginx: version 1.22.1 became 2.0" in out


@pytest.mark.parametrize("key, value", [("cpu", "Other CPU"), ("cores", 64), ("server_cores", [3]), ("cpu_counted_by", "processes")])
def test_compare_rejects_different_machines(base, other, tmp_path, capsys, key, value):
    other.environment[key] = value
    assert run(tmp_path, base, other) == 2
    assert "different machines" in capsys.readouterr().err
    assert run(tmp_path, base, other, "--anyway") == 0
    assert f"warning: {key} differs" in capsys.readouterr().err


def test_compare_warns_of_small_differences(base, other, tmp_path, capsys):
    other.environment["kernel"], other.mode = "7.0", "quick"
    assert run(tmp_path, base, other) == 0
    err = capsys.readouterr().err
    assert "kernel differs: 6.18.5 before, 7.0 after" in err and "a full run is compared with a quick one" in err


@pytest.mark.parametrize("arguments, message", [
    (["--case", "smal"], "did you mean small?"), (["--metric", "cpu"], "no metric 'cpu'"),
    (["--fail-on-regression", "--ours", "x"], "not in both records")])
def test_compare_rejects_wrong_options(base, other, tmp_path, capsys, arguments, message):
    assert run(tmp_path, base, other, *arguments) == 2
    assert message in capsys.readouterr().err


def test_compare_rejects_records_without_common_cases(base, other, tmp_path, capsys):
    other.cases = {"else": other.cases["small"]}
    other.shots, other.disqualified, other.absent_in = [], [], []
    assert run(tmp_path, base, other) == 2
    assert "no case in common" in capsys.readouterr().err


def test_compare_reports_what_only_one_record_has(base, other, tmp_path, capsys):
    del other.cases["idle"]
    other.absent_in = [e for e in other.absent_in if e.case != "idle"]
    other.contestants["nginx"].configuration = {"a": "b"}
    other.cases["small"].command = ["wrk", "-t9"]
    run(tmp_path, base, other)
    out = capsys.readouterr().out
    assert "case idle is only in the first record" in out and "nginx: its configuration changed" in out
    assert "case small: the command of its client changed" in out


def test_compare_prints_json(base, other, tmp_path, capsys):
    scale(other, "cpu_us", 1.5)
    assert run(tmp_path, base, other, "--json") == 0
    got = json.loads(capsys.readouterr().out)
    assert [(c["case"], c["verdict"]) for c in got["regressions"]] == [("close", "worse")]
    assert {"before", "after", "ratio", "metric", "step"} <= set(got["changes"][0])


def test_compare_reports_a_missing_record(tmp_path, capsys):
    assert cli.main(["compare", str(tmp_path), str(tmp_path)]) == 1
    assert "no record.json in this folder" in capsys.readouterr().err


def test_compare_unmeasured_and_disturbed_shots_are_unclear(base, other):
    scale(other, "rate", 3)
    for shot in other.shots:
        shot.noisy = (shot.case, shot.contestant) == ("close", "monkey")
    assert found(base, other, metric="rate").why == "other programs disturbed after"
    other.unmeasured = [Exclusion("close", "monkey", "wr ended")]
    assert found(base, other).why == "not measured after"


def test_compare_different_cpu_sources_are_unclear(base, other):
    scale(other, "cpu_us", 3)
    for shot in other.shots:
        shot.counted_by = "processes"
    assert found(base, other).why == "CPU time was measured in another way"


@pytest.mark.parametrize("value", ["much", "-1", "nan", "inf"])
def test_compare_rejects_an_invalid_tolerance(base, other, tmp_path, capsys, value):
    with pytest.raises(SystemExit):
        run(tmp_path, base, other, f"--tolerance={value}")
    assert "is not a percentage" in capsys.readouterr().err
