# SPDX-License-Identifier: Apache-2.0
"""docs/reference/errors.md lists every errno value that has a status, and a handler that returns it gets that status."""
import errno
import re

import pytest

import services
from monkey import ROOT

PAGE = (ROOT / "docs/reference/errors.md").read_text()
DUDA, _, LIBMONKEY = PAGE.partition("\n## libmonkey\n")
SOURCE = r"""
#include <duda.h>

static int fail(struct duda_ctx *d)
{
    int64_t n = 0;
    return duda_param_int(d, "n", &n) ? -(int)n : 400;
}

DUDA_SERVICE(fails, DUDA_GET("/:n<uint>", fail, "Fails."));
"""


def documented(text=DUDA):
    """Returns the status of each errno value in the table."""
    rows = re.findall(r"^\|[^|]*\| ((?:`-E\w+`(?:, )?)+) \| (\d+) \|$", text, re.MULTILINE)
    return {name: int(status) for names, status in rows for name in re.findall(r"-(E\w+)", names)}


def test_errors_page_has_the_table_of_the_code():
    code = re.findall(r"\{-(E\w+), (\d+)\}", (ROOT / "duda/service/result.c").read_text())
    table = documented()
    assert len(code) > 20
    assert {name: status for name, status in table.items() if status != 500} == {name: int(status) for name, status in code}


def test_errors_of_bodies_are_those_of_the_page():
    """Compares the page with the table in tests/lib/test_readers.c, which that test compares with the functions."""
    code = re.findall(r"\{-(E\w+), (\d+)\}", (ROOT / "tests/lib/test_readers.c").read_text())
    assert documented(LIBMONKEY).items() <= {name: int(status) for name, status in code}.items()
    assert {name for name, status in code if status != "500"} <= documented(LIBMONKEY).keys()


def test_errors_in_the_header_are_those_of_the_page():
    text = (ROOT / "duda/include/duda/service.h").read_text()
    part = text[text.index("the error page of the matching status:"):text.index("500  all others")]
    status, header = None, {}
    for line in part.splitlines()[1:]:
        found = re.match(r" \*\s+(\d{3})?\s*((?:-E\w+ ?)+)$", line)
        if found:
            status = int(found[1] or status)
            header.update({name: status for name in re.findall(r"-(E\w+)", found[2])})
    assert header == {name: s for name, s in documented().items() if s != 500}


def test_page_has_every_error_of_the_headers():
    """A user who finds an errno value in the description of a function can look up its meaning and its status."""
    headers = "".join(path.read_text() for path in (ROOT / "duda/include/duda").glob("*.h"))
    named = set(re.findall(r"-(E[A-Z0-9]{3,})\b", headers))
    assert len(named) > 30
    assert named - set(re.findall(r"`-(E\w+)`", PAGE)) == set()


def test_named_messages_exist():
    headers = "".join(path.read_text() for folder in ("duda/include/duda", "include/monkey") for path in (ROOT / folder).glob("*.h"))
    for name in re.findall(r"`(\w+)\(\)`", PAGE):
        assert re.search(rf"\b{name}\(", headers), name


@pytest.mark.skipif(not services.BUILT.exists(), reason="this build has no Duda")
def test_handler_that_returns_an_error_gets_its_status(monkey, tmp_path):
    server = monkey(plugins=[services.build(tmp_path, "fails", SOURCE)])
    got = {name: server.get(f"/{getattr(errno, name)}").status for name in documented()}
    assert got == documented()
