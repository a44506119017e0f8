# SPDX-License-Identifier: Apache-2.0
"""The code in the guides to libmonkey: complete blocks compile, and excerpts and diffs match the example that the guide
links to."""
import difflib
import re
import shutil

import pytest

from monkey import ROOT
from package import call

GUIDE = ROOT / "docs" / "guide"
COMPLETE = ("libmonkey.md", "from-mk-lib.md")
EXCERPTS = ("embedding.md", "from-libmicrohttpd.md", "from-mongoose.md", "from-civetweb.md")
PROGRAMS = {"from-libmicrohttpd.md": "form.c", "from-mongoose.md": "dashboard.c", "from-civetweb.md": "upload.c"}
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(\.\./\.\./(examples/[\w/.-]+\.c)\)")


def blocks(guide):
    return [m[2] for m in FENCE.finditer((GUIDE / guide).read_text()) if m[1] == "c"]


@pytest.mark.skipif(not shutil.which("cc"), reason="no compiler here")
@pytest.mark.parametrize("guide", COMPLETE)
def test_code_of_the_guide_compiles(guide, tmp_path):
    found = blocks(guide)
    assert found
    for i, code in enumerate(found):
        source = tmp_path / f"{i}.c"
        source.write_text(code)
        call("cc", "-std=c11", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-I", ROOT / "include", source)


def shown():
    """Yields (guide, language, text, links) for each excerpt; `links` are the files linked before the excerpt, in order."""
    for guide in EXCERPTS:
        text = (GUIDE / guide).read_text()
        for m in FENCE.finditer(text):
            if m[1]:
                yield guide, m[1], m[2], LINK.findall(text[:m.start()])


def is_excerpt(text, source):
    """Are the pieces of the text, separated by lines `...`, in the source in this order?"""
    at = 0
    for piece in re.split(r"^\.\.\.\n", text, flags=re.MULTILINE):
        at = ("\n" + source).find("\n" + piece, at)
        if at < 0:
            return False
        at += len(piece)
    return True


EXCERPT = [pytest.param(text, linked, id=f"{guide}-{i}") for i, (guide, language, text, linked) in enumerate(shown()) if language == "c"]
DIFFERENCE = [pytest.param(text, linked, id=f"{guide}-{i}") for i, (guide, language, text, linked) in enumerate(shown()) if language == "diff"]


def test_guides_show_every_part_of_the_programs():
    assert len(EXCERPT) > 10 and len(DIFFERENCE) > 3
    for guide, name in PROGRAMS.items():
        assert any(linked[-1].endswith(name) for at, language, _, linked in shown() if at == guide and language == "c")
    linked = set(LINK.findall((GUIDE / "embedding.md").read_text()))
    assert {path.relative_to(ROOT).as_posix() for path in (ROOT / "examples/device").glob("*.c")} <= linked


@pytest.mark.parametrize("text, linked", EXCERPT)
def test_excerpt_of_the_guide_is_in_the_linked_file(text, linked):
    assert is_excerpt(text, (ROOT / linked[-1]).read_text()), linked[-1]


def previous_step(path):
    """Returns the program of the previous step."""
    steps = sorted(step for step in path.parent.glob("[0-9]-*.c") if step.name != "8-epoll.c")
    return steps[steps.index(path) - 1]


@pytest.mark.parametrize("text, linked", DIFFERENCE)
def test_difference_of_the_guide_is_between_two_steps(text, linked):
    """The lines are consecutive in the complete diff between the program of the previous step and the linked one."""
    new = ROOT / next(name for name in reversed(linked) if re.search(r"/\d-", name))
    old, new = (path.read_text().splitlines() for path in (previous_step(new), new))
    complete = [line for line in difflib.ndiff(old, new) if line[0] != "?"]
    wanted = [f"{line[0]} {line[1:]}" for line in text.splitlines()]
    assert any(complete[i:i + len(wanted)] == wanted for i in range(len(complete))), "\n".join(complete)


def test_functions_in_the_tables_exist():
    declared = set(re.findall(r"\b(mk_\w+)\(", "".join(path.read_text() for path in (ROOT / "include/monkey").glob("*.h"))))
    for guide in ("from-mk-lib.md", *PROGRAMS):
        named = set()
        for row in re.findall(r"^\| [^|]+ \| (.+) \|$", (GUIDE / guide).read_text(), re.MULTILINE):
            named |= set(re.findall(r"\b(mk_\w+)\b(?!\.h)", row))
        named -= {"mk_server_fn", "mk_server_options", "mk_str"}
        assert len(named) > 20 and named <= declared, (guide, named - declared)
