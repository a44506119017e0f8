# SPDX-License-Identifier: Apache-2.0
"""The memory plugin: workers near their memory limit. A service sets how much memory its worker uses."""
import contextlib
import json
import os
import re
import signal
import subprocess
import time

import pytest

import proc
import services
from backend import Backend, response
from client import BadReply, Closed
from http2_backend import Http2Backend, answer
from monkey import PROGRAM, SECONDS
from proc import wait_until
from prometheus import parse
from shell_server import socket_folder  # noqa: F401

pytestmark = [pytest.mark.processes("the plugin limits worker processes"),
              pytest.mark.skipif(not services.BUILT.exists(), reason="this build has no Duda")]

MB, LIMIT = 1 << 20, 400
ENOUGH, SCARCE, TOO_LITTLE, NONE = (int(LIMIT * share) for share in (0.6, 0.88, 0.97, 1.05))

SOURCE = r"""
#include <duda.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static char *block;
static size_t size;

/* Only the service's own memory can shrink again for certain, whatever the C library keeps. */
static void set_use(long mb)
{
    long resident = 0, shared = 0;
    if (block)
        munmap(block, size);
    block = NULL;
    FILE *f = fopen("/proc/self/statm", "re");
    if (f && fscanf(f, "%*d %ld %ld", &resident, &shared) == 2 && (mb << 20) > (resident - shared) * 4096) {
        size = (size_t)((mb << 20) - (resident - shared) * 4096);
        block = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        memset(block, 1, size);
    }
    if (f)
        fclose(f);
}

static int use(struct duda_ctx *d)
{
    int64_t mb = 0;
    if (duda_query_int(d, "mb", &mb))
        set_use((long)mb);
    return duda_printf(d, "%d\n", (int)getpid());
}

/* Uses so much memory until the file exists. */
static int until(struct duda_ctx *d)
{
    int64_t mb = 0;
    if (!duda_query_int(d, "mb", &mb))
        return 400;
    set_use((long)mb);
    while (access(DONE, F_OK) != 0)
        if (duda_sleep(d, 20))
            break;
    set_use(0);
    return duda_puts(d, "done\n");
}

DUDA_SERVICE(uses, DUDA_GET("/use", use, ""), DUDA_GET("/until", until, ""));
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    folder = tmp_path_factory.mktemp("uses")
    return folder, services.build(folder, "uses", SOURCE, f'-DDONE="{folder}/done"')


@pytest.fixture
def done(built):
    file = built[0] / "done"
    file.unlink(missing_ok=True)
    return file


@pytest.fixture
def start(monkey, built, site):
    site.add("a.txt", "hello")

    def run(keys="", **how):
        section = f"[MEMORY]\n    Limit {LIMIT}M\n    Except /s/use\n{keys}"
        return monkey(plugins=["memory", "metrics", built[1], *how.pop("plugins", [])], top=how.pop("top", section),
                      sections=f"[ROUTES]\n{how.pop('routes', '')}    /metrics metrics prometheus\n    /json metrics json\n    /s/* uses\n    /* static\n",
                      server="DrainTimeout 5s\n" + how.pop("server", ""), **how)
    return run


def use(server, mb):
    """Lets the worker use so much memory, and returns its process ID."""
    return int(server.get(f"/s/use?mb={mb}").text)


def wait_for_status(server, status):
    def responds():
        with contextlib.suppress(BrokenPipeError):  # a response that comes before the request
            return (reply := server.get("/a.txt")).status == status and reply
        return None
    return wait_until(responds, f"status {status}")


def figures(server):
    numbers = parse(server.get("/metrics").text)
    return {name: numbers[name] for name in numbers if "monkey_memory" in str(name)}


# ---- Stages ----

@pytest.mark.parametrize("protocol", ["h1", "h2", "h2-tls"], indirect=True)
def test_requests_are_rejected_near_the_limit(start, protocol):
    server = start("[LOGGER]\n    AccessLog access.log\n    Format %s %{reason}x\n", plugins=["logger"])
    assert server.get("/a.txt").status == 200
    use(server, TOO_LITTLE)
    reply = wait_for_status(server, 503)
    assert reply["Retry-After"] == "5"
    assert server.get("/a.txt", method="POST", body=b"x" * 200_000).status == 503
    assert server.get("/s/use").status == 200, "an exception"
    use(server, ENOUGH)
    wait_for_status(server, 200)
    log = server.err.text
    assert log.count(": new requests get 503") == 1 and log.count("requests are served again") == 1
    server.err.wait_for(rf"memory: 3\d\d\.\d of {LIMIT}\.0 MB are in use: new requests get 503")
    server.err.wait_for(r"requests are served again; [1-9]\d* were rejected in \d+\.\d s")
    server.stop()
    lines = (server.folder / "access.log").read_text().splitlines()
    assert {line for line in lines if not line.startswith("200 ")} == {"503 memory"}


def test_open_connections_get_503_too(start):
    server = start()
    with server.connect() as c:
        use(server, TOO_LITTLE)
        wait_for_status(server, 503)
        with contextlib.suppress(Closed):  # it was idle
            assert c.get("/a.txt").status == 503
    with server.connect() as c:
        assert [c.get("/a.txt").status for _ in range(3)] == [503] * 3


@pytest.mark.parametrize("protocol", ["h1", "h2-tls"], indirect=True)
def test_idle_connections_are_closed_first(start, protocol):
    server = start()
    with server.connect() as idle:
        assert idle.get("/a.txt").status == 200
        time.sleep(5.1)
        use(server, SCARCE)
        server.err.wait_for(r"memory: 3\d\d\.\d of .* MB are in use: idle connections are closed, and caches are emptied")
        idle.expect_end()
    assert server.get("/a.txt").status == 200
    use(server, ENOUGH)
    wait_until(lambda: 'stage="releasing"} 0' in server.get("/metrics").text, "the end of the stage")
    use(server, SCARCE)
    server.err.wait_for("idle connections are closed", 2)


@pytest.mark.parametrize("protocol", ["h1", "h2", "h2-tls"], indirect=True)
def test_connections_that_were_just_used_stay_open(start, protocol):
    server = start()
    with server.connect() as c:
        assert c.get("/a.txt").status == 200
        use(server, SCARCE)
        server.err.wait_for("idle connections are closed")
        assert c.get("/a.txt").status == 200


@pytest.mark.parametrize("scheme, kind, reply", [("http", Backend, lambda _: response("hello")), ("h2c", Http2Backend, lambda _: answer())])
def test_idle_connections_to_backends_are_closed(start, scheme, kind, reply):
    with kind(reply) as backend:
        server = start(plugins=["proxy"], routes=f"    /b/* proxy {scheme}://{backend.address}\n")
        assert [server.get("/b/").status for _ in range(3)] == [200] * 3 and backend.connections == 1
        use(server, SCARCE)
        server.err.wait_for("idle connections are closed")
        wait_until(lambda: not backend.open, "the end of the connection")
        assert server.get("/b/").status == 200 and backend.connections == 2


def test_no_connections_are_accepted_above_the_limit(start, done):
    server = start()
    with server.connect() as busy, server.connect() as slow, server.connect() as waiting:
        slow.send(b"GET /a.txt HTTP/1.1\r\nHost: x\r\nX-Slow: ")
        busy.ask(f"/s/until?mb={NONE}")
        server.err.wait_for(r"memory: 4\d\d\.\d of .* MB are in use: no connections are accepted, and new requests get 503")
        assert slow.read().status == 408
        with contextlib.suppress(Closed):
            waiting.ask("/a.txt")  # it has been accepted, but was closed meanwhile
        with server.connect() as queued:
            queued.ask("/a.txt")
            done.touch()
            assert busy.read().text == "done\n"
            assert queued.read().status in (200, 503)
    wait_for_status(server, 200)
    server.err.wait_for(r"requests are served again")


@pytest.mark.parametrize("replace", ["off", "10m"])
def test_connections_are_rejected_if_the_lack_of_memory_lasts(start, done, replace):
    server = start(f"    Replace {replace}\n")
    with server.connect() as busy:
        busy.ask(f"/s/until?mb={NONE}")
        server.err.wait_for("no connections are accepted")
        with server.connect(seconds=10) as queued:
            assert queued.get("/a.txt").status == 503
        server.err.wait_for(r"memory: 4\d\d\.\d of .* MB are in use: new connections get 503")
        for _ in range(3):
            with server.connect(seconds=1) as c:
                assert c.get("/a.txt").status == 503
        done.touch()
        assert busy.read().text == "done\n"
    wait_for_status(server, 200)


def test_figures_are_reported(start):
    server = start()
    use(server, TOO_LITTLE)
    wait_for_status(server, 503)
    assert server.get("/metrics").status == 503
    use(server, ENOUGH)
    wait_for_status(server, 200)
    text = server.get("/metrics").text
    numbers = parse(text)
    memory, = json.loads(server.get("/json").text)["memory"]
    assert (memory["limit"], memory["sheds"], memory["shedding"], memory["paused"]) == (LIMIT * MB, 1, 0, 0)
    assert numbers["monkey_memory_limit_bytes"] == LIMIT * MB
    assert 0.5 * LIMIT * MB < numbers["monkey_memory_used_bytes"] < 0.7 * LIMIT * MB
    assert numbers["monkey_memory_sheds_total"] == 1 and numbers["monkey_memory_releases_total"] >= 1
    assert numbers["monkey_memory_rejected_requests_total"] >= 2
    assert [numbers["monkey_memory_workers", {"stage": stage}] for stage in ("releasing", "shedding", "paused")] == [0, 0, 0]


# ---- Workers ----

def test_other_workers_continue(start, done):
    server = start(workers=2)
    full = use(server, NONE)
    server.err.wait_for("no connections are accepted")
    seen = set()

    def is_served():
        with server.connect(seconds=1) as c:
            with contextlib.suppress(TimeoutError, BadReply):
                reply = c.get("/s/use")
                seen.update([reply.text] if reply.status == 200 else [])
        return seen
    wait_until(is_served, "a response of the other worker")
    assert seen and str(full) not in {text.strip() for text in seen}
    assert set(server.workers) >= {full}


def test_shared_socket_rejects_only_while_all_workers_are_full(start, done, socket_folder):
    server = start("    Replace off\n", workers=2, listen=[f"unix:{socket_folder}/s"])
    with contextlib.ExitStack() as stack:
        first = stack.enter_context(server.connect(seconds=2 * SECONDS))
        first.ask(f"/s/until?mb={NONE}")
        server.err.wait_for(": new connections get 503", 1)
        for _ in range(5):
            with server.connect(seconds=5) as c:
                assert c.get("/a.txt").status == 200, "the other worker accepts"
        second = stack.enter_context(server.connect(seconds=2 * SECONDS))
        second.ask(f"/s/until?mb={NONE}")
        server.err.wait_for(": new connections get 503", 2)
        for _ in range(5):
            with server.connect(seconds=5) as c:
                with contextlib.suppress(BrokenPipeError):  # the response comes before the request
                    c.ask("/a.txt")
                assert c.read().status == 503, "no worker accepts"
        done.touch()
        assert [first.read().text, second.read().text] == ["done\n"] * 2
    wait_for_status(server, 200)
    assert len(server.workers) == 2


def test_worker_that_does_not_recover_is_replaced(start):
    server = start("    Replace 1s\n")
    full = use(server, TOO_LITTLE)
    server.err.wait_for(r"memory: 3\d\d\.\d of .* MB are in use: this worker requests its replacement, because it does not recover")
    wait_for_status(server, 200)
    assert int(server.get("/s/use").text) != full
    assert server.err.text.count("requests its replacement") == 1


@pytest.mark.slow
def test_thirty_seconds_lie_between_two_replacements(start):
    server = start("    Replace 1s\n")
    pids, times = [use(server, TOO_LITTLE)], []
    for _ in range(2):
        server.err.wait_for("requests its replacement", len(pids))
        wait_until(lambda: server.workers != [pids[-1]] and server.get("/a.txt").status == 200, "a new worker", 60)
        times.append(time.monotonic())
        pids.append(use(server, TOO_LITTLE))
    assert 25 < times[1] - times[0] < 45 and len(set(pids)) == 3


def test_worker_is_not_replaced_with_replace_off(start):
    server = start("    Replace off\n")
    full = use(server, TOO_LITTLE)
    wait_for_status(server, 503)
    use(server, ENOUGH)
    wait_for_status(server, 200)
    assert server.workers == [full] and "replacement" not in server.err.text


# ---- Configuration ----

def change(server, old, new):
    text = server.config.read_text()
    assert old in text
    server.config.write_text(text.replace(old, new))
    server.tell(signal.SIGHUP)


def test_reload_changes_the_limit(start):
    server = start()
    old = use(server, ENOUGH)
    assert server.get("/a.txt").status == 200
    change(server, f"Limit {LIMIT}M", "Limit 300M")
    wait_until(lambda: server.get("/s/use").text != f"{old}\n", "a new worker")
    use(server, ENOUGH + 55)  # 98 % of the new limit
    wait_for_status(server, 503)
    change(server, "Limit 300M", f"Limit {LIMIT}M")
    wait_for_status(server, 200)
    use(server, ENOUGH + 55)
    assert server.get("/a.txt").status == 200


def test_reload_adds_and_removes_the_limit(start):
    server = start(top="")
    change(server, "[HOST]", f"[MEMORY]\n    Limit {LIMIT}M\n    Except /s/use\n[HOST]")
    wait_until(lambda: f"monkey_memory_limit_bytes {LIMIT * MB}" in server.get("/metrics").text, "the limit")
    use(server, TOO_LITTLE)
    wait_for_status(server, 503)
    text = server.config.read_text()
    server.config.write_text(text.replace(f"[MEMORY]\n    Limit {LIMIT}M\n    Except /s/use\n", "").replace("    Load memory\n", ""))
    server.tell(signal.SIGHUP)
    wait_for_status(server, 200)
    use(server, TOO_LITTLE)
    assert server.get("/a.txt").status == 200


def test_limit_that_a_new_worker_exceeds_is_rejected(start):
    server = start()
    server.allow("worker .* exited unexpectedly")
    old = server.workers
    change(server, f"Limit {LIMIT}M", "Limit 4M")
    server.err.wait_for(r"memory: \d+\.\d of 4\.0 MB are in use: the Limit in \[MEMORY\] is too low, because the worker has only started")
    server.err.wait_for("workers cannot serve the new configuration: keeping the old one")
    assert server.get("/a.txt").status == 200
    wait_until(lambda: server.workers == old, "the end of the new worker")


def test_automatic_limit_is_a_share_of_the_memory(start):
    server = start(top="", workers=2)
    limit = parse(server.get("/metrics").text)["monkey_memory_limit_bytes"]
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert 0 < limit <= total * 0.8


def test_limit_above_the_memory_is_reported(start):
    server = start(top="[MEMORY]\n    Limit 100000G\n")
    server.err.wait_for(r"memory: 1 workers with a Limit of 102400000\.0 MB may use more than the \d+\.\d MB that the server has")


@pytest.mark.parametrize("line, message", [
    ("Limit 1M", r"monkey.conf:\d+.*`1M`"),
    ("Limit much", r"much"),
    ("Limit -5M", r"-5M"),
    ("Replace never", r"never"),
    ("Excpt /health", r"Except"),
    ("Except path", r"path"),
    ("Except colour red", r"colour"),
])
def test_wrong_values_are_reported_with_their_place(monkey, line, message):
    server = monkey(plugins=["memory"], top=f"[MEMORY]\n    {line}\n", expect_start=False)
    server.exit_code = 3
    server.wait()
    assert "monkey.conf" in server.err.text and line.split()[0] in server.err.text
    server.err.wait_for(message)


# ---- Without sanitizers, which keep freed memory ----

needs_release = pytest.mark.skipif(not proc.RELEASE.exists() or not (proc.RELEASE.parent / "plugins/monkey-memory.so").exists(),
                                   reason=f"{proc.RELEASE} is not built")


def with_cgroup_limit(size):
    """Returns a command prefix that runs a program below a control group whose memory.max is `size`."""
    script = """
        top=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/self/mounts); own=$(sed -n 's/^0:://p' /proc/self/cgroup)
        [ -n "$top" ] && mount -t tmpfs none "$top" && mkdir -p "$top$own" && echo "$SIZE" >"$top$own/memory.max" && exec "$@"
    """
    words = ["unshare", "--mount", "env", f"SIZE={size}", "sh", "-c", script, "sh"]
    if os.geteuid() or subprocess.run([*words, "true"], check=False, capture_output=True).returncode:
        pytest.skip("needs root, and mounts of its own above a mounted cgroup2")
    return words


@needs_release
@pytest.mark.parametrize("size, workers, limit, warns", [(400, 2, 160, False), (24, 4, 4.8, False), (17, 4, 4, False), (12, 4, 4, True)])
def test_automatic_limit_is_a_share_of_the_control_group_but_at_least_4_mb(monkey, site, size, workers, limit, warns):
    server = monkey(program=proc.RELEASE, plugins=["memory", "metrics"], top="[MEMORY]\n", workers=workers, wrapper=with_cgroup_limit(size * MB),
                    sections="[ROUTES]\n    /metrics metrics prometheus\n    /* static\n")
    assert abs(parse(server.get("/metrics").text)["monkey_memory_limit_bytes"] / MB - workers * limit) < 0.1
    warning = rf"memory: {workers} workers with a Limit of {limit}\.0 MB may use more than the {size}\.0 MB that the server has: " \
              r"the kernel may kill them; reduce Workers\n"
    assert bool(re.search(warning, server.err.text)) == warns and ("may use more" in server.err.text) == warns, server.err.text


@needs_release
def test_slow_clients_with_large_heads_do_not_exhaust_the_memory(monkey, site):
    """Each connection makes the worker keep a part of a head. The limit ends them, not the worker."""
    site.add("a.txt", "hello")
    server = monkey(program=proc.RELEASE, plugins=["memory"], top="[MEMORY]\n    Limit 8M\n",
                    server="MaxHeaderSize 60K\nHeaderTimeout 60s\nMaxConnections 2000\n")
    worker, = server.workers
    head = b"GET /a.txt HTTP/1.1\r\nHost: x\r\nX-Long: " + b"x" * 55_000
    with contextlib.ExitStack() as stack:
        slow = [stack.enter_context(server.connect()).send(head) for _ in range(300)]
        server.err.wait_for(r"memory: \d+\.\d of 8\.0 MB were in use; released [1-9]\d*\.\d MB|no connections are accepted")
        statuses = set()
        for client in slow:
            with contextlib.suppress(Closed, TimeoutError, OSError):
                statuses.add(client.read().status)
        assert statuses == {408}
        assert wait_for_status(server, 200) and server.workers == [worker]
    assert proc.memory_kb(worker) < 8 * 1024


@needs_release
def test_memory_of_a_burst_is_returned(monkey, site):
    site.add("a.txt", "hello")
    server = monkey(program=proc.RELEASE, plugins=["memory"], top="[MEMORY]\n    Limit 256M\n", server="MaxHeaderSize 60K\nMaxConnections 2000\n")
    worker, = server.workers
    assert server.get("/a.txt").status == 200
    before = proc.memory_kb(worker)
    head = b"GET /a.txt HTTP/1.1\r\nHost: x\r\nX-Long: " + b"x" * 55_000
    with contextlib.ExitStack() as stack:
        for _ in range(300):
            stack.enter_context(server.connect()).send(head)
        wait_until(lambda: proc.memory_kb(worker) > before + 10_000, "memory in use")
    wait_until(lambda: proc.memory_kb(worker) < before + 2_000, "memory near that before the burst", 2 * SECONDS)


EMBEDDING = PROGRAM.parent / "embedded"


@pytest.mark.skipif(not EMBEDDING.exists(), reason=f"{EMBEDDING} is not built")
def test_program_that_embeds_the_server_has_no_limit(monkey):
    server = monkey(plugins=["memory"], program=EMBEDDING, expect_start=False)
    server.exit_code = 1
    server.wait()
    server.err.wait_for("memory: a program that embeds the server has no worker processes whose memory can be limited")
