# SPDX-License-Identifier: Apache-2.0
"""Each failed handler causes a single log line, which contains the message of the function whose error the handler returned."""
import re

import pytest

import services

pytestmark = pytest.mark.skipif(not services.has("subprocess"), reason="this build has no Duda")

SOURCE = r"""
#include <duda.h>
#include <errno.h>

static int returned(struct duda_ctx *d)
{
    (void)duda_reason(d, -EBUSY, "an earlier one");
    return duda_reason(d, -EREMOTEIO, "the printer says: %s", duda_query_or(d, "why", "no paper"));
}

static int mapped(struct duda_ctx *d)
{
    (void)duda_reason(d, -EREMOTEIO, "the printer says: mapped");
    return 503;
}

static int survived(struct duda_ctx *d)
{
    (void)duda_reason(d, -EREMOTEIO, "the printer says: survived");
    return duda_puts(d, "fine");
}

static int other(struct duda_ctx *d)
{
    (void)duda_reason(d, -EREMOTEIO, "the printer says: other");
    return -EIO;
}

static int released(struct duda_ctx *d)
{
    size_t mark = duda_arena_mark(d);
    (void)duda_reason(d, -EIO, "the printer says: released");
    duda_arena_rewind(d, mark);
    memset(duda_alloc(d, 2000), 'x', 2000);
    return -EIO;
}

DUDA_SERVICE(reasons,
    DUDA_GET("/returned", returned, ""), DUDA_GET("/mapped", mapped, ""), DUDA_GET("/survived", survived, ""),
    DUDA_GET("/other", other, ""), DUDA_GET("/released", released, ""));
"""


@pytest.fixture
def server(lasting):
    return lasting(lambda monkey, site: monkey(plugins=[services.build(site.path.parent, "reasons", SOURCE)], workers=1))


def lines(server, path):
    """Returns the log lines of one request."""
    before, seen = len(server.log), server.log.count("other() in ")
    server.get(path)
    server.get("/other")
    server.err.wait_for(r"other\(\) in .* answered -EIO", count=seen + 1)
    return [line for line in server.log[before:].splitlines() if "() in " in line and "other()" not in line]


def test_error_reason_is_logged_once(server):
    found = lines(server, "/returned")
    assert len(found) == 1 and "answered -EREMOTEIO (Remote I/O error): the printer says: no paper (request " in found[0]
    assert len(lines(server, "/released")) == 1 and "answered -EIO (Input/output error): the printer says: released" in server.log


def test_status_from_500_is_logged_with_the_reason(server):
    found = lines(server, "/mapped")
    assert len(found) == 1 and "mapped() in " in found[0] and "answered 503: the printer says: mapped" in found[0]


def test_handled_error_is_not_logged(server):
    assert lines(server, "/survived") == [] and "says: survived" not in server.log and "says: other" not in server.log


def test_long_reason_or_control_characters_stay_in_one_line(server):
    found = lines(server, "/returned?why=" + "x" * 3000)
    assert len(found) == 1 and re.search(r"x{400,500} \(request", found[0])
    found = lines(server, "/returned?why=a%0aforged%1b%5b2J")
    assert len(found) == 1 and "forged" in found[0] and "\x1b" not in found[0]
