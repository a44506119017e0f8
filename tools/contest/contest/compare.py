# SPDX-License-Identifier: Apache-2.0
"""Compares two records: what changed for each contestant in each case, and whether our server regressed.

    contest compare BEFORE AFTER [--fail-on-regression]

Exit codes: 0 success; 1 if --fail-on-regression found that our server takes more CPU per request in a case and the intervals do
not overlap; 2 if the records cannot be compared. Steps of a sweep are shown, but only the whole sweep is judged: with so many
comparisons, some steps would look different by chance.
"""
import argparse
import json
import math
import sys
from dataclasses import asdict, dataclass

from contest import record as records, statistics, wording
from contest.user_error import UserError, nearest
from contest.metrics import METRICS, metric as metric_of, span, step as write_step
from contest.results import ALL, ERROR_SHARE, TIMED, Results

# Differences that make two runs incomparable, and differences that only cause a warning.
REFUSED = ("cpu", "cores", "server_cores", "client_cores", "virtual", "cpu_counted_by")
WARNED = ("kernel", "os", "memory_kb", "governor", "mitigations", "clients", "limits")
COMPARED = ("rate", "cpu_us", "p99_us", "pss_kb", "idle_bytes")


@dataclass(frozen=True)
class Change:
    case: str
    contestant: str
    step: float | None
    metric: str
    before: statistics.Estimate
    after: statistics.Estimate
    ratio: float | None  # after / before
    verdict: str         # better, worse, same (the intervals overlap), unclear (too few rounds, errors, the client was the bottleneck)
    why: str = ""


def differences(a, b, keys):
    """Returns (name, before, after) of the environment values that differ."""
    return [(k, a.environment.get(k), b.environment.get(k)) for k in keys if a.environment.get(k) != b.environment.get(k)]


def _doubt(before, after, case, name, step, metric, a, b):
    """Returns the reason why two estimates are not comparable, whatever their intervals; None if they are comparable."""
    for results, when in ((before, "before"), (after, "after")):
        if name in results.disqualified(case):
            return f"disqualified {when}"
        if results.errors(case, name, step)[1] > ERROR_SHARE:
            return f"errors {when}"
        if metric == "rate" and results.bound(case, name, step)[0]:
            return f"the client was the bottleneck {when}"
        if metric == "rate" and results.record.cases[case].axis == "rate":
            return "the rate is set by the client"
        if name in results.unmeasured(case):
            return f"not measured {when}"
        if metric in ("p90_us", "p99_us") and not results.is_open(case):
            return "in a closed loop latency follows from the rate"
        if metric == "cpu_us" and results.counted_in_parts(case, name):
            return f"CPU time was measured without processes that had exited {when}"
        if metric in TIMED and results.disturbed(case, name, step):
            return f"other programs disturbed {when}"
    if metric == "cpu_us" and before.kinds(case, name) != after.kinds(case, name):
        return "CPU time was measured in another way"
    return None if statistics.claimable(a, b) else "too few rounds"


def change(before, after, case, name, step, metric):
    a, b = (r.estimate(case, name, metric, step, _common_steps(before, after, case) if step is ALL else None)
            for r in (before, after))
    if not a or not b:
        return None
    why = _doubt(before, after, case, name, step, metric, a, b)
    if why:
        verdict = "unclear"
    elif statistics.overlap(a, b):
        verdict, why = "same", "the intervals overlap"
    else:
        verdict = "better" if statistics.better(b, a, metric_of(metric).more) else "worse"
    return Change(case, name, step, metric, a, b, statistics.ratio(b.median, a.median), verdict, why or "")


def _common_steps(before, after, case):
    return tuple(s for s in before.steps(case) if s in after.steps(case))


def changes(before, after, cases=None, metrics=COMPARED, names=None):
    """Compares everything that both records contain: each whole case, and each step of a sweep."""
    found = []
    for case in before.record.cases:
        if case not in after.record.cases or (cases and case not in cases):
            continue
        steps = _common_steps(before, after, case)
        for name in before.record.contestants:
            if name not in after.record.contestants or (names and name not in names):
                continue
            for metric in metrics:
                for step in (ALL, *steps) if len(steps) > 1 else (ALL,) if steps else ():
                    if one := change(before, after, case, name, step, metric):
                        found.append(one)
    return found


def _judged(found, ours):
    return [c for c in found if c.contestant == ours and c.metric == "cpu_us" and c.step is ALL]


def regressions(found, ours, tolerance=0.):
    """Returns the cases in which our server takes more CPU per request than before: more than the tolerance, without overlapping
    intervals."""
    return [c for c in _judged(found, ours) if c.verdict == "worse" and c.ratio is not None and (c.ratio - 1) * 100 > tolerance]


def false_alarms(found, ours):
    """Returns the expected number of our comparisons that would look worse by chance."""
    return sum(statistics.chance_of_difference(c.before.count, c.after.count) / 2 for c in _judged(found, ours) if c.verdict != "unclear")


def controls(found, before, after, ours):
    """Yields changes in the results of servers whose program is unchanged: they indicate that the machine changed."""
    for c in found:
        old, new = before.record.contestants[c.contestant], after.record.contestants[c.contestant]
        same = old.version and (old.version, old.revision, old.configuration) == (new.version, new.revision, new.configuration)
        if same and c.contestant != ours and c.step is ALL and c.metric == "cpu_us" and c.verdict in ("better", "worse"):
            yield c


def alone(before, after):
    """Returns lines about the cases and contestants that are in only one record or that differ."""
    lines = []
    for what, a, b in (("case", before.cases, after.cases), ("contestant", before.contestants, after.contestants)):
        for name in [*a, *b]:
            if (name in a) != (name in b):
                lines.append(f"{what} {name} is only in the {'first' if name in a else 'second'} record")
    for name in before.contestants:
        if name in after.contestants:
            a, b = before.contestants[name], after.contestants[name]
            for part in ("version", "revision", "state"):
                if getattr(a, part) != getattr(b, part):
                    lines.append(f"{a.title}: {part} {getattr(a, part)} became {getattr(b, part)}")
            if a.configuration != b.configuration:
                lines.append(f"{a.title}: its configuration changed")
    for name, case in before.cases.items():
        if name in after.cases and (case.command, case.client) != (after.cases[name].command, after.cases[name].client):
            lines.append(f"case {name}: the command of its client changed")
    return lines


# ---- Output ----

def _where(c, results):
    about = results.record.cases[c.case]
    return c.case if c.step is ALL else f"{c.case} @{write_step(c.step)}{'/s' if about.axis == 'rate' else ''}"


def row(c, results):
    m = metric_of(c.metric)
    return (_where(c, results), results.title(c.contestant), m.title,
            f"{m.write(c.before.median)} ({span(c.before.low, c.before.high, m.kind)})",
            f"{m.write(c.after.median)} ({span(c.after.low, c.after.high, m.kind)})",
            wording.times(c.ratio) + " before" if c.ratio is not None else "–",
            c.verdict + (f": {c.why}" if c.verdict == "unclear" else ""))


def print_table(rows, out):
    widths = [max(len(r[i]) for r in rows) for i in range(len(rows[0]))]
    for cells in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(cells, widths)).rstrip(), file=out)


def words(found, before, after, options, out):
    ours = options.ours
    shifted = list(controls(found, before, after, ours))
    if shifted:
        names = wording.listed(sorted({f"{before.title(c.contestant)} in {c.case} ({wording.times(c.ratio)})" for c in shifted}))
        print(f"\nNote: programs that did not change have other CPU times as well: {names}. "
              "So the machine differs, and a change of about that size says nothing about a server.", file=out)
    count = {v: sum(c.verdict == v for c in found) for v in ("better", "worse", "same", "unclear")}
    print("\n" + ", ".join(f"{n} {v}" for v, n in count.items()) + ".", file=out)
    if ours in before.record.contestants:
        bad = regressions(found, ours, options.tolerance)
        for c in bad:
            print("Regression: " + _regression(c, before), file=out)
        if not bad:
            print(f"No regression: {before.title(ours)} takes no more CPU time per request than before in any case, "
                  "as far as the intervals show.", file=out)
        print(f"Of {len(_judged(found, ours))} comparisons {false_alarms(found, ours):.2g} would look worse by chance if nothing "
              "had changed.", file=out)


def _regression(c, results):
    m = metric_of(c.metric)
    return (f"{_where(c, results)}: {results.title(c.contestant)} {m.write(c.after.median)} = {wording.times(c.ratio)} before "
            f"({m.write(c.before.median)}), {wording.percent(c.after.median, c.before.median, m.noun)} than before.")


def as_json(found, before, after, options):
    bad = regressions(found, options.ours, options.tolerance)
    return {"changes": [asdict(c) for c in found], "regressions": [asdict(c) for c in bad],
            "environment": [{"what": k, "before": a, "after": b} for k, a, b in differences(before.record, after.record, REFUSED + WARNED)],
            "notes": alone(before.record, after.record)}


# ---- The command ----

def percentage(text):
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is not a percentage of at least 0, such as 5")
    return value


def add_arguments(parser):
    parser.add_argument("before", help="a record, or the folder of a run: the base of all ratios")
    parser.add_argument("after", help="the record that is compared with it")
    parser.add_argument("--case", action="append", metavar="NAME", help="only this case; may be repeated")
    parser.add_argument("--metric", action="append", metavar="NAME", help=f"only this metric (default: {', '.join(COMPARED)})")
    parser.add_argument("--all", action="store_true", help="also show what did not change, and every step")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--anyway", action="store_true", help="compare runs even if the machines differ; interpret the result with care")
    parser.add_argument("--ours", default="monkey", metavar="NAME", help="the contestant that must not regress (default: monkey)")
    parser.add_argument("--tolerance", type=percentage, default=0., metavar="PERCENT",
                        help="ignore regressions of less than this percentage (default: 0)")
    parser.add_argument("--fail-on-regression", action="store_true",
                        help="exit with 1 if our CPU time per request increased and the intervals do not overlap")


def check(options, before, after):
    """Rejects incomparable records and warns of questionable comparisons."""
    for name in options.metric or ():
        if name not in METRICS:
            raise UserError(f"--metric: there is no metric {name!r}{nearest(name, METRICS)}", 2)
    for name in options.case or ():
        if name not in before.cases or name not in after.cases:
            raise UserError(f"--case: there is no case {name!r} in both records{nearest(name, set(before.cases) & set(after.cases))}", 2)
    if not set(before.cases) & set(after.cases):
        raise UserError("the records have no case in common, so there is nothing to compare", 2)
    if options.fail_on_regression and not (options.ours in before.contestants and options.ours in after.contestants):
        raise UserError(f"--fail-on-regression: the contestant {options.ours} is not in both records; name yours with --ours", 2)
    strange = differences(before, after, REFUSED)
    if strange and not options.anyway:
        lines = "; ".join(f"{k}: {a} before, {b} after" for k, a, b in strange)
        raise UserError(f"the records are of different machines or set-ups ({lines}); --anyway compares them regardless", 2)
    for k, a, b in strange + differences(before, after, WARNED):
        print(f"contest: warning: {k} differs: {a} before, {b} after", file=sys.stderr)
    if before.mode != after.mode:
        print(f"contest: warning: a {before.mode} run is compared with a {after.mode} one", file=sys.stderr)


def main(options, out=None):
    out = out or sys.stdout
    old, new = records.load(options.before), records.load(options.after)
    check(options, old, new)
    before, after = Results(old, options.ours), Results(new, options.ours)
    metrics = list(options.metric or COMPARED)
    found = changes(before, after, options.case, metrics)
    # Regressions are judged by CPU time, whichever metrics are shown.
    guard = found if "cpu_us" in metrics else changes(before, after, options.case, ["cpu_us"])
    if options.json:
        json.dump(as_json(found, before, after, options), out, indent=1)
        print(file=out)
    else:
        for line in alone(old, new):
            print(line, file=out)
        shown = [c for c in found if options.all or (c.verdict in ("better", "worse") and (c.step is ALL or c.metric == "cpu_us"))]
        if shown:
            print_table([("CASE", "CONTESTANT", "METRIC", "BEFORE", "AFTER", "AFTER IS", "VERDICT")] + [row(c, before) for c in shown], out)
        words(found, before, after, options, out)
    return 1 if options.fail_on_regression and regressions(guard, options.ours, options.tolerance) else 0
