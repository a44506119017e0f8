# SPDX-License-Identifier: Apache-2.0
"""Plots of a record as SVG for a page: text stays text, and colors are CSS variables, so one drawing serves both themes.

Each function returns the text of an <svg>, or None if there is nothing to draw. A prefix keeps the ids of several drawings on a
page apart.
"""
import io
import itertools
import math
import re
import textwrap
from xml.sax.saxutils import escape

import matplotlib
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullFormatter, NullLocator

from contest import palette
from contest.metrics import PERCENTILES, known, metric as metric_of, step as write_step, write
from contest.palette import placeholder

matplotlib.use("Agg")

WIDTH, HEIGHT = 450, 316
LABELS = 104            # space for the names on the right
SIZE = 12
LINE_GAP = 14           # minimum distance between labels
LOG_FROM = 15           # larger ranges get a logarithmic scale
STYLE = {"svg.fonttype": "none", "svg.hashsalt": "contest", "font.family": "DejaVu Sans", "font.size": SIZE,
         "path.simplify": True, "axes.unicode_minus": True, "hatch.linewidth": .8}
matplotlib.rcParams.update(STYLE)
_numbers = itertools.count(1)


# ---- Drawing and writing ----

def _figure(height=HEIGHT, width=WIDTH):
    figure = Figure(figsize=(width / 72, height / 72), facecolor="none")
    FigureCanvasSVG(figure)
    return figure


def _axes(figure, left, bottom, right, top, **more):
    """Creates axes with margins in points."""
    width, height = (v * 72 for v in figure.get_size_inches())
    axes = figure.add_axes((left / width, bottom / height, (width - left - right) / width,
                            (height - top - bottom) / height), facecolor="none", **more)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color(placeholder("soft"))
    axes.tick_params(colors=placeholder("soft"), length=0, pad=5, which="both")
    axes.grid(axis="y", color=placeholder("line"), linewidth=.8)
    axes.set_axisbelow(True)
    return axes


def _svg(figure, title):
    out = io.StringIO()
    figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    return _adopt(out.getvalue(), title, f"p{next(_numbers)}-")


def _adopt(text, title, prefix):
    """Converts matplotlib's output for embedding in a page: removes prolog, fonts and fixed colors, and makes ids unique."""
    text = text[text.index("<svg"):]
    text = re.sub(r"<metadata>.*?</metadata>|<style.*?</style>|<!--.*?-->", "", text, flags=re.DOTALL)
    text = re.sub(r' xmlns:xlink="[^"]*"| xmlns="[^"]*"', "", text)
    text = text.replace("xlink:href=", "href=")
    used = set(re.findall(r'url\(#([^)]+)\)|href="#([^"]+)"', text))
    used = {name for pair in used for name in pair if name}
    text = re.sub(r' id="([^"]+)"', lambda m: f' id="{prefix}{m[1]}"' if m[1] in used else "", text)
    text = re.sub(r'(url\(#|href="#)', rf"\g<1>{prefix}", text)
    text = re.sub(r"font: ([\d.]+px) [^;\"]+", r"font-size: \1", text)
    text = re.sub(r"font: (\w+) ([\d.]+px) [^;\"]+", r"font-weight: \1; font-size: \2", text)
    text = re.sub(r"\s*font-family: [^;\"]+;?", "", text)
    for color, name in palette.placeholders().items():
        text = text.replace(color, f"var(--{name})")
    text = re.sub(r"<[^>]+>", lambda tag: _round(tag[0]), text)
    text = _bare(text)
    opening = re.search(r'<svg[^>]*viewBox="([^"]*)"[^>]*>', text)
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{opening[1]}" role="img" aria-label="{_attribute(title)}">'
            f"<title>{escape(title)}</title>{text[opening.end():]}").strip()


def _bare(text):
    """Removes empty groups, rotations by zero and redundant spaces."""
    text = re.sub(r"<g/>|<defs/>| transform=\"rotate\(-?0 [^)]*\)\"", "", text)
    open_groups = []

    def group(match):
        if match[0] == "</g>":
            return match[0] if open_groups.pop() else ""
        open_groups.append(match[0] != "<g>")
        return match[0] if open_groups[-1] else ""

    text = re.sub(r"<g(?: [^>]*)?>|</g>", group, text)
    text = re.sub(r"\s*\n\s*", "\n", text)
    return re.sub(r'(?<= d=")[^"]+', lambda m: m[0].replace("\n", "").replace("M ", "M").replace(" L ", "L").replace("L ", "L"), text)


def _round(tag):
    """Rounds coordinates to a tenth of a point: exact enough for the eye, and half the size."""
    return re.sub(r"-?\d+\.\d{2,}", lambda m: f"{float(m[0]):.1f}".removesuffix(".0"), tag)


def _attribute(text):
    return escape(text, {'"': "&quot;"})


def standalone(svg):
    """Returns a drawing that needs no page around it: with the colors of both themes and a background."""
    style = (f"<style>svg {{ {palette.css(0)} background: var(--card); font-family: system-ui, 'DejaVu Sans', sans-serif }} "
             f"@media (prefers-color-scheme: dark) {{ svg {{ {palette.css(1)} }} }}</style>")
    end = svg.index(">") + 1
    return f"<!-- SPDX-License-Identifier: Apache-2.0 -->\n{svg[:end]}{style}{svg[end:]}\n"


# ---- Parts ----

def _short(value, kind):
    """Formats a number on an axis: 10k, not 10,000/s."""
    if kind == "kb" and value < 1024:
        return f"{value / 1024:.2g} MiB"
    if kind in ("kb", "time", "bytes", "share", "flow"):
        return re.sub(r"(\.\d*?)0+ ", r"\1 ", write(value, kind)).replace(". ", " ")
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:g}{unit}"
    return f"{value:g}"


def _scale(axes, values, kind, which="y", wide=LOG_FROM):
    """Sets a logarithmic axis if the range requires it, else a linear axis that starts at zero."""
    values = [v for v in values if known(v)]
    if not values:
        return False
    axis = axes.yaxis if which == "y" else axes.xaxis
    low, high, unit = min(values), max(values), _unit(kind, max(values))
    log = low > 0 and high / low > wide
    if log:
        getattr(axes, f"set_{which}scale")("log")
        low, high = low / 1.15, high * 1.15
        decades = math.log10(high / low)
        parts = (1, 2, 5) if decades < 1.7 else (1, 3) if decades < 3 else (1,)
        marks = [p * 10. ** e * unit for e in range(-4, 13) for p in parts]
    else:
        low, high = 0, (high or 1) * 1.06
        marks = [m * unit for m in MaxNLocator(6, steps=[1, 2, 2.5, 5, 10]).tick_values(0, high / unit)]
    getattr(axes, f"set_{which}lim")(low, high)
    axis.set_major_locator(FixedLocator([m for m in marks if low <= m <= high]))
    axis.set_minor_locator(NullLocator())
    axis.set_minor_formatter(NullFormatter())
    axis.set_major_formatter(FuncFormatter(lambda v, _: _short(v, kind)))
    return log


def _unit(kind, most):
    """Returns the unit of the ticks: memory uses powers of two."""
    if kind != "kb":
        return 1
    return 1024 if most < 4 << 20 else 1 << 20


def _title(axes, text):
    axes.set_title(text, loc="left", color=placeholder("ink"), fontsize=SIZE + 1, fontweight="bold", pad=12, x=0)


def _spread(wanted, low, high, gap=LINE_GAP):
    """Returns positions close to `wanted` but at least `gap` apart, so that labels do not overlap."""
    order = sorted(range(len(wanted)), key=lambda i: wanted[i])
    if not order:
        return []
    gap = min(gap, (high - low) / max(1, len(order) - 1))
    blocks = []  # [sum of (wanted - offset), count]: adjacent labels form one block
    for i in order:
        blocks.append([wanted[i], 1])
        while len(blocks) > 1 and _end(blocks[-2], gap) > blocks[-1][0] / blocks[-1][1]:
            total, count = blocks.pop()
            blocks[-1][0] += total - blocks[-1][1] * gap * count
            blocks[-1][1] += count
    placed, floor = [], low
    for total, count in blocks:
        start = max(total / count, floor)
        placed += [start + gap * i for i in range(count)]
        floor = placed[-1] + gap
    over = placed[-1] - high
    for i in range(len(placed) - 1, -1, -1):
        if over > 0:
            placed[i] = min(placed[i], high - gap * (len(placed) - 1 - i))
    return [placed[order.index(i)] for i in range(len(wanted))]


def _end(block, gap):
    return block[0] / block[1] + gap * block[1]


def _label_ends(axes, ends, looks):
    """Labels each line at its last point. ends: (name, title, x, y). Names are on the right, each connected to its line."""
    figure = axes.figure
    box = axes.get_window_extent()
    scale = 72 / figure.dpi
    points = [axes.transData.transform((x, y)) for _, _, x, y in ends]
    low, high = box.y0 * scale, box.y1 * scale
    places = _spread([p[1] * scale for p in points], low, max(high, low + 1))
    for (name, title, _, _), point, place in zip(ends, points, places):
        look, y = looks[name], (place - low) / (high - low)
        end = axes.transAxes.inverted().transform(point)
        axes.plot([end[0], 1.02, 1.045], [end[1], y, y], transform=axes.transAxes, clip_on=False, linewidth=.7,
                  color=placeholder(look.color), alpha=.65)
        axes.text(1.055, y, _fit(title), linespacing=1, transform=axes.transAxes, va="center",
                  color=placeholder(look.color), fontsize=SIZE - .5, fontweight="bold" if look.above == 4 else "normal",
                  clip_on=False, parse_math=False)


def _line(axes, xs, ys, look, band=None, marks=True):
    color = placeholder(look.color)
    if band:
        axes.fill_between(xs, *band, color=color, alpha=.13, linewidth=0, zorder=look.above - .5)
    axes.plot(xs, ys, color=color, linestyle=look.dashes, linewidth=look.width, zorder=look.above,
              solid_capstyle="round", solid_joinstyle="round")
    if marks and look.marker:
        axes.plot(xs, ys, color=color, linestyle="none", marker=look.marker, markersize=5.6, markeredgewidth=1.3,
                  markerfacecolor=placeholder("card") if look.hollow else color, zorder=look.above + .5)


def _names(results, case, metric):
    """Returns the contestants with values, our server last so that it is drawn on top."""
    names = [n for n in results.present(case) if any(results.values(case, n, metric, s) for s in results.steps(case))]
    return sorted(names, key=lambda n: n == results.ours)


# ---- Plots ----

def sweep(results, case, metric, looks=None):
    """Draws the metric over the steps of a case: medians as a line, minimum to maximum as a band. Rings mark rates limited by the
    client."""
    looks, m = looks or palette.looks(results), metric_of(metric)
    names, steps = _names(results, case, metric), results.steps(case)
    if not names or len(steps) < 2:
        return None
    figure = _figure()
    axes = _axes(figure, 58, 48, LABELS, 38)
    curves = {n: [(s, e) for s in steps if (e := results.estimate(case, n, metric, s))] for n in names}
    everything = [v for c in curves.values() for _, e in c for v in (e.least, e.most)]
    _scale(axes, everything, m.kind, wide=LOG_FROM if m.more else 8)
    if min(steps) > 0 and max(steps) / min(steps) > LOG_FROM:
        axes.set_xscale("log")
    axes.xaxis.set_major_locator(FixedLocator(_apart(steps)))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda v, _: _short(v, "number")))
    for name, curve in curves.items():
        xs, es = [s for s, _ in curve], [e for _, e in curve]
        _line(axes, xs, [e.median for e in es], looks[name], ([e.least for e in es], [e.most for e in es]))
        ringed = [(s, e.median) for s, e in curve if metric == "rate" and results.bound(case, name, s)[0]]
        if ringed:
            axes.plot(*zip(*ringed), linestyle="none", marker="o", markersize=11.5, markerfacecolor="none",
                      markeredgecolor=placeholder("soft"), markeredgewidth=1, zorder=6)
    axes.set_xlabel("requested rate in requests per second" if results.record.cases[case].axis == "rate"
                    else results.record.cases[case].axis or "step", color=placeholder("soft"), parse_math=False)
    _title(axes, m.title)
    _label_ends(axes, [(n, results.title(n), c[-1][0], c[-1][1].median) for n, c in curves.items() if c], looks)
    return _svg(figure, f"{m.title} of {results.record.cases[case].title}, by {results.record.cases[case].axis}")


def _apart(steps):
    """Returns the steps that get a tick: all of them, or an even selection of as many as fit."""
    if len(steps) <= 7:
        return steps
    every = math.ceil((len(steps) - 1) / 6)
    return sorted({*steps[::every], steps[-1]})


def bars(results, case, metric, looks=None):
    """Draws a bar with its interval for each contestant, best first. A bar has diagonal hatching if the client was the
    bottleneck, and horizontal lines if the contestant is not ranked. If one value dwarfs the others, draws points on a
    logarithmic scale, on which bars would be misleading."""
    m, standing = metric_of(metric), results.standing(case, metric)
    names = sorted(standing.estimates, key=lambda n: (-1 if m.more else 1) * standing.estimates[n].median)
    if not names:
        return None
    left, right, bottom = 104, 92, 30
    figure = _figure(38 + bottom + 24 * len(names))
    axes = _axes(figure, left, bottom, right, 38)
    axes.spines["bottom"].set_visible(False)
    values = [standing.estimates[n] for n in names]
    log = _scale(axes, [v for e in values for v in (e.low, e.high)], m.kind, "x",
                 wide=math.inf if m.more else 25)  # if less is better, the bar of the best server must stay visible
    axes.grid(visible=False)
    if log:
        axes.grid(axis="x", color=placeholder("line"), linewidth=.8)
    else:
        axes.xaxis.set_major_locator(NullLocator())
    for y, (name, e) in enumerate(zip(names, values)):
        _bar(axes, y, e, log, name == results.ours, name in standing.bound, name in standing.order)
        first = name in standing.winners
        axes.annotate(m.write(e.median) + (" ★" if first else ""), (max(e.high, e.median), y), (7, 0),
                      textcoords="offset points", va="center", color=placeholder("ink"), fontsize=SIZE - 1,
                      fontweight="bold" if first else "normal", annotation_clip=False)
    axes.set_yticks(range(len(names)), [_fit(results.title(n)) for n in names], parse_math=False)
    for label, name in zip(axes.get_yticklabels(), names):
        label.set_color(placeholder("accent" if name == results.ours else "ink"))
        label.set_fontweight("bold" if name == results.ours else "normal")
    axes.set_ylim(len(names) - .4, -.6)
    axes.set_title(m.title + (" (logarithmic)" if log else ""), loc="left", color=placeholder("ink"), fontsize=SIZE + 1,
                   fontweight="bold", pad=10, x=-(left - 4) / (WIDTH - left - right))
    return _svg(figure, f"{m.title} of {results.record.cases[case].title}, {'a point' if log else 'a bar'} for each contestant")


def _bar(axes, y, e, log, ours, bound, ranked):
    ink = placeholder("ink")
    if log:
        face = placeholder("c0" if ours else "soft") if ranked and not bound else placeholder("card")
        axes.plot([axes.get_xlim()[0], e.median], [y, y], color=placeholder("soft"), linewidth=.8, linestyle=(0, (1, 3)))
        axes.plot(e.median, y, linestyle="none", color=placeholder("soft"), marker="o" if ranked else "s", markersize=8,
                  markerfacecolor=face, markeredgecolor=placeholder("c0" if ours else "soft"), markeredgewidth=1.5, zorder=5)
    else:
        axes.barh(y, e.median, height=.64, color=placeholder("c0" if ours else "raised"), linewidth=1,
                  hatch="////" if bound else None if ranked else "--",
                  edgecolor=placeholder("ink" if bound and ours else "accent" if ours else "soft"))
    axes.plot([e.low, e.high], [y, y], color=ink, linewidth=1.6, solid_capstyle="butt", zorder=6)
    for end in {e.low, e.high} if e.high > e.low or not log else ():
        axes.plot([end, end], [y - .17, y + .17], color=ink, linewidth=1.6, zorder=6)


def _fit(title, most=16):
    """Wraps a long name over two lines instead of cutting it."""
    return "\n".join(textwrap.wrap(title, most, break_long_words=False))


def over_time(results, case, looks=None):
    """Draws CPU and memory during the shots of one round, one step after the other, like the benchmark of 2011."""
    looks = looks or palette.looks(results)
    steps = results.steps(case)
    curves, length = _samples(results, case, steps)
    if not curves:
        return None
    figure = _figure(450)
    upper, lower = _axes(figure, 58, 252, LABELS, 40), _axes(figure, 58, 48, LABELS, 240)
    for axes, column, kind in ((upper, 1, "share"), (lower, 2, "kb")):
        values = [p[column] for c in curves.values() for p in c if known(p[column])]
        _scale(axes, values, kind, wide=8 if kind == "kb" else math.inf)
        ends = []
        for name, curve in sorted(curves.items(), key=lambda item: item[0] == results.ours):
            xs, ys = [p[0] for p in curve], [p[column] if known(p[column]) else math.nan for p in curve]
            _line(axes, xs, ys, looks[name], marks=False)
            if real := [(x, y) for x, y in zip(xs, ys) if not math.isnan(y)]:
                ends.append((name, results.title(name), *real[-1]))
        axes.set_xlim(0, length * len(steps))
        # If all servers use their whole core, the lines end at one point: then only the lower plot has names.
        if kind == "kb" or max(e[3] for e in ends) - min(e[3] for e in ends) > .3:
            _label_ends(axes, ends, looks)
    for i in range(1, len(steps)):
        for axes in (upper, lower):
            axes.axvline(i * length, color=placeholder("line"), linewidth=1, linestyle=(0, (3, 3)))
    if len(steps) > 1:
        for i, s in enumerate(steps):
            upper.text((i + .5) / len(steps), 1.01, _short(s, "number"), transform=upper.transAxes, ha="center", va="bottom",
                       fontsize=SIZE - 2, color=placeholder("soft"))
    upper.xaxis.set_major_formatter(NullFormatter())
    lower.set_xlabel("seconds" + (f", {len(steps)} steps one after the other" if len(steps) > 1 else ""), color=placeholder("soft"))
    _title(upper, "CPU of the server's cores" + ("\n" if len(steps) > 1 else ""))
    _title(lower, "Memory (PSS)")
    return _svg(figure, f"CPU and memory over time in {results.record.cases[case].title}")


def _samples(results, case, steps):
    """Returns {name: [(seconds, CPU share, KB), ...]} of the round with samples for the most steps, and the length of a step in
    seconds."""
    taken = {}
    for shot in results.record.shots:
        if shot.case == case and shot.samples and shot.contestant in results.present(case):
            taken.setdefault(shot.contestant, {}).setdefault(shot.round, {})[shot.step] = shot.samples
    length = max((p[0] for rounds in taken.values() for r in rounds.values() for s in r.values() for p in s
                  if known(p[0])), default=0) * 1.04
    curves = {}
    for name, rounds in taken.items():
        best = max(rounds.values(), key=len)
        points = []
        for i, s in enumerate(steps):
            points += [(i * length + p[0], p[1], p[2]) for p in best.get(s, ()) if known(p[0])]
            points.append((i * length + length, math.nan, math.nan))
        if sum(known(p[1]) or known(p[2]) for p in points) > 1:
            curves[name] = points
    return curves, length


def percentiles(results, case, step=None, looks=None):
    """Draws latency by percentile, with more space for the tail."""
    looks = looks or palette.looks(results)
    step = results.steps(case)[-1] if step is None else step
    curves = {}
    for name in results.present(case):
        curve = [(p, e) for key, p in PERCENTILES.items() if (e := results.estimate(case, name, key, step))]
        if len(curve) > 2:
            curves[name] = [(-math.log10(1 - p), e) for p, e in curve]
    if not curves:
        return None
    figure = _figure()
    axes = _axes(figure, 58, 48, LABELS, 38)
    _scale(axes, [e.median for c in curves.values() for _, e in c], "time", wide=5)
    there = sorted({x for c in curves.values() for x, _ in c if x > .7 or x < .5})  # no space for the label of 75 %
    axes.xaxis.set_major_locator(FixedLocator(there))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{100 - 100 * 10 ** -v:.4g} %"))
    for name, curve in sorted(curves.items(), key=lambda item: item[0] == results.ours):
        xs, es = [x for x, _ in curve], [e for _, e in curve]
        _line(axes, xs, [e.median for e in es], looks[name], ([e.least for e in es], [e.most for e in es]))
    axes.set_xlabel("of the requests got a response within", color=placeholder("soft"))
    about = results.record.cases[case]
    where = f" at {write_step(step)} {'requests/s' if about.axis == 'rate' else about.axis}" if about.axis else ""
    _title(axes, "Latency" + where)
    _label_ends(axes, [(n, results.title(n), c[-1][0], c[-1][1].median) for n, c in curves.items()], looks)
    return _svg(figure, f"Latency percentiles of {about.title}{where}")


def matrix(results, metric):
    """Draws how far each contestant is from the best of a case: 1.00 is the best; darker is farther."""
    cases = [c for c in results.record.cases if metric in results.ranked(c) and results.standing(c, metric).order]
    names = [n for n in results.record.contestants if any(n in results.standing(c, metric).order for c in cases)]
    if not cases or len(names) < 2:
        return None
    m, cell, left, top = metric_of(metric), (62, 30), 190, 118
    width, height = left + cell[0] * len(names) + 30, top + cell[1] * len(cases) + 14
    figure = _figure(height, width)
    axes = _axes(figure, left, 14, 30, top)
    axes.grid(visible=False)
    axes.spines["bottom"].set_visible(False)
    axes.set_xlim(0, len(names))
    axes.set_ylim(len(cases), 0)
    for y, case in enumerate(cases):
        _matrix_row(axes, y, results, results.standing(case, metric), names, m)
    axes.set_yticks([y + .5 for y in range(len(cases))], [_fit(results.record.cases[c].title, 28) for c in cases], parse_math=False)
    axes.set_xticks([x + .5 for x in range(len(names))], [_fit(results.title(n)) for n in names], rotation=38, ha="left",
                    rotation_mode="anchor", parse_math=False)
    axes.xaxis.tick_top()
    axes.tick_params(axis="y", colors=placeholder("ink"))
    for label, name in zip(axes.get_xticklabels(), names):
        label.set_color(placeholder("accent" if name == results.ours else "ink"))
        label.set_fontweight("bold" if name == results.ours else "normal")
    return _svg(figure, f"{m.title}: every contestant in every case as a multiple of the best")


def _matrix_row(axes, y, results, standing, names, m):
    best = standing.estimates[standing.order[0]].median
    for x, name in enumerate(names):
        e = standing.estimates.get(name)
        if not e or name not in standing.order or best <= 0 or e.median <= 0:
            axes.text(x + .5, y + .5, "·", ha="center", va="center", color=placeholder("soft"))
            continue
        far = e.median / best
        heat = min(1, abs(math.log2(far)) / 4)
        first = name in standing.winners
        axes.add_patch(Rectangle(
            (x + .04, y + .06), .92, .88, facecolor=placeholder("heat"), alpha=.05 + .5 * heat, linewidth=0))
        if first:
            axes.add_patch(Rectangle((x + .06, y + .09), .88, .82, facecolor="none", linewidth=1.8,
                                                        edgecolor=placeholder("win")))
        bound = m.key == "rate" and name in standing.bound
        text = f"{far:.2f}" if .01 <= far < 10 else f"{far:.1f}" if 1 <= far < 100 else f"{far:.2g}"
        axes.text(x + .5, y + .5, text + ("*" if bound else ""), ha="center", va="center", color=placeholder("ink"),
                  fontsize=SIZE - 1, fontweight="bold" if first else "normal")

