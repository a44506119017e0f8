# SPDX-License-Identifier: Apache-2.0
"""The redis package with a real server: commands that all handlers pipeline over one connection, transactions, scripts
and messages. Also checks the errors that handlers get when the server is killed, frozen or restarted, or rejects the
login."""
import concurrent.futures
import contextlib
import os
import re
import signal
import time

import pytest

import certificates
import redis_server
import services
from backend import Backend
from proc import sleeps, stop_idle, wait_until
from redis_client_service import SOURCE, ask
from relay import Relay

pytestmark = pytest.mark.skipif(not services.has("redis") or not redis_server.PROGRAM,
                                reason="the package is not in this build, or there is no redis-server")


@pytest.fixture
def redis():
    server = redis_server.Redis()
    yield server
    server.stop()


@pytest.fixture(scope="module")
def steady():
    """A Redis that keeps running through all tests."""
    server = redis_server.Redis()
    yield server
    server.stop()


@contextlib.contextmanager
def stopping(redis):
    try:
        yield redis
    finally:
        redis.stop()


def start_at(monkey, site, address, keys="", workers=1):
    service = services.build(site.path.parent, "asks", SOURCE, packages=["redis"])
    return monkey(plugins=[service], top=f"[REDIS]\n    Server {address}\n{keys}", workers=workers)


def start(monkey, site, redis, keys="", workers=1):
    return start_at(monkey, site, f"unix:{redis.socket}", keys, workers)


@pytest.fixture
def server(lasting, steady):
    # All tests must pass the same function, because `lasting` identifies a server by that function.
    prepare = vars(steady).setdefault("prepare", lambda monkey, site: start(monkey, site, steady))
    return lasting(prepare)


def test_redis_replies_of_every_type_are_parsed(server):
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


def speak_resp3(server):
    server.sendall(b"HELLO 3\r\nPING\r\n")
    reply = b""
    while not reply.endswith(b"+PONG\r\n"):  # the reply to HELLO contains the list of modules
        reply += server.recv(4096)


# For each argument of `DEBUG PROTOCOL`, the result in the handler. For `push`, RESP3 sends a push message before the reply.
KINDS = {
    "string": "Hello World", "integer": "12345", "double": "3.141", "null": "nil", "array": "[0 1 2]", "set": "[0 1 2]",
    "map": "[0 0 1 1 2 0]", "true": "1", "false": "0", "verbatim": "This is a verbatim\nstring",
    "bignum": "1234567999999999999999999999999999999", "attrib": "Some real reply following the attribute",
    "push": "Some real reply following the push reply"}


@pytest.mark.parametrize("version", ["resp2", "resp3"])
def test_redis_replies_are_equal_in_resp2_and_resp3(monkey, site, version):
    redis = redis_server.Redis("--enable-debug-command", "yes")
    with stopping(redis), Relay(redis.socket, greet=speak_resp3 if version == "resp3" else None) as relay:
        server = start_at(monkey, site, relay.address)
        for kind, expected in KINDS.items():
            if (version, kind) != ("resp2", "push"):
                assert ask(server, "DEBUG", "PROTOCOL", kind) == expected, kind
        assert ask(server, "SET", "x", "1") == "OK" and ask(server, "GET", "x") == "1"


def test_redis_resp3_serves_lists_transactions_and_scripts(monkey, site, steady):
    with Relay(steady.socket, greet=speak_resp3) as modern:
        check_resp3(start_at(monkey, site, modern.address))


def check_resp3(server):
    ask(server, "DEL", "marks")
    assert ask(server, "ZADD", "marks", "1.5", "a") == "1" and ask(server, "ZSCORE", "marks", "a") == "1.5"
    assert ask(server, "HSET", "h", "a", "b") in ("0", "1") and ask(server, "HGETALL", "h") == "[a b]"
    assert ask(server, "GET", "none") == "nil" and ask(server, "SADD", "s", "q") in ("0", "1") and ask(server, "SMEMBERS", "s") == "[q]"
    assert server.get("/many?k=three").text.count(";") == 3
    assert re.fullmatch(r"\d+", server.get("/script").text) and ask(server, "DEL", "script") == "1"


def test_redis_arguments_never_become_commands(server):
    for value in ("%0d%0aSET%20bad%201%0d%0a", "$3%0d%0aSET%0d%0a", "*1%0d%0a$8%0d%0aFLUSHALL%0d%0a"):
        assert ask(server, "SET", value, value) == "OK"
        assert ask(server, "EXISTS", "bad") == "0"
    assert ask(server, "GET%20kind").startswith("121 !ERR unknown command")


def test_redis_blocking_commands_use_their_own_connections(server, steady):
    def block(command, ms=0):
        return server.get(f"/block?ms={ms}&c={command.replace(' ', '%20')}").text
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        readers = [pool.submit(block, "XREAD BLOCK 0 STREAMS stream $"), pool.submit(block, "BLPOP queue 0")]
        wait_until(lambda: int(steady.info("clients", "blocked_clients")) == 2, "both commands block")
        assert ask(server, "PING") == "PONG"
        assert ask(server, "XADD", "stream", "1-1", "f%20v").startswith("121 !ERR wrong number")
        assert steady.ask("XADD", "stream", "1-1", "field", "value") == b"$3\r\n1-1\r\n"
        assert ask(server, "RPUSH", "queue", "job") == "1"
        assert [r.result(30) for r in readers] == ["[[stream [[1-1 [field value]]]]]", "[queue job]"]
    steady.ask("XGROUP", "CREATE", "stream", "group", "0")
    assert block("XREADGROUP GROUP group me BLOCK 1000 STREAMS stream >", 1000) == "[[stream [[1-1 [field value]]]]]"
    assert block("XREADGROUP GROUP group me BLOCK 10 STREAMS stream >", 10) == "nil"
    assert block("SELECT 1").startswith("95 !")
    assert ask(server, "XREAD", "BLOCK", "0", "STREAMS").startswith("95 !")
    assert ask(server, "XREAD", "COUNT", "1", "block", "0", "STREAMS", "x", "0").startswith("95 !")
    assert ask(server, "XREAD", "STREAMS", "block", "0") == "nil", "`block` is a stream name here"
    # A connection is reused after its blocking command has completed, but closed if the client disconnects before.
    with server.connect() as c:
        c.send(b"GET /block?c=BLPOP%20nothing%200 HTTP/1.1\r\nHost: x\r\n\r\n")
        wait_until(lambda: int(steady.info("clients", "blocked_clients")) == 1, "one command blocks")
    wait_until(lambda: int(steady.info("clients", "blocked_clients")) == 0, "its connection is closed")
    assert server.get("/write?a=k&b=v").text == "67 ![REDIS] main: only 0 of 1 replicas have confirmed the write"


@pytest.mark.parametrize("command", ["SELECT", "multi", "SUBSCRIBE", "BLPOP", "QUIT", "AUTH"])
def test_redis_rejects_commands_that_affect_the_shared_connection(server, command):
    assert re.fullmatch(r"95 !\[REDIS\] main, unix:\S+: the command would change or block a connection that all handlers share", ask(server, command, "1"))


def test_redis_error_is_logged_without_its_arguments(server, steady):
    def line(path):
        server.get(path)
        return server.err.wait_for(r"bare\(\) in .* answered -.*")[0]

    assert "(Remote I/O error): [REDIS] main: WRONGTYPE Operation against a key" in line("/bare?c=LPUSH&a=hello&b=secret")
    assert "secret" not in server.err.wait_for(r"WRONGTYPE.*")[0].split(" (request")[0]
    server.get("/bare?c=NOSUCH&a=hidden")
    found = server.err.wait_for(r"\[REDIS\] main: ERR unknown command.*")[0]
    assert "hidden" not in found and "(NOSUCH)" in found
    server.get("/bare?c=SELECT&a=1")
    server.err.wait_for(r"answered -EOPNOTSUPP \(Operation not supported\): \[REDIS\] main, unix:.*: .*")


def test_redis_pipeline_and_transaction_return_all_replies(server):
    assert server.get("/many?k=m&n=4").text.startswith("1;!WRONGTYPE")
    assert server.get("/many?k=m&n=1").text == "3;"
    assert server.get("/many?k=m&n=0").text.startswith("22 ")
    assert server.get("/transaction?k=t").text.startswith("1;!WRONGTYPE")
    assert server.get("/transaction?k=t&n=4").text.startswith("121 !ERR unknown command")
    assert server.get("/transaction?k=t&n=1").text == "3;"  # the failed transaction had no effect


def test_redis_script_is_reloaded_after_a_flush(server):
    assert server.get("/script").text == "5"
    assert ask(server, "SCRIPT", "FLUSH") == "OK"
    assert server.get("/script").text == "10"


def test_redis_replies_reach_their_handlers(server):
    """Many handlers share a connection; each gets its own reply."""
    for i in range(50):
        ask(server, "SET", f"mix{i}", f"value{i}")
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        got = list(pool.map(lambda i: ask(server, "GET", f"mix{i % 50}"), range(400)))
    assert got == [f"value{i % 50}" for i in range(400)]


def reads(redis):
    return int(re.search(rb"total_reads_processed:(\d+)", redis.ask("INFO", "stats"))[1])


def test_redis_commands_of_one_loop_iteration_are_sent_together(server, steady):
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
        assert reads(steady) - before <= 5  # includes the INFO commands of the test itself


def test_redis_reply_of_a_cancelled_handler_is_skipped(server, steady):
    """The handler ends while a long list is still arriving: later replies are still parsed correctly."""
    script = "local%20t={}%20for%20i=1,20000%20do%20t[i]={i,'x'}%20end%20return%20t"
    for i in range(20):
        with server.connect() as c:
            c.send(f"GET /ask?c=EVAL&a={script}&b=0 HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        assert ask(server, "ECHO", f"after{i}") == f"after{i}"


def subscribe(c):
    """Waits until the handler has reported its subscription, but leaves the report unread. Redis registers the subscription
    slightly earlier."""
    c.send(b"GET /listen HTTP/1.1\r\nHost: x\r\n\r\n")
    while b"listening" not in c.got:
        assert c.fill()


def check_messages(server, redis):
    with server.connect() as a, server.connect() as b:
        for c in (a, b):
            subscribe(c)
        assert redis.ask("PUBSUB", "NUMSUB", "news").endswith(b":1\r\n"), "the worker subscribes once for both"
        assert ask(server, "PUBLISH", "news", "one") == "1"
        assert ask(server, "PUBLISH", "news", "end") == "1"
        for c in (a, b):
            assert c.read().text == "listening\none\nend\n"
    wait_until(lambda: redis.ask("PUBSUB", "NUMSUB", "news").endswith(b":0\r\n"), "the worker has unsubscribed")
    assert server.get("/brief").text == "62"


def test_redis_messages_reach_all_subscribers(server, steady):
    check_messages(server, steady)


@pytest.mark.processes("the test counts the sleeps of a worker process")
def test_redis_idle_channel_does_not_wake_its_worker(monkey, site, steady):
    server = start(monkey, site, steady)
    with server.connect() as c:
        subscribe(c)
        before = sleeps(server.workers[0])
        time.sleep(2)
        assert sleeps(server.workers[0]) - before <= 3  # the worker must not poll every 250 ms
        steady.ask("PUBLISH", "news", "end")
        assert c.read().text == "listening\nend\n"


def test_redis_messages_in_resp3_reach_all_subscribers(monkey, site, steady):
    with Relay(steady.socket, greet=speak_resp3) as modern:
        check_messages(start_at(monkey, site, modern.address), steady)


# ---- Failures ----

def test_redis_restart_causes_no_error(monkey, site, redis):
    server = start(monkey, site, redis, "    Timeout 30s\n")
    assert ask(server, "SET", "k", "v") == "OK"
    redis.kill()
    redis.start()
    assert ask(server, "GET", "k") == "nil"


def demote(redis, other):
    assert redis.ask("REPLICAOF", "127.0.0.1", str(other.port)) == b"+OK\r\n"


# One write for each way in which a replica reports that it rejects writes.
WRITES = {"command": "/ask?c=SET&a=k&b=1", "transaction": "/transaction?k=n&n=1", "many": "/many?k=m&n=3", "script": "/script",
          "blocking": "/block?c=BLPOP+none+0.01&ms=10"}


@pytest.mark.parametrize("write", WRITES)
def test_redis_demoted_master_is_replaced_by_the_new_one(monkey, site, write):
    """The connections to the old master stay open while the address already leads to the new one."""
    with contextlib.ExitStack() as stack:
        old, new = (stack.enter_context(stopping(redis_server.start_at_port(lambda port: redis_server.Redis(port=port))))
                    for _ in range(2))
        relay = stack.enter_context(Relay(old.socket))
        server = start_at(monkey, site, relay.address)
        assert ask(server, "SET", "k", "0") == "OK" and server.get(WRITES[write]).status == 200
        relay.target = new.socket
        demote(old, new)
        refused = server.get(WRITES[write]).text
        assert "READONLY" in refused or "EXECABORT" in refused
        done = server.get(WRITES[write]).text
        assert "READONLY" not in done and "EXECABORT" not in done
        assert ask(server, "SET", "after", write) == "OK" and new.ask("GET", "after").endswith(f"{write}\r\n".encode())


def test_redis_blocked_command_reports_a_demotion(monkey, site):
    with contextlib.ExitStack() as stack:
        old, new = (stack.enter_context(stopping(redis_server.start_at_port(lambda port: redis_server.Redis(port=port))))
                    for _ in range(2))
        relay = stack.enter_context(Relay(old.socket))
        server = start_at(monkey, site, relay.address)
        assert ask(server, "SET", "k", "0") == "OK"
        with server.connect() as c:
            c.ask("/block?c=BLPOP+none+30&ms=30000")
            wait_until(lambda: old.info("clients", "blocked_clients") == "1", "the command blocks")
            relay.target = new.socket
            demote(old, new)
            assert "UNBLOCKED" in c.read().text
        assert ask(server, "SET", "k", "1") == "OK" and new.ask("GET", "k").endswith(b"1\r\n")


def test_redis_configured_replica_is_not_reconnected_for_each_write(monkey, site):
    with contextlib.ExitStack() as stack:
        master = stack.enter_context(stopping(redis_server.start_at_port(lambda port: redis_server.Redis(port=port))))
        replica = stack.enter_context(stopping(redis_server.Redis("--replicaof", "127.0.0.1", str(master.port))))
        wait_until(lambda: replica.info("replication", "master_link_status") == "up", "the replica is in sync")
        relay = stack.enter_context(Relay(replica.socket))
        server = start_at(monkey, site, relay.address)
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            answers = list(pool.map(lambda i: ask(server, *(("SET", "k", "1") if i % 2 else ("GET", "none"))), range(200)))
        assert set(answers) <= {"nil", "121 !READONLY You can't write against a read only replica."}, "no read fails"
        assert relay.connections < 20


def test_redis_killed_server_fails_fast_and_recovers(monkey, site, redis):
    server = start(monkey, site, redis, "    Timeout 100ms\n")
    assert ask(server, "PING") == "PONG"
    redis.kill()
    # The first requests wait until Timeout; later ones fail immediately.
    for path in ("/ask?c=PING", "/many?k=a", "/transaction?k=a") * 2:
        assert re.fullmatch(r"(110|111) !\[REDIS\] main, unix:\S+: .*", server.get(path).text), path
    server.err.wait_for(r"\[error\] .*\[REDIS\] main, unix:\S+: ")
    redis.start()
    wait_until(lambda: ask(server, "PING") == "PONG", "the server answers again")
    server.err.wait_for(r"\[REDIS\] main, \S+ is back")


def test_redis_frozen_server_times_out_and_recovers(monkey, site, redis):
    server = start(monkey, site, redis, "    Timeout 200ms\n")
    assert ask(server, "PING") == "PONG"
    redis.freeze()
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: ask(server, "INCR", "n"), range(16)))
    assert all(re.fullmatch(r"(110|104|111) !\[REDIS\] main, unix:\S+: .*", answer) for answer in answers), answers
    redis.thaw()
    wait_until(lambda: ask(server, "PING") == "PONG", "the server answers again")


def test_redis_subscription_survives_a_restart(monkey, site, redis):
    server = start(monkey, site, redis, "    Timeout 30s\n")
    with server.connect() as c:
        subscribe(c)
        redis.kill()
        redis.start()
        wait_until(lambda: redis.ask("PUBSUB", "NUMSUB", "news").endswith(b":1\r\n"), "the worker subscribes again")
        redis.ask("PUBLISH", "news", "end")
        assert c.read().text == "listening\nerror 104\nend\n"


def test_redis_login_uses_user_password_and_database(monkey, site):
    redis = redis_server.Redis("--requirepass", "secret", "--user", "ana", "on", ">other", "~*", "+@all")
    try:
        for keys, message in (("    Password secret\n    Database 3\n", "PONG"), ("    User ana\n    Password other\n", "PONG"),
                           ("    Password wrong\n", "126 !.*WRONGPASS.*"), ("", "126 !NOAUTH.*"),
                           ("    Password secret\n    Database 99\n", "126 !.*DB index is out of range.*")):
            server = start(monkey, site, redis, keys)
            assert re.fullmatch(message, ask(server, "PING"))
            server.stop()
    finally:
        redis.stop()


def test_redis_password_is_read_from_its_source(monkey, site, tmp_path, monkeypatch):
    redis = redis_server.Redis("--requirepass", "secret")
    monkeypatch.setenv("REDIS_SECRET", "secret")
    kept = tmp_path / "password"
    kept.write_text("secret\n")
    kept.chmod(0o600)
    try:
        for source in ("env:REDIS_SECRET", f"file:{kept}"):
            server = start(monkey, site, redis, f"    PasswordSource {source}\n")
            assert ask(server, "PING") == "PONG"
            server.stop()
    finally:
        redis.stop()


def test_redis_tls_reads_replies_of_several_records(monkey, site, tmp_path):
    authority = certificates.make_authority(tmp_path)
    pair, own = authority.issue(["localhost", "127.0.0.1"]), authority.issue(["client"], client=True)
    options = ("--tls-cert-file", str(pair.certificate), "--tls-key-file", str(pair.key), "--tls-ca-cert-file", str(authority.file))
    try:
        redis = redis_server.start_at_port(lambda port: redis_server.Redis("--tls-port", str(port), *options))
    except AssertionError:
        pytest.skip("this redis-server has no TLS")
    try:
        service = services.build(site.path.parent, "asks", SOURCE, packages=["redis"])
        port = redis.options[1]
        server = monkey(plugins=[service], top=f"[UPSTREAM]\n    Name safe\n    Server 127.0.0.1:{port}\n    TLS on\n"
                        f"    TLSAuthority {authority.file}\n    TLSCertificate {own.certificate}\n    TLSKey {own.key}\n"
                        "[REDIS]\n    Server safe\n    Timeout 30s\n")
        assert ask(server, "SET", "k", "v") == "OK"
        # The reply spans several TLS records: data that TLS has buffered causes no further poll event.
        assert len(ask(server, "EVAL", "return%20string.rep('x',3000000)", "0")) == 3_000_000
        assert server.get("/spread").text == "100"
        assert server.get("/block?ms=10&c=BLPOP%20none%200.01").text == "nil"
    finally:
        redis.stop()


def test_redis_full_server_reports_enospc(monkey, site):
    redis = redis_server.Redis("--maxmemory", "3mb", "--maxmemory-policy", "noeviction")
    try:
        server = start(monkey, site, redis)
        value = "v" * 4000
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            answers = list(pool.map(lambda i: ask(server, "SET", f"full{i}", f"{i}{value}"), range(800)))
        stored = [i for i, answer in enumerate(answers) if answer == "OK"]
        refused = [answer for answer in answers if answer != "OK"]
        assert stored and refused and all(answer.startswith("28 !OOM ") for answer in refused)
        assert all(ask(server, "GET", f"full{i}") == f"{i}{value}" for i in stored[-20:])
        assert ask(server, "DBSIZE") == str(len(stored))
    finally:
        redis.stop()


def test_redis_busy_server_reports_eagain(monkey, site, redis):
    server = start(monkey, site, redis, "    Timeout 30s\n")
    assert redis.ask("CONFIG", "SET", "busy-reply-threshold", "10") == b"+OK\r\n"
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        script = pool.submit(redis.ask, "EVAL", '"while true do end"', "0")
        wait_until(lambda: ask(server, "PING").startswith("11 !BUSY "), "the server reports BUSY")
        assert redis.ask("SCRIPT", "KILL") == b"+OK\r\n"
        assert script.result(30).startswith(b"-ERR")
    assert ask(server, "PING") == "PONG"


def test_redis_reply_beyond_the_limit_is_rejected(monkey, site, redis):
    server = start(monkey, site, redis, "    MaxReplySize 100K\n    MaxQueue 1\n")
    assert re.fullmatch(r"90 !\[REDIS\].*MaxReplySize", ask(server, "EVAL", "return%20string.rep('x',3000000)", "0"))
    assert ask(server, "PING") == "PONG"


def test_redis_announced_list_beyond_the_limit_is_rejected(monkey, site):
    """The announced length alone already exceeds MaxReplySize."""
    def script(connection):
        while connection.recv(4096):
            connection.sendall(b"*1\r\n*2000000000\r\n")

    with Backend(script=script) as backend:
        service = services.build(site.path.parent, "asks", SOURCE, packages=["redis"])
        server = monkey(plugins=[service], top=f"[REDIS]\n    Server {backend.address}\n", workers=1)
        assert re.fullmatch(r"90 !\[REDIS\].*MaxReplySize", ask(server, "GET", "x"))


MISTAKES = [
    ("[REDIS]\n    Timeout 1s\n", "[REDIS] has no Server"),
    ("[REDIS]\n    Server 127.0.0.1:1\n[REDIS]\n    Server 127.0.0.1:2\n", "another [REDIS] already has the Name `main`"),
    ("[REDIS]\n    Server a b\n", "`a b` is not a server: expected HOST:PORT"),
    ("[REDIS]\n    Server 127.0.0.1:1\n    User ana\n", "User needs Password or PasswordSource"),
    ("[REDIS]\n    Server 127.0.0.1:1\n    PasswordSource secret\n", "expected env:NAME or file:PATH"),
    ("[REDIS]\n    Server 127.0.0.1:1\n    Cluster on\n    Sentinel shop\n", "Cluster excludes Sentinel, and a Database other than 0"),
]


@pytest.mark.parametrize("section, message", MISTAKES, ids=[message for _, message in MISTAKES])
def test_redis_section_rejects_invalid_keys(run, tmp_path, section, message):
    conf = tmp_path / "monkey.conf"
    conf.write_text(f"[SERVER]\n    Listen 127.0.0.1:0\n[PLUGINS]\n    Load duda-redis\n{section}[HOST]\n    DocumentRoot .\n")
    done = run("-t", "-c", conf)
    assert done.code == 3 and message in done.err
