# SPDX-License-Identifier: Apache-2.0
"""The cases of the contest, their duration, and the error messages for invalid case files."""
from pathlib import Path

import pytest

from contest import case, contestant
from contest.user_error import UserError
from contest.contestant import FEATURES

CASES = case.load_all()
HISTORICAL = ("gwan-100", "monkey-200k", "node-hello", "raspberry", "nbonvin-sweep")
# The limits cover the shots; the builds, the environment, the report and repeated shots take additional time.
QUICK_SECONDS, FULL_SECONDS = 420, 40 * 60

GOOD = """
title = "A title"
about = "A sentence."
client = "wrk"
command = ["wrk", "-c{c}", "-d{seconds}s", "{url}"]
path = "/100.html"
features = ["keepalive"]
metrics = ["cpu_us"]

[full]
steps = [10, 100]
rounds = 3
seconds = 1
"""


def write(folder, text):
    path = Path(folder, "cases", "mine.toml")
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    return path


def test_documented_cases_exist():
    wanted = {"small", "page", "medium", "large", "close", "connections", "many", "idle", "tls", "tls-new", "h2", "site",
              "dynamic", "proxy", "proxy-200k", "php", "node-redis", "db", "queries", "fortunes",
              "updates", "cached", "slow", "paced", *HISTORICAL}
    assert wanted <= set(CASES) == set(case.ORDER)
    assert CASES["connections"].plan("full").steps == (10, 100, 1000, 10000)
    assert CASES["idle"].plan("full").steps == (5000,) and CASES["idle"].plan("quick").steps == (1000,)


@pytest.mark.parametrize("name", HISTORICAL)
def test_historical_cases_describe_the_original_and_the_differences(name):
    history = CASES[name].historical
    assert history and len(history.then) > 50 and len(history.differs) > 50


@pytest.mark.parametrize("name", CASES)
def test_case_has_texts_and_valid_plans(name):
    entry = CASES[name]
    assert entry.title and entry.about.endswith((".", "?"))
    for plan in entry.plans.values():
        assert plan.rounds >= 3 or name == "nbonvin-sweep", "nothing can be claimed with fewer"
        assert entry.client != "wrk" or plan.seconds == int(plan.seconds), "wrk knows whole seconds only"


def test_memory_metrics_require_alone():
    for entry in CASES.values():
        assert entry.alone or not {"pss_kb", "peak_kb", "start_kb", "idle_bytes"} & set(entry.metrics), entry.name


def test_case_features_and_paths_refer_to_contestants():
    for entry in CASES.values():
        assert set(entry.features) <= set(FEATURES)
        for name in entry.path_of:
            assert name in contestant.load_all()


@pytest.mark.parametrize("mode, seconds", [("quick", QUICK_SECONDS), ("full", FULL_SECONDS)])
def test_run_of_twelve_contestants_fits_the_time_limit(mode, seconds):
    """Assumes that twelve contestants take part in each case, if that many support it."""
    def takers(entry):
        return min(12, sum(set(entry.features) <= set(each.features) and each.joins(entry.name)
                           for each in contestant.load_all().values()))

    total = sum(entry.estimate(entry.plan(mode), takers(entry)) for entry in CASES.values() if entry.plan(mode))
    assert total <= seconds


@pytest.mark.parametrize("mode", case.MODES)
def test_plans_have_enough_rounds_for_an_interval(mode):
    least = dict.fromkeys(("small", "medium", "close", "tls", "h2"), 5) if mode == "full" else {}
    for entry in CASES.values():
        assert not entry.plan(mode) or entry.plan(mode).rounds >= least.get(entry.name, 3), entry.name


def test_estimate_adds_up_shots_and_starts():
    entry = case.Case("x", "x", "x", "wrk", (), ("rate",), alone=False)
    plan = case.Plan((1, 2), 3, 2, verify=1, syscalls=True)
    start, shot = case.START_SECONDS + 1, 2 + case.SHOT_SECONDS
    assert entry.estimate(plan, 5) == pytest.approx(5 * (start + 8 * shot))
    assert case.dataclasses.replace(entry, alone=True).estimate(plan, 5) == pytest.approx(5 * (3 * start + 8 * shot))


def test_load_reads_a_valid_file(tmp_path):
    mine = case.load(write(tmp_path, GOOD))
    assert mine.name == "mine" and mine.plan("full") == case.Plan((10, 100), 3, 1) and mine.plan("quick") is None


@pytest.mark.parametrize("old, new, message", [
    ('path = "/100.html"', 'pth = "/100.html"', "unknown key 'pth'; did you mean path?"),
    ('title = "A title"', "", "key 'title' is missing"),
    ('title = "A title"', "title = 3", "title: expected a text, found 3"),
    ('client = "wrk"', 'client = "wkr"', "client: unknown 'wkr'; did you mean wrk?"),
    ('["keepalive"]', '["keepalife"]', "features: unknown 'keepalife'; did you mean keepalive?"),
    ('["keepalive"]', '"keepalive"', "features: expected a list of texts"),
    ('["cpu_us"]', '["cpu"]', "metrics: unknown 'cpu'"),
    ('["cpu_us"]', "[]", "metrics: expected at least one"),
    ('"/100.html"', '"100.html"', "path: expected a path that begins with /"),
    ('path = "/100.html"', "", "path: exactly one of 'path' and 'paths' is needed"),
    ('path = "/100.html"', 'paths = "every"', "paths: unknown 'every'"),
    ('path = "/100.html"', 'path = "/100.html"\nbackend = "pHp"', "backend: unknown 'pHp'; did you mean php?"),
    ('path = "/100.html"', 'path = "/100.html"\nscheme = "ftp"', "scheme: unknown 'ftp'"),
    ('path = "/100.html"', 'path = "/100.html"\nalone = 1', "alone: expected true or false"),
    ('path = "/100.html"', 'path = "/100.html"\naxis = "rate"', "axis: a rate needs {rate}"),
    ("{url}", "{uri}", "command: unknown 'uri'; did you mean url?"),
    ('"{url}"', '"-x"', "command: {url} is missing"),
    ("-d{seconds}s", "-x", "command: {seconds} is missing"),
    ("[10, 100]", "[]", "[full]: steps: expected a list of numbers"),
    ("[10, 100]", "[100, 10]", "[full]: steps: expected increasing numbers"),
    ("[10, 100]", "[0]", "[full]: steps: expected a whole number above 0, found 0"),
    ("rounds = 3", "rounds = 1.5", "[full]: rounds: expected a whole number above 0"),
    ("rounds = 3", "", "[full]: key 'rounds' is missing"),
    ("rounds = 3", "rounds = 3\nround = 3", "[full]: unknown key 'round'; did you mean rounds?"),
    ("seconds = 1", "seconds = -1", "[full]: seconds: expected a number above 0"),
    ("[full]", '[historical]\nname = "x"\n[full]', "[historical]: key 'then' is missing"),
    ("steps = [10, 100]", "steps = [10, 100", "mine.toml: "),
])
def test_load_reports_the_key_of_an_invalid_file(tmp_path, old, new, message):
    assert old in GOOD
    with pytest.raises(UserError) as complaint:
        case.load(write(tmp_path, GOOD.replace(old, new, 1)))
    assert str(complaint.value).startswith("cases/mine.toml: ") and message in str(complaint.value)
