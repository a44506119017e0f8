# SPDX-License-Identifier: Apache-2.0
"""Limits and access logs in a [HOST] and in a [LOCATION]."""
import json
import re
import signal

import pytest

from monkey import PROGRAM, ROOT
from proc import wait_until

BUILT = ROOT / "build" / "dev" / "tests" / "plugins"

needs_plugin = pytest.mark.skipif(not BUILT.exists() or PROGRAM.parent != BUILT.parents[1],
                                  reason="the plugin of the tests is built with the program in build/dev")

CACHE = PROGRAM.parent / "CMakeCache.txt"
HAS_REGEX = not CACHE.exists() or not re.search(r"^MK_PCRE2:\w+=OFF|^pcre2_FOUND:INTERNAL=$", CACHE.read_text(), re.MULTILINE)
needs_regex = pytest.mark.skipif(not HAS_REGEX, reason="built without PCRE2")

HOST = """
    [HOST]
        ServerName one.example
        DocumentRoot site
        {host}
    {below}
    [HOST]
        ServerName two.example
        DocumentRoot site
"""


@pytest.fixture
def start(monkey, site):
    """Starts a server whose host one.example has these keys, followed by these sections; two.example has no keys of its own."""
    site.add("index.html", "hello")

    def run(host="", below="", **how):
        keys = "\n        ".join(host.splitlines())
        sections = "\n    ".join(below.strip().splitlines())
        return monkey(root=None, sections=HOST.format(host=keys, below=sections), **how)

    return run


def post(server, target, size, host="one"):
    return server.get(target, "POST", body=b"x" * size, host=f"{host}.example")


# Request bodies

SIZES = """
[LOCATION]
    Path         /up/* *.iso
    MaxBodySize  5000
[LOCATION]
    Path         /up/* /none
    MaxBodySize  0
[LOCATION]
    Path         /tiny
    MaxBodySize  1
[ERROR_PAGES]
    413          413.html
"""


@pytest.mark.parametrize("target, limit, host", [
    ("/", 100, "one"), ("/upper", 100, "one"), ("/up", 5000, "one"), ("/up/a/b", 5000, "one"), ("/a/b.iso?c", 5000, "one"),
    ("/%75p/a", 5000, "one"), ("/tiny", 1, "one"), ("/tiny/", 100, "one"), ("/x/../tiny", 1, "one"), ("/up/a", 10, "two"),
])
def test_location_with_first_matching_path_limits_body(start, site, target, limit, host):
    site.add("413.html", "the page of one")
    server = start("MaxBodySize 100", SIZES, server="MaxBodySize 10")
    for size, status in ((limit, 405), (limit + 1, 413)):
        reply = post(server, target, size, host)
        assert reply.status == status, size
    assert ("the page of one" in reply.text) == (host == "one")


def test_location_without_limit_accepts_large_body(start):
    server = start("MaxBodySize 100", SIZES)
    assert post(server, "/none", 100_000).status == 405


@pytest.mark.parametrize("target, status", [("/small/count.sh", 413), ("/count.sh", 200)])
def test_location_limit_applies_to_chunked_body(start, site, target, status):
    for name in ("count.sh", "small/count.sh"):
        site.add(name, "#!/bin/sh\nprintf 'Content-Type: text/plain\\r\\n\\r\\n%s' \"$(wc -c)\"\n", mode=0o755)
    server = start("", "[LOCATION]\n    Path /small/*\n    MaxBodySize 10\n[ROUTES]\n    *.sh cgi\n    /* static", plugins=["cgi"])
    with server.connect() as c:
        if server.is_h2:
            c.ask(target, "POST", host="one.example", streamed=True)
            c.more(b"x" * 500)
            c.done()
            reply = c.read()
        else:
            c.send(f"POST {target} HTTP/1.1\r\nHost: one.example\r\nTransfer-Encoding: chunked\r\n\r\n".encode())
            reply = c.send(b"1f4\r\n" + b"x" * 500 + b"\r\n0\r\n\r\n").read("POST")
    assert reply.status == status
    assert status != 200 or reply.text.strip() == "500"


@needs_regex
@pytest.mark.parametrize("target, limit", [("/u/12", 5), ("/u/12/", 100), ("/u/x", 100), ("/x.Up", 7), ("/a b", 7), ("/plain", 7)])
def test_location_path_may_be_a_regex(start, target, limit):
    server = start("MaxBodySize 100", r"""
[LOCATION]
    Path         ~ ^/u/\d+$
    MaxBodySize  5
[LOCATION]
    Path         ~(?i)\.up$ /plain "~ b$"
    MaxBodySize  7
""")
    for size, status in ((limit, 405), (limit + 1, 413)):
        assert post(server, target.replace(" ", "%20"), size).status == status, size


# Timeouts

def start_with(start, host, below, **how):
    routes = "\n[ROUTES]\n    */verdict verdict\n    */timer timer\n    */sum sum\n    /* static"
    return start(host, below + routes, plugins=[BUILT / "monkey-response_kinds.so"], **how)


@needs_plugin
def test_location_handler_timeout_overrides_host(start):
    server = start_with(start, "HandlerTimeout 1s", "[LOCATION]\n    Path /slow/*\n    HandlerTimeout unlimited",
                     server="HandlerTimeout 20s")
    assert server.get("/verdict?3", host="one.example").status == 504
    assert server.get("/slow/timer?1500", host="one.example").status == 200


@needs_plugin
def test_location_handler_timeout_may_be_shorter(start):
    server = start_with(start, "", "[LOCATION]\n    Path /fast/*\n    HandlerTimeout 200ms", server="HandlerTimeout 20s")
    assert server.get("/fast/verdict?3", host="one.example").status == 504
    assert server.get("/timer?500", host="one.example").status == 200


@needs_plugin
def test_location_min_rate_applies_to_request_body(start):
    server = start_with(start, "", "[LOCATION]\n    Path /slow/*\n    MinRate off\n[LOCATION]\n    Path /fast/*\n    MinRateInterval 1s",
                     server="MinRate 1K\nMinRateInterval 1h")
    with server.connect() as slow, server.connect() as fast:
        for c, target in ((slow, "/slow/sum"), (fast, "/fast/sum")):
            c.ask(target, "POST", host="one.example", streamed=True)
            c.more(b"x")
        assert fast.read("POST").status == 408
        slow.done()
        assert slow.read("POST").status == 200


def test_location_min_rate_applies_to_response(start, site):
    site.add("big", bytes(6 << 20))
    site.add("slow/big", bytes(6 << 20))
    server = start("", "[LOCATION]\n    Path /slow/*\n    MinRate off", server="MinRate 1K\nMinRateInterval 1s\nAccessLog log")
    with server.connect(receive_buffer=4096) as slow, server.connect(receive_buffer=4096) as fast:
        slow.ask("/slow/big", host="one.example")
        fast.ask("/big", host="one.example")
        wait_for_lines(server, "log", 1)  # the response that the server truncates
        assert len(slow.read().body) == 6 << 20
    wait_for_lines(server, "log", 2)
    assert [line.split()[6] for line in lines(server, "log")] == ["/big", "/slow/big"]


# Logs

def lines(server, name):
    path = server.folder / name
    return path.read_text().splitlines() if path.exists() else []


def wait_for_lines(server, name, n):
    wait_until(lambda: len(lines(server, name)) >= n, f"{n} lines in {name}")


LOGS = """
[LOCATION]
    Path             /api/*
    AccessLog        api.log
    AccessLogFormat  json
    MaxBodySize      10
[LOCATION]
    Path             /health
    AccessLog        off
[LOCATION]
    Path             /short
    AccessLogFormat  short
"""


def test_location_has_its_own_access_log(start):
    server = start("AccessLog one.log", LOGS, server="AccessLog all.log\nAccessLogFormat json")
    for target, host in (("/", "one"), ("/api/a", "one"), ("/health", "one"), ("/api/a", "two"), ("/short", "one")):
        server.get(target, host=f"{host}.example")
    assert post(server, "/api/b", 11).status == 413  # refused before any handler runs
    server.stop()
    of_all, of_one, of_api = (lines(server, name) for name in ("all.log", "one.log", "api.log"))
    assert [json.loads(line)["host"] for line in of_all] == ["two.example"]
    assert [(json.loads(line)["target"], json.loads(line)["status"]) for line in of_api] == [("/api/a", 404), ("/api/b", 413)]
    # If neither [HOST] nor [LOCATION] names a format, the format of [SERVER] applies.
    assert json.loads(of_one[0])["target"] == "/" and re.match(r"\d\d:\d\d:\d\d 404 GET /short ", of_one[1])
    assert len(of_one) == 2


def test_access_log_of_single_location_needs_no_other_log(start):
    server = start("", "[LOCATION]\n    Path /api/*\n    AccessLog api.log")
    for target in ("/", "/api/x", "/"):
        server.get(target, host="one.example")
    server.stop()
    assert [line.split()[6] for line in lines(server, "api.log")] == ["/api/x"]


@needs_regex
def test_location_regex_over_limit_keeps_strict_limit_and_log(start):
    server = start("AccessLog one.log\nMaxBodySize 10", """
[LOCATION]
    Path ~ (?:a|aa)+$
    MaxBodySize 1M
    AccessLog off
[LOCATION]
    Path /*
    MaxBodySize 1M
""")
    evil = "/" + "a" * 3000 + "!"
    assert post(server, "/aa", 11).status == 405, "the location's own limit"
    assert post(server, evil, 11).status == 413, "the stricter limit of the host"
    server.err.wait_for(r"matching the paths of the \[LOCATION\] at \S+:\d+ took too many steps")
    server.stop()
    (line,) = lines(server, "one.log")  # `AccessLog off` applies only if the match is certain
    assert evil.startswith(line.split()[6])  # the log truncates very long targets


@pytest.mark.http1
def test_requests_without_path_are_logged_by_default_host(start):
    server = start("AccessLog one.log", "[LOCATION]\n    Path /*\n    AccessLog paths.log", server="AccessLog all.log")
    with server.connect() as c:
        c.send(b"nonsense\r\n\r\n").read()
    with server.connect() as c:
        c.send(b"OPTIONS * HTTP/1.1\r\nHost: one.example\r\nConnection: close\r\n\r\n").read()
    with server.connect() as c:
        c.send(b"GET /%zz HTTP/1.1\r\nHost: one.example\r\n\r\n").read()
    server.stop()
    assert [re.search(r'" (\d+) ', line)[1] for line in lines(server, "one.log")] == ["400", "200", "400"]
    assert not lines(server, "all.log") and not lines(server, "paths.log")


def test_location_logs_are_reopened(start):
    server = start("AccessLog one.log", LOGS)
    for target in ("/", "/api/a"):
        server.get(target, host="one.example")
    for name in ("one.log", "api.log"):
        wait_for_lines(server, name, 1)
        (server.folder / name).rename(server.folder / f"{name}.old")
    server.tell(signal.SIGUSR1)
    wait_until(lambda: all((server.folder / name).exists() for name in ("one.log", "api.log")), "new logs")
    for target in ("/", "/api/b"):
        server.get(target, host="one.example")
    server.stop()
    assert sum(len(lines(server, name)) for name in ("one.log", "one.log.old")) == 2
    assert sum(len(lines(server, name)) for name in ("api.log", "api.log.old")) == 2


def test_location_log_path_is_relative_to_its_config_file(monkey, site, tmp_path):
    site.add("index.html", "hello")
    (tmp_path / "hosts").mkdir()
    (tmp_path / "hosts" / "one.conf").write_text(
        f"[HOST]\n  DocumentRoot {site.path}\n  AccessLog one.log\n[LOCATION]\n  Path /x\n  AccessLog x.log\n")
    server = monkey(root=None, sections="@INCLUDE hosts/*.conf")
    server.get("/")
    server.get("/x")
    server.stop()
    assert len(lines(server, "hosts/one.log")) == len(lines(server, "hosts/x.log")) == 1


# Interaction with other features

def test_location_matches_the_original_path(start):
    """A rewrite changes neither limits nor logs: the server limits the body before any handler reads it."""
    below = LOGS + "[REWRITE]\n    Rewrite prefix /old /api\n    Rewrite prefix /api/new /new\n[ROUTES]\n    /* status 200"
    server = start("MaxBodySize 100\nAccessLog one.log", below, plugins=["rewrite"])
    assert post(server, "/old/x", 100).status == 200
    assert post(server, "/old/x", 101).status == 413
    assert post(server, "/api/new", 10).status == 200
    assert post(server, "/api/new", 11).status == 413
    server.stop()
    assert len(lines(server, "one.log")) == len(lines(server, "api.log")) == 2


def test_location_is_unaffected_by_fallback_and_index_files(start, site):
    site.add("api/index.html", "index")
    server = start("Fallback index.html\nAccessLog one.log", LOGS)
    assert server.get("/api/", host="one.example").text == "index"
    assert server.get("/api/nothing", host="one.example").text == "hello"
    server.stop()
    assert len(lines(server, "api.log")) == 2 and not lines(server, "one.log")


def test_location_logs_are_replaced_by_logger_plugin(start, tmp_path):
    server = start("", LOGS + "[LOGGER]\n    AccessLog logger.log\n    Format %U", plugins=["logger"],
                   server="AccessLog all.log\nAccessLogFormat combined")
    for target in ("/", "/api/a", "/health"):
        server.get(target, host="one.example")
    server.err.wait_for("a plugin writes the access log of this host: `AccessLog` has no effect", count=2)
    server.err.wait_for("a plugin writes the access log of this host: `AccessLogFormat` has no effect", count=2)
    server.stop()
    assert lines(server, "logger.log") == ["/", "/api/a", "/health"]
    assert not lines(server, "all.log") and not lines(server, "api.log")


def test_location_limits_and_logs_change_on_reload(start):
    server = start("MaxBodySize 100\nAccessLog one.log", SIZES)
    assert post(server, "/up/a", 5000).status == 405
    text = server.config.read_text()
    server.config.write_text(text.replace("MaxBodySize  5000", "MaxBodySize  50\n    AccessLog up.log"))
    server.tell(signal.SIGHUP)
    server.err.wait_for("the new configuration serves")
    assert post(server, "/up/a", 50).status == 405
    assert post(server, "/up/a", 51).status == 413
    server.stop()
    assert len(lines(server, "one.log")) == 1 and len(lines(server, "up.log")) == 2


def test_location_applies_to_each_request_of_connection(start):
    server = start("MaxBodySize 100\nAccessLog one.log", LOGS)
    with server.connect() as c:
        for target in ("/", "/api/a", "/health", "/", "/api/b"):
            assert c.get(target, "POST", body=b"x" * 10, host="one.example").status == 405
    server.stop()
    assert len(lines(server, "one.log")) == len(lines(server, "api.log")) == 2


# Printed configuration

PRINTED = """[SERVER]
    MaxBodySize 7K
[HOST]
    DocumentRoot site
    AccessLog one.log
    HandlerTimeout 9
[LOCATION]
    Path /up/* "/a b"
    Path *.iso
    MaxBodySize unlimited
    AccessLog off
[LOCATION]
    Path /api/*
    MinRate off
    AccessLogFormat json
"""


@pytest.fixture
def configuration(site, tmp_path):
    site.add("index.html", "hello")
    path = tmp_path / "monkey.conf"
    path.write_text(PRINTED)
    return path


@pytest.mark.over("h1", why="it is about a configuration")
def test_locations_appear_in_printed_config(run, configuration, tmp_path):
    printed = run("-T", "-c", configuration).out
    found = re.findall(r"^    (Path|MaxBodySize|HandlerTimeout|MinRate|AccessLog|AccessLogFormat) +(.+)", printed, re.MULTILINE)
    log = f"{tmp_path}/one.log"
    assert found == [
        ("MaxBodySize", "7K"), ("HandlerTimeout", "1m"), ("MinRate", "500"), ("AccessLog", "off"), ("AccessLogFormat", "combined"),
        ("MaxBodySize", "7K"), ("HandlerTimeout", "9s"), ("MinRate", "500"), ("AccessLog", log), ("AccessLogFormat", "combined"),
        ("Path", '/up/* "/a b" *.iso'), ("MaxBodySize", "unlimited"), ("HandlerTimeout", "9s"), ("MinRate", "500"),
        ("AccessLog", "off"), ("AccessLogFormat", "combined"),
        ("Path", "/api/*"), ("MaxBodySize", "7K"), ("HandlerTimeout", "9s"), ("MinRate", "off"),
        ("AccessLog", log), ("AccessLogFormat", "json")]
    configuration.write_text(printed)
    again = run("-T", "-c", configuration)
    assert (again.code, again.out, again.err) == (0, printed, "")


@pytest.mark.over("h1", why="it is about a configuration")
@pytest.mark.parametrize("target, location, limits, log", [
    ("/", None, "MaxBodySize 7K, HandlerTimeout 9s, TunnelTimeout 5m, MinRate 500, MinRateInterval 10s", "{}/one.log combined"),
    ("/a%20b?c", r'/up/\* "/a b" \*.iso \(\S+monkey.conf:7\)', "MaxBodySize unlimited, HandlerTimeout 9s, .*", "off"),
    ("/api/x", r"/api/\* \(\S+monkey.conf:12\)", "MaxBodySize 7K, .* MinRate off, .*", "{}/one.log json"),
])
def test_locations_appear_in_explain(run, configuration, tmp_path, target, location, limits, log):
    output = run("-c", configuration, "explain", "GET", target).out
    assert bool(re.search("^location", output, re.MULTILINE)) == bool(location)
    assert not location or re.search(rf"^location  {location}$", output, re.MULTILINE), output
    assert re.search(rf"^limits    {limits}$", output, re.MULTILINE), output
    assert re.search(rf"^log       {re.escape(log.format(tmp_path))}$", output, re.MULTILINE), output
