# SPDX-License-Identifier: Apache-2.0
"""Subprocesses of handlers: input, output, exit status, and their termination together with the handler."""
import os
import signal
from pathlib import Path

import pytest

import services
from proc import wait_until

pytestmark = [pytest.mark.skipif(not services.has("subprocess"), reason="this build has no Duda"),
              pytest.mark.processes("an embedded server starts no programs")]

SOURCE = r"""
#define DUDA_USE "duda-subprocess"
#include <duda.h>
#include <duda/subprocess.h>
#include <errno.h>
#include <signal.h>

/* Runs the script of the query in a shell. */
static struct duda_subprocess_options shell(struct duda_ctx *d)
{
    const char **argv = duda_alloc(d, 4 * sizeof *argv);
    int64_t ms = 0;
    argv[0] = duda_query_or(d, "file", "/bin/sh");
    argv[1] = "-c";
    argv[2] = duda_query_or(d, "script", "cat");
    argv[3] = NULL;
    duda_query_int(d, "ms", &ms);
    return (struct duda_subprocess_options){.argv = argv, .timeout_ms = (uint32_t)ms, .merge_stderr = duda_query(d, "join").p != NULL};
}

static int run(struct duda_ctx *d)
{
    struct duda_subprocess_options o = shell(d);
    mk_str input, output;
    int64_t max = 10 << 20;
    int status, e = duda_read_all(d, 10 << 20, &input);
    duda_query_int(d, "max", &max);
    if (!e)
        e = duda_subprocess_run(d, &o, input, (size_t)max, &output, &status);
    if (e == -ECANCELED)
        return e;
    return e ? duda_printf(d, "error %d", -e) : duda_printf(d, "%d %.*s", status, MK_STR_ARG(output));
}

/* Forwards the output to the client as it arrives. */
static int follow(struct duda_ctx *d)
{
    struct duda_subprocess_options o = shell(d);
    struct duda_subprocess *c;
    char buffer[100];
    ssize_t n;
    int status = -1, e = duda_subprocess_start(d, &o, &c);
    while (!e && (n = duda_subprocess_read(d, c, buffer, sizeof buffer)) != 0) {
        e = n < 0 ? (int)n : duda_write(d, mk_str_of(buffer, (size_t)n));
        e = e ? e : duda_flush(d);
    }
    if (!e)
        e = duda_subprocess_wait(d, c, &status);
    duda_log(d, MK_LOG_WARN, "follow ends: %d", e);
    return e ? e : duda_printf(d, " and %d", status);
}

/* Exchanges lines with the subprocess. */
static int talk(struct duda_ctx *d)
{
    struct duda_subprocess_options o = shell(d);
    struct duda_subprocess *c;
    char buffer[100];
    int status, e = duda_subprocess_start(d, &o, &c);
    for (int i = 0; i < 3 && !e; i++) {
        e = duda_subprocess_write(d, c, duda_sprintf(d, "%d\n", i));
        ssize_t n = e ? 0 : duda_subprocess_read(d, c, buffer, sizeof buffer);
        e = e ? e : n < 0 ? (int)n : duda_write(d, mk_str_of(buffer, (size_t)n));
    }
    if (!e)
        e = duda_subprocess_wait(d, c, &status);
    return e ? e : duda_printf(d, "%d", status);
}

/* Keeps reading although every wait reports the cancellation. */
static int stubborn(struct duda_ctx *d)
{
    struct duda_subprocess_options o = shell(d);
    struct duda_subprocess *c;
    char buffer[100];
    int e = duda_subprocess_start(d, &o, &c);
    while (!e)
        (void)!duda_subprocess_read(d, c, buffer, sizeof buffer);
    return e;
}

static int polite(struct duda_ctx *d)
{
    struct duda_subprocess_options o = shell(d);
    struct duda_subprocess *c;
    char buffer[100];
    int status, e = duda_subprocess_start(d, &o, &c);
    if (!e && duda_subprocess_read(d, c, buffer, sizeof buffer) > 0) /* the subprocess has started */
        duda_subprocess_signal(c, SIGTERM);
    if (!e)
        e = duda_subprocess_wait(d, c, &status);
    return e ? e : duda_printf(d, "%d", status);
}

DUDA_SERVICE(programs, DUDA_POST("/run", run, ""), DUDA_GET("/follow", follow, ""), DUDA_GET("/talk", talk, ""),
    DUDA_GET("/stubborn", stubborn, ""), DUDA_GET("/polite", polite, ""),
    DUDA_POST("/late", run, "", .deadline_ms = 100));
"""


def prepare(monkey, site):
    monkey(plugins=[services.build(site.path.parent, "programs", SOURCE, packages=["subprocess"])], workers=1,
           server="MaxBodySize 10M")


@pytest.fixture
def server(lasting):
    return lasting(prepare)


def run(server, script, body=b"", query="", path="/run"):
    target = f"{path}?script={''.join(f'%{c:02x}' for c in script.encode())}{query}"
    answer = server.get(target, method="POST", body=body)
    return answer.text if answer.status == 200 else answer.status


def test_subprocess_returns_output_and_status(server):
    assert run(server, "sort -u", b"b\na\nb\n") == "0 a\nb\n"
    assert run(server, "exit 7") == "7 "
    assert run(server, "echo so far; kill -9 $$") == "137 so far\n"
    assert run(server, "true", b"x" * 1_000_000) == "0 ", "the program need not read its input"
    assert run(server, "echo $PATH $LANG $HOME; pwd") == "0 /usr/local/bin:/usr/bin:/bin C.UTF-8\n/\n"
    assert run(server, "exec ls /proc/self/fd") == "0 0\n1\n2\n3\n", "3 is the folder that ls reads"


def test_subprocess_exchanges_more_than_a_pipe_holds(server):
    much = b"0123456789abcdef" * (1 << 16)
    assert run(server, "cat", much) == "0 " + much.decode()
    assert run(server, "cat", much, f"&max={len(much)}") == "0 " + much.decode()
    assert run(server, "cat", much, f"&max={len(much) - 1}") == "error 90"  # EMSGSIZE
    assert run(server, "exec yes", query="&max=100000") == "error 90"


def test_subprocess_stderr_is_logged_or_merged(server):
    assert run(server, "echo out; echo first line >&2; printf second >&2") == "0 out\n"
    server.err.wait_for("duda-subprocess: first line ")
    server.err.wait_for("duda-subprocess: second ")
    assert run(server, "echo out; echo joined >&2", query="&join=1") == "0 out\njoined\n"
    assert run(server, "head -c 200000 /dev/zero | tr '\\0' x >&2") == "0 "
    server.err.wait_for("further output is not logged")
    assert "joined" not in server.err.text


def test_subprocess_that_cannot_start_returns_an_error(server):
    for file, code in (("/nowhere/to/be/found", 2), ("/", 1), ("sh", 22)):
        assert run(server, "", query=f"&file={file}") == f"error {code}"
    assert run(server, "x" * 200_000) in (414, 431, "error 7")
    assert server.get("/follow?file=/nowhere").status == 404  # the handler returned ENOENT


def test_subprocess_timeout_and_deadline_end_it(server):
    assert run(server, "exec sleep 3600", query="&ms=100") == "error 62"  # ETIME
    assert run(server, "exec sleep 3600", path="/late") == 504


def test_subprocess_exchanges_lines(server):
    script = "while%20read%20n;do%20echo%20got%20$n;done;exit%205"
    assert server.get(f"/talk?script={script}").text == "got 0\ngot 1\ngot 2\n5"
    assert server.get("/follow?script=echo%20a;echo%20b;exit%203").text == "a\nb\n and 3"
    # A background process that keeps the output pipe open does not delay the response.
    status, left = run(server, "sleep 3600 & echo $!; exit 4").split()
    os.kill(int(left), signal.SIGKILL)
    assert status == "4"
    assert server.get("/polite?script=echo%20here;exec%20sleep%203600").text == "143"


def test_isolated_service_runs_subprocesses(monkey, site):
    service = services.build(site.path.parent, "programs", SOURCE, packages=["subprocess"])
    server = monkey(plugins=["isolate"], top=f"[ISOLATE]\n    Service {service}\n")
    assert run(server, "sort -u", b"b\na\nb\n") == "0 a\nb\n"


@pytest.mark.parametrize("path", ["/follow", "/stubborn"])
def test_client_disconnect_kills_the_subprocess(server, path, tmp_path):
    note = tmp_path / "pid"
    with server.connect() as client:
        client.ask(f"{path}?script=echo%20$$;echo%20$$%20.%3E{note};exec%20sleep%203600")
        wait_until(lambda: note.exists() and note.read_text().endswith(".\n"), "the subprocess runs")
    pid = int(note.read_text().split()[0])
    wait_until(lambda: not Path(f"/proc/{pid}").exists(), "the subprocess is killed")
    if path == "/stubborn":
        server.err.wait_for(r"stubborn\(\) in .* ignores cancellation and was terminated")
    assert run(server, "echo fine") == "0 fine\n"
