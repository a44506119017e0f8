# SPDX-License-Identifier: Apache-2.0
"""The bundled site is well formed and self-contained: all references lead to its own files."""
import re
import xml.etree.ElementTree as ElementTree
from html.parser import HTMLParser
from pathlib import Path

import pytest

SITE = Path(__file__).resolve().parents[2] / "site"
VOID = {"meta", "link", "img", "br", "hr", "input"}
PAGES = sorted(SITE.glob("*.html"))
FETCHED = {("link", "href"), ("img", "src"), ("script", "src"), ("source", "srcset"), ("a", "href")}


class Page(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.open, self.refs, self.ids, self.labels, self.images, self.headings = [], [], [], [], [], []
        self.lang = None
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.refs += [attrs[a] for t, a in FETCHED if t == tag and a in attrs]
        self.ids += [attrs["id"]] if "id" in attrs else []
        self.labels += attrs.get("aria-labelledby", "").split()
        self.images += [attrs] if tag == "img" else []
        self.headings += [int(tag[1])] if re.fullmatch("h[1-6]", tag) else []
        self.lang = attrs.get("lang") if tag == "html" else self.lang
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open and self.open[-1] == tag, f"</{tag}> in line {self.getpos()[0]} closes {self.open[-1:]}"
        self.open.pop()


@pytest.fixture(params=PAGES, ids=lambda p: p.name)
def page(request):
    return Page(request.param.read_text(encoding="utf-8"))


def test_every_element_is_closed(page):
    assert page.open == []


def test_every_reference_leads_to_a_file_of_the_site(page):
    assert page.refs
    for ref in page.refs:
        assert "//" not in ref, f"{ref} is on another server"
        target = SITE / ref.lstrip("/")
        assert target.exists(), f"{ref} does not exist"


def test_page_is_accessible(page):
    assert page.lang == "en"
    assert len(page.ids) == len(set(page.ids))
    assert set(page.labels) <= set(page.ids)
    assert all("alt" in image for image in page.images)
    assert page.headings.count(1) == 1
    assert all(b - a <= 1 for a, b in zip(page.headings, page.headings[1:])), "a heading level is skipped"


def test_error_page_works_at_any_depth():
    for ref in Page((SITE / "404.html").read_text(encoding="utf-8")).refs:
        assert ref.startswith("/"), f"{ref} would be relative to the path of the failed request"


@pytest.mark.parametrize("name", ["monkey.svg", "favicon.svg"])
def test_drawings_are_self_contained_svg(name):
    root = ElementTree.parse(SITE / name).getroot()
    assert root.tag == "{http://www.w3.org/2000/svg}svg" and "viewBox" in root.attrib
    assert not [e for e in root.iter() if e.tag.endswith(("}image", "}use", "}script"))]


def test_style_and_script_have_no_external_references():
    for path in [*SITE.glob("*.css"), *SITE.glob("*.js")]:
        assert not re.search(r"url\(|@import|https?:", path.read_text(encoding="utf-8")), path.name


def test_site_is_small():
    assert sum(p.stat().st_size for p in SITE.iterdir()) < 40_000
