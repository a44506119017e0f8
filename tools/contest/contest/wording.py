# SPDX-License-Identifier: Apache-2.0
"""Judgements in words. "Faster", "cheaper" and the like only where intervals are apart; every ratio names its base;
a percentage is always one of what stands behind "than"."""
from contest import statistics
from contest.metrics import digits, metric as metric_of, step as write_step


def listed(names):
    names = list(names)
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + " and " + names[-1] if names else "nobody"


def times(value):
    return f"{digits(value)} ×" if value is not None else "–"


def ratio(name, value, base_name, base, metric):
    """Monkey 6.70 µs = 0.81 × nginx (8.30 µs)"""
    m = metric_of(metric)
    share = statistics.ratio(value, base)
    if share is None:
        return f"{name} {m.write(value)}, {base_name} {m.write(base)}"
    return f"{name} {m.write(value)} = {times(share)} {base_name} ({m.write(base)})"


def percent(value, base, noun):
    """24 % more CPU time per request (than the one whose number is the base)."""
    share = statistics.ratio(value, base)
    if share is None:
        return f"a different {noun}"
    change = (share - 1) * 100
    if abs(change) < .05:
        return f"the same {noun}"
    size = f"{abs(change):.0f}" if abs(change) >= 9.5 else f"{abs(change):.1f}"
    return f"{size} % {'more' if change > 0 else 'less'} {noun}".replace("less requests", "fewer requests")


def axis(case, step):
    """'at 100 connections', or nothing where a case has only one step."""
    if step is None or case.axis is None:
        return ""
    return f"at {write_step(step)} {'requests per second' if case.axis == 'rate' else case.axis}"


def compared(name, a, base_name, b, metric):
    """What may be said of two estimates, from the first one's point of view."""
    m = metric_of(metric)
    numbers = ratio(name, a.median, base_name, b.median, metric)
    if not statistics.claimable(a, b):
        return f"{numbers}; too few rounds to say more"
    if statistics.overlap(a, b):
        return f"{numbers}; the intervals overlap, so no difference is shown"
    much = f"{percent(a.median, b.median, m.noun)} than {base_name}"
    if m.more is None:
        return f"{numbers}: {much}"
    if statistics.better(a, b, m.more):
        return f"{name} is {m.word}: {numbers}, {much}"
    return f"{base_name} is {m.word}: {numbers}, {much}"


def rest(standing, title, write):
    """What follows the winners: the next one, and the best of ours is told by the caller."""
    behind = [n for n in standing.order if n not in standing.winners]
    if not behind:
        return "Nobody is behind them." if len(standing.winners) > 1 else ""
    return f"Next is {title(behind[0])} with {write(standing.estimates[behind[0]].median)}."


def sentence(standing, results):
    """Who is first in one metric of a case; or why nobody is."""
    m, title = metric_of(standing.metric), results.title
    note = footnote(standing, results)
    if standing.verdict == "client":
        text = (f"{m.title}: nobody wins. The load client was the bottleneck for {listed(map(title, standing.bound))}, "
                "so the numbers tell what the client could do; CPU, memory and latency can be compared.")
    elif standing.verdict == "alone":
        text = f"{m.title}: only {title(standing.order[0])} has a number, so there is nothing to compare."
    elif standing.verdict == "few":
        text = (f"{m.title}: too few rounds to say who is {m.best}; "
                f"{statistics.ROUNDS_MIN} are the least.")
    elif standing.verdict == "tied":
        best = standing.winners[0]
        text = (f"{m.title}: {listed(map(title, standing.winners))} tie, their intervals overlap with that of the best "
                f"median ({title(best)}, {m.write(standing.estimates[best].median)}). {rest(standing, title, m.write)}")
    elif standing.verdict == "won":
        first, second = standing.order[0], standing.order[1]
        a, b = standing.estimates[first].median, standing.estimates[second].median
        text = f"{m.title}: {title(first)} is {m.best}. {ratio(title(first), a, title(second), b, standing.metric)}, the next."
    else:
        text = f"{m.title}: nobody can be ranked."
    return " ".join(part for part in (text.strip(), note) if part)


def footnote(standing, results):
    """What was left out of a judgement."""
    notes, case = [], results.record.cases[standing.case]
    done = results.steps(standing.case)
    if standing.bound and standing.verdict != "client":
        left = [write_step(s) for s in done if s not in standing.steps]
        notes.append(f"The client was the bottleneck for {listed(map(results.title, standing.bound))} at {listed(left)} "
                     f"{'requests per second' if case.axis == 'rate' else case.axis or ''}".rstrip()
                     + "; these steps do not count.")
    if standing.partial:
        notes.append(f"Not ranked, because some steps are missing: {listed(map(results.title, standing.partial))}.")
    if standing.faulty:
        notes.append(f"Not ranked, because of errors: {listed(map(results.title, standing.faulty))}.")
    return " ".join(notes)


def ours(standing, results):
    """How our own server did, a loss as plainly as a win; None when it is not judged."""
    us = results.ours
    if us not in standing.order or not standing.decided:
        return None
    title, a = results.title, standing.estimates[us]
    if standing.place(us) == "behind":
        best = standing.order[0]
        b = standing.estimates[best]
        m = metric_of(standing.metric)
        much = percent(a.median, b.median, m.noun)
        rank = m.best if standing.verdict == "won" else f"among the {m.best}"
        return (f"{title(us)} loses: {ratio(title(us), a.median, title(best), b.median, standing.metric)}, {much} than "
                f"{title(best)}, which is {rank}.")
    behind = [n for n in standing.order if n not in standing.winners]
    if standing.verdict == "tied":
        others = [title(n) for n in standing.winners if n != us]
        return f"{title(us)} ties with {listed(others)}."
    return f"{title(us)} wins. " + compared(title(us), a, title(behind[0]), standing.estimates[behind[0]], standing.metric) + "."


def tally(results):
    """place -> the standings in which ours has it, and those where nobody could win."""
    found = {"first": [], "tied": [], "behind": [], "undecided": []}
    for standing in results.overall():
        if results.ours in standing.estimates:
            found[standing.place(results.ours) or "undecided"].append(standing)
    return found


def headline(results):
    """The contest in a few sentences; of our own server as much bad as good."""
    if not results.ours:
        return "Our own server took no part."
    found, us = tally(results), results.title(results.ours)
    total = sum(map(len, found.values()))
    decided = total - len(found["undecided"])
    text = (f"{us} was measured in {total} comparisons, each one metric of one case. {decided} of them can be decided: "
            f"it is alone in front in {len(found['first'])}, shares the first place in {len(found['tied'])} "
            f"and is behind in {len(found['behind'])}.")
    if found["undecided"]:
        text += (f" In {len(found['undecided'])} nobody wins: the load client was the bottleneck, nobody else took part, "
                 "or there were too few rounds or errors.")
    return text
