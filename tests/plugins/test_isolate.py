# SPDX-License-Identifier: Apache-2.0
"""Services in separate processes ([ISOLATE]): neither the service nor its clients notice the separation, but crashes, memory and
privileges
are separate.
"""
import concurrent.futures
import contextlib
import os
import pwd
import re
import resource
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from pathlib import Path

import pytest
from websockets.sync.client import connect

import proc
import services
import users
from monkey import ENVIRONMENT, PROGRAM, write_config

pytestmark = [pytest.mark.skipif(not services.BUILT.exists(), reason="this build has no Duda"),
              pytest.mark.processes("it starts no group of processes")]

SOURCE = r"""
#define DUDA_SETTINGS table
#include <duda.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Returns an absent string if there is no such value or the store is down. */
static inline mk_str session_value(struct duda_ctx *d, const char *name)
{
    mk_str value;
    (void)!duda_session_get(d, name, &value);
    return value;
}

static int who(struct duda_ctx *d)
{
    struct mk_request *r = duda_request(d);
    mk_str user = mk_request_user(r), host = mk_request_host(r), claim = mk_request_header(r, MK_STR("X-Forwarded-For"));
    return duda_printf(d, "%.*s %d %.*s %.*s (%.*s) %.*s\n", MK_STR_ARG(mk_request_client_text(r)),
                       mk_request_client_addr(r)->port > 0, MK_STR_ARG(mk_request_scheme(r)), MK_STR_ARG(host),
                       MK_STR_ARG(user), MK_STR_ARG(claim));
}

static int pid(struct duda_ctx *d)
{
    return duda_printf(d, "%d " VERSION "\n", (int)getpid());
}

static int login(struct duda_ctx *d)
{
    int e = duda_session_set(d, "name", MK_STR("Ann"));
    return e ? e : duda_puts(d, "in\n");
}

static int name(struct duda_ctx *d)
{
    mk_str n = session_value(d, "name");
    return duda_printf(d, "%.*s\n", MK_STR_ARG(n));
}

static int keep(struct duda_ctx *d)
{
    const struct mk_cookie c = {.name = "kept", .value = MK_STR("1"), .max_age = 60};
    int e = duda_cookie_set(d, &c);
    return e ? e : duda_puts(d, "kept\n");
}

static int count(struct duda_ctx *d)
{
    char room[8192];
    size_t all = 0;
    ssize_t n;
    while ((n = duda_read(d, room, sizeof room)) > 0)
        all += (size_t)n;
    return n ? (int)n : duda_printf(d, "%zu\n", all);
}

static int events(struct duda_ctx *d)
{
    int e = 0;
    for (int i = 0; i < 3 && !e; i++)
        if (!(e = duda_sse_send(d, &(struct mk_sse_event){.name = MK_STR("tick"), .data = MK_STR("data")})))
            e = duda_sleep(d, 1);
    return e;
}

static int hint(struct duda_ctx *d)
{
    int e = duda_early_hints(d, MK_STR("</a.css>; rel=preload; as=style"));
    return e ? e : duda_puts(d, "hinted\n");
}

DUDA_TOPIC(room, "room");

static int chat(struct duda_ctx *d)
{
    struct duda_websocket *s;
    struct duda_message m;
    int e = duda_websocket_open(d, NULL, NULL, &s);
    if (!e)
        e = duda_topic_attach(s, &room);
    if (!e)
        e = duda_websocket_printf(d, s, "here %d", (int)getpid());
    while (!e && (e = duda_websocket_receive(d, s, &m)) > 0)
        e = duda_topic_publish(d, &room, m.data);
    return e;
}

static int wait(struct duda_ctx *d)
{
    duda_log(d, MK_LOG_WARN, "wait begins");
    int e = duda_sleep(d, 3600000);
    duda_log(d, MK_LOG_WARN, "wait ended: %d", e == -ECANCELED);
    return e;
}

static int until(struct duda_ctx *d)
{
    const char *path = duda_query_or(d, "path", "");
    int e = 0;
    duda_log(d, MK_LOG_WARN, "waits for %s", path);
    while (!e && access(path, F_OK))
        e = duda_sleep(d, 5);
    return e ? e : duda_puts(d, "done " VERSION "\n");
}

static int crash(struct duda_ctx *d)
{
    (void)d;
    abort();
}

static int spin(struct duda_ctx *d)
{
    const char *path = duda_query_or(d, "path", "");
    duda_log(d, MK_LOG_WARN, "spins");
    while (access(path, F_OK))
        continue;
    return duda_puts(d, "spun\n");
}

static int eat(struct duda_ctx *d)
{
    char *p = malloc(200 << 20);
    if (!p)
        return -ENOMEM;
    memset(p, 1, 200 << 20);
    int e = duda_printf(d, "%d\n", p[77]);
    free(p);
    return e;
}

static int leak(struct duda_ctx *d)
{
    char *p = malloc(4 << 20);
    if (!p)
        return -ENOMEM;
    memset(p, 1, 4 << 20);
    static char *volatile last;
    last = p;
    return duda_printf(d, "%d\n", last[77]);
}

static int stream(struct duda_ctx *d)
{
    char text[16];
    int e = 0, n = snprintf(text, sizeof text, "%d", (int)getpid());
    while (!e && !(e = duda_sse_send(d, &(struct mk_sse_event){.data = mk_str_of(text, (size_t)n)})))
        e = duda_sleep(d, 20);
    return e;
}

static int gorge(struct duda_ctx *d)
{
    volatile char *p = malloc(200 << 20);
    *p = 1;
    return duda_puts(d, "");
}

static int touch(struct duda_ctx *d)
{
    int fd = open(duda_query_or(d, "path", ""), O_WRONLY | O_CREAT, 0600);
    int e = fd < 0 ? errno : 0;
    if (fd >= 0)
        close(fd);
    return duda_printf(d, "%d\n", e);
}

struct settings { mk_str word; };
static const struct mk_conf_key keys[] = {
    {.name = "Word", .type = MK_CONF_TEXT, MK_CONF_AT(struct settings, word), .default_value = "none", .help = "A word."}};
static const struct mk_conf_table table = {
    .section = "GUEST", .keys = keys, .n = 1, .size = sizeof(struct settings), .help = "A guest."};

static int word(struct duda_ctx *d)
{
    const struct settings *s = duda_settings(d);
    return duda_printf(d, "%.*s\n", MK_STR_ARG(s->word));
}

static int begin(struct mk_worker *w)
{
    (void)w;
    if (access(BROKEN, F_OK) == 0)
        abort();
    return 0;
}

DUDA_SERVICE(guest, DUDA_START(begin),
    DUDA_GET("/who", who, ""), DUDA_GET("/who/ann", who, ""), DUDA_GET("/pid", pid, ""), DUDA_POST("/login", login, ""), DUDA_GET("/name", name, ""),
    DUDA_GET("/keep", keep, ""), DUDA_POST("/count", count, ""), DUDA_GET("/events", events, ""),
    DUDA_GET("/hint", hint, ""), DUDA_GET("/chat", chat, ""), DUDA_GET("/wait", wait, ""), DUDA_GET("/until", until, ""),
    DUDA_GET("/crash", crash, ""), DUDA_GET("/spin", spin, ""), DUDA_GET("/eat", eat, ""), DUDA_GET("/leak", leak, ""), DUDA_GET("/stream", stream, ""), DUDA_GET("/gorge", gorge, ""),
    DUDA_GET("/touch", touch, ""),
    DUDA_GET("/word", word, ""));
"""

RELEASED = proc.RELEASE.parent / "plugins"
CRASHES = ("Sanitizer", "was killed by signal", "exited unexpectedly")
LOADED = "[ROUTES]\n    /guest/* guest\n    /* static\n"
ISOLATED = "[ROUTES]\n    /guest/* isolate guest\n    /* static\n"
LIMIT = "[LIMITS]\n    Requests /guest/keep 2/d\n"


def compile_to(folder, version="1", objects=services.OBJECTS):
    folder.chmod(0o755)
    return services.build(folder, "guest", SOURCE, f'-DVERSION="{version}"', f'-DBROKEN="{folder}/broken"', objects=objects)


@pytest.fixture(scope="module")
def guest(tmp_path_factory):
    return compile_to(tmp_path_factory.mktemp("guest"))


@pytest.fixture
def own(tmp_path):
    """A service that the test may change: its object, and a flag file that makes its start fail."""
    folder = tmp_path / "own"
    folder.mkdir()
    return compile_to(folder)


def section(guest, *keys):
    return f"[ISOLATE]\n    Service {guest}\n" + "".join(f"    {key}\n" for key in keys)


@pytest.fixture
def isolate(monkey, guest):
    """Starts a server with the service in an isolated group."""
    def start(*keys, of=guest, plugins=(), top="", sections=ISOLATED, **how):
        return monkey(plugins=["isolate", *plugins], top=section(of, *keys) + top, sections=sections, **how)
    return start


def supervisor_of(server):
    keeper, = (pid for pid in proc.children(server.pid) if proc.name(pid) == "monkey: keeper")
    return keeper


def group_of(server, workers=1):
    """Returns the PIDs of the supervisor, master and workers of the only group."""
    keeper = supervisor_of(server)
    master, = proc.children(keeper)
    return keeper, master, proc.wait_until(lambda: len(found := proc.children(master)) == workers and found, "workers of the group")


def get_pid(server):
    """Waits until a process responds, and returns its PID: on a busy machine, processes may start slowly."""
    answer = proc.wait_until(lambda: (got := server.get("/guest/pid")).status == 200 and got, "a response of the group")
    return int(answer.text.split()[0])


# ---- Transparency to the service ----

def start_both(is_isolated):
    def prepare(monkey, site):
        site.add("guest/a.txt", "a file")
        guest = compile_to(site.path.parent)
        has_auth = (services.OBJECTS / "monkey-auth.so").exists()
        if has_auth:
            users.add(site.path.parent / "users", "ann", "secret")
        auth = "[AUTH]\n    Location /guest/who/ann\n    UserFile users\n" if has_auth else ""
        return monkey(plugins=["isolate" if is_isolated else guest, "compress", "limits"] + ["auth"] * has_auth,
                      top=(section(guest, "Workers 2") if is_isolated else "") + LIMIT + auth,
                      workers=1 if is_isolated else 2, host="MaxBodySize 4M\nAccessLog access.log",
                      sections=ISOLATED if is_isolated else LOADED)
    return prepare


PREPARED = {"isolated": start_both(True), "loaded": start_both(False)}


@pytest.fixture(params=PREPARED)
def both(request, lasting):
    """One server runs the service in a group, and another one loads it directly: the tests cannot tell the servers apart."""
    return lasting(PREPARED[request.param])


def test_isolated_service_knows_its_client(both):
    assert both.get("/guest/who").text == "127.0.0.1 1 http localhost () \n"
    claims = {"X-Forwarded-For": "192.0.2.1", "Monkey-Client": "192.0.2.1 7 https eve"}
    assert both.get("/guest/who", fields=claims).text == "127.0.0.1 1 http localhost () 192.0.2.1\n"


@pytest.mark.skipif(not (services.OBJECTS / "monkey-auth.so").exists(), reason="this build has no auth")
def test_isolated_service_knows_authenticated_user(both):
    assert both.get("/guest/who/ann").status == 401
    assert both.get("/guest/who/ann", fields=users.basic("ann", "secret")).text == "127.0.0.1 1 http localhost (ann) \n"


def test_isolated_service_coexists_with_files_and_routes(both):
    assert both.get("/guest/a.txt").text == "a file"
    assert both.get("/guest/none").status == 404
    assert both.get("/guest/count").status == 405
    assert "POST" in both.get("/guest/count")["Allow"]
    assert both.get("/guest/who", method="HEAD").status == 200


def test_isolated_service_response_has_no_extra_headers(both):
    names = sorted(name for name, _ in both.get("/guest/pid").fields)
    assert names == ["Content-Length", "Content-Type", "Date", "Server"]


def test_isolated_service_sessions_work_in_all_workers(both):
    cookie = both.get("/guest/login", method="POST")["Set-Cookie"].split(";")[0]
    assert {both.get("/guest/name", fields={"Cookie": cookie}).text for _ in range(8)} == {"Ann\n"}


def test_isolated_service_reads_body_as_stream(both):
    assert both.get("/guest/count", method="POST", body=b"x" * 3000000).text == "3000000\n"
    with both.connect() as c:
        c.ask("/guest/count", method="POST", streamed=True)
        for _ in range(3):
            c.more(b"y" * 70000)
        assert c.done().read().text == "210000\n"
    assert both.get("/guest/count", method="POST", body=b"x" * (5 << 20)).status == 413


def test_isolated_service_sends_events_and_early_hints(both):
    assert both.get("/guest/events").text.count("event: tick\ndata: data\n\n") == 3
    with both.connect() as c:
        c.ask("/guest/hint")
        assert c.read_interim()["Link"] == "</a.css>; rel=preload; as=style"
        assert c.read().text == "hinted\n"


def test_isolated_service_topics_reach_all_workers(both):
    with contextlib.ExitStack() as stack:
        def enter(_):
            return stack.enter_context(connect(f"ws://127.0.0.1:{both.port}/guest/chat", proxy=None))

        sockets, pids = [], set()
        pool = stack.enter_context(concurrent.futures.ThreadPoolExecutor(16))
        while len(pids) < 2:  # opens many connections at once: one worker may accept all that arrive one by one
            new = list(pool.map(enter, range(16)))
            pids |= {each.recv(timeout=proc.SECONDS) for each in new}
            sockets += new
            assert len(sockets) < 400
        sockets[0].send("hello")
        assert {each.recv(timeout=proc.SECONDS) for each in sockets} == {"hello"}


def test_isolated_service_handler_ends_with_its_client(both):
    n = both.log.count("wait ended: 1")
    with both.connect() as c:
        c.ask("/guest/wait")
        proc.wait_until(lambda: both.log.count("wait begins") > n, "the start of the handler")
    proc.wait_until(lambda: both.log.count("wait ended: 1") > n, "the end of the handler")


def test_isolated_service_is_behind_other_plugins(both):
    answers = [both.get("/guest/keep").status for _ in range(4)]
    assert answers in ([200, 200, 429, 429], [429] * 4)


def test_isolated_service_request_is_logged_once(both):
    both.get("/guest/pid?once")
    path = both.config.parent / "access.log"
    proc.wait_until(lambda: "/guest/pid?once" in path.read_text(), "the log line")
    assert path.read_text().count("/guest/pid?once") == 1


def test_isolated_service_knows_about_https(isolate, encryption):
    server = isolate(encryption=encryption)
    with server.connect(protocol="h2") as c:
        assert c.get("/guest/who").text == "127.0.0.1 1 https localhost () \n"
    with server.connect(protocol="h1") as c:
        assert "Secure" in c.get("/guest/keep")["Set-Cookie"]


# ---- Separate processes ----

def has_object(pid, guest):
    return str(guest) in Path(f"/proc/{pid}/maps").read_text()


def test_isolated_object_is_loaded_only_in_group(isolate, guest):
    server = isolate()
    _, master, workers = group_of(server)
    assert get_pid(server) in workers
    assert has_object(master, guest) and has_object(workers[0], guest)
    others = [server.pid, *(pid for pid in proc.children(server.pid) if proc.name(pid) == "monkey: worker")]
    assert len(others) == 2 and not any(has_object(pid, guest) for pid in others)


def test_isolated_crash_affects_only_its_request(isolate, site):
    site.add("a.txt", "a file")
    server = isolate()
    server.allow(*CRASHES)
    with server.connect() as c:
        assert c.get("/guest/pid").status == 200
        assert c.get("/guest/crash").status == 502
        assert c.get("/guest/pid").status == 200  # the client is connected to the server, not to the crashed process
        assert c.get("/a.txt").text == "a file"
    server.err.wait_for(r"guest: the handler of guest GET /crash terminated its worker")


def test_isolated_requests_wait_for_worker_replacement(isolate):
    server = isolate()
    server.allow(*CRASHES)
    for _ in range(3):
        pid = get_pid(server)
        os.kill(pid, signal.SIGKILL)
        assert get_pid(server) != pid


def test_isolated_group_restarts_after_all_processes_are_killed(isolate):
    server = isolate()
    server.allow(*CRASHES)
    _, master, workers = group_of(server)
    os.kill(master, signal.SIGKILL)
    proc.wait_until(lambda: proc.is_gone(workers[0]) and get_pid(server) not in workers, "another group")
    server.err.wait_for(r"guest: the group was killed by signal 9")
    assert group_of(server)[1] != master


@pytest.mark.timeout(180)
def test_isolated_service_that_cannot_start_does_not_affect_others(isolate, own, site):
    site.add("a.txt", "a file")
    broken = own.parent / "broken"
    broken.touch()
    server = isolate(of=own)
    server.allow(*CRASHES)
    proc.wait_until(lambda: server.get("/guest/pid").status == 503, "the alarm")
    assert server.get("/guest/pid")["Retry-After"] == "2"
    server.err.wait_for("the service `guest` does not serve: its processes crash or do not start; requests get 503 until it serves")
    assert server.get("/a.txt").text == "a file"
    broken.unlink()
    proc.wait_until(lambda: server.get("/guest/pid").status == 200, "the service")
    assert server.err.text.count("does not serve: its processes crash") == 1
    broken.touch()
    os.kill(group_of(server)[1], signal.SIGKILL)
    proc.wait_until(lambda: server.get("/guest/pid").status == 503, "the alarm")
    proc.wait_until(lambda: server.err.text.count("does not serve: its processes crash") == 2, "the next message")
    broken.unlink()
    proc.wait_until(lambda: server.get("/guest/pid").status == 200, "the service")


@pytest.mark.parametrize("reuses", [False, True], ids=["new connection", "reused connection"])
def test_isolated_request_that_no_worker_accepted_gets_503_when_group_dies(isolate, own, site, reuses):
    site.add("a.txt", "a file")
    server = isolate("HandlerTimeout 1h", of=own)
    server.allow(*CRASHES)
    _, master, (worker,) = group_of(server)
    if reuses:
        assert get_pid(server) == worker
    os.kill(worker, signal.SIGSTOP)
    with server.connect() as c:
        c.ask("/guest/pid")
        assert server.get("/a.txt").text == "a file"  # the server sent the other request before this one
        (own.parent / "broken").touch()
        os.kill(master, signal.SIGKILL)
        os.kill(worker, signal.SIGKILL)
        assert c.read().status == 503


def test_isolated_busy_handler_does_not_block_others(isolate, site, tmp_path):
    site.add("a.txt", "a file")
    server = isolate()
    with server.connect() as c:
        c.ask(f"/guest/spin?path={tmp_path}/over")
        server.err.wait_for("spins")
        assert server.get("/a.txt").text == "a file"
        assert Path(f"/proc/{group_of(server)[2][0]}/stat").read_text().rsplit(")")[1].split()[16] == str(min(19, os.nice(0) + 10))
        (tmp_path / "over").touch()
        assert c.read().text == "spun\n"


@pytest.mark.skipif(not (RELEASED / "monkey-isolate.so").exists(), reason="the release is not built, and sanitizers need all memory")
def test_isolated_memory_limit_ends_worker(isolate, tmp_path):
    server = isolate("Memory 100M", of=compile_to(tmp_path, objects=RELEASED), program=proc.RELEASE)
    assert server.get("/guest/eat").status == 503
    assert server.get("/guest/pid").status == 200
    server.err.wait_for(r"guest: .*eat\(\) in .*guest\.c:\d+: out of memory: the process is limited to 100 MB of data")
    server.allow(*CRASHES)
    assert server.get("/guest/gorge").status == 502
    server.err.wait_for(r"guest: .*gorge\(\) in .*crashed with SIGSEGV at .* after an allocation had failed: the process is limited to 100 MB")
    assert server.get("/guest/pid").status == 200


@pytest.mark.skipif(not (RELEASED / "monkey-isolate.so").exists(), reason="the release is not built, and sanitizers need all memory")
def test_isolated_worker_whose_memory_is_full_is_replaced(isolate, tmp_path):
    """A leak would otherwise make all requests fail until the next reload. A single handler that requests too much memory does not replace a worker."""
    server = isolate("Memory 100M", of=compile_to(tmp_path, objects=RELEASED), program=proc.RELEASE)
    server.allow("out of memory", "the memory is full", r"answered -ENOMEM ")
    first = server.get("/guest/pid").text
    assert server.get("/guest/eat").status == 503 and server.get("/guest/pid").text == first
    while server.get("/guest/leak").status == 200:
        pass
    server.err.wait_for(r"guest: the memory is full, the process is limited to 100 MB of data: this worker requests its replacement")
    server.err.wait_for(r"guest: worker \d+ accepts no more connections: starting a replacement")
    proc.wait_until(lambda: server.get("/guest/leak").status == 200, "a worker with free memory")
    assert server.get("/guest/pid").text != first
    assert server.err.text.count("the memory is full") == 1


def workers_of(server):
    return {pid for pid in proc.children(server.pid) if proc.name(pid) == "monkey: worker"}


def open_stream(stack, server):
    """Opens an event stream, and returns it with the PID of its worker."""
    c = stack.enter_context(server.connect())
    c.ask("/guest/stream").read_head()
    return c, int(re.search(rb"data: (\d+)", c.read_until(b"\n\n"))[1])


def leak_all(server, pid):
    """Fills the memory of this worker."""
    while True:
        with server.connect() as c:
            if int(c.get("/guest/pid").text.split()[0]) == pid:
                while c.get("/guest/leak").status == 200:
                    pass
                return


@pytest.mark.skipif(not (RELEASED / "monkey-duda.so").exists(), reason="the release is not built, and sanitizers need all memory")
def test_full_memory_replaces_only_its_worker_and_not_at_once_again(monkey, tmp_path):
    server = monkey(plugins=[compile_to(tmp_path, objects=RELEASED)], program=proc.RELEASE, workers=2, sections=LOADED)
    server.allow("out of memory", "the memory is full", r"answered -ENOMEM ", "requests its replacement too soon")
    for pid in (server.pid, *workers_of(server)):
        resource.prlimit(pid, resource.RLIMIT_DATA, (100 << 20, 100 << 20))
    with contextlib.ExitStack() as stack:
        streams = [open_stream(stack, server)]
        while streams[-1][1] == streams[0][1]:
            streams.append(open_stream(stack, server))
        (lost, full), (kept, other) = streams[0], streams[-1]
        with server.config.open("a") as f:
            f.write("[A section that is only half written\n")
        leak_all(server, full)
        server.err.wait_for(rf"worker {full} accepts no more connections: starting a replacement")
        lost.read_to_end()
        new, = proc.wait_until(lambda: len(now := workers_of(server) - {full, other}) == 1 and now, "the replacement")
        leak_all(server, new)
        server.err.wait_for(rf"worker {new} requests its replacement too soon after the last one: the next replacement is possible in \d+ s")
        with server.connect() as c:  # the worker repeats its request after 5 s
            time.sleep(6)
            c.get("/guest/pid")
        assert workers_of(server) == {new, other}
        for _ in range(3):
            assert int(re.search(rb"data: (\d+)", kept.read_until(b"\n\n"))[1]) == other
    assert server.err.text.count("starting a replacement") == 1
    assert server.err.text.count("too soon") == 1
    assert "reload" not in server.err.text and "half written" not in server.err.text


@pytest.fixture
def public_guest(guest):
    """A copy of the service's object that every user can read."""
    folder = Path(tempfile.mkdtemp(prefix="monkey-test-"))
    folder.chmod(0o755)
    shutil.copy(guest, folder)
    yield folder / guest.name
    shutil.rmtree(folder)


def can_run(user):
    done = os.spawnvp(os.P_WAIT, "setpriv", ["setpriv", f"--reuid={user}", "--clear-groups", "test", "-x", str(PROGRAM)])
    return done == 0


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("setpriv"), reason="only root can switch to another user")
def test_isolated_group_runs_as_its_user(isolate, public_guest):
    if not can_run("nobody"):
        pytest.skip("the user nobody cannot run the program here")
    server = isolate("User nobody", of=public_guest)
    _, master, workers = group_of(server)
    nobody = str(pwd.getpwnam("nobody").pw_uid)
    assert {proc.status(pid)["Uid"].split()[0] for pid in [master, *workers]} == {nobody}
    assert server.get("/guest/pid").status == 200
    path = socket_of(server)
    assert path.stat().st_uid == 0 and path.stat().st_mode & 0o777 == 0o600
    server.tell(signal.SIGHUP)
    server.err.wait_for(r": the new configuration serves", count=2)
    assert server.get("/guest/pid").status == 200


CAPABILITIES = "-all,+setuid,+setgid,+kill,+net_bind_service"


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("setpriv"), reason="only root can switch to another user")
def test_isolated_group_and_workers_may_have_different_users(isolate, public_guest):
    """As with packaging/monkey.service.in, the master lacks CAP_CHOWN."""
    if not can_run("nobody") or not can_run("daemon"):
        pytest.skip("other users cannot run the program here")
    server = isolate("User daemon", of=public_guest, server="User nobody",
                     wrapper=("setpriv", f"--bounding-set={CAPABILITIES}", "--inh-caps=-all"))
    _, master, _ = group_of(server)
    assert int(proc.status(master)["Uid"].split()[0]) == pwd.getpwnam("daemon").pw_uid
    assert server.get("/guest/who").status == 200
    path = socket_of(server)
    assert path.stat().st_uid == pwd.getpwnam("nobody").pw_uid and path.stat().st_mode & 0o777 == 0o600
    server.stop()
    assert not path.parent.exists()


def socket_of(server):
    """The unix socket of the group."""
    folders = [*Path("/run").glob("monkey-*/guest"), *Path("/tmp").glob("monkey-*/guest")]
    if "XDG_RUNTIME_DIR" in os.environ:
        folders += Path(os.environ["XDG_RUNTIME_DIR"]).glob("monkey-*/guest")
    inodes = {os.readlink(f"/proc/{supervisor_of(server)}/fd/3")[8:-1]}
    bound = {line.split()[7] for line in Path("/proc/net/unix").read_text().splitlines() if line.split()[6] in inodes}
    found, = (each for each in folders if str(each) in bound)
    return found


@pytest.mark.skipif(os.geteuid() == 0, reason="root can switch to any user")
def test_isolated_user_requires_root(run, tmp_path, guest):
    config = write_config(tmp_path / "a.conf", plugins=["isolate"], top=section(guest, "User daemon"), root=tmp_path)
    assert "only root can start a service as another user" in run("-t", "-c", config).err


def test_isolated_sandbox_allows_what_service_declares(isolate, tmp_path, site):
    if b"Landlock  yes" not in subprocess.check_output([PROGRAM, "-V"]):
        pytest.skip("this kernel has no Landlock")
    (tmp_path / "inside").mkdir()
    (tmp_path / "guest.conf").write_text(f"[DUDA]\n    WritablePaths {tmp_path}/inside\n[GUEST]\n    Word here\n")
    server = isolate(f"Include {tmp_path}/guest.conf")
    assert server.get("/guest/word").text == "here\n"
    assert server.get(f"/guest/touch?path={tmp_path}/inside/a").text == "0\n"
    assert server.get(f"/guest/touch?path={tmp_path}/b").text == "13\n"
    assert isolate("Sandbox off").get(f"/guest/touch?path={tmp_path}/c").text == "0\n"


# ---- Changes ----

def replace(own, version):
    """Replaces the object atomically under the same name, as an installation does."""
    (own.parent / "new").mkdir(exist_ok=True)
    made = services.build(own.parent / "new", "guest", SOURCE, f'-DVERSION="{version}"', f'-DBROKEN="{own.parent}/broken"')
    made.rename(own)


def reload(server):
    n = len(re.findall(r"\d: the new configuration serves", server.log))
    server.tell(signal.SIGHUP)
    server.err.wait_for(r"\d: the new configuration serves", count=n + 1)


def test_isolated_reload_loads_new_object_without_lost_requests(isolate, own, tmp_path):
    server = isolate(of=own)
    cookie = server.get("/guest/login", method="POST")["Set-Cookie"].split(";")[0]
    replace(own, "2")
    answers, over = [], threading.Event()

    def ask():
        while not over.is_set():
            answers.append(server.get("/guest/pid", method="GET"))

    with server.connect() as c:
        c.ask(f"/guest/until?path={tmp_path}/go")
        server.err.wait_for("waits for")
        thread = threading.Thread(target=ask)
        thread.start()
        reload(server)
        assert server.get("/guest/pid").text.split()[1] == "2"
        (tmp_path / "go").touch()
        assert c.read().text == "done 1\n"
        over.set()
        thread.join()
    assert {each.status for each in answers} == {200}
    assert server.get("/guest/name", fields={"Cookie": cookie}).text == "Ann\n"


def test_isolated_reload_with_failing_service_changes_nothing(isolate, own):
    server = isolate(of=own)
    server.allow(*CRASHES)
    (own.parent / "broken").touch()
    server.tell(signal.SIGHUP)
    server.err.wait_for("the service `guest` cannot serve its new configuration: see its messages in the error log")
    assert server.get("/guest/pid").status == 200
    (own.parent / "broken").unlink()
    reload(server)
    assert server.get("/guest/pid").status == 200


def test_isolated_group_restarts_with_old_config_after_rejected_reload(isolate, own):
    server = isolate("Workers 1", of=own)
    server.allow(*CRASHES)
    server.config.write_text(server.config.read_text().replace(f"{own}\n    Workers 1", f"{own}\n    Workers 2"))
    (own.parent / "broken").touch()
    server.tell(signal.SIGHUP)
    server.err.wait_for("the service `guest` cannot serve its new configuration: see its messages in the error log")
    (own.parent / "broken").unlink()
    _, master, workers = group_of(server)
    os.kill(master, signal.SIGKILL)
    proc.wait_until(lambda: proc.is_gone(workers[0]) and get_pid(server) not in workers, "another group")
    assert len(proc.children(group_of(server)[1])) == 1


def test_isolated_group_starts_and_ends_with_its_section(isolate, monkey, guest, site):
    server = isolate()
    keeper = group_of(server)[0]
    path = socket_of(server)
    with_it = server.config.read_text()
    write_config(server.config, listen=f"127.0.0.1:{server.port}", plugins=["isolate"])
    reload(server)
    proc.wait_until(lambda: proc.is_gone(keeper), "the end of the group")
    assert server.get("/guest/pid").status == 404 and not path.exists()
    server.config.write_text(with_it.replace("127.0.0.1:0", f"127.0.0.1:{server.port}"))
    reload(server)
    assert server.get("/guest/pid").status == 200


def test_isolated_changed_limits_restart_the_group(isolate):
    server = isolate("Nice 1", listen="127.0.0.1:0")
    keeper = group_of(server)[0]
    server.config.write_text(server.config.read_text().replace("Nice 1", "Nice 2").replace("127.0.0.1:0", f"127.0.0.1:{server.port}"))
    reload(server)
    proc.wait_until(lambda: keeper not in proc.children(server.pid), "the end of the old group")
    assert server.get("/guest/pid").status == 200 and group_of(server)[0] != keeper


def test_isolated_upgrade_starts_new_group(isolate, watch):
    server = isolate()
    before = get_pid(server)
    server.tell(signal.SIGUSR2)
    after = watch(int(server.err.wait_for(r"the new program is process (\d+)")[1]))
    assert server.process.wait(proc.SECONDS) == 0
    assert get_pid(server) != before and proc.is_gone(before)
    after.tell(signal.SIGTERM)
    after.wait()


@pytest.mark.parametrize("number", [signal.SIGQUIT, signal.SIGTERM])
def test_isolated_stop_leaves_nothing_behind(isolate, number, tmp_path):
    server = isolate("Workers 2")
    keeper, master, workers = group_of(server, 2)
    path = socket_of(server)
    with server.connect() as c:
        c.ask(f"/guest/until?path={tmp_path}/go")
        server.err.wait_for("waits for")
        server.tell(number)
        (tmp_path / "go").touch()
        if number == signal.SIGQUIT:
            assert c.read().text == "done 1\n"
    server.wait()
    assert all(proc.is_gone(pid) for pid in [keeper, master, *workers]) and not path.parent.exists()


def test_isolated_group_ends_after_server_is_killed(isolate):
    server = isolate()
    processes = group_of(server)
    server.exit_code = -signal.SIGKILL
    server.process.kill()
    proc.wait_until(lambda: proc.is_gone(processes[0]) and proc.is_gone(processes[2][0]), "the end of the group")


# ---- Logs ----

def test_isolated_output_goes_to_error_log(isolate, tmp_path):
    server = isolate("Workers 2", server="ErrorLog error.log")
    path = tmp_path / "error.log"
    proc.wait_until(lambda: re.search(r"^\S+ \[info\] \d+: guest: monkey \S+ serves with 2 workers$", path.read_text(), re.MULTILINE),
                    "a line of the group")
    path.rename(tmp_path / "error.log.1")
    server.tell(signal.SIGUSR1)
    proc.wait_until(lambda: "reopened the logs" in path.read_text(), "the new file")
    with server.connect() as c:
        c.ask("/guest/wait")
        proc.wait_until(lambda: re.search(r": guest: .*wait begins", path.read_text()), "a line of the group in the new file")


def test_isolated_daemon_leaves_terminal_with_all_processes(watch, guest, tmp_path):
    pid = tmp_path / "pid"
    config = write_config(tmp_path / "a.conf", plugins=["isolate"], top=section(guest), root=tmp_path, server=f"PidFile {pid}")
    # The call returns when no process holds the streams open.
    done = subprocess.run([PROGRAM, "-D", "-c", config], env=os.environ | ENVIRONMENT, capture_output=True, timeout=proc.SECONDS,
                          check=True)
    master = watch(proc.pid_in(pid))
    assert b"serves" in done.stdout
    master.tell(signal.SIGTERM)
    master.wait()


STORES = r"""
#define DUDA_USE "duda-store"
#include <duda.h>
#include <duda/store.h>
#include <duda/task.h>

static struct duda_ctx *task;

static int hold_lock(struct duda_ctx *d)
{
    struct duda_store_lock lock;
    int e = duda_store_lock(d, duda_store_find(d, NULL), MK_STR("lock"), 60000, 1000, &lock);
    if (e)
        return e;
    duda_log(d, MK_LOG_INFO, "the task begins");
    e = duda_sleep(d, 60000);
    (void)!duda_store_unlock(d, &lock);
    duda_log(d, MK_LOG_INFO, "the task ends");
    return e;
}

static int start(struct mk_worker *w)
{
    return duda_task_spawn(w, &(struct duda_task){.name = "lock", .fn = hold_lock}, &task);
}

static void stop(struct mk_worker *w)
{
    (void)w;
    duda_task_cancel(task);
}

static int hello(struct duda_ctx *d)
{
    return duda_puts(d, "hello");
}

DUDA_SERVICE(guest, DUDA_START(start), DUDA_STOP(stop), DUDA_GET("/", hello));
"""


@pytest.mark.skipif(not services.has("kv"), reason="this build has no package kv")
def test_service_stops_before_the_stores_of_its_configuration(monkey, tmp_path):
    tmp_path.chmod(0o755)
    guest = services.build(tmp_path, "guest", STORES, packages=["store"])
    (tmp_path / "data").mkdir()
    (tmp_path / "group.conf").write_text(f"[PLUGINS]\n    Load duda-kv\n[KV]\n    Folder {tmp_path / 'data'}\n")
    server = monkey(plugins=["isolate"], top=f"[ISOLATE]\n    Service {guest}\n    Include {tmp_path / 'group.conf'}\n",
                    sections="[ROUTES]\n    /* isolate guest\n")
    server.err.wait_for("the task begins")
    server.stop()
    assert "the task ends" in server.err.text
