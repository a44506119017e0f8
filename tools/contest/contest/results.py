# SPDX-License-Identifier: Apache-2.0
"""A record, seen by case, contestant and metric: estimates and who is first. Every judgement of a report is made here.

A sweep has a value at each of its steps; as a whole it is judged by the geometric mean over its steps, taken in each
round by itself, so that the interval is again one between rounds.
"""
from dataclasses import dataclass, field
from functools import cached_property

from contest import statistics
from contest.metrics import METRICS, RANKED, known, metric as metric_of

ALL = None               # in the place of a step: the whole sweep
ERROR_SHARE = .001       # of the answers; whoever fails more often is shown, but not ranked


@dataclass(frozen=True)
class Standing:
    """Who is first in one metric of one case, at one step or over all of them."""
    case: str
    metric: str
    step: float | None
    verdict: str                              # won, tied, alone, few, none, client
    winners: tuple = ()
    order: tuple = ()                         # ranked, best first
    estimates: dict = field(default_factory=dict)  # also of those that are not ranked
    bound: tuple = ()                         # whose client was the limit
    faulty: tuple = ()                        # who answered too many requests with errors
    partial: tuple = ()                       # who has not run all steps
    steps: tuple = ()                         # that were compared

    @property
    def decided(self):
        return self.verdict in ("won", "tied")

    def place(self, contestant):
        """first, tied, behind, or None when the contestant is not judged here."""
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
        self._bound, self._shots, self._errors, self._noisy = {}, {}, {}, {}
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
        """Those that could be ranked somewhere."""
        shot = {s.contestant for s in self.record.shots}
        return tuple(n for n, c in self.record.contestants.items() if n in shot and not c.yardstick)

    def disqualified(self, case):
        found = {}
        for each in self.record.disqualified:
            if each.case == case:
                found.setdefault(each.contestant, []).append(each.why)
        return {name: "; ".join(whys) for name, whys in found.items()}

    def absent_in(self, case):
        """Who takes no part, and why: not there, failed to start, or cannot do it."""
        found = {n: f"{c.state}: {c.why}" if c.why else c.state
                 for n, c in self.record.contestants.items() if c.state != "present"}
        found |= {e.contestant: e.why for e in self.record.absent_in if e.case == case}
        taken = self.disqualified(case)
        there = set(self.present(case))
        for name, contestant in self.record.contestants.items():
            if name not in there and name not in taken and name not in found and not contestant.yardstick:
                found[name] = "no shot of it in this record"
        return {n: why for n, why in found.items() if n not in there and n not in taken}

    def present(self, case):
        """In the order of the record; the disqualified ones are not among them."""
        bad = self.disqualified(case)
        shot = {s.contestant for s in self.record.shots if s.case == case}
        return tuple(n for n in self.record.contestants if n in shot and n not in bad)

    # ---- Numbers ----

    def steps(self, case):
        done = {s.step for s in self.record.shots if s.case == case}
        return tuple(sorted(done)) or tuple(self.record.cases[case].steps)

    def has(self, case, metric):
        return any((case, name, metric) in self._values for name in self.present(case))

    def by_round(self, case, contestant, metric, step):
        """round -> value at one step."""
        rounds = self._values.get((case, contestant, metric), {}).get(step, {})
        return {number: sum(values) / len(values) for number, values in sorted(rounds.items())}

    def values(self, case, contestant, metric, step=ALL, steps=None):
        """One value for each round."""
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
        """Geometric means need values above zero, of everybody: one kind of mean for all."""
        if (case, metric) not in self._log:
            self._log[case, metric] = self._all_above_zero(case, metric)
        return self._log[case, metric]

    def _all_above_zero(self, case, metric):
        return all(value > 0 for (c, _, m), steps in self._values.items() if (c, m) == (case, metric)
                   for rounds in steps.values() for values in rounds.values() for value in values)

    def estimate(self, case, contestant, metric, step=ALL, steps=None):
        return statistics.estimate(self.values(case, contestant, metric, step, steps))

    def bound(self, case, contestant, step=ALL):
        """(shots whose client was the limit, shots)."""
        return self._sum(self._bound, case, contestant, step), self._sum(self._shots, case, contestant, step)

    def noisy(self, case, contestant, step=ALL):
        return self._sum(self._noisy, case, contestant, step)

    def _sum(self, table, case, contestant, step):
        return sum(n for (c, name, s), n in table.items() if (c, name) == (case, contestant) and step in (ALL, s))

    def errors(self, case, contestant, step=ALL):
        """(errors, their share of all answers)."""
        pairs = [pair for (c, name, s), pair in self._errors.items()
                 if (c, name) == (case, contestant) and step in (ALL, s)]
        count, total = sum(p[0] for p in pairs), sum(p[1] for p in pairs)
        return count, count / total if total else 0.

    # ---- Judgement ----

    def ranked(self, case):
        """The metrics that can be won in this case, the one that decides first: those that the case asks for, and what
        else is comparable. A rate that the client sets is no merit of a server. In a closed loop latency follows from the
        rate, and memory that is shared with other contestants would be counted in parts."""
        about = self.record.cases[case]
        wanted = [m for m in about.metrics if m in RANKED]
        comparable = {"rate": True, "cpu_us": True, "p99_us": about.axis == "rate"}
        wanted += [m for m in RANKED if m not in wanted and comparable.get(m, about.alone)]
        return tuple(m for m in wanted if self.has(case, m) and not (m == "rate" and about.axis == "rate"))

    def shown(self, case):
        """What has a column: what is ranked, and what else the case asks for."""
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
        steps = self.steps(case) if step is ALL else (step,)
        if metric == "rate":  # the steps at which the servers and not the client were the limit
            free = tuple(s for s in steps if not self._bound_at(case, able, s))
        else:
            free = steps
        bound = self._bound_at(case, able, step) if metric == "rate" else ()
        used = free or steps
        estimates = {n: e for n in there if (e := self.estimate(case, n, metric, step, used))}
        partial = tuple(n for n in able if n not in estimates)
        common = dict(case=case, metric=metric, step=step, estimates=estimates, bound=bound, faulty=faulty,
                      partial=partial, steps=used)
        if metric_of(metric).more is None:
            return Standing(verdict="none", **common)
        ranking = statistics.rank({n: estimates.get(n) for n in able}, metric_of(metric).more)
        if not free and ranking.verdict != "none":
            return Standing(verdict="client", order=ranking.order, **common)
        return Standing(verdict=ranking.verdict, winners=ranking.winners, order=ranking.order, **common)

    def overall(self):
        """The standing of every case in every metric that it ranks."""
        return [self.standing(case, metric) for case in self.record.cases for metric in self.ranked(case)]
