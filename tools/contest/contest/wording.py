# SPDX-License-Identifier: Apache-2.0
"""Words the judgments of a report. Uses "faster", "cheaper" and the like only if intervals do not overlap. Every ratio names its
base; the base of a percentage follows "than"."""
from dataclasses import dataclass

from contest import statistics
from contest.metrics import digits, metric as metric_of, step as write_step


# Why a case has no winner, for a table cell.
UNDECIDED = {"client": "client was the bottleneck", "alone": "no other server", "few": "too few rounds", "none": "not ranked",
             "disturbed": "disturbed"}


def listed(names):
    names = list(names)
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + " and " + names[-1] if names else "none"


def times(value):
    return f"{digits(value)} ×" if value is not None else "–"


def ratio(name, value, base_name, base, metric):
    """Formats a ratio: Monkey 6.70 µs = 0.81 × nginx (8.30 µs)"""
    m = metric_of(metric)
    share = statistics.ratio(value, base)
    if share is None:
        return f"{name} {m.write(value)}, {base_name} {m.write(base)}"
    return f"{name} {m.write(value)} = {times(share)} {base_name} ({m.write(base)})"


def percent(value, base, noun):
    """Formats a difference: 24 % more CPU time per request (than the base)."""
    share = statistics.ratio(value, base)
    if share is None:
        return f"a different {noun}"
    change = (share - 1) * 100
    if abs(change) < .05:
        return f"the same {noun}"
    size = f"{abs(change):.0f}" if abs(change) >= 9.5 else f"{abs(change):.1f}"
    return f"{size} % {'more' if change > 0 else 'less'} {noun}".replace("less requests", "fewer requests")


def axis(case, step):
    """Returns text such as 'at 100 connections'; empty if the case has only one step."""
    if step is None or case.axis is None:
        return ""
    return f"at {write_step(step)} {'requests per second' if case.axis == 'rate' else case.axis}"


def compared(name, a, base_name, b, metric):
    """Describes what two estimates show, from the point of view of the first."""
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
    """Names the best server that is not a winner, with its value."""
    behind = [n for n in standing.order if n not in standing.winners]
    if not behind:
        return "No other server is behind them." if len(standing.winners) > 1 else ""
    return f"Next is {title(behind[0])} with {write(standing.estimates[behind[0]].median)}."


def sentence(standing, results):
    """Names the winner in one metric of a case, or the reason why there is none."""
    m, title = metric_of(standing.metric), results.title
    note = footnote(standing, results)
    if standing.verdict == "client":
        text = (f"{m.title}: no winner. The load client was the bottleneck for {listed(map(title, standing.bound))}, "
                "so their numbers show what the client could do; CPU and memory can be compared.")
        if standing.behind:
            text += f" Still behind: {listed(map(title, standing.behind))}, because the others can do at least that much."
    elif standing.verdict == "disturbed":
        text = (f"{m.title}: no winner. Other programs used the machine in at least half of the shots of "
                f"{listed(map(title, standing.disturbed))}, so it is unclear which server is {m.best}.")
    elif standing.verdict == "alone":
        text = f"{m.title}: only {title(standing.order[0])} has a number, so there is nothing to compare."
    elif standing.verdict == "few":
        text = (f"{m.title}: too few rounds to say which server is {m.best}; "
                f"the minimum is {statistics.ROUNDS_MIN}.")
    elif standing.verdict == "tied":
        best = standing.winners[0]
        text = (f"{m.title}: {listed(map(title, standing.winners))} tie: their intervals overlap with that of the best "
                f"median ({title(best)}, {m.write(standing.estimates[best].median)}). {rest(standing, title, m.write)}")
    elif standing.verdict == "won":
        first, second = standing.order[0], standing.order[1]
        a, b = standing.estimates[first].median, standing.estimates[second].median
        text = f"{m.title}: {title(first)} is {m.best}. {ratio(title(first), a, title(second), b, standing.metric)}, the next."
        if first in standing.bound and len(standing.steps) == len(results.steps(standing.case)):
            text += f" The client was the bottleneck for {title(first)}, so it can do at least that much."
    else:
        text = f"{m.title}: no server can be ranked."
    return " ".join(part for part in (text.strip(), note) if part)


def footnote(standing, results):
    """Describes the servers and steps that a judgment leaves out."""
    notes, case = [], results.record.cases[standing.case]
    done = results.steps(standing.case)
    left = [write_step(s) for s in done if s not in standing.steps] if standing.step is None else []
    if standing.bound and left and standing.verdict != "client":
        notes.append(f"The client was the bottleneck for {listed(map(results.title, standing.bound))} at {listed(left)} "
                     f"{'requests per second' if case.axis == 'rate' else case.axis or ''}".rstrip()
                     + "; these steps do not count.")
    if standing.partial:
        notes.append(f"Not ranked, because some steps are missing: {listed(map(results.title, standing.partial))}.")
    if standing.uncounted:
        notes.append("Not ranked, because their CPU time was measured in another way, or without exited processes: "
                     f" {listed(map(results.title, standing.uncounted))}.")
    if standing.disturbed and standing.verdict != "disturbed":
        notes.append(f"Disturbed by other programs in at least half of the shots: {listed(map(results.title, standing.disturbed))}.")
    if standing.faulty:
        notes.append(f"Not ranked, because of errors: {listed(map(results.title, standing.faulty))}.")
    return " ".join(notes)


def ours(standing, results):
    """Describes the result of our own server, including losses; None if it is not judged."""
    us = results.ours
    if us not in standing.order or not standing.place(us):
        return None
    title, a = results.title, standing.estimates[us]
    if standing.place(us) == "behind":
        best = _ahead(standing, us)
        b = standing.estimates[best]
        m = metric_of(standing.metric)
        much = percent(a.median, b.median, m.noun)
        which = {"won": f"which is {m.best}", "tied": f"which is among the {m.best}"}.get(
            standing.verdict, "for which the client was the bottleneck")
        return (f"{title(us)} loses: {ratio(title(us), a.median, title(best), b.median, standing.metric)}, {much} than "
                f"{title(best)}, {which}.")
    behind = [n for n in standing.order if n not in standing.winners]
    if standing.verdict == "tied":
        others = [title(n) for n in standing.winners if n != us]
        return f"{title(us)} ties with {listed(others)}."
    return f"{title(us)} wins. " + compared(title(us), a, title(behind[0]), standing.estimates[behind[0]], standing.metric) + "."


def _ahead(standing, name):
    """Returns the best server ahead of `name`; if there is no winner, the best server that is certainly ahead."""
    if standing.decided:
        return standing.order[0]
    of, more = standing.estimates, metric_of(standing.metric).more
    return next(n for n in standing.order if statistics.better(of[n], of[name], more))


# ---- Our own server ----

@dataclass(frozen=True)
class Entry:
    """The result of our server in a case."""
    case: str
    metric: str | None
    standing: object = None
    why: str = ""        # why our server is out, or why there is no winner

    def tell(self, results):
        return self.why or ours(self.standing, results)


PLACES = ("out", "behind", "first", "tied", "undecided")


def _left_out(results, case):
    """Returns ("out" or "undecided", reason) if our server takes part in the case but has no result in it; else None."""
    us = results.ours
    if why := results.disqualified(case).get(us):
        return "out", f"{results.title(us)} is disqualified: {why}."
    if results.record.contestants[us].state == "failed":
        return "out", f"{results.title(us)} could not be started: {results.record.contestants[us].why or 'no reason is known'}."
    if why := results.unmeasured(case).get(us):
        return "undecided", f"{results.title(us)} was not measured, because wr or the client failed: {why}."
    return None


def _entry(results, case, metric):
    """Returns (place, entry), or None if our server did not take part."""
    standing, us = results.standing(case, metric), results.ours
    if us in standing.faulty:
        errors, share = results.errors(case, us)
        return "out", Entry(case, metric, standing, f"{results.title(us)} is not ranked because of errors: {errors:,.0f}, "
                            f"which are {share * 100:.2g} % of its responses.")
    if us not in standing.estimates and us not in standing.partial:
        return None
    place = standing.place(us)
    return place or "undecided", Entry(case, metric, standing, "" if place else sentence(standing, results))


def tally(results):
    """Returns {place: entries} with one entry per case, for its first metric. Historical cases repeat others and do not count."""
    return _sort(results, lambda case, metric: metric in (None, results.decides(case)) and not _historical(results, case))


def others(results):
    """Returns {place: entries} for the other metrics and for historical cases, which the report shows but does not count."""
    return _sort(results, lambda case, metric: _historical(results, case) or metric not in (None, results.decides(case)))


def _historical(results, case):
    return bool(results.record.cases[case].historical)


def _sort(results, wanted):
    found = {place: [] for place in PLACES}
    for case in results.record.cases:
        left = _left_out(results, case)
        if left:
            if wanted(case, None):
                found[left[0]].append(Entry(case, None, why=left[1]))
            continue
        for metric in results.ranked(case):
            if wanted(case, metric) and (entry := _entry(results, case, metric)):
                found[entry[0]].append(entry[1])
    return found


def headline(results):
    """Summarizes the contest in a few sentences, with the losses of our own server as well as its wins."""
    if not results.ours:
        return "Our own server did not take part."
    found, us = tally(results), results.title(results.ours)
    n = {place: len(entries) for place, entries in found.items()}
    text = (f"{us} was measured in {_cases(sum(n.values()))}. Each case counts once, by its first metric: "
            f"{us} is {_places(n)}.")
    disqualified = [case for case in results.record.cases if results.ours in results.disqualified(case)]
    if disqualified:
        text += f" It was disqualified in {_cases(len(disqualified))}: {listed(disqualified)}."
    if n["undecided"]:
        text += (f" In {n['undecided']} there is no winner: the load client was the bottleneck, other programs disturbed the measurement, "
                 "something could not be measured, no other server took part, or there were too few rounds.")
    more = {place: len(entries) for place, entries in others(results).items()}
    if any(more.values()):
        text += f" In other metrics and repetitions of old comparisons, which do not count, it is {_places(more)}."
    return text + noise(results)


def _places(count):
    parts = [f"the only winner in {count['first']}", f"first with others in {count['tied']}", f"behind in {count['behind']}"]
    return listed(parts + ([f"out in {count['out']}"] if count["out"] else []))


def verified(results, case):
    """Describes how many responses were compared under load; None if the record does not contain the number."""
    counts = results.verified(case)
    if not counts:
        return None
    least, most = min(counts, key=counts.get), max(counts, key=counts.get)
    if counts[least] == counts[most]:
        return f"responses compared under load: {counts[least]:,} of each server"
    return (f"responses compared under load: {counts[least]:,} ({results.title(least)}) to {counts[most]:,} "
            f"({results.title(most)})")


def noise(results):
    disturbed, shots = results.noise
    return (f" {disturbed:,} of {shots:,} shots were disturbed by other programs on the machine." if disturbed else "")


def _cases(count):
    return f"{count} case" + ("" if count == 1 else "s")
