# SPDX-License-Identifier: Apache-2.0
"""The reference of Duda's sections (tests/docs loads its examples), and the man pages of its commands."""
import re
import shutil
import subprocess

import pytest

import services
from monkey import PROGRAM, ROOT, SECONDS

pytestmark = pytest.mark.skipif(not services.BUILT.exists(), reason="no Duda here")

PAGE = (ROOT / "docs/reference/duda.md").read_text()
PAGES = PROGRAM.parent / "docs"


def test_reference_sections_have_examples():
    assert {"DUDA", "SESSIONS", "KV", "REDIS", "SQLITE", "POSTGRES", "HTTP_CLIENT"} <= set(re.findall(r"^```\n\[PLUGINS\]\n    Load  duda.*\n\n\[(\w+)\]", PAGE, re.MULTILINE))


@pytest.mark.parametrize("verb", ["run", "new", "test", "routes", "doc", "openapi", "build"])
def test_man_page_lists_options_and_renders(run, verb):
    page = PAGES / f"monkey-{verb}.1"
    if not page.exists():
        pytest.skip("the man pages are not built")
    text, told = page.read_text().replace("\\-", "-"), run(verb, "--help").out
    for option in re.findall(r"^  (-.*?)  ", told, re.MULTILINE):
        assert f"\\fB{option}\\fR" in text, option
    assert f"monkey {verb} " in text.split(".SH EXAMPLES")[1]
    if shutil.which("groff"):
        done = subprocess.run(["groff", "-man", "-Tutf8", "-ww", page], capture_output=True, text=True, timeout=SECONDS, check=True)
        assert done.stderr == "" and len(done.stdout) > 500
