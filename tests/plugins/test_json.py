# SPDX-License-Identifier: Apache-2.0
"""All JSON outputs of the server use the same escapes: the access log, the logger, metrics and cheetah plugins, folder
listings, and Duda services.
"""
import json
import os
import re

import pytest

import services
from upstream_group import ROUTES, group
from metering import KEYS
from shell_server import socket_folder, start

# Quotes, backslashes, characters of two to four bytes, terminal control characters (C1), and invalid UTF-8.
TEXTS = [b'a"b', b"a\\b", b'\\"', "\u00e4\u20ac\U0001f600".encode(), b"\xc2\x9b31m", b"\xff\xfe", b"x\xc3", b"\xed\xa0\x80", b"</script>"]


SERVICE = r"""
#include <duda.h>

static int say(struct duda_ctx *d)
{
    const struct duda_entry all[] = {{"agent", duda_value_text(duda_header(d, "User-Agent"))}};
    return duda_send_json(d, duda_value_map(all, 1));
}

DUDA_SERVICE(says, DUDA_GET("/say", say, "What it was told."));
"""


def string_of(line, key):
    """Returns the string value of a member in its raw form."""
    return re.search(rb'"' + key + rb'":("(?:[^"\\]|\\.)*")', line)[1]


@pytest.fixture
def written(monkey, site):
    """Returns, for each text, the output of the access log, of the logger plugin, and of a folder listing."""
    names, listing = [], b""
    for i, text in enumerate(TEXTS):
        name = b"%d" % i + text.replace(b"/", b"|")
        names.append(name)
        with open(os.path.join(os.fsencode(site), name), "wb"):
            pass
    plain = monkey(plugins=["dirlisting"], workers=1, server="AccessLog core.log\nAccessLogFormat json",
                   sections="[DIRLISTING]\n    Theme guineo\n")
    logger = monkey(plugins=["logger"], workers=1,
                    sections='[LOGGER]\n    AccessLog own.log\n    Format {"agent":"%{User-Agent}i"}\n')
    for server in (plain, logger):
        for name in names:
            with server.connect() as c:
                c.send(b"GET /?format=json HTTP/1.1\r\nHost: x\r\nConnection: close\r\nUser-Agent: " + name + b"\r\n\r\n")
                listing = c.read().body if server is plain else listing
        server.stop()
    return names, listing, [(plain.folder / "core.log").read_bytes().splitlines(),
                            (logger.folder / "own.log").read_bytes().splitlines()]


def test_json_escapes_are_equal_in_all_outputs(written):
    names, listing, (core, own) = written
    listed = {json.loads(string_of(line, b"name")): string_of(line, b"name") for line in listing.splitlines() if b'"name":' in line}
    for name, in_core, in_own in zip(names, core, own, strict=True):
        text = string_of(in_core, b"agent")
        assert text == string_of(in_own, b"agent"), name
        assert listed[json.loads(text)] == text, name
        text.decode()
        assert not re.search(rb"[\x00-\x1f\x7f]|\xc2[\x80-\x9f]", text)


@pytest.mark.skipif(not services.BUILT.exists(), reason="this build has no Duda")
def test_json_escapes_of_services_equal_access_log(monkey, site, tmp_path):
    server = monkey(plugins=[services.build(tmp_path, "says", SERVICE)], workers=1,
                    server="AccessLog core.log\nAccessLogFormat json")
    outputs = []
    for text in TEXTS:
        with server.connect() as c:
            c.send(b"GET /say HTTP/1.1\r\nHost: x\r\nConnection: close\r\nUser-Agent: " + text + b"\r\n\r\n")
            outputs.append(string_of(c.read().body, b"agent"))
    server.stop()
    assert outputs == [string_of(line, b"agent") for line in (server.folder / "core.log").read_bytes().splitlines()]


def test_json_statistics_escape_configured_names(start):
    names = ['/a"b', "/a\\b", "/\u00e4\u20ac\U0001f600", "/</script>"]
    it = start(plugins=["proxy", "metrics"], top=KEYS + group(*(f"unix:{name}" for name in names)), sections=ROUTES)
    status, shown = it.server.get("/status").body, it("json", "upstreams").out.encode()
    for text in (status, shown):
        rows = json.loads(text)
        rows = rows["upstreams"] if text is status else rows
        assert [row["server"] for row in rows] == [f"unix:{name}" for name in names]
    for name in names:
        written = json.dumps(f"unix:{name}", ensure_ascii=False).encode()
        assert written in status and written in shown
