# SPDX-License-Identifier: Apache-2.0
"""Judgements on records: what is ranked and what never is."""
import math

import pytest

from contest import wording
from contest.record import Case, Contestant, Exclusion, Record, Shot
from contest.results import Results


def record(shots, steps=(100,), metrics=("rate", "cpu_us"), **more):
    """shots: contestant -> step -> metric -> values by round; a value may be a pair with the bottleneck."""
    names = list(shots)
    made = Record("custom", "2026-11-21T09:00:00+00:00", {})
    made.contestants = {n: Contestant(n.capitalize(), "present", yardstick=n == "floor") for n in names}
    made.cases["case"] = Case("A case", "About it.", "wrk", more.pop("axis", "connections"), list(map(float, steps)), 3, 1., "monkey",
                              list(metrics), **more)
    for name, by_step in shots.items():
        for step, by_metric in by_step.items():
            rounds = max(map(len, by_metric.values()))
            for i in range(rounds):
                values = {m: v[i] for m, v in by_metric.items() if i < len(v) and m != "bottleneck"}
                bottleneck = by_metric.get("bottleneck", ["server"] * rounds)[i]
                made.shots.append(Shot("case", name, i + 1, float(step), values, bottleneck))
    return made


def simple(**values):
    return {n: {100: {"rate": v}} for n, v in values.items()}


def standing(made, metric="rate", step=None):
    return Results(made).standing("case", metric, step)


def test_the_fastest_wins():
    found = standing(record(simple(monkey=[10, 11, 12], nginx=[20, 21, 22])))
    assert (found.verdict, found.winners) == ("won", ("nginx",))
    assert found.place("nginx") == "first" and found.place("monkey") == "behind" and found.place("apache") is None


def test_a_yardstick_is_shown_but_never_ranked():
    found = standing(record(simple(monkey=[10, 11, 12], nginx=[5, 6, 7], floor=[90, 91, 92])))
    assert found.winners == ("monkey",) and "floor" not in found.order and "floor" in found.estimates


def test_the_disqualified_do_not_rank():
    made = record(simple(monkey=[10, 11, 12], nginx=[5, 6, 7], apache=[90, 91, 92]))
    made.disqualified.append(Exclusion("case", "apache", "wrong answer"))
    results = Results(made)
    assert results.standing("case", "rate").winners == ("monkey",)
    assert "apache" not in results.standing("case", "rate").estimates
    assert results.disqualified("case") == {"apache": "wrong answer"} and "apache" not in results.absent_in("case")


def test_absent_ones_are_told_with_their_reason():
    made = record(simple(monkey=[1, 2, 3]))
    made.contestants["gwan"] = Contestant("G-WAN", "absent", why="no program")
    made.contestants["node"] = Contestant("Node.js", "present")
    made.contestants["thttpd"] = Contestant("thttpd", "present")
    made.absent_in.append(Exclusion("case", "thttpd", "does not speak TLS"))
    assert Results(made).absent_in("case") == {"gwan": "absent: no program", "thttpd": "does not speak TLS",
                                              "node": "no shot of it in this record"}


def test_a_rate_that_the_client_limits_wins_nothing():
    shots = {"monkey": {100: {"rate": [99, 100, 101], "cpu_us": [5, 5.1, 5.2], "bottleneck": ["client", "client", "server"]}},
             "nginx": {100: {"rate": [50, 51, 52], "cpu_us": [8, 8.1, 8.2]}}}
    results = Results(record(shots))
    rate, cpu = results.standing("case", "rate"), results.standing("case", "cpu_us")
    assert (rate.verdict, rate.winners, rate.bound, rate.place("monkey")) == ("client", (), ("monkey",), None)
    assert cpu.winners == ("monkey",)
    said = wording.sentence(rate, results)
    assert "bottleneck for Monkey" in said and "CPU, memory and latency can be compared" in said and "fastest" not in said


def test_steps_that_the_client_limits_do_not_count():
    def shots(slow, fast, bound):
        return {10: {"rate": slow, "bottleneck": ["client" if bound else "server"] * 3}, 100: {"rate": fast}}
    results = Results(record({"monkey": shots([900, 901, 902], [10, 11, 12], True), "nginx": shots([5, 6, 7], [20, 21, 22], False)}, (10, 100)))
    found = results.standing("case", "rate")
    assert found.steps == (100.,) and found.winners == ("nginx",)
    assert "at 10 connections; these steps do not count" in wording.sentence(found, results)


def test_a_sweep_is_judged_by_the_geometric_mean_of_each_round():
    results = Results(record({"monkey": {10: {"rate": [1, 2, 4]}, 100: {"rate": [100, 200, 400]}}}, (10, 100)))
    assert results.values("case", "monkey", "rate") == pytest.approx([10, 20, 40])
    assert results.values("case", "monkey", "rate", 10.) == [1, 2, 4]


def test_a_zero_makes_all_means_arithmetic():
    results = Results(record({"monkey": {10: {"idle_bytes": [0, 0, 0]}, 20: {"idle_bytes": [4, 4, 4]}},
                              "nginx": {10: {"idle_bytes": [2, 2, 2]}, 20: {"idle_bytes": [8, 8, 8]}}}, (10, 20)))
    assert results.values("case", "monkey", "idle_bytes") == [2, 2, 2] and results.values("case", "nginx", "idle_bytes") == [5, 5, 5]


def test_who_lacks_a_step_is_not_ranked_as_a_whole():
    results = Results(record({"monkey": {10: {"rate": [1, 2, 3]}, 20: {"rate": [1, 2, 3]}}, "nginx": {10: {"rate": [9, 9, 9]}}}, (10, 20)))
    found = results.standing("case", "rate")
    assert found.partial == ("nginx",) and found.verdict == "alone"
    assert "some steps are missing: Nginx" in wording.sentence(found, results)
    assert results.standing("case", "rate", 10.).winners == ("nginx",)


def test_errors_are_no_merit():
    shots = {"monkey": {100: {"rate": [10, 11, 12], "errors": [0, 0, 0]}}, "nginx": {100: {"rate": [90, 91, 92], "errors": [5, 0, 0]}},
             "h2o": {100: {"rate": [1, 2, 3]}}}
    results = Results(record(shots))
    found = results.standing("case", "rate")
    assert found.faulty == ("nginx",) and found.winners == ("monkey",)
    assert "because of errors: Nginx" in wording.sentence(found, results)


def test_missing_metrics_and_nan():
    shots = {"monkey": {100: {"rate": [10, math.nan, 12, 11], "cpu_us": [None] * 4}}, "nginx": {100: {"rate": [1, 2, 3, 4]}}}
    results = Results(record(shots))
    assert results.estimate("case", "monkey", "rate").count == 3
    assert results.estimate("case", "monkey", "cpu_us") is None and not results.has("case", "cpu_us")
    assert results.ranked("case") == ("rate",)


def test_at_a_fixed_rate_the_rate_is_not_ranked_but_latency_is():
    shots = {n: {100: {"rate": [100] * 3, "p99_us": [1, 2, 3], "cpu_us": [1, 2, 3]}} for n in ("monkey", "nginx")}
    assert Results(record(shots, metrics=["rate"], axis="rate")).ranked("case") == ("cpu_us", "p99_us")
    assert Results(record(shots, metrics=["rate"])).ranked("case") == ("rate", "cpu_us")


def test_memory_is_ranked_where_servers_were_alone():
    shots = {n: {100: {"rate": [100] * 3, "pss_kb": [1, 2, 3]}} for n in ("monkey", "nginx")}
    assert "pss_kb" not in Results(record(shots)).ranked("case")
    assert "pss_kb" in Results(record(shots, alone=True)).ranked("case")


def test_a_loss_of_ours_is_called_a_loss():
    results = Results(record(simple(monkey=[10, 11, 12], nginx=[20, 21, 22])))
    said = wording.ours(results.standing("case", "rate"), results)
    assert said == ("Monkey loses: Monkey 11.0/s = 0.52 × Nginx (21.0/s), 48 % fewer requests per second than Nginx, "
                    "which is fastest.")
    assert "behind in 1" in wording.headline(results)


def test_a_loss_against_a_tie_is_a_loss():
    results = Results(record(simple(monkey=[10, 11, 12], nginx=[20, 21, 22], h2o=[20, 21, 23])))
    assert "Monkey loses" in wording.ours(results.standing("case", "rate"), results)
    assert "among the fastest" in wording.ours(results.standing("case", "rate"), results)


def test_ties_and_wins_of_ours():
    tie = Results(record(simple(monkey=[10, 11, 12], nginx=[11, 12, 13])))
    assert wording.ours(tie.standing("case", "rate"), tie) == "Monkey ties with Nginx."
    win = Results(record(simple(monkey=[20, 21, 22], nginx=[10, 11, 12])))
    assert wording.ours(win.standing("case", "rate"), win).startswith("Monkey wins. Monkey is faster: Monkey 21.0/s = 1.91 × Nginx")


def test_without_ours():
    results = Results(record(simple(nginx=[1, 2, 3], h2o=[4, 5, 6])))
    assert results.ours is None and wording.ours(results.standing("case", "rate"), results) is None
    assert wording.headline(results) == "Our own server took no part."


def test_one_round_names_no_winner():
    results = Results(record(simple(monkey=[1], nginx=[100])))
    assert results.standing("case", "rate").verdict == "few"
    assert "too few rounds" in wording.sentence(results.standing("case", "rate"), results)
