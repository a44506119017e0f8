# SPDX-License-Identifier: Apache-2.0
"""A Duda service that keeps all shared state in one store: locks, sessions, values, rate limits and jobs. The checks compare
the state before and after a Redis master has failed.
"""
import concurrent.futures
import threading

import services
from proc import wait_until

SOURCE = r"""
#define DUDA_USE "duda-store", "duda-jobs"
#include <duda.h>
#include <duda/jobs.h>
#include <duda/store.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

/* Returns an absent string if there is no such value or the store is down. */
static inline mk_str session_value(struct duda_ctx *d, const char *name)
{
    mk_str value;
    (void)!duda_session_get(d, name, &value);
    return value;
}

static struct duda_store *store(struct duda_ctx *d)
{
    return duda_store_find(d, NULL);
}

static void note(const char *what, mk_str text)
{
    char line[256];
    struct mk_buf b = mk_buf_fixed(line, sizeof line);
    int fd = open(getenv("NOTES"), O_WRONLY | O_APPEND | O_CLOEXEC);
    mk_buf_addf(&b, "%s %.*s\n", what, MK_STR_ARG(text));
    if (fd < 0 || write(fd, b.p, b.len) < 0)
        abort();
    close(fd);
}

/* Holds the lock until the file `go` exists. */
static int hold(struct duda_ctx *d)
{
    struct duda_store_lock lock;
    mk_str key = duda_param(d, "key");
    int e = duda_store_lock(d, store(d), key, 120000, 0, &lock);
    if (e)
        return duda_printf(d, "%d", -e);
    note("holds", key);
    while (!e && access("/proc/self/cwd/go", F_OK))
        e = duda_sleep(d, 20);
    e = e ? e : duda_store_unlock(d, &lock);
    return duda_printf(d, "%d", -e);
}

/* Acquires a lock and releases it at once. */
static int try_lock(struct duda_ctx *d)
{
    struct duda_store_lock lock;
    int e = duda_store_lock(d, store(d), duda_param(d, "key"), 120000, 0, &lock);
    e = e ? e : duda_store_unlock(d, &lock);
    return duda_printf(d, "%d", -e);
}

static int put(struct duda_ctx *d)
{
    return duda_printf(d, "%d", -duda_store_set(d, store(d), duda_param(d, "key"), duda_param(d, "key"), 3600000));
}

static int get(struct duda_ctx *d)
{
    mk_str value;
    int e = duda_store_get(d, store(d), duda_param(d, "key"), &value);
    return e ? duda_printf(d, "%d", -e) : duda_write(d, value);
}

static int limit(struct duda_ctx *d)
{
    return duda_printf(d, "%d", -duda_store_rate_limit(d, store(d), duda_param(d, "key"), 5, 3600000));
}

static int log_in(struct duda_ctx *d)
{
    int e = duda_session_set(d, "user", duda_param(d, "user"));
    return e ? e : duda_puts(d, "in");
}

static int log_out(struct duda_ctx *d)
{
    int e = duda_session_destroy(d);
    return e ? e : duda_puts(d, "out");
}

static int who(struct duda_ctx *d)
{
    mk_str user = session_value(d, "user");
    return duda_write(d, user.p ? user : MK_STR("none"));
}

static int work(struct duda_ctx *d, const struct duda_job *job)
{
    (void)d;
    note("done", job->payload);
    return 0;
}

static const struct duda_job_type kind = {.name = "work", .fn = work, .concurrency = 4, .backoff_ms = 20};

static int start(struct mk_worker *w)
{
    return duda_jobs_register(w, &kind);
}

static int push(struct duda_ctx *d)
{
    return duda_printf(d, "%d", -duda_jobs_enqueue(d, "work", duda_param(d, "key"), NULL, NULL));
}

DUDA_SERVICE(things, DUDA_START(start),
    DUDA_GET("/hold/:key", hold, ""), DUDA_GET("/try/:key", try_lock, ""), DUDA_GET("/put/:key", put, ""), DUDA_GET("/get/:key", get, ""),
    DUDA_GET("/limit/:key", limit, ""), DUDA_GET("/in/:user", log_in, ""), DUDA_GET("/out", log_out, ""), DUDA_GET("/who", who, ""),
    DUDA_GET("/push/:key", push, ""));
"""

N = 12  # enough of each kind that every one of three masters has some


class SharedState:
    """A server, and the state that it keeps. `section` is its [REDIS], `mark` its own key prefix."""

    def __init__(self, monkey, site, section, mark=""):
        self.folder, self.mark = site.path.parent, mark
        self.notes = self.folder / "notes"
        self.notes.touch()
        self.notes.chmod(0o666)
        service = services.build(self.folder, "things", SOURCE, packages=["store", "jobs"])
        top = f"{section}    Replicas 1\n[SESSIONS]\n    Store main\n[JOBS]\n    Lease 2s\n[DUDA]\n    WritablePaths {self.folder}\n"
        self.server = monkey(plugins=["duda-redis", service], top=top, workers=2, environment={"NOTES": str(self.notes)})
        self.pool = concurrent.futures.ThreadPoolExecutor(N + 2)
        self.over = threading.Event()
        self.pushed = []

    def ask(self, target, cookie=None):
        fields = [("Cookie", cookie)] if cookie else []
        return self.server.get(target, fields=fields)

    def noted(self, kind):
        lines = [line.split() for line in self.notes.read_text().splitlines()]
        return [words[1] for words in lines if words[0] == kind]

    def begin(self):
        """Stores state of every kind, and pushes jobs continuously."""
        self.holders = [self.pool.submit(self.ask, f"/hold/lock{i}") for i in range(N)]
        self.cookies = [self.ask(f"/in/user{i}")["Set-Cookie"].split(";")[0] for i in range(N)]
        assert self.ask("/out", self.cookies[0]).text == "out"
        for i in range(N):
            assert self.ask(f"/put/{self.mark}value{i}").text == "0"
            assert [self.ask(f"/limit/{self.mark}limit{i}").text for _ in range(4)] == ["0"] * 4
        self.pushes = self.pool.submit(self.push)
        wait_until(lambda: len(self.noted("holds")) == N and len(self.pushed) > 20, "all locks are held, and jobs pushed")

    def push(self):
        n = 0
        while not self.over.is_set():
            n += 1
            if self.ask(f"/push/job{n}").text == "0":
                self.pushed.append(f"job{n}")

    def check(self):
        """Checks the state after Redis has recovered."""
        at = len(self.pushed)
        wait_until(lambda: len(self.pushed) > at + 20, "jobs are pushed")
        for i in range(N):
            wait_until(lambda i=i: self.ask(f"/try/lock{i}").text == "16", f"lock {i} is held")
            assert self.ask("/who", self.cookies[i]).text == (f"user{i}" if i else "none")
            assert self.ask(f"/get/{self.mark}value{i}").text == f"{self.mark}value{i}"
            assert [self.ask(f"/limit/{self.mark}limit{i}").text for _ in range(2)] == ["0", "122"]
        self.over.set()
        self.pushes.result(60)
        wait_until(lambda: set(self.pushed) <= set(self.noted("done")), "every job was executed")
        (self.folder / "go").touch()
        assert [holder.result(60).text for holder in self.holders] == ["0"] * N
        assert sorted(self.noted("holds")) == sorted(f"lock{i}" for i in range(N)), "no lock was held twice"
        assert {self.ask(f"/try/lock{i}").text for i in range(N)} == {"0"}

    def stop(self):
        self.over.set()
        (self.folder / "go").touch()
