# SPDX-License-Identifier: Apache-2.0
"""Writes the summary of a record in Markdown: winners by case, losses of our server, the numbers, and the machine."""
import re

from contest import wording
from contest.metrics import RANKED, digits, metric as metric_of, span, step as write_step
from contest.results import Results


def safe(value):
    """Escapes text of a record for Markdown: no markup, no newlines, no table columns."""
    return re.sub(r"([\\`*_\[\]|#~])", r"\\\1", " ".join(str(value).split())).replace("<", "&lt;").replace(">", "&gt;")


def table(head, rows, right=()):
    lines = ["| " + " | ".join(head) + " |",
             "|" + "|".join("---:" if i in right else "---" for i in range(len(head))) + "|"]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows]) + "\n"


def _winner(results, case, metric):
    if metric not in results.ranked(case):
        return ""
    standing = results.standing(case, metric)
    if standing.decided:
        names = ", ".join(f"**{safe(results.title(n))}**" if n == results.ours else safe(results.title(n)) for n in standing.winners)
        value = metric_of(metric).write(standing.estimates[standing.winners[0]].median)
        return f"{names} ({'tie, ' if standing.verdict == 'tied' else ''}{value})"
    return f"*{wording.UNDECIDED[standing.verdict]}*"


def _where(results):
    metrics = [m for m in RANKED if any(m in results.ranked(c) for c in results.record.cases)]
    rows = [[f"{safe(about.title)} (`{case}`)"] + [_winner(results, case, m) for m in metrics]
            for case, about in results.record.cases.items()]
    return table(["Case"] + [metric_of(m).title for m in metrics], rows)


def _line(results, entry):
    metric = f", {metric_of(entry.metric).inside}" if entry.metric else ""
    return f"- {safe(results.record.cases[entry.case].title)}{metric}: {safe(entry.tell(results))}"


def _listed(results, places, found, more):
    lines = [_line(results, e) for place in places for e in found[place]] or ["In no case of this run."]
    rest = [_line(results, e) for place in places for e in more[place]]
    if rest:
        lines += ["", "In other metrics and repetitions of old comparisons, which do not count:", "", *rest]
    return "\n".join(lines) + "\n"


def _ours(results):
    if not results.ours:
        return []
    found, more, us = wording.tally(results), wording.others(results), safe(results.title(results.ours))
    parts = []
    for title, *places in ((f"Where {us} is not first", "out", "behind"), (f"Where {us} is first", "first"),
                           (f"Where {us} shares the first place", "tied")):
        parts += [f"## {title}\n", _listed(results, places, found, more)]
    if found["undecided"]:
        parts += ["## Cases without a winner\n",
                  "\n".join(_line(results, e) for e in found["undecided"]) + "\n"]
    return parts


def _value(results, standing, name):
    e, m = standing.estimates.get(name), metric_of(standing.metric)
    if not e:
        return "–"
    low = span(e.low, e.high, m.kind)
    text = f"{m.write(e.median)} ({low})"
    if name in standing.winners:
        text = f"**{text}**"
    if standing.metric == "rate" and results.bound(standing.case, name)[0]:
        text += " †"
    if name in standing.uncounted:
        text += " §"
    return text


def _name(results, case, name):
    noisy = results.noisy(case, name)
    return (safe(results.title(name)) + (" (yardstick)" if name in results.yardsticks else "")
            + (f" ‡ {noisy}/{results.shots(case, name)}" if noisy else ""))


def _case(results, case):
    about, ranked = results.record.cases[case], results.ranked(case)
    metrics = ranked + tuple(m for m in RANKED if m in results.shown(case) and m not in ranked)
    standings = [results.standing(case, m) for m in metrics]
    lines = [f"### {safe(about.title)} (`{case}`)\n", f"{safe(about.about)}\n"]
    if about.historical:
        lines.append(f"After {safe(about.historical.name)}. Then: {safe(about.historical.then)} "
                     f"What differs: {safe(about.historical.differs)}\n")
    steps = results.steps(case)
    if len(steps) > 1:
        lines.append(f"Geometric means over {', '.join(map(write_step, steps))} "
                     f"{'requests per second' if about.axis == 'rate' else about.axis or 'steps'}.\n")
    rows = [[_name(results, case, n)] + [_value(results, s, n) for s in standings]
            for n in _order(results, case, standings)]
    lines.append(table(["Contestant"] + [metric_of(m).title + ("" if m in ranked else " (not ranked)") for m in metrics], rows, range(1, len(metrics) + 1)))
    if said := wording.verified(results, case):
        lines.append(f"- {safe(said[0].upper() + said[1:])}.")
    lines += [f"- {safe(wording.sentence(s, results))}" for s in standings if s.metric in ranked]
    lines += [f"- {safe(results.title(n))} is disqualified: {safe(why)}." for n, why in results.disqualified(case).items()]
    lines += [f"- {safe(results.title(n))} was not measured, because wr or the client failed: {safe(why)}."
              for n, why in results.unmeasured(case).items()]
    absent = results.absent_in(case)
    if absent:
        lines.append("- Did not take part: " + "; ".join(f"{safe(results.title(n))} ({safe(why)})" for n, why in absent.items()) + ".")
    return "\n".join(lines) + "\n"


def _order(results, case, standings):
    ranked = [n for n in (standings[0].order if standings else ())]
    return ranked + [n for n in results.present(case) if n not in ranked]


def _environment(record):
    rows = []
    for key, value in record.environment.items():
        if isinstance(value, dict):
            value = ", ".join(f"{k} {v}" for k, v in value.items())
        elif isinstance(value, (list, tuple)):
            value = ", ".join(digits(v) if isinstance(v, float) else str(v) for v in value)
        rows.append([safe(key.replace("_", " ")), "not known" if value in (None, "") else safe(value)])
    return table(["What", "Value"], [["run", f"{safe(record.mode)}, {safe(record.started)}"],
                                     *([["seed of the order", str(record.seed)]] if record.seed is not None else []), *rows])


def _contestants(record):
    rows = [[safe(c.title), safe(c.version or "not known"), safe(c.origin or ""), c.state + (f": {safe(c.why)}" if c.why else "")
             + (", yardstick" if c.yardstick else "")] for c in record.contestants.values()]
    return table(["Contestant", "Version", "Origin", "State"], rows)


def render(record, title="A contest of web servers", page=None, raw=None, ours="monkey", remarks=""):
    results = Results(record, ours)
    links = [f"[the whole report]({page})"] if page else []
    links += [f"[all numbers]({raw})"] if raw else []
    parts = ["<!-- SPDX-License-Identifier: Apache-2.0 -->", f"# {safe(title)}\n", f"{safe(wording.headline(results))}\n"]
    if links:
        parts.append(f"See {' and '.join(links)}.\n")
    if remarks:
        parts.append("## Remarks\n\n" + re.sub(r"^#+", "###", remarks.strip(), flags=re.MULTILINE) + "\n")
    parts += ["## Winners by case\n", _where(results),
              "The best median follows the name. Servers tie if their intervals overlap with that of the best median.\n",
              *_ours(results), "## Cases\n",
              "Medians with their intervals; bold: first or tied for it. †: the load client was the bottleneck in some shots, so the "
              "server can do at least as much. ‡: other programs disturbed this many of the shots. §: measured in another way "
              "than the others, and not ranked.\n",
              *[_case(results, case) for case in record.cases], "## Contestants\n", _contestants(record), "## Machine\n",
              _environment(record)]
    if record.notes:
        parts += ["## Notes\n", "\n".join(f"- {safe(n)}" for n in record.notes) + "\n"]
    return "\n".join(parts).rstrip() + "\n"
