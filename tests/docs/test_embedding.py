# SPDX-License-Identifier: Apache-2.0
"""The code in the guides to libmonkey compiles, and the first program is the same as in examples/."""
import re
import shutil

import pytest

from monkey import ROOT
from package import call

GUIDES = ("docs/guide/embedding.md", "docs/guide/from-mk-lib.md")


def blocks(guide):
    return re.findall(r"^```c\n(.*?)^```$", (ROOT / guide).read_text(), re.MULTILINE | re.DOTALL)


@pytest.mark.skipif(not shutil.which("cc"), reason="no compiler here")
@pytest.mark.parametrize("guide", GUIDES)
def test_code_of_the_guide_compiles(guide, tmp_path):
    found = blocks(guide)
    assert found
    for i, code in enumerate(found):
        source = tmp_path / f"{i}.c"
        source.write_text(code)
        call("cc", "-std=c11", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-I", ROOT / "include", source)


def test_first_program_equals_the_example():
    example = (ROOT / "examples/embed/hello.c").read_text()
    assert blocks(GUIDES[0])[0] in example


def test_functions_in_the_tables_exist():
    declared = set(re.findall(r"\b(mk_\w+)\(", "".join(path.read_text() for path in (ROOT / "include/monkey").glob("*.h"))))
    new = set()
    for row in re.findall(r"^\| [^|]+ \| (.+) \|$", (ROOT / GUIDES[1]).read_text(), re.MULTILINE):
        new |= set(re.findall(r"\b(mk_(?:server|request|response|worker|alarm|watcher|turn)_\w+)", row))
    assert len(new) > 20 and new <= declared
