# SPDX-License-Identifier: Apache-2.0
"""The memcached package with real servers: keys are distributed over the servers, and commands are batched. Also checks
the errors that handlers get when a server is killed, frozen, restarted or full, or does not speak memcached."""
import concurrent.futures
import contextlib
import re
import socket
import tempfile
import threading
from urllib.parse import unquote_to_bytes

import pytest

import memcached_server
import services
from proc import wait_until

pytestmark = pytest.mark.skipif(not services.has("memcached") or not memcached_server.PROGRAM,
                                reason="this build has no Duda, or there is no memcached")

SOURCE = r"""
#define DUDA_USE "duda-memcached"
#include <duda.h>
#include <duda/memcached.h>
#include <errno.h>

static struct duda_memcached *cache(struct duda_ctx *d)
{
    return duda_memcached_find(d, NULL);
}

static int64_t number(struct duda_ctx *d, const char *name)
{
    int64_t n = 0;
    return duda_query_int(d, name, &n) ? n : 0;
}

static uint64_t ttl(struct duda_ctx *d)
{
    return (uint64_t)number(d, "ttl");
}

static mk_str key(struct duda_ctx *d)
{
    return duda_query(d, "k");
}

/* Reports the error number and the error message. */
static int say(struct duda_ctx *d, int e)
{
    mk_str why = e ? duda_memcached_error(d, cache(d), key(d)) : MK_STR_NULL;
    return e == -ECANCELED ? e : duda_printf(d, "%d %.*s", -e, MK_STR_ARG(why));
}

static int get(struct duda_ctx *d)
{
    mk_str value;
    int e = duda_memcached_get(d, cache(d), key(d), &value);
    return e ? say(d, e) : duda_write(d, value);
}

static int put(struct duda_ctx *d)
{
    return say(d, duda_memcached_set(d, cache(d), key(d), duda_query(d, "v"), ttl(d)));
}

static int big(struct duda_ctx *d)
{
    size_t size = (size_t)number(d, "size");
    char *buffer = duda_alloc(d, size);
    if (!buffer)
        return 500;
    memset(buffer, 'x', size);
    return say(d, duda_memcached_set(d, cache(d), key(d), mk_str_of(buffer, size), 0));
}

static int add(struct duda_ctx *d)
{
    return say(d, duda_memcached_add(d, cache(d), key(d), duda_query(d, "v"), ttl(d)));
}

static int drop(struct duda_ctx *d)
{
    return say(d, duda_memcached_delete(d, cache(d), key(d)));
}

static int touch(struct duda_ctx *d)
{
    return say(d, duda_memcached_touch(d, cache(d), key(d), ttl(d)));
}

static int count(struct duda_ctx *d)
{
    uint64_t sum;
    int e = duda_memcached_incr(d, cache(d), key(d), number(d, "by"), ttl(d), &sum);
    return e ? say(d, e) : duda_printf(d, "%llu", (unsigned long long)sum);
}

/* Increments a number by compare-and-swap, and retries whenever another handler interferes. */
static int swap(struct duda_ctx *d)
{
    int e;
    do {
        struct duda_memcached_item item = {.key = key(d)};
        uint64_t n = 0;
        e = duda_memcached_get_many(d, cache(d), &item, 1);
        if (e || item.error || !mk_num_parse(item.value, &n))
            return say(d, e ? e : item.error);
        e = duda_memcached_cas(d, cache(d), key(d), item.cas, duda_sprintf(d, "%llu", (unsigned long long)n + 1), 0);
    } while (e == -ESTALE);
    return say(d, e);
}

/* Gets key0 to key(n-1) with one call, and, if wrong=1, an invalid key. */
static int many(struct duda_ctx *d)
{
    struct duda_memcached_item items[101] = {{.key = MK_STR_NULL}};
    int64_t n = number(d, "n");
    for (int64_t i = 0; i < n; i++)
        items[i].key = duda_sprintf(d, "key%lld", (long long)i);
    items[n].key = MK_STR("");
    int e = duda_memcached_get_many(d, cache(d), items, (size_t)n + (number(d, "wrong") != 0));
    duda_printf(d, "%d:", -e);
    for (int64_t i = 0; i < n; i++)
        if (items[i].error)
            duda_printf(d, "%d;", -items[i].error);
        else
            duda_printf(d, "%.*s;", MK_STR_ARG(items[i].value));
    return 0;
}

DUDA_SERVICE(caches,
    DUDA_GET("/get", get, "Reads."), DUDA_GET("/put", put, "Writes."), DUDA_GET("/add", add, "Adds."),
    DUDA_GET("/big", big, "Writes a large value."), DUDA_GET("/drop", drop, "Removes."), DUDA_GET("/touch", touch, "Extends the lifetime."),
    DUDA_GET("/count", count, "Counts."), DUDA_GET("/swap", swap, "Counts by compare-and-swap."), DUDA_GET("/many", many, "Several."));
"""


def start(monkey, site, *servers, keys="    Timeout 30s\n", workers=1):
    service = services.build(site.path.parent, "caches", SOURCE, packages=["memcached"])
    addresses = " ".join(f"unix:{s if isinstance(s, str) else s.socket}" for s in servers)
    return monkey(plugins=[service], top=f"[MEMCACHED]\n    Servers {addresses}\n{keys}", workers=workers)


@pytest.fixture(scope="module")
def steady():
    """Three servers that keep running through all tests."""
    servers = [memcached_server.Memcached() for _ in range(3)]
    yield servers
    for server in servers:
        server.stop()


@pytest.fixture
def server(lasting, prepared, steady):
    prepare = prepared.setdefault("steady", lambda monkey, site: start(monkey, site, *steady, workers=2))
    return lasting(prepare)


@pytest.fixture
def single_server():
    server = memcached_server.Memcached()
    yield server
    server.stop()


def ask(server, operation, key, **query):
    return server.get(f"/{operation}?k={key}" + "".join(f"&{name}={value}" for name, value in query.items())).text


def test_memcached_values_are_set_read_and_deleted_within_limits(server):
    assert ask(server, "get", "a").startswith("2 ")
    assert ask(server, "put", "a", v="one") == "0 "
    assert ask(server, "get", "a") == "one"
    assert ask(server, "add", "a", v="two").startswith("17 ")
    assert ask(server, "drop", "a") == "0 "
    assert ask(server, "drop", "a").startswith("2 ")
    assert ask(server, "add", "a", v="") == "0 "
    assert ask(server, "get", "a") == ""
    assert ask(server, "put", "k" * 250, v="long") == "0 "
    assert ask(server, "get", "k" * 250) == "long"
    assert ask(server, "put", "k" * 251, v="x").startswith("22 ")
    assert ask(server, "put", "", v="x").startswith("22 ")


def test_memcached_values_expire(server):
    assert ask(server, "put", "brief", v="1", ttl=1) == "0 "
    wait_until(lambda: ask(server, "get", "brief").startswith("2 "), "the value has expired")
    # memcached interprets more than 30 days as an absolute time
    assert ask(server, "put", "lasts", v="1", ttl=40 * 24 * 3600 * 1000) == "0 "
    assert ask(server, "get", "lasts") == "1"
    assert ask(server, "touch", "lasts", ttl=1) == "0 "
    wait_until(lambda: ask(server, "get", "lasts").startswith("2 "), "the touched value has expired")
    assert ask(server, "touch", "lasts", ttl=1).startswith("2 ")


def test_memcached_counters_increment_and_stop_at_zero(server):
    assert [ask(server, "count", "n", by=by) for by in (5, 5, -3, -100)] == ["5", "10", "7", "0"]
    assert ask(server, "put", "text", v="x") == "0 "
    assert re.fullmatch(r"33 \[MEMCACHED\] main, unix:\S+: cannot increment.*", ask(server, "count", "text", by=1))


def test_memcached_compare_and_swap_loses_no_update(server):
    assert ask(server, "swap", "s").startswith("2 ")
    assert ask(server, "put", "s", v="0") == "0 "
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        assert set(pool.map(lambda _: ask(server, "swap", "s"), range(60))) == {"0 "}
    assert ask(server, "get", "s") == "60"


def test_memcached_keys_are_distributed_over_all_servers(server, steady):
    for i in range(100):
        assert ask(server, "put", f"key{i}", v=f"v{i}") == "0 "
    got = server.get("/many?n=100").text
    assert got == "0:" + "".join(f"v{i};" for i in range(100))
    shares = [sum(s.ask(f"mg key{i} v").startswith(b"VA") for i in range(100)) for s in steady]
    assert sum(shares) == 100 and min(shares) > 10
    assert server.get("/many?n=2&wrong=1").text == "22:v0;v1;"


def test_memcached_keys_never_become_commands(server, steady):
    """Keys and values with spaces, line ends or NULs are stored unchanged, and commands in them are not executed."""
    for odd in ("a%20b", "x%20v%0d%0amd%20keep", "%00%01%ff", "x%0d%0aflush_all%0d%0a", "%0amn", "%c3%a4"):
        assert ask(server, "put", "keep", v="kept") == "0 "
        assert ask(server, "put", odd, v=odd) == "0 "
        assert server.get(f"/get?k={odd}").body == unquote_to_bytes(odd)
        assert ask(server, "drop", odd) == "0 "
        assert ask(server, "get", "keep") == "kept"
    assert not any(s.ask("mg x v").startswith(b"VA") for s in steady)


def test_memcached_responses_reach_their_requests(server):
    for i in range(50):
        ask(server, "put", f"mix{i}", v=f"value{i}")
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        got = list(pool.map(lambda i: ask(server, "get", f"mix{i % 50}"), range(400)))
    assert got == [f"value{i % 50}" for i in range(400)]


# ---- Failures ----

AWAY = r"(110|111|104) \[MEMCACHED\] main, unix:\S+: .*"


def test_memcached_restart_causes_no_error(monkey, site, single_server):
    server = start(monkey, site, single_server)
    assert ask(server, "put", "k", v="1") == "0 "
    single_server.kill()
    single_server.start()
    assert ask(server, "get", "k").startswith("2 ")
    assert ask(server, "put", "k", v="1") == "0 "


def test_memcached_killed_server_fails_fast_and_others_still_answer(monkey, site, single_server):
    other = memcached_server.Memcached()
    try:
        server = start(monkey, site, single_server, other, keys="    Timeout 100ms\n")
        wait_until(lambda: server.get("/many?n=50").text == "0:" + "2;" * 50, "both servers answer")
        single_server.kill()

        def some_fail_at_once():
            answer = server.get("/many?n=50").text
            assert re.fullmatch(r"(0|2|104|110|111):((2|104|110|111);)*", answer)
            return "111;" in answer and ";2;" in answer
        wait_until(some_fail_at_once, "commands for that server fail immediately, the other server still answers")
        server.err.wait_for(r"\[error\] .*\[MEMCACHED\] main, unix:\S+: ")
        single_server.start()
        wait_until(lambda: server.get("/many?n=50").text == "0:" + "2;" * 50, "the server answers again")
        server.err.wait_for(r"\[MEMCACHED\] main, unix:\S+ is back")
    finally:
        other.stop()


def test_memcached_missing_socket_is_an_error(monkey, site, tmp_path):
    """A missing socket is an error, not a missing value."""
    server, answers = start(monkey, site, f"{tmp_path}/none", keys="    Timeout 100ms\n"), []

    def have_asked():  # enough requests that some of them try to connect
        answers.append(ask(server, "get", "k"))
        return len(answers) == 200
    wait_until(have_asked, "all requests are answered")
    assert all(re.fullmatch(AWAY, answer) for answer in answers), set(answers)
    assert any("No such file" in answer for answer in answers)


def test_memcached_frozen_server_times_out(monkey, site, single_server):
    server = start(monkey, site, single_server, keys="    Timeout 200ms\n")
    wait_until(lambda: ask(server, "put", "n", v="0") == "0 ", "the server answers")
    single_server.freeze()
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: ask(server, "count", "n", by=1), range(16)))
    assert all(re.fullmatch(AWAY, answer) for answer in answers), answers
    single_server.thaw()
    wait_until(lambda: ask(server, "put", "n", v="1") == "0 ", "the server answers again")


def test_memcached_full_server_reports_enospc(monkey, site):
    full = memcached_server.Memcached("-M", "-m", "2")
    try:
        server = start(monkey, site, full, keys="    Timeout 30s\n    MaxValueSize 4M\n")
        answers = {ask(server, "big", f"big{i}", size=200_000) for i in range(30)}
        assert len(answers) == 2 and "0 " in answers
        assert re.fullmatch(r"28 \[MEMCACHED\] main, unix:\S+: out of memory.*", (answers - {"0 "}).pop())
        assert ask(server, "drop", "big0") == "0 "
        assert re.fullmatch(r"90 \[MEMCACHED\].*: object too large for cache", ask(server, "big", "huge", size=3_000_000))
        assert ask(server, "big", "huge", size=4 * 1024 * 1024 + 1).startswith("90 ")
    finally:
        full.stop()


class Fake:
    """A server that sends scripted responses, and records the data that it receives after the greeting."""

    def __init__(self, path, greeting, answer):
        self.pieces, self.connection = [], None
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(path)
        self.listener.listen()
        self.thread = threading.Thread(target=self.serve, args=(greeting, answer), daemon=True)
        self.thread.start()

    def serve(self, greeting, answer):
        with contextlib.suppress(OSError):
            while True:
                self.connection, _ = self.listener.accept()
                with self.connection as c, contextlib.suppress(ConnectionError):
                    c.recv(65536)
                    c.sendall(greeting)
                    while piece := c.recv(65536):
                        self.pieces.append(piece)
                        c.sendall(answer(piece))

    def stop(self):
        for s in (self.listener, self.connection):
            with contextlib.suppress(OSError, AttributeError):
                s.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.thread.join(20)


@pytest.fixture
def fake():
    with tempfile.TemporaryDirectory(prefix="mk-mc-") as folder:
        path, fakes = f"{folder}/s", []

        def make(greeting, answer):
            fakes.append(Fake(path, greeting, answer))
            return fakes[0]
        make.path = path
        yield make
        for single_server in fakes:
            single_server.stop()


def test_memcached_commands_of_one_loop_iteration_are_sent_together(monkey, site, fake):
    server = start(monkey, site, fake.path)
    made = fake(b"MN\r\n", lambda piece: b"VA 1 c7\r\nx\r\n" * piece.count(b"\r\n"))
    assert server.get("/many?n=40").text == "0:" + "x;" * 40
    assert made.pieces == [b"".join(b"mg key%d v c\r\n" % i for i in range(40))]


@pytest.mark.parametrize("answer, message", [
    (b"HTTP/1.1 400 Bad Request\r\n\r\n", r"71 .*: the server sent an unexpected reply"),
    (b"VA 99999999\r\n", r"90 .*: the value exceeds MaxValueSize"),
    (b"VA 1\r\nxyz\r\n", r"71 .*: the server sent an unexpected reply"),
    (b"SERVER_ERROR busy\r\n", r"121 .*: busy"),
], ids=["HTTP", "long", "broken", "refusal"])
def test_memcached_malformed_responses_are_errors(monkey, site, fake, answer, message):
    server = start(monkey, site, fake.path)
    fake(b"MN\r\n", lambda piece: answer)
    assert re.fullmatch(message, ask(server, "get", "k"))


def test_memcached_server_without_the_meta_protocol_is_reported(monkey, site, fake):
    server = start(monkey, site, fake.path, keys="    Timeout 100ms\n")
    fake(b"ERROR\r\n", lambda piece: b"")
    wait_until(lambda: re.fullmatch(r"(71|111) .*: the server does not support the meta protocol.*", ask(server, "get", "k")),
               "the error names the cause")


MISTAKES = [
    ("[MEMCACHED]\n    Timeout 1s\n", "[MEMCACHED] has no Servers"),
    ("[MEMCACHED]\n    Servers 127.0.0.1:1 127.0.0.1:1\n", "127.0.0.1:1 is listed twice"),
    ("[MEMCACHED]\n    Servers a:x\n", "`a:x` is not a server: expected HOST:PORT"),
]


@pytest.mark.parametrize("section, message", MISTAKES, ids=[message for _, message in MISTAKES])
def test_memcached_section_rejects_invalid_keys(run, tmp_path, section, message):
    conf = tmp_path / "monkey.conf"
    conf.write_text(f"[SERVER]\n    Listen 127.0.0.1:0\n[PLUGINS]\n    Load duda-memcached\n{section}[HOST]\n    DocumentRoot .\n")
    done = run("-t", "-c", conf)
    assert done.code == 3 and message in done.err
