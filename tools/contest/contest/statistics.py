# SPDX-License-Identifier: Apache-2.0
"""Medians with nonparametric confidence intervals, and comparisons of two medians.

The interval of a median lies between two of the sorted values; the binomial distribution determines which ones. Few values cannot
reach 95 %: then the interval is their whole range, and `coverage` is its confidence. This module is independent of servers.
"""
import math
from dataclasses import dataclass

from contest.metrics import known

LEVEL = .95
# With three values each, two intervals are disjoint by chance in one case in ten; with fewer values, no difference is claimed.
ROUNDS_MIN = 3


@dataclass(frozen=True)
class Estimate:
    median: float
    low: float        # lower bound of the interval
    high: float
    least: float      # minimum of all values
    most: float
    coverage: float   # probability that the interval contains the true median
    count: int

    @property
    def spread(self):
        """Half the interval as a share of the median."""
        return (self.high - self.low) / 2 / abs(self.median) if self.median else math.nan


def coverage(count, rank):
    """Returns the probability that the median lies between the rank-th smallest and the rank-th largest of count values."""
    return 1 - 2 * sum(math.comb(count, i) for i in range(rank)) / 2 ** count


def interval_rank(count, level=LEVEL):
    """Returns the rank of the narrowest interval that reaches the level; if there is none, that of the whole range."""
    best = 1
    for rank in range(2, (count + 1) // 2 + 1):
        if coverage(count, rank) < level:
            break
        best = rank
    return best


def median(values):
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def estimate(values, level=LEVEL):
    """Returns the estimate from the values, ignoring None and NaN; None if no number remains."""
    ordered = sorted(v for v in values if known(v))
    if not ordered:
        return None
    count = len(ordered)
    rank = interval_rank(count, level)
    return Estimate(median(ordered), ordered[rank - 1], ordered[count - rank], ordered[0], ordered[-1],
                    max(0., coverage(count, rank)), count)


def overlap(a, b):
    """Returns whether the intervals overlap. Touching intervals count as overlapping: equal values prove no difference."""
    return a.low <= b.high and b.low <= a.high


def claimable(a, b):
    """Returns whether both estimates have enough values for a claim."""
    return min(a.count, b.count) >= ROUNDS_MIN


def differ(a, b):
    return claimable(a, b) and not overlap(a, b)


def better(a, b, more):
    """Returns whether a is better than b with disjoint intervals. `more`: more is better."""
    return differ(a, b) and ((a.median > b.median) == bool(more))


def chance_of_difference(n, m, level=LEVEL):
    """Returns the probability that two samples of the same distribution have disjoint intervals by chance."""
    k, l = interval_rank(n, level), interval_rank(m, level)
    # All orders of the n + m values are equally probable. Counts those with fewer than l of the m values before the (n + 1 -
    # k)-th of the n values; the other direction is symmetric.
    ways = sum(math.comb(n - k + j, j) * math.comb(k - 1 + m - j, m - j) for j in range(l))
    return min(1., 2 * ways / math.comb(n + m, n))


def ratio(value, base):
    """Returns value / base; None if that is meaningless."""
    if not (known(value) and known(base)) or base <= 0 or value < 0:
        return None
    return value / base


def geometric(values):
    return math.exp(sum(math.log(v) for v in values) / len(values))


@dataclass(frozen=True)
class Ranking:
    """The order of the contestants. Several winners are tied: their intervals overlap with that of the best median."""
    winners: tuple    # sorted by median
    order: tuple      # all, best first
    verdict: str      # "won", "tied", "alone", "few", "none"


def rank(estimates, more):
    """Ranks the estimates: name -> Estimate or None."""
    there = {name: e for name, e in estimates.items() if e}
    order = tuple(sorted(there, key=lambda name: (-1 if more else 1) * there[name].median))
    if not order:
        return Ranking((), (), "none")
    if len(order) == 1:
        return Ranking((), order, "alone")
    if min(e.count for e in there.values()) < ROUNDS_MIN:
        return Ranking((), order, "few")
    winners = tuple(name for name in order if overlap(there[order[0]], there[name]))
    return Ranking(winners, order, "won" if len(winners) == 1 else "tied")
