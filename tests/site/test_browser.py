# SPDX-License-Identifier: Apache-2.0
"""The welcome site in a real browser, served by the optimized program, as after `make run`."""
import os
import re
import shutil
import struct
import subprocess
import zlib
from collections import Counter
from pathlib import Path

import pytest

from browser import Browser

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = Path(os.environ.get("MONKEY_PROGRAM", ROOT / "build" / "release" / "monkey"))
BROWSER = next((b for b in map(shutil.which, ("chromium", "chromium-browser", "google-chrome")) if b), None)
# Headless, without background services or network requests of its own.
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
         "--disable-background-networking", "--disable-component-update", "--disable-sync", "--hide-scrollbars"]

pytestmark = [pytest.mark.skipif(not PROGRAM.exists(), reason=f"{PROGRAM} is not built"),
              pytest.mark.skipif(not BROWSER, reason="no chromium here")]


@pytest.fixture
def address(monkey):
    return monkey(args=["-p", "0", ROOT / "site"], program=PROGRAM).url


@pytest.fixture
def browse(tmp_path):
    def run(url, *flags):
        done = subprocess.run([BROWSER, *FLAGS, f"--user-data-dir={tmp_path / 'profile'}",
                               "--virtual-time-budget=3000", *flags, url], capture_output=True, text=True, timeout=50,
                              check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


def test_page_loads_and_its_script_shows_the_response(address, browse):
    page = browse(address + "/", "--dump-dom")
    assert "<h1>It works.</h1>" in page
    assert re.search(r'<div class="answer" id="answer">', page), "the response is still hidden"
    shown = re.sub(r"<[^>]+>", "", re.search(r'<pre id="head">(.*?)</pre>', page, re.DOTALL).group(1))
    assert shown.startswith("200 ")
    assert re.search(r"^Content-Type: text/html", shown, re.MULTILINE)
    assert re.search(r"^Server: Monkey", shown, re.MULTILINE)


@pytest.mark.over("h1", why="rendering does not depend on the protocol")
@pytest.mark.parametrize("width", [320, 360, 390])
def test_code_fits_on_a_phone(address, tmp_path, width):
    with Browser(tmp_path) as page:
        page.look(width=width, height=800, mobile=True)
        page.goto(address + "/")
        page.wait_for("!document.querySelector('#answer').hidden")
        assert page.run("document.documentElement.scrollWidth <= innerWidth"), "the page scrolls sideways"
        cut = page.run("[...document.querySelectorAll('pre')].filter(p => p.scrollWidth > p.clientWidth).map(p => p.textContent)")
        assert cut == []


def pixels(path):
    """Counts the pixels of each color in an 8-bit PNG."""
    data, at, packed = path.read_bytes(), 8, b""
    while at < len(data):
        size, kind = struct.unpack(">I4s", data[at:at + 8])
        body = data[at + 8:at + 8 + size]
        if kind == b"IHDR":
            width, _, depth, color = struct.unpack(">IIBB", body[:10])
            assert depth == 8 and color in (2, 6)
        packed += body if kind == b"IDAT" else b""
        at += size + 12
    step = 3 if color == 2 else 4
    raw, above, colors = zlib.decompress(packed), bytearray(width * step), Counter()
    for begin in range(0, len(raw), width * step + 1):
        line = bytearray(raw[begin + 1:begin + 1 + width * step])
        for i in range(len(line)):
            left, up, corner = (line[i - step], above[i], above[i - step]) if i >= step else (0, above[i], 0)
            line[i] = line[i] + predict(raw[begin], left, up, corner) & 255
        colors.update("%02x%02x%02x" % tuple(line[i:i + 3]) for i in range(0, len(line), step))
        above = line
    return colors


def predict(kind, left, up, corner):
    """Returns the value that a PNG line filter predicts for a byte (section 9 of the specification)."""
    if kind < 4:
        return (0, left, up, (left + up) // 2)[kind]
    near = left + up - corner
    return min((left, up, corner), key=lambda b: abs(near - b))


@pytest.mark.over("h2-tls", why="rendering does not depend on the protocol, which the test above checks")
@pytest.mark.parametrize("scheme,ground", [(1, "fdf9f2"), (0, "17110d")], ids=["light", "dark"])
def test_page_is_drawn_with_style_and_mascot(address, browse, tmp_path, scheme, ground):
    picture = tmp_path / "page.png"
    browse(address + "/", f"--screenshot={picture}", "--window-size=700,500",
           f"--blink-settings=preferredColorScheme={scheme}")
    colors = pixels(picture)
    assert colors.most_common(1)[0][0] == ground, "the style sheet is missing"
    assert colors["7d5238"] > 1000, "the mascot is missing"
