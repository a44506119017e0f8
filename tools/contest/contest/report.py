# SPDX-License-Identifier: Apache-2.0
"""Writes the report of a run: one self-contained HTML page, and a summary in Markdown.

    contest report [RECORD] [-o PAGE] [--summary FILE] [--plots FOLDER]
"""
import os
import sys
from pathlib import Path

from contest import casecard, palette, plots, record as records, summary, wording
from contest.user_error import UserError, nearest
from contest.elements import Markup, markdown, tag, text
from contest.metrics import RANKED, digits, metric as metric_of
from contest.results import Results
from contest.statistics import LEVEL, ROUNDS_MIN, chance_of_difference

PARTS = Path(__file__).parent / "page"
SECTIONS = (("summary", "Summary"), ("where", "Winners by case"), ("cases", "Cases"), ("reading", "How to read it"),
            ("contestants", "Contestants"), ("machine", "Machine"), ("method", "Method and limits"))
FOLDED = ("reading", "contestants", "machine", "method")  # collapsed; a link to the section opens it
MODES = {"quick": "a quick run", "full": "a full run", "custom": "a run of selected cases or contestants"}


# ---- Summary ----

def _sentences(entries, results):
    for entry in entries:
        yield tag("li", tag("a", results.record.cases[entry.case].title, href=f"#case-{entry.case}"),
                  (", ", tag("span", metric_of(entry.metric).inside, class_="quiet")) if entry.metric else None, ": ",
                  entry.tell(results))


def _ours(results):
    """Renders the results of our server: losses come first, so that readers need not search for them."""
    if not results.ours:
        return None
    found, more, us = wording.tally(results), wording.others(results), results.title(results.ours)
    boxes = []
    for title, *places in ((f"Where {us} is not first", "behind", "out"), (f"Where {us} is first", "first"),
                           (f"Where {us} shares the first place", "tied"), ("Cases without a winner", "undecided")):
        lines, rest = ([e for place in sorted(places, key=wording.PLACES.index) for e in table[place]] for table in (found, more))
        boxes.append(tag("details", tag("summary", tag("span", title, class_="what"), tag("span", len(lines), class_="count")),
                         tag("ul", _sentences(lines, results)) if lines else tag("p", "In no case of this run."),
                         (tag("p", "In other metrics and repetitions of old comparisons, which do not count:"),
                          tag("ul", _sentences(rest, results))) if rest else None,
                         class_=f"place {places[0]}", open=places[0] == "behind"))
    return tag("div", boxes, class_="places")


def _figures(results):
    """Renders the first thing that readers see: the results of our server in a few numbers."""
    if not results.ours:
        return None
    found = wording.tally(results)
    words = [("first", "only winner"), ("tied", "first with others"), ("behind", "behind"), ("undecided", "not decided")]
    if found["out"]:
        words.insert(3, ("out", "disqualified, failed or with errors"))
    return tag("dl", [tag("div", tag("dt", word), tag("dd", len(found[place])), class_=place if found[place] else f"{place} none")
                      for place, word in words],
               class_="figures", aria_label=f"The places of {results.title(results.ours)}, by number of cases")


def _summary(results, remarks):
    record = results.record
    shots, unmeasured = len(record.shots), record.unmeasured
    absent = [c.title for c in record.contestants.values() if c.state != "present"]
    return (_figures(results), tag("p", wording.headline(results), class_="lead"), _heat(results, "cpu_us"),
            tag("p", f"{len(results.runners)} servers ran in {len(record.cases)} cases with {shots:,} shots in all. "
                + (f"{wording.listed(absent)} could not take part. " if absent else "")
                + (f"{len(record.disqualified)} times a server was disqualified; each case gives the reason. " if record.disqualified else "")
                + (f"In {len(unmeasured)} cases a server could not be measured, because wr or the client failed. " if unmeasured else "")
                + "There is deliberately no overall winner: the report shows which server wins in which case."),
            tag("p", "This run was interrupted, so the rest was not measured.", class_="notice") if record.interrupted else None,
            tag("div", tag("h3", "Remarks"), markdown(remarks, "h4"), class_="prose remarks card") if remarks else None,
            _ours(results))


# ---- Winners by case ----

def _cell(results, case, metric):
    if metric not in results.ranked(case):
        return tag("td", tag("span", "–", aria_label="not ranked here"), class_="none")
    standing = results.standing(case, metric)
    if standing.decided:
        names = [tag("span", results.title(n), class_="ours" if n == results.ours else None) for n in standing.winners]
        joined = [part for name in names for part in (", ", name)][1:]
        value = metric_of(metric).write(standing.estimates[standing.winners[0]].median)
        tied = tag("span", "tie", class_="badge tie") if standing.verdict == "tied" else None
        return tag("td", tied, " " if tied else None, joined, tag("small", value), class_="decided")
    return tag("td", tag("span", wording.UNDECIDED[standing.verdict], class_="badge warn"), class_="none")


def _winners(results):
    metrics = [m for m in RANKED if any(m in results.ranked(c) for c in results.record.cases)]
    head = tag("tr", tag("th", "Case", scope="col"), [tag("th", metric_of(m).title, scope="col") for m in metrics])
    rows = [tag("tr", tag("th", tag("a", about.title, href=f"#case-{case}"), scope="row"), [_cell(results, case, m) for m in metrics])
            for case, about in results.record.cases.items()]
    return casecard.scrolled(tag("table", tag("caption", "The winners of each case"), tag("thead", head), tag("tbody", rows),
                                 class_="winners"), "The winners of each case")


def _letters(results, case, name):
    """Renders a letter for each metric that the contestant wins here."""
    if name in results.disqualified(case):
        return tag("td", tag("span", "out", class_="badge bad", title="disqualified"))
    if name in results.unmeasured(case):
        return tag("td", tag("span", "?", aria_label="not measured", title="not measured: wr or the client failed"), class_="none")
    if name not in results.present(case):
        return tag("td", tag("span", "–", aria_label="did not take part"), class_="none")
    marks = []
    for metric in sorted(results.ranked(case), key=RANKED.index):
        place = results.standing(case, metric).place(name)
        if place in ("first", "tied"):
            m = metric_of(metric)
            marks.append(tag("abbr", m.letter, class_=f"mark {place}",
                             title=f"{m.title}: {m.best if place == 'first' else 'tied for the first place'}"))
    return tag("td", marks or tag("span", "·", aria_label="behind"), class_=None if marks else "none")


def _matrix(results):
    names = results.runners
    head = tag("tr", tag("th", "Case", scope="col"),
               [tag("th", tag("span", results.title(n)), scope="col", class_="ours" if n == results.ours else None) for n in names])
    rows = [tag("tr", tag("th", tag("a", about.title, href=f"#case-{case}"), scope="row"),
                [_letters(results, case, n) for n in names]) for case, about in results.record.cases.items()]
    legend = [tag("span", tag("b", metric_of(m).letter), " ", metric_of(m).inside) for m in RANKED]
    return (casecard.scrolled(tag("table", tag("caption", "Cases and contestants"), tag("thead", head), tag("tbody", rows),
                                  class_="matrix"), "Winners by case and contestant"),
            tag("p", legend, tag("span", tag("b", "R", class_="mark first"), " only winner"),
                tag("span", tag("b", "R", class_="mark tied"), " tied"), tag("span", tag("b", "out", class_="badge bad"), " disqualified"),
                tag("span", tag("b", "–"), " did not take part"), tag("span", tag("b", "?"), " could not be measured"), class_="legend"))


def _heat(results, metric):
    drawing = plots.matrix(results, metric)
    if not drawing:
        return None
    m = metric_of(metric)
    note = f"{m.title} as a multiple of the best median of each case. Framed: first, or tied for it. Darker cells are farther from the best."
    if metric == "rate":
        note += " *: the client was the bottleneck in some shots."
    return casecard.figure(drawing, note, wide=True)


def _where(results):
    return (_winners(results), tag("details", tag("summary", "The same, by contestant"), _matrix(results)),
            tag("details", tag("summary", "Distance from the best rate"), heat) if (heat := _heat(results, "rate")) else None)


# ---- Contestants and machine ----

def _configuration(name, text_of):
    return tag("details", tag("summary", name), tag("pre", tag("code", text_of), tabindex="0", aria_label=name))


def _contestant(results, name, contestant):
    facts = [contestant.origin, f"package {contestant.package}" if contestant.package else None,
             f"revision {contestant.revision} of its set-up", "speaks: " + ", ".join(contestant.features) if contestant.features else None]
    state = None
    if contestant.state != "present":
        state = tag("span", contestant.state, class_="badge bad")
    elif contestant.yardstick:
        state = tag("span", "yardstick, never ranked", class_="badge")
    elif name == results.ours:
        state = tag("span", "ours", class_="badge own")
    return tag("article", tag("h3", contestant.title, " ", state),
               tag("p", tag("code", contestant.version) if contestant.version else "version not known", class_="version"),
               tag("p", contestant.why, class_="notice") if contestant.why else None,
               tag("p", " · ".join(f for f in facts if f), class_="quiet") if contestant.state == "present" else None,
               tag("details", tag("summary", "Is this fair?"), tag("div", markdown(contestant.fairness, "h4"), class_="prose"))
               if contestant.fairness.strip() else None,
               [_configuration(file, body) for file, body in contestant.configuration.items()],
               class_="contestant card", id=f"contestant-{name}")


# Each fairness note describes only the differences from these rules.
COMMON = (
    "All contestants have the same files, certificate, descriptor limit and cores. A server has one worker per core, if it has such a "
    "setting.",
    "Nothing is compressed. There is no access log, unless the case is about logs.",
    "If the server has the setting, connections may be idle for 65 seconds and carry any number of requests.",
    "The note of each server describes its differences and the reasons for them, and contains the complete configuration.")


def _contestants(results):
    common = tag("div", tag("h3", "Common settings"), tag("ul", [tag("li", line) for line in COMMON]), class_="prose card")
    return common, tag("div", [_contestant(results, n, c) for n, c in results.record.contestants.items()], class_="grid")


NAMES = {"cpu": "CPU", "os": "System", "memory_kb": "Memory", "cpu_counted_by": "CPU time measured by", "virtual": "Virtual machine",
         "load_before": "Load before", "load_after": "Load after"}


def _fact(key, value):
    if value is None or value == "" or value == {} or value == []:
        return "not known"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        return tag("ul", [tag("li", tag("span", k.replace("_", " "), class_="quiet"), " ", _fact(k, v)) for k, v in value.items()])
    if isinstance(value, (list, tuple)):
        return ", ".join(digits(v) if isinstance(v, float) else str(v) for v in value)
    if key.endswith("_kb") and isinstance(value, (int, float)):
        return metric_of("pss_kb").write(value)
    return f"{value:,}" if isinstance(value, int) else value


def _machine(results):
    record = results.record
    facts = {"started": record.started, "ended": record.ended, "mode": MODES.get(record.mode, record.mode)}
    if record.seed is not None:
        facts["seed of the order"] = str(record.seed)
    if record.site:
        facts["site"] = record.site
    if record.noise is not None:
        facts["disturbed from"] = metric_of("strangers").write(record.noise) + " of the used cores"
    facts |= record.environment
    facts["virtual"] = facts.get("virtual") or "no sign of one"
    items = [tag("div", tag("dt", NAMES.get(k) or k.replace("_", " ").capitalize()), tag("dd", _fact(k, v))) for k, v in facts.items()]
    notes = tag("ul", [tag("li", n) for n in record.notes]) if record.notes else None
    return (tag("dl", items, class_="facts card"), tag("h3", "Notes of the run") if notes else None, notes)


# ---- Text ----

def _reading(results):
    rounds = sorted({c.rounds for c in results.record.cases.values()})
    chance = "; ".join(f"{n} rounds: {chance_of_difference(n, n) * 100:.2g} %" for n in rounds if n >= 1)
    rules = (
        ("Number and interval", "Each number is the median of the rounds. Below it is the interval that contains the true "
         f"median with {LEVEL * 100:.0f} % confidence if there are enough rounds; otherwise it is the whole range of the rounds, with "
         "less confidence. The column of rounds shows their number."),
        ("Faster, cheaper, smaller", "The report uses these words only when two intervals do not overlap. If they overlap, no difference "
         "is shown, and all servers whose interval overlaps with that of the best median tie for the first place."),
        ("Luck", "How often two identical servers would seem different by chance: "
         f"{chance}. With fewer than {ROUNDS_MIN} rounds the report claims no differences."),
        ("Ratios", "A ratio is always a multiple of the base beside it: 0.81 × nginx means 81 % of nginx's value."),
        ("The client was the bottleneck", "A rate with this mark shows what the load client could do: the server can do at least as much. "
         "Two such rates cannot be distinguished; a server below one of them is behind. CPU per request and memory can still be compared."),
        ("What counts", "Each case counts once, by its first metric. The report shows other metrics beside it. "
         "Repetitions of old comparisons overlap with other cases and do not count."),
        ("Latency", "It is ranked where requests leave when they are due, without values that the client marks as possibly its own delay. Elsewhere the client "
         "waits for a response before it sends the next request, so latency is little more than connections divided by the rate: "
         "it is shown, but not ranked."),
        ("Disturbed", "Other programs used more of the machine than allowed, even in repeated shots. If that affects half "
         "of the shots of one of the best servers, rate and latency have no winner."),
        ("CPU per request", "User and system time of the server and all of its children, divided by the requests. "
         "It does not depend on the speed of the client, so it is the most meaningful number. Less is better. It comes from the server's cgroup, "
         "which includes ended processes; sums over processes are a different measure and never ranked against it."),
        ("Not measured", "The measuring program or the client failed, even in a second attempt. That is not the server's fault, "
         "so the case neither ranks nor disqualifies it."),
        ("Yardsticks", "A yardstick, such as the floor, does as little as a server can: it shows the cost of the machine and the kernel. "
         "It is never ranked."))
    return tag("dl", [tag("div", tag("dt", title), tag("dd", body)) for title, body in rules], class_="rules")


def _method(results, raw):
    limits = (
        "Server and client have separate cores, and rounds are interleaved: every server has one shot in each round, "
        "so slow periods of the machine affect all servers. Meanwhile the others are stopped; in cases that compare memory "
        "they do not run at all.",
        "Before the shots of a case, responses under load are compared: status, length and content. Over HTTP/1.1 that "
        "is every response; over HTTP/2 it is those of a second client beside the load, because h2load shows no contents. During the shots, status and number of bytes "
        "are checked as far as the client reports them. A wrong response or an error disqualifies.",
        "The result of a sweep is the geometric mean over its steps, computed for each round; the interval is that between rounds.",
        "Everything runs over the loopback of one machine, so the report does not show the effects of network cards, packet loss or distance.",
        "Shots last seconds, so the report does not show effects that take hours, such as growing memory.",
        "Memory is PSS: shared pages are divided among the processes that share them. Pages in the kernel's file cache do not count.",
        "In a closed loop the client waits for a response before it sends the next request, so latency is mostly the number of connections "
        "divided by the rate. Only the cases with a fixed rate show how long visitors would wait.",
        "The report makes many comparisons, so a few of the differences are due to chance. Repeat the run to confirm small ones.",
        "The developers of Monkey run this contest. Please review and improve the configurations: an unfair configuration is a bug.")
    link = tag("p", "All numbers: ", tag("a", raw, href=raw), ". ", tag("code", "contest report"), " creates this page from them.") if raw else None
    return tag("ul", [tag("li", line) for line in limits], class_="prose"), link


# ---- The page ----

def _style():
    return Markup(f":root {{ {palette.css(0)} color-scheme: light }}\n"
                  f"@media (prefers-color-scheme: dark) {{ :root {{ {palette.css(1)} color-scheme: dark }} }}\n"
                  f":root:has(#theme-light:checked) {{ {palette.css(0)} color-scheme: light }}\n"
                  f":root:has(#theme-dark:checked) {{ {palette.css(1)} color-scheme: dark }}\n"
                  f"@media print {{ :root, :root:has(#theme-dark:checked) {{ {palette.css(0)} color-scheme: light }} }}\n"
                  + (PARTS / "style.css").read_text(encoding="utf-8"))


def _theme():
    options = [tag("label", tag("input", type="radio", name="theme", id=f"theme-{name}", value=name, checked=name == "auto"),
                   tag("span", title)) for name, title in (("auto", "Auto"), ("light", "Light"), ("dark", "Dark"))]
    return tag("fieldset", tag("legend", "Colors", class_="hidden"), options, class_="theme")


def _navigation(results):
    entries = []
    for key, title in SECTIONS:
        inner = None
        if key == "cases":
            inner = tag("ol", [tag("li", tag("a", about.title, href=f"#case-{name}")) for name, about in results.record.cases.items()])
        entries.append(tag("li", tag("a", title, href=f"#{key}"), inner))
    return tag("nav", tag("ol", entries), _theme(), aria_label="Contents")


def render(record, title="A contest of web servers", raw=None, ours="monkey", remarks=""):
    """Renders the whole page."""
    results = Results(record, ours)
    bodies = {"summary": _summary(results, remarks), "reading": _reading(results), "where": _where(results),
              "cases": casecard.cards(results), "contestants": _contestants(results), "machine": _machine(results),
              "method": _method(results, raw)}
    when = record.started[:10]
    machine = ", ".join(str(record.environment[k]) for k in ("cpu", "os") if record.environment.get(k))
    head = tag("head", tag("meta", charset="utf-8"), tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
               tag("meta", name="color-scheme", content="light dark"), tag("title", f"{title}, {when}"), tag("style", _style()))
    header = tag("header", tag("h1", title), tag("p", f"{when} · {MODES.get(record.mode, record.mode)}"
                                                + (f" · {machine}" if machine else ""), class_="quiet"))
    sections = [tag("section", tag("h2", name, id=f"{key}-title"),
                    tag("details", tag("summary", f"Show: {name.lower()}"), bodies[key]) if key in FOLDED else bodies[key],
                    id=key, aria_labelledby=f"{key}-title") for key, name in SECTIONS]
    footer = tag("footer", tag("p", f"Made by contest {record.contest}, which is part of Monkey."))
    body = tag("body", tag("a", "Skip to the contents", href="#main", class_="skip"), _navigation(results),
               tag("div", header, tag("main", sections, id="main", tabindex="-1"), footer, class_="sheet"),
               tag("script", Markup((PARTS / "script.js").read_text(encoding="utf-8"))))
    return f"<!DOCTYPE html>\n<!-- SPDX-License-Identifier: Apache-2.0 -->\n{tag('html', head, text(body), lang='en')}\n"


# ---- The command ----

def add_arguments(parser):
    parser.add_argument("record", nargs="?", help="a record, or the folder of a run (default: the newest run)")
    parser.add_argument("-o", "--output", metavar="PAGE", help="the HTML page (default: report.html beside the record)")
    parser.add_argument("--summary", metavar="FILE", help="the summary in Markdown (default: summary.md beside the page)")
    parser.add_argument("--plots", metavar="FOLDER", help="also write the plots as SVG files into this folder")
    parser.add_argument("--remarks", metavar="FILE", help="your Markdown for the summary: reasons for losses, surprises")
    parser.add_argument("--title", default="A contest of web servers", help="headline of the page")
    parser.add_argument("--ours", default="monkey", metavar="NAME", help="the contestant whose wins and losses are listed (default: monkey)")


def read_remarks(path):
    if not path:
        return ""
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: cannot be read as text: {error}; --remarks takes a file with Markdown", 2) from None


def write(path, body):
    """Writes the file atomically."""
    path = Path(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh = path.with_name(path.name + ".new")
        fresh.write_bytes(body.encode("utf-8", "replace"))
        fresh.replace(path)
    except OSError as error:
        raise UserError(f"{path}: cannot be written: {error.strerror}; choose another file with --output") from None


def write_plots(record, folder, ours="monkey"):
    results = Results(record, ours)
    for name, drawing in casecard.drawings(results):
        write(Path(folder) / f"{name}.svg", plots.standalone(drawing))


def main(options):
    found = records.find(options.record or records.latest(records.RESULTS) or records.RESULTS)
    record = records.load(found)
    if not record.shots:
        raise UserError(f"{found}: no shots in this record, so there is nothing to report")
    if options.ours not in record.contestants:
        print(f"contest: {options.ours} is not in this record{nearest(options.ours, record.contestants)}; the report omits it",
              file=sys.stderr)
    page = Path(options.output or found.parent / "report.html")
    raw = os.path.relpath(found, page.parent)
    remarks = read_remarks(options.remarks)
    write(page, render(record, options.title, raw, options.ours, remarks))
    short = Path(options.summary or page.with_name("summary.md"))
    write(short, summary.render(record, options.title, os.path.relpath(page, short.parent), os.path.relpath(found, short.parent),
                                options.ours, remarks))
    if options.plots:
        write_plots(record, options.plots, options.ours)
    print(page)
    print(short)
    return 0
