# SPDX-License-Identifier: Apache-2.0
"""The built-in error page is small, and looks like the welcome site in both color schemes and on a phone."""
import re

import pytest

from browser import FOUND, Browser
from monkey import ROOT

STYLE = (ROOT / "site/style.css").read_text()


def colors(dark):
    """Returns --ground, --ink and --soft of the welcome site."""
    part = STYLE.split("@media (prefers-color-scheme: dark)")[1 if dark else 0]
    return [re.search(rf"--{name}: (#\w+);", part)[1] for name in ("ground", "ink", "soft")]


def rgb(text):
    return "rgb({}, {}, {})".format(*(int(text[i:i + 2], 16) for i in (1, 3, 5)))


def test_error_page_is_small(monkey):
    assert len(monkey().get("/none").body) < 1500


@pytest.mark.skipif(not FOUND, reason="no chromium here")
@pytest.mark.over("h1", why="the browser does not trust the certificate")
def test_error_page_looks_like_the_welcome_site(monkey, tmp_path):
    server = monkey()
    with Browser(tmp_path) as browser:
        for dark in (False, True):
            browser.look(width=390, height=800, dark=dark, mobile=True)
            browser.goto(server.url + "/none")
            ground, ink, soft = map(rgb, colors(dark))
            seen = browser.run("[[document.body, 'backgroundColor'], [document.querySelector('h1'), 'color'],"
                                    " [document.querySelector('p'), 'color']].map(([e, c]) => getComputedStyle(e)[c])")
            assert seen == [ground, ink, soft]
            wide = browser.run("document.documentElement.scrollWidth")
            assert wide <= 390, "the page scrolls sideways on a phone"
            assert browser.run("document.querySelector('p').textContent") == "There is nothing at this address."
            browser.screenshot(tmp_path / f"{dark}.png")
        assert not browser.console or all("404" in str(line) for line in browser.console)
