# SPDX-License-Identifier: Apache-2.0
"""Judging records: which results are ranked, and which are never ranked."""
import math

import pytest

from contest import report, summary, wording
from contest.record import Case, Contestant, Exclusion, Historical, Record, Shot
from contest.results import Results


def record(shots, steps=(100,), metrics=("rate", "cpu_us"), **more):
    """shots: contestant -> step -> metric -> values by round; `bottleneck` has one value per round."""
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


def test_results_fastest_server_wins():
    found = standing(record(simple(monkey=[10, 11, 12], nginx=[20, 21, 22])))
    assert (found.verdict, found.winners) == ("won", ("nginx",))
    assert found.place("nginx") == "first" and found.place("monkey") == "behind" and found.place("apache") is None


def test_results_yardstick_is_shown_but_not_ranked():
    found = standing(record(simple(monkey=[10, 11, 12], nginx=[5, 6, 7], floor=[90, 91, 92])))
    assert found.winners == ("monkey",) and "floor" not in found.order and "floor" in found.estimates


def test_results_disqualified_contestants_are_not_ranked():
    made = record(simple(monkey=[10, 11, 12], nginx=[5, 6, 7], apache=[90, 91, 92]))
    made.disqualified.append(Exclusion("case", "apache", "wrong answer"))
    results = Results(made)
    assert results.standing("case", "rate").winners == ("monkey",)
    assert "apache" not in results.standing("case", "rate").estimates
    assert results.disqualified("case") == {"apache": "wrong answer"} and "apache" not in results.absent_in("case")


def test_results_absent_contestants_have_a_reason():
    made = record(simple(monkey=[1, 2, 3]))
    made.contestants["gwan"] = Contestant("G-WAN", "absent", why="no program")
    made.contestants["node"] = Contestant("Node.js", "present")
    made.contestants["thttpd"] = Contestant("thttpd", "present")
    made.absent_in.append(Exclusion("case", "thttpd", "does not speak TLS"))
    made.contestants["caddy"] = Contestant("Caddy", "failed", why="no such option")
    assert Results(made).absent_in("case") == {"thttpd": "does not speak TLS", "node": "the record contains no shot of it",
                                              "caddy": "failed: no such option"}


def bound(values, **more):
    return {100: {"rate": values, "bottleneck": ["client"] * len(values), **more}}


def free(values, **more):
    return {100: {"rate": values, **more}}


def test_results_two_client_bound_rates_have_no_winner():
    shots = {"monkey": bound([99, 100, 101], cpu_us=[5, 5.1, 5.2]), "nginx": bound([80, 81, 82], cpu_us=[8, 8.1, 8.2])}
    results = Results(record(shots))
    rate, cpu = results.standing("case", "rate"), results.standing("case", "cpu_us")
    assert (rate.verdict, rate.winners, rate.bound, rate.place("monkey")) == ("client", (), ("monkey", "nginx"), None)
    assert rate.place("nginx") is None and cpu.winners == ("monkey",)
    sentence = wording.sentence(rate, results)
    assert "bottleneck for Monkey" in sentence and "CPU and memory can be compared" in sentence and "fastest" not in sentence
    assert "latency" not in sentence


def test_results_server_below_a_client_bound_rate_is_behind():
    results = Results(record({"h2o": bound([99, 100, 101]), "nginx": bound([98, 99, 100]), "monkey": free([50, 51, 52])}))
    found = results.standing("case", "rate")
    assert (found.verdict, found.winners, found.behind) == ("client", (), ("monkey",))
    assert found.place("monkey") == "behind" and found.place("h2o") is None
    assert "Still behind: Monkey" in wording.sentence(found, results)
    assert "Monkey loses: Monkey 51.0/s = 0.51 × H2o (100/s)" in wording.ours(found, results)
    assert "behind in 1" in wording.headline(results)


def test_results_server_above_a_client_bound_rate_does_not_win():
    """The other server is limited by the client, so its real rate is unknown."""
    found = standing(record({"monkey": bound([50, 51, 52]), "nginx": free([99, 100, 101]), "h2o": free([20, 21, 22])}))
    assert (found.verdict, found.behind) == ("client", ("h2o",))
    assert found.place("nginx") is None and found.place("monkey") is None


def test_results_single_client_bound_server_above_all_others_wins():
    results = Results(record({"nginx": bound([99, 100, 101]), "monkey": free([50, 51, 52])}))
    found = results.standing("case", "rate")
    assert (found.verdict, found.winners, found.place("monkey")) == ("won", ("nginx",), "behind")
    assert "it can do at least that much" in wording.sentence(found, results)


def test_results_overlap_with_a_client_bound_rate_is_not_behind():
    found = standing(record({"nginx": bound([99, 100, 101]), "monkey": free([90, 95, 99.5])}))
    assert (found.verdict, found.behind) == ("client", ())


def test_results_client_bound_steps_do_not_count():
    def shots(slow, fast, bound):
        return {10: {"rate": slow, "bottleneck": ["client" if bound else "server"] * 3}, 100: {"rate": fast}}
    results = Results(record({"monkey": shots([900, 901, 902], [10, 11, 12], True), "nginx": shots([890, 891, 892], [20, 21, 22], True)}, (10, 100)))
    found = results.standing("case", "rate")
    assert found.steps == (100.,) and found.winners == ("nginx",)
    assert "at 10 connections; these steps do not count" in wording.sentence(found, results)


def test_results_steps_count_if_a_client_bound_server_is_decided():
    """The client limits one server, but every other server is clearly faster or slower than that one."""
    def shots(slow, fast, bottleneck="server"):
        return {10: {"rate": slow, "bottleneck": [bottleneck] * 3}, 100: {"rate": fast}}
    results = Results(record({"nginx": shots([100, 101, 102], [100, 101, 102], "client"), "monkey": shots([50, 51, 52], [50, 51, 52]),
                              "h2o": shots([20, 21, 22], [20, 21, 22])}, (10, 100)))
    found = results.standing("case", "rate")
    assert found.steps == (10., 100.) and found.winners == ("nginx",) and found.place("h2o") == "behind"


def test_results_sweep_uses_the_geometric_mean_per_round():
    results = Results(record({"monkey": {10: {"rate": [1, 2, 4]}, 100: {"rate": [100, 200, 400]}}}, (10, 100)))
    assert results.values("case", "monkey", "rate") == pytest.approx([10, 20, 40])
    assert results.values("case", "monkey", "rate", 10.) == [1, 2, 4]


def test_results_zero_value_makes_all_means_arithmetic():
    results = Results(record({"monkey": {10: {"idle_bytes": [0, 0, 0]}, 20: {"idle_bytes": [4, 4, 4]}},
                              "nginx": {10: {"idle_bytes": [2, 2, 2]}, 20: {"idle_bytes": [8, 8, 8]}}}, (10, 20)))
    assert results.values("case", "monkey", "idle_bytes") == [2, 2, 2] and results.values("case", "nginx", "idle_bytes") == [5, 5, 5]


def test_results_server_without_all_steps_is_not_ranked_overall():
    results = Results(record({"monkey": {10: {"rate": [1, 2, 3]}, 20: {"rate": [1, 2, 3]}}, "nginx": {10: {"rate": [9, 9, 9]}}}, (10, 20)))
    found = results.standing("case", "rate")
    assert found.partial == ("nginx",) and found.verdict == "alone"
    assert "some steps are missing: Nginx" in wording.sentence(found, results)
    assert results.standing("case", "rate", 10.).winners == ("nginx",)


def test_results_server_with_errors_is_not_ranked():
    shots = {"monkey": {100: {"rate": [10, 11, 12], "errors": [0, 0, 0]}}, "nginx": {100: {"rate": [90, 91, 92], "errors": [5, 0, 0]}},
             "h2o": {100: {"rate": [1, 2, 3]}}}
    results = Results(record(shots))
    found = results.standing("case", "rate")
    assert found.faulty == ("nginx",) and found.winners == ("monkey",)
    assert "because of errors: Nginx" in wording.sentence(found, results)


def test_results_missing_values_and_nan_are_ignored():
    shots = {"monkey": {100: {"rate": [10, math.nan, 12, 11], "cpu_us": [None] * 4}}, "nginx": {100: {"rate": [1, 2, 3, 4]}}}
    results = Results(record(shots))
    assert results.estimate("case", "monkey", "rate").count == 3
    assert results.estimate("case", "monkey", "cpu_us") is None and not results.has("case", "cpu_us")
    assert results.ranked("case") == ("rate",)


def test_results_fixed_rate_ranks_latency_but_not_the_rate():
    shots = {n: {100: {"rate": [100] * 3, "p99_us": [1, 2, 3], "cpu_us": [1, 2, 3]}} for n in ("monkey", "nginx")}
    assert Results(record(shots, metrics=["rate"], axis="rate")).ranked("case") == ("cpu_us", "p99_us")
    assert Results(record(shots, metrics=["rate"])).ranked("case") == ("rate", "cpu_us")


def test_results_memory_is_ranked_only_if_alone():
    shots = {n: {100: {"rate": [100] * 3, "pss_kb": [1, 2, 3]}} for n in ("monkey", "nginx")}
    assert "pss_kb" not in Results(record(shots)).ranked("case")
    assert "pss_kb" in Results(record(shots, alone=True)).ranked("case")


def test_wording_states_our_loss():
    results = Results(record(simple(monkey=[10, 11, 12], nginx=[20, 21, 22])))
    sentence = wording.ours(results.standing("case", "rate"), results)
    assert sentence == ("Monkey loses: Monkey 11.0/s = 0.52 × Nginx (21.0/s), 48 % fewer requests per second than Nginx, "
                    "which is fastest.")
    assert "behind in 1" in wording.headline(results)


def test_wording_states_our_loss_to_a_tie():
    results = Results(record(simple(monkey=[10, 11, 12], nginx=[20, 21, 22], h2o=[20, 21, 23])))
    assert "Monkey loses" in wording.ours(results.standing("case", "rate"), results)
    assert "among the fastest" in wording.ours(results.standing("case", "rate"), results)


def test_wording_states_our_ties_and_wins():
    tie = Results(record(simple(monkey=[10, 11, 12], nginx=[11, 12, 13])))
    assert wording.ours(tie.standing("case", "rate"), tie) == "Monkey ties with Nginx."
    win = Results(record(simple(monkey=[20, 21, 22], nginx=[10, 11, 12])))
    assert wording.ours(win.standing("case", "rate"), win).startswith("Monkey wins. Monkey is faster: Monkey 21.0/s = 1.91 × Nginx")


def test_wording_without_our_server():
    results = Results(record(simple(nginx=[1, 2, 3], h2o=[4, 5, 6])))
    assert results.ours is None and wording.ours(results.standing("case", "rate"), results) is None
    assert wording.headline(results) == "Our own server did not take part."


def test_results_one_round_has_no_winner():
    results = Results(record(simple(monkey=[1], nginx=[100])))
    assert results.standing("case", "rate").verdict == "few"
    assert "too few rounds" in wording.sentence(results.standing("case", "rate"), results)


# ---- Ranked metrics and tallies ----

def test_results_closed_loop_latency_is_not_ranked():
    shots = {n: {100: {"rate": [100] * 3, "p99_us": [i, i + .1, i + .2], "cpu_us": [1, 2, 3]}} for i, n in enumerate(("monkey", "nginx"), 1)}
    made = record(shots, metrics=["p99_us", "cpu_us"])
    results = Results(made)
    assert results.ranked("case") == ("cpu_us", "rate") and "p99_us" in results.shown("case")
    found = results.standing("case", "p99_us")
    assert found.verdict == "none" and found.place("monkey") is None and found.estimates["monkey"].median == 1.1
    made.cases["case"].axis = "rate"
    assert Results(made).standing("case", "p99_us").winners == ("monkey",)


def test_results_client_bound_latency_is_not_judged():
    def shots(low, bottleneck):
        return {100: {"p99_us": [low, low + 1, low + 2], "bottleneck": [bottleneck] * 3}}
    made = record({"monkey": shots(1, "server"), "nginx": shots(9, "client")}, metrics=["p99_us"], axis="rate")
    assert standing(made, "p99_us").verdict == "client"


def tally(made):
    return {rank: [(e.case, e.metric) for e in entries] for rank, entries in wording.tally(Results(made)).items()}


def test_tally_counts_a_case_once_by_its_first_metric():
    shots = {n: {100: {"rate": [v, v + 1, v + 2], "cpu_us": [v, v + 1, v + 2]}} for n, v in (("monkey", 10), ("nginx", 20))}
    made = record(shots, metrics=["cpu_us", "rate"])
    assert tally(made) == {"out": [], "behind": [], "first": [("case", "cpu_us")], "tied": [], "undecided": []}
    assert [e.metric for e in wording.others(Results(made))["behind"]] == ["rate"]
    sentence = wording.headline(Results(made))
    assert "measured in 1 case." in sentence and "Monkey is the only winner in 1, first with others in 0 and behind in 0." in sentence
    assert "other metrics and repetitions of old comparisons, which do not count, it is the only winner in 0, first with others in 0 and behind in 1." in sentence


def test_tally_omits_historical_cases():
    made = record(simple(monkey=[10, 11, 12], nginx=[20, 21, 22]), historical=Historical("old", "then", "differs"))
    assert not any(tally(made).values())
    assert [e.case for e in wording.others(Results(made))["behind"]] == ["case"]


def test_tally_our_disqualification_is_a_loss():
    made = record(simple(monkey=[30, 31, 32], nginx=[20, 21, 22]))
    made.disqualified.append(Exclusion("case", "monkey", "98 bytes in place of 100"))
    results = Results(made)
    assert tally(made)["out"] == [("case", None)] and not tally(made)["first"]
    assert "out in 1" in wording.headline(results) and "disqualified in 1 case: case" in wording.headline(results)
    text = summary.render(made)
    assert "- A case: Monkey is disqualified: 98 bytes in place of 100." in text.split("## Where Monkey is not first")[1].split("##")[0]


def test_tally_our_failed_start_is_a_loss():
    made = record(simple(monkey=[30, 31, 32], nginx=[20, 21, 22]))
    made.shots = [s for s in made.shots if s.contestant != "monkey"]
    made.contestants["monkey"] = Contestant("Monkey", "failed", why="ended with code 1")
    assert tally(made)["out"] == [("case", None)]
    assert "could not be started: ended with code 1" in summary.render(made)


def test_tally_our_errors_are_a_loss():
    shots = {"monkey": {100: {"rate": [30, 31, 32], "errors": [9, 9, 9]}}, "nginx": {100: {"rate": [20, 21, 22]}}, "h2o": {100: {"rate": [1, 2, 3]}}}
    made = record(shots)
    assert tally(made)["out"] == [("case", "rate")]
    assert "Monkey is not ranked because of errors: 27" in summary.render(made)


def test_tally_failed_measurement_is_no_loss():
    made = record(simple(monkey=[30, 31, 32], nginx=[20, 21, 22], h2o=[1, 2, 3]))
    made.unmeasured = [Exclusion("case", "monkey", "wr ended with code 70")]
    results = Results(made)
    assert results.unmeasured("case") == {"monkey": "wr ended with code 70"} and "monkey" not in results.present("case")
    assert "monkey" not in results.absent_in("case") and not results.disqualified("case")
    assert tally(made)["undecided"] == [("case", None)] and results.standing("case", "rate").winners == ("nginx",)
    for text in (summary.render(made), report.render(made)):
        assert "wr ended with code 70" in text and "disqualified:" not in text


# ---- Noise ----

def noisy(made, contestant, count):
    for shot in [s for s in made.shots if s.contestant == contestant][:count]:
        shot.noisy = True
    return made


def test_results_disturbed_metric_has_no_winner():
    made = record({n: {100: {"rate": [v, v + 1, v + 2], "cpu_us": [v, v + 1, v + 2]}} for n, v in (("monkey", 10), ("nginx", 20), ("h2o", 2))})
    noisy(made, "nginx", 2)
    results = Results(made)
    found = results.standing("case", "rate")
    assert (found.verdict, found.winners, found.place("monkey")) == ("disturbed", (), None)
    assert results.standing("case", "cpu_us").winners == ("h2o",)
    assert "at least half of the shots of Nginx" in wording.sentence(found, results)
    assert "2 of 9 shots were disturbed" in wording.headline(results)
    text = summary.render(made)
    assert "2 of 9 shots were disturbed" in text and "Nginx ‡ 2/3" in text and "*disturbed*" in text


def test_results_little_or_irrelevant_noise_changes_nothing():
    def made():
        return record(simple(monkey=[10, 11, 12], nginx=[20, 21, 22], h2o=[1, 2, 3]))
    assert standing(noisy(made(), "nginx", 1)).verdict == "won"
    assert standing(noisy(made(), "h2o", 3)).verdict == "won"


# ---- Sources of CPU time ----

def counted(kinds):
    """Makes a record; kinds: contestant -> source of its CPU time. Later contestants use less CPU time."""
    made = record({n: {100: {"cpu_us": [9 - i, 9.1 - i, 9.2 - i]}} for i, n in enumerate(kinds)})
    for shot in made.shots:
        shot.counted_by = kinds[shot.contestant]
    if "busybox" in made.contestants:
        made.contestants["busybox"].forks = True
    return made


def test_results_different_cpu_sources_are_not_compared():
    made = counted({"monkey": "cgroup", "nginx": "cgroup", "h2o": "processes"})
    found = standing(made, "cpu_us")
    assert found.winners == ("nginx",) and found.uncounted == ("h2o",) and "h2o" in found.estimates
    assert "measured in another way" in wording.sentence(found, Results(made)) and "§" in summary.render(made)
    assert "counted otherwise" in report.render(made)


def test_results_forking_server_is_not_ranked_by_process_sums():
    made = counted({"monkey": "processes", "nginx": "processes", "busybox": "processes"})
    assert standing(made, "cpu_us").winners == ("nginx",) and standing(made, "cpu_us").uncounted == ("busybox",)
    assert standing(counted({"monkey": "cgroup", "nginx": "cgroup", "busybox": "cgroup"}), "cpu_us").winners == ("busybox",)


def test_results_old_record_uses_the_cpu_source_of_the_environment():
    made = counted({"monkey": None, "nginx": None, "busybox": None})
    made.environment["cpu_counted_by"] = "processes"
    assert standing(made, "cpu_us").uncounted == ("busybox",)
    made.environment["cpu_counted_by"] = "cgroup"
    assert standing(made, "cpu_us").winners == ("busybox",)


def test_report_and_summary_contain_the_number_of_verified_responses():
    made = record(simple(monkey=[30, 31, 32], nginx=[20, 21, 22]))
    assert wording.verified(Results(made), "case") is None
    made.verified = {"case": {"monkey": 12000, "nginx": 900}}
    made.seed = 4711
    for text in (summary.render(made), report.render(made)):
        assert "esponses compared under load: 900 (Nginx) to 12,000 (Monkey)" in text and "4711" in text
