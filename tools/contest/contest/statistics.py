# SPDX-License-Identifier: Apache-2.0
"""Medians with intervals that assume no distribution, and what may be said of two of them.

The interval of a median lies between two of the sorted values, which ones follows from the binomial distribution alone.
Few values cannot give 95 %: then it is their whole range, and `coverage` tells what that is worth. Knows nothing of
servers.
"""
import math
from dataclasses import dataclass

from contest.metrics import known

LEVEL = .95
# Three against three separate by luck in one of ten cases; with fewer nothing is ever claimed.
ROUNDS_MIN = 3


@dataclass(frozen=True)
class Estimate:
    median: float
    low: float        # of the interval
    high: float
    least: float      # of all values
    most: float
    coverage: float   # how probably the interval holds the true median
    count: int

    @property
    def spread(self):
        """Half the interval as a share of the median."""
        return (self.high - self.low) / 2 / abs(self.median) if self.median else math.nan


def coverage(count, rank):
    """How probably the median lies between the rank-th smallest and the rank-th largest of count values."""
    return 1 - 2 * sum(math.comb(count, i) for i in range(rank)) / 2 ** count


def interval_rank(count, level=LEVEL):
    """The narrowest interval that still holds the level; the whole range when none does."""
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
    """None when there is no number among the values; what is no number (None, NaN) is left out."""
    ordered = sorted(v for v in values if known(v))
    if not ordered:
        return None
    count = len(ordered)
    rank = interval_rank(count, level)
    return Estimate(median(ordered), ordered[rank - 1], ordered[count - rank], ordered[0], ordered[-1],
                    max(0., coverage(count, rank)), count)


def overlap(a, b):
    """Touching counts as overlapping: equal values prove no difference."""
    return a.low <= b.high and b.low <= a.high


def claimable(a, b):
    """Are there values enough to claim anything about two of them?"""
    return min(a.count, b.count) >= ROUNDS_MIN


def differ(a, b):
    return claimable(a, b) and not overlap(a, b)


def better(a, b, more):
    """Is a better than b beyond doubt? `more` tells whether more is better."""
    return differ(a, b) and ((a.median > b.median) == bool(more))


def luck(n, m, level=LEVEL):
    """How probably two samples of the same thing have intervals that do not overlap, by luck alone."""
    k, l = interval_rank(n, level), interval_rank(m, level)
    # All orders of n + m values are equally probable. Count those in which fewer than l of the m come before the
    # (n + 1 - k)-th of the n; the other direction is the same.
    ways = sum(math.comb(n - k + j, j) * math.comb(k - 1 + m - j, m - j) for j in range(l))
    return min(1., 2 * ways / math.comb(n + m, n))


def ratio(value, base):
    """value as a multiple of base; None when that means nothing."""
    if not (known(value) and known(base)) or base <= 0 or value < 0:
        return None
    return value / base


def geometric(values):
    return math.exp(sum(math.log(v) for v in values) / len(values))


@dataclass(frozen=True)
class Ranking:
    """The order of the contestants. Several winners are a tie: each of their intervals overlaps with that of the best median."""
    winners: tuple    # in order of their medians
    order: tuple      # all, best first
    verdict: str      # "won", "tied", "alone", "few", "none"


def rank(estimates, more):
    """estimates: name -> Estimate or None."""
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
