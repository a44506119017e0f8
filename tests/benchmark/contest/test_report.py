# SPDX-License-Identifier: Apache-2.0
"""The report is well formed, self-contained and complete, and it does not hide losses."""
import argparse
import html.parser
import json
import re

import pytest

import browser
import sample_record
from contest import cli, elements, record as records, report, summary
from contest.user_error import UserError
from contest.record import Exclusion

class Page(html.parser.HTMLParser):
    """Parses a page and collects unbalanced tags."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.open, self.wrong, self.tags, self.ids, self.words, self.scripts = [], [], [], [], [], []
        self.feed(text)
        self.close()
        self.wrong += [f"not closed: {tag}" for tag in self.open]

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self.ids += [value for name, value in attrs if name == "id"]
        if tag not in elements.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self.ids += [value for name, value in attrs if name == "id"]

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.wrong.append(f"</{tag}> at {self.getpos()}")

    def handle_data(self, data):
        (self.scripts if self.open and self.open[-1] in ("script", "style") else self.words).append(data)

    @property
    def text(self):
        return re.sub(r"\s+", " ", "".join(self.words))

    def all(self, tag):
        return [attributes for name, attributes in self.tags if name == tag]


@pytest.fixture(scope="module")
def record():
    return sample_record.make()


@pytest.fixture(scope="module")
def text(record):
    return report.render(record, raw="record.json")


@pytest.fixture(scope="module")
def page(text):
    return Page(text)


def test_page_tags_are_balanced(page):
    assert page.wrong == []


def test_page_parser_finds_unbalanced_tags():
    assert Page("<p><b>x</p></b>").wrong and Page("<div>").wrong and not Page("<p>a<br>b</p>").wrong


def test_page_ids_are_unique_and_links_resolve(page):
    assert len(set(page.ids)) == len(page.ids)
    for link in page.all("a"):
        assert link["href"] == "record.json" or link["href"][1:] in page.ids, link
    for tag, attributes in page.tags:
        if "aria-labelledby" in attributes:
            assert attributes["aria-labelledby"] in page.ids


def test_page_is_self_contained(page, text):
    for tag, attributes in page.tags:
        assert tag not in ("link", "img", "iframe", "object", "embed", "base"), tag
        assert "src" not in attributes and "srcset" not in attributes
        assert not any(name.startswith("on") for name in attributes)
        if "href" in attributes:
            assert not re.match(r"\w+:|//", attributes["href"])
    assert set(re.findall(r"https?://[^\s\"'<)]*", text)) == {"http://www.w3.org/2000/svg"}
    assert not re.search(r"@import|url\((?!#)", text)


def test_page_has_headings_and_landmarks(page):
    assert len(page.all("h1")) == 1 and len(page.all("main")) == 1 and len(page.all("nav")) == 1
    assert page.tags[0][1]["lang"] == "en"
    levels = [int(tag[1]) for tag, _ in page.tags if re.fullmatch(r"h[1-6]", tag)]
    assert all(b - a <= 1 for a, b in zip(levels, levels[1:]))
    assert all(attributes.get("scope") for attributes in page.all("th"))
    assert all(attributes.get("aria-label") for attributes in page.all("svg"))
    assert len(page.all("caption")) == len([t for t in page.all("table")])
    assert any(a.get("class") == "skip" and a["href"] == "#main" for a in page.all("a"))


def test_page_contains_every_case_and_contestant(page, record):
    for name, case in record.cases.items():
        assert f"case-{name}" in page.ids and case.title in page.text and case.about in page.text
        if case.historical:
            assert case.historical.then in page.text and case.historical.differs in page.text
    for name, contestant in record.contestants.items():
        assert f"contestant-{name}" in page.ids and contestant.title in page.text
        assert contestant.version is None or contestant.version in page.text
        assert contestant.why is None or contestant.why in page.text
        for file, body in contestant.configuration.items():
            assert file in page.text and re.sub(r"\s+", " ", body.strip()) in page.text
    for each in (*record.disqualified, *record.absent_in):
        assert each.why in page.text
    for value in ("Example CPU @ 2.90GHz", "6.18.5", "Retpolines", "1,048,576", *record.notes):
        assert value in page.text


def test_page_states_common_rules_once(page):
    assert page.text.count("Common settings") == 1 and "Nothing is compressed" in page.text


def test_page_states_our_losses(page, record):
    assert re.search(r"Monkey loses: Monkey [\d.]+ µs = 1\.\d+ × h2o \([\d.]+ µs\), [\d.]+ % more CPU time per request than h2o", page.text)
    assert re.search(r"Where Monkey is not first\d+", page.text)
    assert "Monkey loses" in summary.render(record) and "## Where Monkey is not first" in summary.render(record)


def test_page_shows_losses_before_wins(text):
    assert text.index("place behind") < text.index("place first")
    assert re.search(r'<details class="place behind" open>', text)


def test_page_marks_client_bound_rates_without_winner(page):
    assert "client was the bottleneck" in page.text and "client 5/5" in page.text
    assert "Requests per second: no winner. The load client was the bottleneck for Monkey, nginx, lighttpd and h2o" in page.text


def test_page_names_no_winner_for_overlapping_intervals():
    record = sample_record.make(only=("small", "close"))
    for shot in record.shots:  # all values are similar, so no server counts as cheaper
        for key in shot.metrics:
            shot.metrics[key] = 10.0 + shot.round + (hash_of(shot.contestant) % 7) / 10
        shot.bottleneck = "server"
    for made in (Page(report.render(record)).text, summary.render(record)):
        assert not re.search(r"is (fastest|cheapest|quickest|smallest)|Monkey (wins|loses)", made)
        assert "tie" in made


def hash_of(name):
    return sum(map(ord, name))


HOSTILE = "<script>alert('x')</script><img src=//evil onerror=alert(1)>\"' & </style></title> | `a` **b**"


def hostile():
    record = sample_record.make(only=("small", "gwan-100"))
    nginx = record.contestants["nginx"]
    nginx.title = nginx.version = nginx.origin = nginx.package = HOSTILE
    nginx.fairness = f"# {HOSTILE}\n\n- {HOSTILE}\n\n```\n{HOSTILE}\n```\n\n[x](javascript:alert(1))\n\n|a|\n|-|\n|{HOSTILE}|\n"
    nginx.configuration = {HOSTILE: HOSTILE}
    record.contestants["gwan"].why = HOSTILE
    case = record.cases["gwan-100"]
    case.title = case.about = case.client = case.historical.then = case.historical.name = HOSTILE
    case.command = [HOSTILE]
    record.disqualified.append(Exclusion("small", "caddy", HOSTILE))
    record.notes = [HOSTILE]
    record.environment |= {"cpu": HOSTILE, HOSTILE: {HOSTILE: [HOSTILE]}}
    record.started = HOSTILE
    return record


def test_page_escapes_hostile_texts(page):
    text = report.render(hostile(), title=HOSTILE)
    bad = Page(text)
    assert bad.wrong == []
    assert len(bad.all("script")) == 1 and len(bad.all("style")) == 1 and not bad.all("img")
    assert not any(name.startswith("on") for _, attributes in bad.tags for name in attributes)
    assert "javascript:" not in text
    assert bad.text.count("<script>alert('x')</script>") > 10
    assert "".join(bad.scripts) == "".join(page.scripts)


def test_summary_escapes_hostile_texts():
    text = summary.render(hostile(), title=HOSTILE)
    assert "<script" not in text and "<img" not in text
    tables = [line for line in text.split("\n") if line.startswith("|")]
    for row in tables:
        assert "\n" not in row
    for block in re.findall(r"(?:^\|.*\n)+", text, flags=re.MULTILINE):
        widths = {len(re.findall(r"(?<!\\)\|", line)) for line in block.strip().split("\n")}
        assert len(widths) == 1, block


def test_summary_has_all_parts(record):
    text = summary.render(record, page="report.html", raw="record.json")
    for part in ("## Winners by case", "## Cases", "## Contestants", "## Machine", "(report.html)", "(record.json)", "†", "tie",
                 "G-WAN", "absent", "is disqualified", "(yardstick)", "*client was the bottleneck*"):
        assert part in text, part
    for name, case in record.cases.items():
        assert f"### {case.title} (`{name}`)" in text


@pytest.mark.parametrize("change", ["one round", "one contestant", "no ours", "no shots in a case", "only a yardstick", "interrupted"])
def test_unusual_records_can_be_rendered(change):
    record = sample_record.make(only=("small", "idle"))
    if change == "one round":
        record.shots = [s for s in record.shots if s.round == 1]
    elif change == "one contestant":
        record.shots = [s for s in record.shots if s.contestant == "monkey"]
    elif change == "no ours":
        record.shots = [s for s in record.shots if s.contestant != "monkey"]
        del record.contestants["monkey"]
        record.absent_in = [e for e in record.absent_in if e.contestant != "monkey"]
    elif change == "no shots in a case":
        record.shots = [s for s in record.shots if s.case != "small"]
    elif change == "only a yardstick":
        record.shots = [s for s in record.shots if s.contestant == "floor"]
    else:
        record.interrupted, record.ended = True, None
    text = report.render(record)
    assert Page(text).wrong == []
    assert ("was interrupted" in text) == (change == "interrupted")
    if change in ("one round", "one contestant", "only a yardstick"):
        assert not re.search(r"is (fastest|cheapest|quickest|smallest)\.", text)
    assert summary.render(record).startswith("<!--")


# ---- Parts ----

def test_tag_escapes_text_and_attributes():
    assert elements.tag("p", "<&", class_="a\"b", data_x=1, hidden=True, title=None) == '<p class="a&quot;b" data-x="1" hidden>&lt;&amp;</p>'
    assert elements.tag("br") == "<br>"
    assert elements.text(["a", elements.Markup("<b>"), None, ("c", 1)]) == "a<b>c1"


def test_markdown_is_converted():
    made = elements.markdown("# A\ntext `<c>` **d**\n- one\n  goes on\n- two\n\n```\nx < y\n```\n[link](http://a/)\n")
    assert made == ('<h5>A</h5><p>text <code>&lt;c&gt;</code> <strong>d</strong></p><ul><li>one goes on</li><li>two</li></ul>'
                    '<pre tabindex="0"><code>x &lt; y</code></pre><p>link</p>')
    assert elements.markdown("|a|b|\n|-|-|\n|1|2|") == (
        '<div class="scroll" tabindex="0"><table><thead><tr><th scope="col">a</th><th scope="col">b</th></tr></thead><tbody>'
        "<tr><td>1</td><td>2</td></tr></tbody></table></div>")
    assert elements.markdown("<!-- hidden -->\n") == ""


# ---- The command ----

def options(*arguments):
    parser = argparse.ArgumentParser()
    report.add_arguments(parser)
    return parser.parse_args([str(a) for a in arguments])


def test_page_begins_with_the_figures(text):
    """On a phone, the figures fit on the first screen, and the paragraph that explains them takes at most a dozen lines."""
    assert 0 < text.index('class="figures"') < text.index('class="lead"')


def test_only_positive_figures_are_colored(text):
    figures = re.search(r'<dl class="figures".*?</dl>', text, re.DOTALL)[0]
    found = re.findall(r'<div class="([\w ]+)"><dt>[^<]+</dt><dd>(\d+)</dd>', figures)
    assert len(found) >= 4 and all(("none" in classes.split()) == (n == "0") for classes, n in found)
    assert {n == "0" for _, n in found} == {True, False}, "the sample has both"


@pytest.fixture
def folder(tmp_path):
    records.save(sample_record.make(only=("small",)), tmp_path / "run")
    return tmp_path / "run"


def test_report_command_writes_page_summary_and_plots(folder, tmp_path, capsys):
    records.save(sample_record.make(only=("small", "paced")), folder)
    remarks = tmp_path / "remarks.md"
    remarks.write_text("# Why\n\nh2o keeps **small files** ready.\n")
    assert report.main(options(folder, "--plots", tmp_path / "plots", "--remarks", remarks)) == 0
    text = (folder / "report.html").read_text()
    assert 'href="record.json"' in text and "<strong>small files</strong>" in text
    assert "(report.html)" in (folder / "summary.md").read_text()
    assert "### Why" in (folder / "summary.md").read_text()
    assert {"small-rate.svg", "small-time.svg", "matrix-cpu_us.svg", "paced-percentiles.svg"} <= {p.name for p in (tmp_path / "plots").iterdir()}
    assert str(folder / "report.html") in capsys.readouterr().out


def test_page_in_another_folder_links_to_the_record(folder, tmp_path):
    report.main(options(folder / "record.json", "-o", tmp_path / "out" / "a.html", "--summary", tmp_path / "b.md"))
    assert 'href="../run/record.json"' in (tmp_path / "out" / "a.html").read_text()
    assert "(out/a.html)" in (tmp_path / "b.md").read_text()


def test_summary_is_reproducible(record):
    assert summary.render(record) == summary.render(sample_record.make())


@pytest.mark.parametrize("content, expected", [
    (None, "no such file"), ("", "not a record"), ("{", "not a record"), ("[]", "expected an object"),
    ('{"format": 9}', "the format is 9"), ('{"format": 1, "mode": "full"}', "is missing")])
def test_invalid_records_have_distinct_errors(tmp_path, content, expected):
    path = tmp_path / "record.json"
    if content is not None:
        path.write_text(content)
    with pytest.raises(UserError, match=expected):
        report.main(options(path))
    assert not (tmp_path / "report.html").exists()


def change(folder, **changed):
    path = folder / "record.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changed))
    return path


def test_record_without_contestants_can_be_rendered(folder, capsys):
    change(folder, shots=[{"case": "nix", "contestant": "monkey", "round": 1, "step": 1, "metrics": {}}])
    assert cli.main(["report", str(folder)]) == 1
    assert "there is no case 'nix'" in capsys.readouterr().err


def test_report_rejects_an_empty_record(folder, capsys):
    change(folder, shots=[])
    assert cli.main(["report", str(folder)]) == 1
    assert "no shots in this record" in capsys.readouterr().err


def test_report_warns_of_an_unknown_own_contestant(folder, capsys):
    assert cli.main(["report", str(folder), "--ours", "monky"]) == 0
    assert "did you mean monkey?" in capsys.readouterr().err
    assert "Our own server did not take part." in (folder / "report.html").read_text()


def test_old_record_without_newer_fields_can_be_rendered(folder):
    path = folder / "record.json"
    value = json.loads(path.read_text())
    for name in ("unmeasured", "seed", "noise", "site", "verified"):
        value.pop(name, None)
    for shot in value["shots"]:
        for name in ("noise", "noisy", "counted_by", "repeated"):
            shot.pop(name, None)
    path.write_text(json.dumps(value))
    assert cli.main(["report", str(folder)]) == 0
    assert Page((folder / "report.html").read_text()).wrong == [] and "Monkey loses" in (folder / "summary.md").read_text()


def test_report_to_an_unwritable_path_fails(folder, capsys):
    assert cli.main(["report", str(folder), "-o", str(folder / "record.json" / "x.html")]) == 1
    assert "cannot be written" in capsys.readouterr().err


def test_report_with_missing_remarks_fails(folder, capsys):
    assert cli.main(["report", str(folder), "--remarks", str(folder / "none.md")]) == 2
    assert "--remarks takes" in capsys.readouterr().err


# ---- In a browser ----

@pytest.mark.skipif(not browser.FOUND, reason="no browser here")
def test_page_works_in_a_browser(folder, tmp_path):
    report.main(options(folder))
    with browser.Browser(tmp_path / "profile") as b:
        for width, dark in ((1360, False), (390, True)):
            b.look(width=width, dark=dark, mobile=width < 600)
            b.goto((folder / "report.html").as_uri())
            assert b.run("document.documentElement.scrollWidth") == width  # only tables and drawings scroll sideways
            ground = "getComputedStyle(document.body).backgroundColor"
            before = b.run(ground)
            b.run(f"document.getElementById('theme-{'light' if dark else 'dark'}').click()")
            assert b.run(ground) != before
            b.run("document.getElementById('theme-auto').click()")
            assert b.run(ground) == before
        first = "document.querySelector('#case-small table tbody tr').cells[0].textContent"
        b.run("document.querySelectorAll('#case-small table thead button')[2].click()")
        assert b.run("document.querySelectorAll('#case-small table thead th')[2].getAttribute('aria-sort')") == "ascending"
        assert "floor" in b.run(first)  # the cheapest contestant comes first, because this sort order ignores the ranking
        b.run("document.querySelectorAll('#case-small table thead button')[2].click()")
        assert "Node.js" in b.run(first)
        assert b.console == []


def test_page_shows_the_heat_map_first_and_collapses_the_rest(text):
    page = text
    assert page.index('id="summary"') < page.index("as a multiple of the best median") < page.index('id="where"') < page.index('id="cases"')
    assert page.count('<details class="more">') == page.count('class="card case"') > 0
    assert "no-repeat local" in page, "tables that scroll have a cue"
    assert not re.search(r"[\w ]+…</text>", page), "a label is cut"
