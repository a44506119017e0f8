# SPDX-License-Identifier: Apache-2.0
"""The package redis with a real server: commands of all handlers over one connection, transactions, scripts, messages; what
handlers get when the server is killed, frozen, restarted, or does not let them in."""
import concurrent.futures
import contextlib
import os
import re
import signal

import pytest

import redis_server
import services
from proc import stop_idle, wait_until

pytestmark = pytest.mark.skipif(not services.has("redis") or not redis_server.PROGRAM,
                                reason="there is no hiredis in this build, or no redis-server")

SOURCE = r"""
#define DUDA_PACKAGES "duda-redis",
#include <duda.h>
#include <duda/redis.h>
#include <errno.h>
#include <stdlib.h>

static void show(struct duda *d, const struct duda_redis_reply *r)
{
    switch (r->type) {
    case DUDA_REDIS_NIL:
        duda_puts(d, "nil");
        break;
    case DUDA_REDIS_NUMBER:
        duda_printf(d, "%lld", (long long)r->number);
        break;
    case DUDA_REDIS_LIST:
        duda_puts(d, "[");
        for (size_t i = 0; i < r->n; i++) {
            duda_puts(d, i ? " " : "");
            show(d, &r->items[i]);
        }
        duda_puts(d, "]");
        break;
    default:
        duda_puts(d, r->type == DUDA_REDIS_ERROR ? "!" : "");
        duda_say(d, r->text);
    }
}

/* The content shows an error and its text. */
static int tell(struct duda *d, int e, const struct duda_redis_reply *r)
{
    if (e == -ECANCELED)
        return e;
    if (e)
        duda_printf(d, "%d ", -e);
    show(d, r);
    return 0;
}

static struct duda_redis *redis(struct duda *d)
{
    return duda_redis_find(d, NULL);
}

/* /ask?c=GET&a=key */
static int ask(struct duda *d)
{
    struct duda_redis_reply reply;
    mk_str parts[] = {duda_query(d, "c"), duda_query(d, "a"), duda_query(d, "b"), duda_query(d, "x")};
    size_t n = 0;
    while (n < 4 && parts[n].p)
        n++;
    return tell(d, duda_redis_do(d, redis(d), &reply, parts, n), &reply);
}

static int hello(struct duda *d)
{
    struct duda_redis_reply reply;
    int e = duda_redis(d, redis(d), &reply, MK_STR("GET"), MK_STR("key"));
    return e ? tell(d, e, &reply) : duda_say(d, reply.text);
}

static int both(struct duda *d, bool whole)
{
    const mk_str add[] = {MK_STR("INCR"), duda_query(d, "k")}, wrong[] = {MK_STR("LPUSH"), duda_query(d, "k"), MK_STR("x")};
    const mk_str odd[] = {MK_STR("NONSENSE")};
    const struct duda_redis_command all[] = {{add, 2}, {wrong, 3}, {add, 2}, {odd, 1}};
    struct duda_redis_reply replies[4];
    int64_t n = 3;
    duda_query_int(d, "n", &n);
    int e = whole ? duda_redis_transaction(d, redis(d), all, (size_t)n, replies)
                  : duda_redis_many(d, redis(d), all, (size_t)n, replies);
    if (e)
        return tell(d, e, &replies[0]);
    for (int64_t i = 0; i < n; i++) {
        show(d, &replies[i]);
        duda_puts(d, ";");
    }
    return 0;
}

static int many(struct duda *d)
{
    return both(d, false);
}

static int transaction(struct duda *d)
{
    return both(d, true);
}

static int script(struct duda *d)
{
    static struct duda_redis_script add = {.source = "return redis.call('INCRBY', KEYS[1], ARGV[1])"};
    const mk_str arguments[] = {MK_STR("script"), MK_STR("5")};
    struct duda_redis_reply reply;
    return tell(d, duda_redis_run(d, redis(d), &reply, &add, 1, arguments, 2), &reply);
}

/* Says each message until `end` comes. */
static int listen(struct duda *d)
{
    struct duda_redis_sub *sub;
    mk_str message;
    duda_deadline(d, 0);
    int e = duda_redis_subscribe(d, redis(d), MK_STR("news"), &sub);
    if (e)
        return e;
    duda_puts(d, "listening\n");
    duda_flush(d);
    while ((e = duda_redis_receive(d, sub, 0, &message)) != -ECANCELED) {
        if (e)
            duda_printf(d, "error %d\n", -e);
        else
            duda_printf(d, "%.*s\n", MK_STR_ARG(message));
        if (duda_flush(d) || (!e && mk_str_eq(message, MK_STR("end"))))
            return 0;
    }
    return e;
}

static int brief(struct duda *d)
{
    struct duda_redis_sub *sub;
    mk_str message;
    int e = duda_redis_subscribe(d, redis(d), MK_STR("silence"), &sub);
    e = e ? e : duda_redis_receive(d, sub, 10, &message);
    duda_redis_leave(sub);
    return duda_printf(d, "%d", -e);
}

DUDA_SERVICE(asks,
    DUDA_GET("/", hello, "One GET."),
    DUDA_GET("/ask", ask, "Any command."),
    DUDA_GET("/many", many, "Several."),
    DUDA_GET("/transaction", transaction, "All or nothing."),
    DUDA_GET("/script", script, "A script."),
    DUDA_GET("/listen", listen, "Messages."),
    DUDA_GET("/brief", brief, "Listens for a moment."));
"""


@pytest.fixture
def redis():
    server = redis_server.Redis()
    yield server
    server.stop()


@pytest.fixture(scope="module")
def steady():
    """A Redis that no test disturbs."""
    server = redis_server.Redis()
    yield server
    server.stop()


def start(monkey, site, redis, keys="", workers=1):
    service = services.build(site.path.parent, "asks", SOURCE, packages=["redis"])
    return monkey(plugins=[service], top=f"[REDIS]\n    Server unix:{redis.socket}\n{keys}", workers=workers)


@pytest.fixture
def server(lasting, steady):
    # One function for all tests: `lasting` knows servers by what prepared them.
    prepare = vars(steady).setdefault("prepare", lambda monkey, site: start(monkey, site, steady))
    return lasting(prepare)


def ask(server, command, *arguments):
    return server.get(f"/ask?c={command}" + "".join(f"&{name}={value}" for name, value in zip("abx", arguments))).text


def test_replies_of_every_kind(server):
    assert ask(server, "SET", "kind", "v%0d%0a%00w") == "OK"
    assert ask(server, "GET", "kind") == "v\r\n\x00w"
    assert ask(server, "GET", "none") == "nil"
    assert ask(server, "STRLEN", "kind") == "5"
    assert ask(server, "RPUSH", "list", "a", "b") == "2"
    assert ask(server, "LRANGE", "list", "0", "-1") == "[a b]"
    assert ask(server, "LRANGE", "nolist", "0", "-1") == "[]"
    assert ask(server, "INCR", "kind") == "121 !ERR value is not an integer or out of range"
    assert ask(server, "EVAL", "return{1,{2,{'x'}}}", "0") == "[1 [2 [x]]]"
    assert len(ask(server, "EVAL", "return%20string.rep('x',3000000)", "0")) == 3_000_000


def test_arguments_are_never_commands(server):
    for value in ("%0d%0aSET%20bad%201%0d%0a", "$3%0d%0aSET%0d%0a", "*1%0d%0a$8%0d%0aFLUSHALL%0d%0a"):
        assert ask(server, "SET", value, value) == "OK"
        assert ask(server, "EXISTS", "bad") == "0"
    assert ask(server, "GET%20kind").startswith("121 !ERR unknown command")


@pytest.mark.parametrize("command", ["SELECT", "multi", "SUBSCRIBE", "BLPOP", "QUIT", "AUTH"])
def test_commands_that_belong_to_no_handler(server, command):
    assert re.fullmatch(r"95 !\[REDIS\] main, unix:\S+: Operation not supported", ask(server, command, "1"))


def test_several_commands(server):
    assert server.get("/many?k=m&n=4").text.startswith("1;!WRONGTYPE")
    assert server.get("/many?k=m&n=1").text == "3;"
    assert server.get("/many?k=m&n=0").text.startswith("22 ")
    assert server.get("/transaction?k=t").text.startswith("1;!WRONGTYPE")
    assert server.get("/transaction?k=t&n=4").text.startswith("121 !ERR unknown command")
    assert server.get("/transaction?k=t&n=1").text == "3;"  # the one before did nothing


def test_scripts_are_loaded_again(server):
    assert server.get("/script").text == "5"
    assert ask(server, "SCRIPT", "FLUSH") == "OK"
    assert server.get("/script").text == "10"


def test_answers_are_not_mixed_up(server):
    """Many handlers share a connection: each gets its own reply."""
    for i in range(50):
        ask(server, "SET", f"mix{i}", f"value{i}")
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        got = list(pool.map(lambda i: ask(server, "GET", f"mix{i % 50}"), range(400)))
    assert got == [f"value{i % 50}" for i in range(400)]


def reads(redis):
    return int(re.search(rb"total_reads_processed:(\d+)", redis.ask("INFO", "stats"))[1])


def test_what_handlers_of_a_turn_ask_leaves_together(server, steady):
    worker, = server.workers
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(server.connect()) for _ in range(50)]
        for c in clients:
            c.send(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            assert c.read().status == 200
        stop_idle(worker)
        before = reads(steady)
        for c in clients:
            c.send(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        os.kill(worker, signal.SIGCONT)
        assert [c.read().status for c in clients] == [200] * 50
        assert reads(steady) - before <= 5  # one of them is our own question


def test_lists_of_handlers_that_left(server, steady):
    """A long list arrives piece by piece, and the handler leaves in the middle: the next replies are whole."""
    script = "local%20t={}%20for%20i=1,20000%20do%20t[i]={i,'x'}%20end%20return%20t"
    for i in range(20):
        with server.connect() as c:
            c.send(f"GET /ask?c=EVAL&a={script}&b=0 HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        assert ask(server, "ECHO", f"after{i}") == f"after{i}"


def test_messages(server, steady):
    with server.connect() as a, server.connect() as b:
        for c in (a, b):
            c.send(b"GET /listen HTTP/1.1\r\nHost: x\r\n\r\n")
        wait_until(lambda: steady.ask("PUBSUB", "NUMSUB", "news").endswith(b":1\r\n"), "the worker listens once for both")
        assert ask(server, "PUBLISH", "news", "one") == "1"
        assert ask(server, "PUBLISH", "news", "end") == "1"
        for c in (a, b):
            assert c.read().text == "listening\none\nend\n"
    wait_until(lambda: steady.ask("PUBSUB", "NUMSUB", "news").endswith(b":0\r\n"), "the worker has left the channel")
    assert server.get("/brief").text == "11"


# ---- What goes wrong ----

def test_a_restart_is_not_seen(monkey, site, redis):
    server = start(monkey, site, redis, "    Timeout 30s\n")
    assert ask(server, "SET", "k", "v") == "OK"
    redis.kill()
    redis.start()
    assert ask(server, "GET", "k") == "nil"


def test_a_server_that_is_gone(monkey, site, redis):
    server = start(monkey, site, redis, "    Timeout 100ms\n")
    assert ask(server, "PING") == "PONG"
    redis.kill()
    # A handler waits for as long as Timeout; later ones fail at once.
    for _ in range(3):
        assert re.fullmatch(r"(110|111|2) !\[REDIS\] main, unix:\S+: .*", ask(server, "PING"))
    server.err.wait_for(r"\[error\] .*\[REDIS\] main, unix:\S+: ")
    redis.start()
    wait_until(lambda: ask(server, "PING") == "PONG", "it is back")
    server.err.wait_for(r"\[REDIS\] main is back")


def test_a_server_that_is_frozen(monkey, site, redis):
    server = start(monkey, site, redis, "    Timeout 200ms\n")
    assert ask(server, "PING") == "PONG"
    redis.freeze()
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: ask(server, "INCR", "n"), range(16)))
    assert all(re.fullmatch(r"(110|104|111) !\[REDIS\] main, unix:\S+: .*", answer) for answer in answers), answers
    redis.thaw()
    wait_until(lambda: ask(server, "PING") == "PONG", "it is back")


def test_messages_come_back_with_the_server(monkey, site, redis):
    server = start(monkey, site, redis, "    Timeout 30s\n")
    with server.connect() as c:
        c.send(b"GET /listen HTTP/1.1\r\nHost: x\r\n\r\n")
        wait_until(lambda: redis.ask("PUBSUB", "NUMSUB", "news").endswith(b":1\r\n"), "the worker listens")
        redis.kill()
        redis.start()
        wait_until(lambda: redis.ask("PUBSUB", "NUMSUB", "news").endswith(b":1\r\n"), "the worker listens again")
        redis.ask("PUBLISH", "news", "end")
        assert c.read().text == "listening\nerror 104\nend\n"


def test_log_in(monkey, site):
    redis = redis_server.Redis("--requirepass", "secret", "--user", "ana", "on", ">other", "~*", "+@all")
    try:
        for keys, says in (("    Password secret\n    Database 3\n", "PONG"), ("    User ana\n    Password other\n", "PONG"),
                           ("    Password wrong\n", "13 !.*WRONGPASS.*"), ("", "121 !NOAUTH.*"),
                           ("    Password secret\n    Database 99\n", "13 !.*DB index is out of range.*")):
            server = start(monkey, site, redis, keys)
            assert re.fullmatch(says, ask(server, "PING"))
            server.stop()
    finally:
        redis.stop()


def test_limits(monkey, site, redis):
    server = start(monkey, site, redis, "    MaxReply 100K\n    MaxWaiting 1\n")
    assert re.fullmatch(r"90 !\[REDIS\].*MaxReply", ask(server, "EVAL", "return%20string.rep('x',3000000)", "0"))
    assert ask(server, "PING") == "PONG"


MISTAKES = [
    ("[REDIS]\n    Timeout 1s\n", "[REDIS] has no Server"),
    ("[REDIS]\n    Server 127.0.0.1:1\n[REDIS]\n    Server 127.0.0.1:2\n", "there are two [REDIS] `main`"),
    ("[REDIS]\n    Server a b\n", "`a b` is not a server: expected HOST:PORT"),
    ("[REDIS]\n    Server 127.0.0.1:1\n    User ana\n", "a User needs a Password"),
]


@pytest.mark.parametrize("section, says", MISTAKES, ids=[says for _, says in MISTAKES])
def test_mistakes(run, tmp_path, section, says):
    conf = tmp_path / "monkey.conf"
    conf.write_text(f"[SERVER]\n    Listen 127.0.0.1:0\n[PLUGINS]\n    Load duda-redis\n{section}[HOST]\n    DocumentRoot .\n")
    done = run("-t", "-c", conf)
    assert done.code == 3 and says in done.err
