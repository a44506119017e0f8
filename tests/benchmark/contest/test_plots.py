# SPDX-License-Identifier: Apache-2.0
"""Plots of a record: their content, and how they fit a page."""
import math
import re
import xml.etree.ElementTree as ElementTree

import pytest

import sample_record
from contest import palette, plots
from contest.record import Shot
from contest.results import Results


@pytest.fixture(scope="module")
def results():
    return Results(sample_record.make())


def drawings(results):
    return {"sweep": plots.sweep(results, "small", "rate"), "bars": plots.bars(results, "gwan-100", "rate"),
            "points": plots.bars(results, "gwan-100", "cpu_us"), "time": plots.over_time(results, "small"),
            "percentiles": plots.percentiles(results, "paced"), "matrix": plots.matrix(results, "cpu_us")}


@pytest.fixture(scope="module")
def drawn(results):
    return drawings(results)


def words(svg):
    return [e.text for e in ElementTree.fromstring(svg).iter() if e.tag.endswith("}text") and e.text]


KINDS = ("sweep", "bars", "points", "time", "percentiles", "matrix")


@pytest.mark.parametrize("kind", KINDS)
def test_plot_is_well_formed_and_names_each_contestant(drawn, results, kind):
    root = ElementTree.fromstring(drawn[kind])
    assert root.tag.endswith("svg") and root.get("role") == "img" and len(root.get("aria-label")) > 10
    assert {"Monkey", "nginx", "h2o"} <= set(words(drawn[kind]))


@pytest.mark.parametrize("kind", KINDS)
def test_plot_colors_are_css_variables(drawn, kind):
    """A single drawing must suit both the light and the dark theme."""
    assert not re.findall(r"#[0-9a-fA-F]{6}\b", drawn[kind].replace('href="#', ""))
    assert set(re.findall(r"var\(--([\w-]+)\)", drawn[kind])) <= set(palette.variables())
    assert "font-family" not in drawn[kind] and "<style" not in drawn[kind]


@pytest.mark.parametrize("kind", KINDS)
def test_plot_references_nothing_external(drawn, kind):
    assert re.findall(r"https?:[^\"]*", drawn[kind]) == ["http://www.w3.org/2000/svg"]
    assert all(target.startswith("#") for target in re.findall(r'href="([^"]*)"', drawn[kind]))


def test_plot_ids_are_unique_across_plots(results):
    first, second = plots.sweep(results, "small", "rate"), plots.sweep(results, "small", "rate")
    found = [set(re.findall(r' id="([^"]+)"', svg)) for svg in (first, second)]
    assert found[0] and not found[0] & found[1]
    for svg in (first, second):
        assert set(re.findall(r"url\(#([^)]+)\)", svg)) | set(re.findall(r'href="#([^"]+)"', svg)) == set(re.findall(r' id="([^"]+)"', svg))


def test_standalone_plot_has_both_themes(drawn):
    text = plots.standalone(drawn["sweep"])
    ElementTree.fromstring(text)
    assert "prefers-color-scheme: dark" in text and "SPDX" in text


def test_looks_are_distinct(results):
    looks = palette.looks(results)
    assert set(looks) == set(results.record.contestants)
    without_color = [(look.marker, str(look.dashes), look.hollow) for name, look in looks.items() if name not in results.yardsticks]
    assert len(set(without_color)) == len(without_color)
    assert looks["monkey"].width > max(look.width for name, look in looks.items() if name != "monkey")


@pytest.mark.parametrize("dark", [0, 1])
def test_colors_have_sufficient_contrast(dark):
    for ground in ("ground", "card", "raised"):
        for name in ("ink", "soft", "accent", "win", "loss", "warn"):
            assert palette.contrast(palette.THEME[name][dark], palette.THEME[ground][dark]) >= 4.5, (name, ground)
    for pair in (*palette.LINES, palette.YARDSTICK):
        assert palette.contrast(pair[dark], palette.THEME["card"][dark]) >= 4.5, pair


def test_contrast_of_known_colors():
    assert palette.contrast("#000000", "#ffffff") == pytest.approx(21)
    assert palette.contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=.01)


def test_bars_show_winners_and_values(results):
    texts = words(plots.bars(results, "close", "cpu_us"))
    assert sum("★" in t for t in texts) == len(results.standing("close", "cpu_us").winners)
    assert any("µs" in t for t in texts)


def test_bars_client_bound_rate_has_no_star(results):
    svg = plots.bars(results, "gwan-100", "rate")
    assert "★" not in svg and "pattern" in svg


def test_plots_omit_disqualified_and_absent_contestants(results):
    assert "thttpd" not in words(plots.bars(results, "gwan-100", "cpu_us"))
    assert "G-WAN" not in words(plots.matrix(results, "cpu_us"))


@pytest.mark.parametrize("call", [
    lambda r: plots.sweep(r, "close", "rate"), lambda r: plots.sweep(r, "idle", "rate"), lambda r: plots.bars(r, "idle", "rate"),
    lambda r: plots.over_time(r, "idle"), lambda r: plots.percentiles(r, "idle"), lambda r: plots.matrix(r, "voluntary")])
def test_plot_without_data_is_none(results, call):
    assert call(results) is None


def test_plots_accept_unusual_values():
    """The samples include a single value, zeros, and gaps."""
    record = sample_record.make()
    record.shots = [Shot("small", "monkey", 1, s, {"rate": 0.0, "cpu_us": math.nan, "pss_kb": 5}, "server",
                         [[0.0, None, None], [1.0, .5, None], [2.0, None, 3.0]]) for s in (10.0, 100.0)]
    results = Results(record)
    assert plots.sweep(results, "small", "rate") and plots.sweep(results, "small", "cpu_us") is None
    assert plots.over_time(results, "small") and plots.bars(results, "small", "pss_kb")


def test_plots_escape_hostile_titles():
    record = sample_record.make()
    record.contestants["nginx"].title = "<b>$x_1$</b>"
    record.cases["small"].title = 'a" onload="alert(1)'
    svg = plots.sweep(Results(record), "small", "rate")
    assert "<b>$x_1$</b>" in words(svg)
    assert "onload" not in ElementTree.fromstring(svg).attrib


@pytest.mark.parametrize("wanted, placed", [([1, 50], [1, 50]), ([20, 20], [13, 27]), ([0, 0, 0], [0, 14, 28]), ([100, 100], [86, 100]), ([], [])])
def test_labels_are_spread_apart(wanted, placed):
    assert plots._spread(wanted, 0, 100) == pytest.approx(placed)


def test_labels_in_any_order_keep_their_gaps():
    placed = plots._spread([40, 10, 41, 42, 12, 90, 100], 0, 100)
    ordered = sorted(placed)
    assert all(b - a >= 13.99 for a, b in zip(ordered, ordered[1:])) and ordered[0] >= 0 and ordered[-1] <= 100
    assert placed[0] < placed[2] < placed[3]


def test_too_many_labels_stay_within_the_axis():
    placed = plots._spread([50] * 20, 0, 100)
    assert min(placed) >= -1e-9 and max(placed) <= 100 + 1e-9 and len(set(placed)) == 20
