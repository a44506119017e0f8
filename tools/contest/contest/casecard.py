# SPDX-License-Identifier: Apache-2.0
"""Renders one case in a report: its conclusions, plots and tables."""
import re

from contest import palette, plots, statistics, wording
from contest.elements import Markup, tag
from contest.metrics import RANKED, metric as metric_of, span, step as write_step


def scrolled(content, label):
    """Wraps wide content in a container with its own scroll bar, so that the page does not scroll sideways."""
    return tag("div", content, class_="scroll", tabindex="0", role="region", aria_label=label)


def figure(drawing, caption, wide=False):
    # A drawing with few columns keeps its natural size, so that its text is as large as in the other drawings.
    natural = f"--natural: {re.search(r'viewBox=.0 0 ([0-9.]+)', drawing)[1]}px" if wide else None
    return tag("figure", tag("div", Markup(drawing), class_="drawing", style=natural, tabindex="0" if wide else None),
               tag("figcaption", caption) if caption else None, class_="wide" if wide else None)


# ---- Tables ----

def _value(results, standing, name, metric, base=None):
    """Renders a median with its interval, its ratio to the base, and badges."""
    e, m = standing.estimates.get(name), metric_of(metric)
    if not e:
        why = "not at all steps" if name in standing.partial else "not known"
        return tag("td", tag("span", "–", aria_label=why, title=why), class_="number none", data_value="")
    place, first, limited = standing.place(name), None, None
    if place in ("first", "tied"):
        first = tag("span", m.best if place == "first" else "tie", class_=f"badge inline {'win' if place == 'first' else 'tie'}")
    if metric == "rate":
        bound, shots = results.bound(standing.case, name, standing.step)
        limited = bound and tag("span", f"client {bound}/{shots}", class_="badge warn",
                                title=f"in {bound} of {shots} shots the load client was the bottleneck")
    if name in standing.uncounted:
        limited = tag("span", "counted otherwise", class_="badge warn",
                      title="its CPU time was measured in another way than that of the others, or only in part")
    return tag("td", first, tag("span", m.write(e.median), class_="median"), tag("small", span(e.low, e.high, m.kind)),
               _ratio(results, standing, name, base), limited or None,
               class_="number" + (" best" if first else ""), data_value=repr(e.median))


def _ratio(results, standing, name, base):
    e, b = standing.estimates.get(name), standing.estimates.get(base)
    share = statistics.ratio(e.median, b.median) if b and name != base else None
    return tag("small", f"{wording.times(share)} {results.title(base)}") if share is not None else None


def _rounds(results, standings, name):
    found = [e for s in standings if (e := s.estimates.get(name))]
    if not found:
        return tag("td", "–", class_="number none", data_value="")
    least = min(found, key=lambda e: e.count)
    return tag("td", least.count, tag("small", f"{least.coverage * 100:.3g} %"), class_="number", data_value=least.count,
               title=f"the interval contains the true median with {least.coverage * 100:.3g} % confidence")


def _name(results, case, name):
    errors, share = results.errors(case, name)
    marks = []
    if name in results.yardsticks:
        marks.append(tag("span", "yardstick", class_="badge"))
    if errors:
        marks.append(tag("span", f"{errors:,.0f} errors", class_="badge bad", title=f"{share:.2%} of the responses"))
    if noisy := results.noisy(case, name):
        marks.append(tag("span", f"{noisy}/{results.shots(case, name)} disturbed", class_="badge warn", title="other programs used the machine during these shots"))
    return tag("th", results.title(name), marks, scope="row", class_="ours" if name == results.ours else None)


def _order(results, case, standings):
    """Sorts by the deciding metric, best first; yardsticks come last."""
    first = standings[0] if standings else None
    more = bool(first and metric_of(first.metric).more)

    def key(name):
        e = first.estimates.get(name) if first else None
        return (name in results.yardsticks, e is None, (-1 if more else 1) * e.median if e else 0)

    return sorted(results.present(case), key=key)


def table(results, case):
    shown = results.shown(case)
    standings = [results.standing(case, m) for m in shown]
    base = results.record.cases[case].base
    if base not in results.present(case):
        base = None
    heads = [tag("th", "Contestant", scope="col")]
    for m in shown:
        quiet = m in RANKED and m not in results.ranked(case)
        heads.append(tag("th", metric_of(m).title, tag("small", " not ranked") if quiet else None, scope="col", class_="number"))
    heads.append(tag("th", "Rounds", scope="col", class_="number"))
    rows = []
    for name in _order(results, case, standings):
        cells = [_name(results, case, name)] + [_value(results, s, name, s.metric, base) for s in standings]
        kind = " ".join(k for k, yes in (("ours", name == results.ours), ("yardstick", name in results.yardsticks)) if yes)
        rows.append(tag("tr", cells, _rounds(results, standings, name), class_=kind or None))
    left = [(n, why, "disqualified", "bad") for n, why in results.disqualified(case).items()]
    left += [(n, why, "not measured", "warn") for n, why in results.unmeasured(case).items()]
    left += [(n, why, "did not take part", "") for n, why in results.absent_in(case).items()]
    foot = [tag("tr", tag("th", results.title(n), scope="row"),
                tag("td", tag("span", word, class_=f"badge {kind}"), " ", why, colspan=len(heads) - 1)) for n, why, word, kind in left]
    whole = len(results.steps(case)) > 1
    title = f"{results.record.cases[case].title}: medians of the rounds" + (", geometric mean over the steps" if whole else "")
    return scrolled(tag("table", tag("caption", title), tag("thead", tag("tr", heads)), tag("tbody", rows),
                        tag("tfoot", foot) if foot else None, class_="numbers sortable"), title)


def step_table(results, case, metric):
    """Renders one metric for all steps of a sweep."""
    m, steps = metric_of(metric), results.steps(case)
    standings = [results.standing(case, metric, s) for s in steps]
    heads = [tag("th", "Contestant", scope="col"), [tag("th", write_step(s), scope="col", class_="number") for s in steps]]
    rows = [tag("tr", tag("th", results.title(n), scope="row", class_="ours" if n == results.ours else None),
                [_value(results, s, n, metric) for s in standings], class_="ours" if n == results.ours else None)
            for n in _order(results, case, standings)]
    axis = results.record.cases[case].axis
    title = f"{m.title} at each {'rate' if axis == 'rate' else f'number of {axis}' if axis else 'step'}"
    return scrolled(tag("table", tag("caption", title), tag("thead", tag("tr", heads)), tag("tbody", rows), class_="numbers sortable"),
                    title)


def _other_numbers(results, case):
    """Renders the metrics that have no column in the main table."""
    shown = results.shown(case)
    every = sorted({m for s in results.record.shots if s.case == case for m in s.metrics} - set(shown) - {"requests", "seconds"})
    every = [m for m in every if results.has(case, m)]
    if not every:
        return None
    estimates = {(n, m): results.estimate(case, n, m) for n in results.present(case) for m in every}
    heads = [tag("th", "Contestant", scope="col"), [tag("th", metric_of(m).title, scope="col", class_="number") for m in every]]
    rows = [tag("tr", tag("th", results.title(n), scope="row", class_="ours" if n == results.ours else None),
                [tag("td", metric_of(m).write(e.median if (e := estimates[n, m]) else None), class_="number",
                     data_value=repr(e.median) if e else "") for m in every]) for n in results.present(case)]
    return tag("details", tag("summary", "All measurements"),
               scrolled(tag("table", tag("caption", "Medians; shown, not ranked"), tag("thead", tag("tr", heads)),
                            tag("tbody", rows), class_="numbers sortable"), "All measurements"))


# ---- Plots ----

def _curves(results, case, looks):
    """Yields (name, drawing, caption) of the plots shown by default, and of those in a closed details element."""
    sweep = len(results.steps(case)) > 1
    for metric in results.ranked(case):
        m = metric_of(metric)
        drawing = plots.sweep(results, case, metric, looks) if sweep else plots.bars(results, case, metric, looks)
        better = "more is better" if m.more else "less is better"
        note = f"{m.title}, {better}. " + ("Line: median; band: least to most." if sweep else "Median and interval.")
        if results.standing(case, metric).bound:
            note += " Ring: the client was the bottleneck." if sweep else " Hatched or hollow: the client was the bottleneck."
        if not sweep and results.yardsticks:
            note += " Lined or square: not ranked."
        yield metric, drawing, note
    if results.record.cases[case].axis == "rate":
        yield "percentiles", plots.percentiles(results, case, looks=looks), "From the due time of a request to its response."


def _folded(results, case, looks):
    yield "time", plots.over_time(results, case, looks), "One round. CPU as a share of the cores that the server may use."
    if results.record.cases[case].axis != "rate":
        yield "percentiles", plots.percentiles(results, case, looks=looks), "In a closed loop: mostly connections divided by rate."


def drawings(results):
    """Yields (file name, drawing) of all plots."""
    looks = palette.looks(results)
    for metric in ("cpu_us", "rate", "pss_kb", "p99_us"):
        if drawing := plots.matrix(results, metric):
            yield f"matrix-{metric}", drawing
    for case in results.record.cases:
        for make in (_curves, _folded):
            for name, drawing, _ in make(results, case, looks):
                if drawing:
                    yield f"{case}-{name}", drawing


# ---- The card ----

def _verdicts(results, case):
    lines = []
    for metric in results.ranked(case):
        standing = results.standing(case, metric)
        own = wording.ours(standing, results) if standing.place(results.ours) == "behind" else None
        lines.append(tag("li", wording.sentence(standing, results), tag("span", " " + own, class_="loss") if own else None,
                         class_=standing.verdict))
    return tag("ul", lines, class_="verdicts") if lines else tag("p", "This case has no measurement that can be ranked.", class_="notice")


def _historical(about):
    if not about.historical:
        return None
    h = about.historical
    return tag("aside", tag("h4", "After ", h.name), tag("p", tag("b", "Then: "), h.then), tag("p", tag("b", "What differs: "), h.differs),
               class_="historical")


def _circumstances(results, case):
    about = results.record.cases[case]
    steps = ", ".join(map(write_step, results.steps(case)))
    axis = "requests per second" if about.axis == "rate" else about.axis
    parts = [f"client: {about.client}", f"{about.rounds} rounds of {about.seconds:g} s", f"{axis}: {steps}" if axis else None,
             "no other server ran at the same time" if about.alone else None, wording.verified(results, case)]
    return tag("p", " · ".join(p for p in parts if p), class_="quiet")


def _more(results, case, shown, folded):
    about = results.record.cases[case]
    sweep = len(results.steps(case)) > 1
    return (_circumstances(results, case), _historical(about),
            tag("div", shown, class_="plots") if shown else None, table(results, case),
            tag("details", tag("summary", "Every step in numbers"), [step_table(results, case, m) for m in results.ranked(case)])
            if sweep else None,
            tag("details", tag("summary", "CPU and memory over time" + (", latency" if len(folded) > 1 else "")),
                tag("div", folded, class_="plots")) if folded else None,
            _other_numbers(results, case),
            tag("details", tag("summary", "The command"), tag("pre", tag("code", " ".join(about.command)), tabindex="0"))
            if about.command else None)


def card(results, case, looks):
    about = results.record.cases[case]
    shown = [figure(d, note) for _, d, note in _curves(results, case, looks) if d]
    folded = [figure(d, note) for _, d, note in _folded(results, case, looks) if d]
    return tag("article", tag("h3", about.title, " ", tag("code", case)), tag("p", about.about, class_="about"),
               _verdicts(results, case),
               tag("details", tag("summary", "Plots and numbers"), _more(results, case, shown, folded), class_="more"),
               class_="card case", id=f"case-{case}")


def cards(results):
    looks = palette.looks(results)
    return [card(results, case, looks) for case in results.record.cases]
