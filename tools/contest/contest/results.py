# SPDX-License-Identifier: Apache-2.0
"""A record by case, contestant and metric: estimates and winners. All judgments of a report are made here.

A sweep has a value for each step. The whole sweep is judged by the geometric mean over its steps. This mean is computed for each
round, because the median and its interval need one value per round.
"""
from collections import Counter
from dataclasses import dataclass, field, replace
from functools import cached_property

from contest import statistics
from contest.metrics import METRICS, RANKED, known, metric as metric_of

ALL = None               # stands for the whole sweep, in place of a step
ERROR_SHARE = .001       # share of responses; a server with more errors is shown, but not ranked
NOISY_SHARE = .5         # share of shots; a server disturbed in this many neither wins nor loses in time-dependent metrics
TIMED = ("rate", "p90_us", "p99_us")


@dataclass(frozen=True)
class Standing:
    """The winners in one metric of one case, at one step or over all steps."""
    case: str
    metric: str
    step: float | None
    verdict: str                              # won, tied, alone, few, none, client, disturbed
    winners: tuple = ()
    order: tuple = ()                         # ranked, best first
    estimates: dict = field(default_factory=dict)  # including unranked contestants
    behind: tuple = ()                        # servers that lose although there is no winner
    bound: tuple = ()                         # servers for which the client was the bottleneck
    uncounted: tuple = ()                     # servers with CPU time counted in another way or incompletely
    disturbed: tuple = ()                     # servers that shared the machine with other programs in at least half of the shots
    faulty: tuple = ()                        # servers with too many errors
    partial: tuple = ()                       # servers that lack some steps
    steps: tuple = ()                         # the steps compared

    @property
    def decided(self):
        return self.verdict in ("won", "tied")

    def place(self, contestant):
        """Returns first, tied, behind, or None if the contestant is not judged here."""
        if contestant in self.behind:
            return "behind"
        if not self.decided or contestant not in self.order:
            return None
        if contestant in self.winners:
            return "first" if self.verdict == "won" else "tied"
        return "behind"


class Results:
    def __init__(self, record, ours="monkey"):
        self.record = record
        self.ours = ours if ours in record.contestants else None
        self._values = {}
        self._bound, self._shots, self._errors, self._noisy, self._all = {}, {}, {}, {}, {}
        self._kinds = {}
        self._standings, self._log = {}, {}
        for shot in record.shots:
            self._take(shot)

    def _take(self, shot):
        place = (shot.case, shot.contestant, shot.step)
        for name, value in shot.metrics.items():
            if known(value):
                rounds = self._values.setdefault((shot.case, shot.contestant, name), {})
                rounds.setdefault(shot.step, {}).setdefault(shot.round, []).append(value)
        if "rate" in shot.metrics or shot.bottleneck:
            self._shots[place] = self._shots.get(place, 0) + 1
            self._bound[place] = self._bound.get(place, 0) + (shot.bottleneck == "client")
        self._noisy[place] = self._noisy.get(place, 0) + bool(shot.noisy)
        self._all[place] = self._all.get(place, 0) + 1
        if "cpu_us" in shot.metrics:
            kind = shot.counted_by or self.record.environment.get("cpu_counted_by")
            self._kinds.setdefault(place[:2], set()).add(kind)
        if known(errors := shot.metrics.get("errors")):
            seconds = shot.metrics.get("seconds") or self.record.cases[shot.case].seconds
            requests = shot.metrics.get("requests") or (shot.metrics.get("rate") or 0) * seconds
            total = self._errors.setdefault(place, [0, 0])
            total[0] += errors
            total[1] += errors + (requests if known(requests) else 0)

    # ---- Contestants ----

    def title(self, contestant):
        return self.record.contestants[contestant].title

    @cached_property
    def yardsticks(self):
        return tuple(n for n, c in self.record.contestants.items() if c.yardstick)

    @cached_property
    def runners(self):
        """The contestants that could be ranked in at least one case."""
        shot = {s.contestant for s in self.record.shots}
        return tuple(n for n, c in self.record.contestants.items() if n in shot and not c.yardstick)

    def disqualified(self, case):
        return _reasons(self.record.disqualified, case)

    def unmeasured(self, case):
        """Returns {contestant: reason} for those that could not be measured because wr or the client failed."""
        bad = self.disqualified(case)
        return {n: why for n, why in _reasons(self.record.unmeasured, case).items() if n not in bad}

    def absent_in(self, case):
        """Returns the contestants that do not take part, with the reason: they failed to start, or lack the feature."""
        found = {n: f"failed: {c.why}" if c.why else "failed"
                 for n, c in self.record.contestants.items() if c.state == "failed"}
        found |= {e.contestant: e.why for e in self.record.absent_in if e.case == case}
        taken = self.disqualified(case) | self.unmeasured(case)
        there = set(self.present(case))
        for name, contestant in self.record.contestants.items():
            is_there = contestant.state == "present" and not contestant.yardstick
            if is_there and name not in there and name not in taken and name not in found:
                found[name] = "the record contains no shot of it"
        return {n: why for n, why in found.items() if n not in there and n not in taken}

    def present(self, case):
        """Returns the contestants in the order of the record, without disqualified and unmeasured ones."""
        bad = self.disqualified(case) | self.unmeasured(case)
        shot = {s.contestant for s in self.record.shots if s.case == case}
        return tuple(n for n in self.record.contestants if n in shot and n not in bad)

    # ---- Numbers ----

    def steps(self, case):
        done = {s.step for s in self.record.shots if s.case == case}
        return tuple(sorted(done)) or tuple(self.record.cases[case].steps)

    def has(self, case, metric):
        return any((case, name, metric) in self._values for name in self.present(case))

    def by_round(self, case, contestant, metric, step):
        """Returns {round: value} at one step."""
        rounds = self._values.get((case, contestant, metric), {}).get(step, {})
        return {number: sum(values) / len(values) for number, values in sorted(rounds.items())}

    def values(self, case, contestant, metric, step=ALL, steps=None):
        """Returns one value per round."""
        if step is not ALL:
            return list(self.by_round(case, contestant, metric, step).values())
        steps = steps or self.steps(case)
        columns = [self.by_round(case, contestant, metric, s) for s in steps]
        rounds = sorted(set.intersection(*(set(c) for c in columns))) if columns else []
        rows = [[column[r] for column in columns] for r in rounds]
        if self._logs(case, metric):
            return [statistics.geometric(row) for row in rows]
        return [sum(row) / len(row) for row in rows]

    def _logs(self, case, metric):
        """Returns whether to use geometric means, which need positive values. All contestants get the same kind of mean."""
        if (case, metric) not in self._log:
            self._log[case, metric] = self._all_above_zero(case, metric)
        return self._log[case, metric]

    def _all_above_zero(self, case, metric):
        return all(value > 0 for (c, _, m), steps in self._values.items() if (c, m) == (case, metric)
                   for rounds in steps.values() for values in rounds.values() for value in values)

    def estimate(self, case, contestant, metric, step=ALL, steps=None):
        return statistics.estimate(self.values(case, contestant, metric, step, steps))

    def bound(self, case, contestant, step=ALL):
        """Returns (shots limited by the client, shots)."""
        return self._sum(self._bound, case, contestant, step), self._sum(self._shots, case, contestant, step)

    def noisy(self, case, contestant, step=ALL):
        return self._sum(self._noisy, case, contestant, step)

    def shots(self, case, contestant, step=ALL):
        return self._sum(self._all, case, contestant, step)

    def verified(self, case):
        """Returns {contestant: number of responses compared under load} for the participants."""
        counts = self.record.verified.get(case, {})
        return {n: counts[n] for n in self.present(case) if n in counts}

    @cached_property
    def noise(self):
        """The number of disturbed shots, and of all shots."""
        return sum(self._noisy.values()), sum(self._all.values())

    def disturbed(self, case, contestant, step=ALL):
        shots = self.shots(case, contestant, step)
        return bool(shots) and self.noisy(case, contestant, step) / shots >= NOISY_SHARE

    def kinds(self, case, contestant):
        """Returns the sources of the contestant's CPU times: cgroup, processes, or None if unknown."""
        return self._kinds.get((case, contestant), set())

    def counted_in_parts(self, case, contestant):
        return self.record.contestants[contestant].forks and "processes" in self.kinds(case, contestant)

    def _uncounted(self, case, names):
        """Returns the contestants whose CPU times cannot be compared with the others. CPU times of a cgroup and sums over
        processes differ, so only contestants with the more frequent source are compared."""
        whole = [n for n in names if not self.counted_in_parts(case, n)]
        kinds = {n: self.kinds(case, n) for n in whole}
        votes = Counter(next(iter(k)) for k in kinds.values() if len(k) == 1)
        kind = max(votes, key=lambda k: (votes[k], k == "cgroup"), default=None)
        return tuple(n for n in names if n not in whole or (votes and kinds[n] != {kind}))

    def _sum(self, table, case, contestant, step):
        return sum(n for (c, name, s), n in table.items() if (c, name) == (case, contestant) and step in (ALL, s))

    def errors(self, case, contestant, step=ALL):
        """Returns (errors, their share of all responses)."""
        pairs = [pair for (c, name, s), pair in self._errors.items()
                 if (c, name) == (case, contestant) and step in (ALL, s)]
        count, total = sum(p[0] for p in pairs), sum(p[1] for p in pairs)
        return count, count / total if total else 0.

    # ---- Judgment ----

    def is_open(self, case):
        """Returns whether latency shows how long visitors would wait. In a closed loop, latency is mostly the number of
        connections divided by the rate."""
        return self.record.cases[case].axis == "rate"

    def ranked(self, case):
        """Returns the metrics that can be won in this case: first those that the case names, beginning with the deciding one,
        then other comparable ones. Not comparable are: a rate that the client sets; latency in a closed loop, because it follows
        from the rate; and PSS, because it divides shared memory among the running contestants."""
        about, opened = self.record.cases[case], self.is_open(case)
        comparable = {"rate": about.axis != "rate", "cpu_us": True, "p90_us": opened, "p99_us": opened}
        wanted = [m for m in about.metrics if m in RANKED]
        wanted += [m for m in RANKED if m not in wanted and comparable.get(m, about.alone)]
        return tuple(m for m in wanted if self.has(case, m) and comparable.get(m, True))

    def decides(self, case):
        """Returns the metric that decides the case, or None."""
        return next(iter(self.ranked(case)), None)

    def shown(self, case):
        """Returns the metrics that get a column: the ranked ones, and others named by the case."""
        more = [m for m in self.record.cases[case].metrics if m in METRICS and m != "errors"]
        return self.ranked(case) + tuple(m for m in more if m not in self.ranked(case) and self.has(case, m))

    def standing(self, case, metric, step=ALL):
        key = (case, metric, step)
        if key not in self._standings:
            self._standings[key] = self._judge(case, metric, step)
        return self._standings[key]

    def _bound_at(self, case, names, step):
        return tuple(n for n in names if self.bound(case, n, step)[0])

    def _judge(self, case, metric, step):
        there = [n for n in self.present(case) if (case, n, metric) in self._values]
        names = [n for n in there if n not in self.yardsticks]
        faulty = tuple(n for n in names if self.errors(case, n, step)[1] > ERROR_SHARE)
        able = [n for n in names if n not in faulty]
        uncounted = self._uncounted(case, able) if metric == "cpu_us" else ()
        able = [n for n in able if n not in uncounted]
        steps = self.steps(case) if step is ALL else (step,)
        marks = dict(case=case, metric=metric, step=step, faulty=faulty, uncounted=uncounted,
                     disturbed=tuple(n for n in able if self.disturbed(case, n, step)))
        if metric in TIMED and self._bound_at(case, able, step):
            return self._calm(self._judge_bound(metric, there, able, steps, marks))
        return self._calm(self._rank(metric, there, able, steps, marks))

    def _rank(self, metric, there, able, steps, marks):
        """Ranks servers when the client was never the bottleneck."""
        estimates = {n: e for n in there if (e := self.estimate(marks["case"], n, metric, marks["step"], steps))}
        marks = marks | dict(estimates=estimates, steps=steps, partial=tuple(n for n in able if n not in estimates))
        if metric not in self.ranked(marks["case"]):
            return Standing(verdict="none", **marks)
        found = statistics.rank({n: estimates.get(n) for n in able}, metric_of(metric).more)
        return Standing(verdict=found.verdict, winners=found.winners, order=found.order, **marks)

    def _judge_bound(self, metric, there, able, steps, marks):
        """Ranks servers when the client was the bottleneck for some of them. If the client limits a rate, the server can do at
        least that much, so a server below that rate is behind, and a server above all others wins. Otherwise only those steps
        count at which the client was never the bottleneck. A latency limited by the client says nothing about the server."""
        case = marks["case"]
        marks = marks | dict(bound=self._bound_at(case, able, marks["step"]))
        free = tuple(s for s in steps if not self._bound_at(case, able, s))
        whole = self._rank(metric, there, able, steps, marks)
        if whole.verdict in ("none", "alone", "few"):
            return whole
        if metric == "rate":
            behind = self._below(whole)
            if len(behind) == len(whole.order) - 1:
                return replace(whole, verdict="won", winners=tuple(n for n in whole.order if n not in behind))
            if not free:
                return replace(whole, verdict="client", winners=(), behind=behind)
        elif not free:
            return replace(whole, verdict="client", winners=())
        return self._rank(metric, there, able, free, marks)

    def _below(self, standing):
        """Returns servers not limited by the client whose whole interval is below that of another server."""
        of = standing.estimates
        return tuple(n for n in standing.order if n not in standing.bound
                     and any(statistics.better(of[other], of[n], True) for other in standing.order))

    def _calm(self, standing):
        """Removes the winner of a time-dependent metric if other programs used the machine."""
        if standing.metric not in TIMED or not standing.decided:
            return standing
        close = (*standing.winners, *[n for n in standing.order if n not in standing.winners][:1])
        if not set(close) & set(standing.disturbed):
            return standing
        return replace(standing, verdict="disturbed", winners=())

    def overall(self):
        """Returns the standing of every case in each of its ranked metrics."""
        return [self.standing(case, metric) for case in self.record.cases for metric in self.ranked(case)]


def _reasons(exclusions, case):
    """Returns {contestant: reason} for one case."""
    found = {}
    for each in exclusions:
        if each.case == case:
            found.setdefault(each.contestant, []).append(each.why)
    return {name: "; ".join(whys) for name, whys in found.items()}
