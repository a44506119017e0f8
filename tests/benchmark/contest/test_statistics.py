# SPDX-License-Identifier: Apache-2.0
"""The statistics of the contest for known samples, and the wording of comparisons."""
import itertools
import math
import random

import pytest

from contest import metrics, statistics, wording
from contest.statistics import coverage, estimate, interval_rank, chance_of_difference, median, overlap, rank

NAN = math.nan


# The probability in percent that the interval [x(k), x(n + 1 - k)] of n sorted values contains the median, from textbook tables.
@pytest.mark.parametrize("count, k, percent", [
    (1, 1, 0), (2, 1, 50), (3, 1, 75), (4, 1, 87.5), (5, 1, 93.8), (6, 1, 96.9), (6, 2, 78.1), (7, 1, 98.4), (7, 2, 87.5),
    (8, 2, 93.0), (9, 2, 96.1), (9, 3, 82.0), (10, 2, 97.9), (10, 3, 89.1), (12, 3, 96.1), (14, 4, 94.3), (15, 4, 96.5),
    (17, 5, 95.1), (20, 6, 95.9), (20, 7, 88.5)])
def test_coverage_matches_textbook_tables(count, k, percent):
    assert 100 * coverage(count, k) == pytest.approx(percent, abs=.06)


@pytest.mark.parametrize("count, k", [(1, 1), (2, 1), (5, 1), (6, 1), (8, 1), (9, 2), (11, 2), (12, 3), (15, 4), (17, 5), (20, 6), (100, 40)])
def test_interval_is_the_narrowest_with_95_percent(count, k):
    assert interval_rank(count) == k


def test_estimate_of_a_known_sample():
    """The interval of nine values spans the second smallest to the second largest."""
    e = estimate([61, 88, 122, 72, 95, 105, 80, 67, 110])
    assert (e.median, e.low, e.high, e.least, e.most, e.count) == (88, 67, 110, 61, 122, 9)
    assert e.coverage == pytest.approx(.9609, abs=1e-4)


def test_estimate_of_few_rounds_is_the_range_with_its_coverage():
    e = estimate([3, 1, 2])
    assert (e.median, e.low, e.high, e.coverage) == (2, 1, 3, .75)


def test_median_of_an_even_count_is_the_mean_of_the_middle_two():
    assert median([4, 1, 3, 2]) == 2.5


def test_estimate_of_one_round():
    e = estimate([7.5])
    assert (e.median, e.low, e.high, e.coverage, e.count) == (7.5, 7.5, 7.5, 0, 1)


def test_estimate_of_equal_values():
    e = estimate([5, 5, 5, 5, 5])
    assert (e.low, e.median, e.high, e.spread) == (5, 5, 5, 0)
    assert not statistics.differ(e, e)


@pytest.mark.parametrize("values", [[], [NAN], [None], [math.inf, NAN, None]])
def test_estimate_without_values_is_none(values):
    assert estimate(values) is None


def test_estimate_ignores_none_and_nan():
    assert estimate([1, NAN, None, 3, 2, -math.inf, True]) == estimate([1, 2, 3])


def test_spread_of_a_zero_median_is_nan():
    assert math.isnan(estimate([0, 0, 1]).spread)


def test_overlap_includes_touching_intervals():
    assert overlap(estimate([1, 2, 3]), estimate([3, 4, 5]))
    assert not overlap(estimate([1, 2, 3]), estimate([3.01, 4, 5]))
    assert overlap(estimate([1, 9, 5]), estimate([4, 5, 6]))


def test_better_depends_on_the_direction():
    small, large = estimate([1, 2, 3]), estimate([4, 5, 6])
    assert statistics.better(small, large, more=False) and statistics.better(large, small, more=True)
    assert not statistics.better(small, large, more=True) and not statistics.better(large, small, more=False)


def test_two_rounds_allow_no_claim():
    assert not statistics.better(estimate([1, 1]), estimate([100, 100, 100]), more=False)


@pytest.mark.parametrize("n, m", [(1, 1), (2, 2), (3, 3), (3, 5), (4, 4), (2, 5)])
def test_chance_of_difference_matches_a_count_of_all_orders(n, m):
    apart = total = 0
    for mine in itertools.combinations(range(n + m), n):
        others = [i for i in range(n + m) if i not in mine]
        total += 1
        apart += not overlap(estimate(mine), estimate(others))
    assert chance_of_difference(n, m) == pytest.approx(apart / total)


def test_chance_of_difference_of_known_counts():
    assert chance_of_difference(3, 3) == pytest.approx(.1) and chance_of_difference(5, 5) == pytest.approx(2 / 252)


def test_interval_contains_the_median_with_its_coverage():
    rng = random.Random(4)
    held = sum(e.low <= .5 <= e.high for e in (estimate([rng.random() for _ in range(5)]) for _ in range(4000)))
    assert held / 4000 == pytest.approx(coverage(5, 1), abs=.02)


# ---- Ranking ----

def three(middle, spread=.1):
    return estimate([middle - spread, middle, middle + spread])


def test_rank_best_without_overlap_wins():
    found = rank({"a": three(2), "b": three(1), "c": three(3)}, more=False)
    assert (found.verdict, found.winners, found.order) == ("won", ("b",), ("b", "a", "c"))


def test_rank_overlap_with_the_best_is_a_tie():
    found = rank({"a": three(10, 1), "b": three(10.5, 1), "c": three(12, 1), "d": three(20, 1)}, more=False)
    assert (found.verdict, found.winners) == ("tied", ("a", "b", "c"))  # c touches a at 11


def test_rank_by_rate_prefers_more():
    assert rank({"a": three(2), "b": three(1)}, more=True).winners == ("a",)


@pytest.mark.parametrize("estimates, verdict", [
    ({}, "none"), ({"a": None}, "none"), ({"a": three(1), "b": None}, "alone"), ({"a": three(1), "b": estimate([9, 9])}, "few")])
def test_rank_without_a_winner(estimates, verdict):
    found = rank(estimates, more=False)
    assert (found.verdict, found.winners) == (verdict, ())


# ---- Words ----

def test_wording_ratio_names_its_base():
    assert wording.ratio("Monkey", 6.7, "nginx", 8.3, "cpu_us") == "Monkey 6.70 µs = 0.81 × nginx (8.30 µs)"


def test_wording_percentage_refers_to_the_base():
    """29,231 requests are 70 % more than 17,222, but 17,222 are 41 % fewer than 29,231, not 42 % (rounding) or 70 %."""
    assert wording.percent(29231, 17222, "requests per second") == "70 % more requests per second"
    assert wording.percent(17222, 29231, "requests per second") == "41 % fewer requests per second"
    assert wording.percent(7.09, 3.4, "memory") == "109 % more memory"


def test_wording_small_changes_keep_a_digit():
    assert wording.percent(101.7, 100, "memory") == "1.7 % more memory"
    assert wording.percent(100, 100, "memory") == "the same memory"


@pytest.mark.parametrize("base", [0, NAN, None])
def test_ratio_without_a_base_is_none(base):
    assert statistics.ratio(5, base) is None
    assert "×" not in wording.ratio("a", 5, "b", base, "idle_bytes")


def test_wording_comparatives_require_disjoint_intervals():
    sentence = wording.compared("Monkey", three(6.7), "nginx", three(8.3), "cpu_us")
    assert sentence == "Monkey is cheaper: Monkey 6.70 µs = 0.81 × nginx (8.30 µs), 19 % less CPU time per request than nginx"
    assert wording.compared("Monkey", three(9), "nginx", three(8.3), "cpu_us").startswith("nginx is cheaper: Monkey 9.00 µs = 1.08 ×")
    for other in (three(6.8), estimate([60., 70.])):
        sentence = wording.compared("Monkey", three(6.7), "nginx", other, "cpu_us")
        assert not any(m.word and m.word in sentence for m in metrics.METRICS.values()) and "than" not in sentence


@pytest.mark.parametrize("value, kind, text", [
    (6.7049, "us", "6.70 µs"), (9.996, "us", "10.0 µs"), (99.96, "us", "100 µs"), (166291.4, "rate", "166,291/s"), (0, "us", "0 µs"),
    (1573, "time", "1.57 ms"), (2.5e6, "time", "2.50 s"), (118, "time", "118 µs"), (512, "kb", "512 KiB"), (3532, "kb", "3.45 MiB"),
    (168, "bytes", "168 B"), (.93, "share", "93.0 %"), (NAN, "us", "–"), (None, "kb", "–"), (.0123, "number", "0.012")])
def test_digits_format_numbers_for_readers(value, kind, text):
    assert metrics.write(value, kind) == text


def test_span_writes_the_unit_once():
    assert metrics.span(5.9, 5.95, "us") == "5.90 – 5.95 µs"
    assert metrics.span(164697, 169303, "rate") == "164,697 – 169,303/s"
    assert metrics.span(900, 1200, "time") == "900 µs – 1.20 ms"
    assert metrics.span(5, 5, "us") == "5.00 µs"
