# SPDX-License-Identifier: Apache-2.0
"""A service with jobs for tests, and checks that hold for each job store."""
import collections
import concurrent.futures

from proc import wait_until

SOURCE = r"""
#define DUDA_USE "duda-jobs"
#include <duda.h>
#include <duda/jobs.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Returns an absent string if there is no such value or the store is down. */
static inline mk_str session_value(struct duda_ctx *d, const char *name)
{
    mk_str value;
    (void)!duda_session_get(d, name, &value);
    return value;
}

/* Writes a line for each event of a job. */
static void note(const char *what, mk_str text, unsigned attempt)
{
    char line[256];
    struct mk_buf b = mk_buf_fixed(line, sizeof line);
    int fd = open(getenv("NOTES"), O_WRONLY | O_APPEND | O_CLOEXEC);
    mk_buf_addf(&b, "%s %.*s %u\n", what, MK_STR_ARG(text), attempt);
    if (fd < 0 || write(fd, b.p, b.len) < 0)
        abort();
    close(fd);
}

static int work(struct duda_ctx *d, const struct duda_job *job)
{
    char pid[16];
    struct mk_buf own = mk_buf_fixed(pid, sizeof pid);
    mk_buf_addf(&own, "%d", getpid());
    note("by", mk_buf_str(&own), job->attempt);
    note("begin", job->payload, job->attempt);
    while (mk_str_starts(job->payload, MK_STR("held")) && access("/proc/self/cwd/go", F_OK)) {
        int e = duda_sleep(d, 20);
        if (e)
            return e;
    }
    if (mk_str_starts(job->payload, MK_STR("slow"))) {
        int e = duda_sleep(d, 400);
        if (e)
            return e;
    }
    if (mk_str_starts(job->payload, MK_STR("bin")) && !mk_str_eq(job->payload, MK_STR("bin\0ary")))
        return -EBADMSG;
    if (mk_str_eq(job->payload, MK_STR("lasts")) && duda_sleep(d, 4000))
        return -EINTR;
    if (mk_str_eq(job->payload, MK_STR("long")) && duda_sleep(d, 600000))
        return -EINTR;
    if (mk_str_eq(job->payload, MK_STR("kills")) && job->attempt < 3)
        kill(getpid(), SIGKILL);
    if (mk_str_eq(job->payload, MK_STR("crashes")))
        abort();
    if (mk_str_eq(job->payload, MK_STR("third")) && job->attempt < 3)
        return duda_job_fail(d, -EAGAIN, "not yet");
    if (mk_str_eq(job->payload, MK_STR("never")))
        return -EIO;
    if (mk_str_ends(job->payload, MK_STR("hopeless")))
        return duda_job_fail(d, -EBADMSG, "no such address");
    if (mk_str_eq(job->payload, MK_STR("says")) && (duda_write(d, MK_STR("x")) != -EALREADY || duda_query(d, "x").p ||
                                                 session_value(d, "x").p || duda_session_set(d, "x", MK_STR("y")) != -EALREADY ||
                                                 duda_form(d, "x").p || duda_cookie(d, "x").p || duda_method(d).p ||
                                                 duda_send_file(d, MK_STR("x")) != -EALREADY || duda_read(d, (char[1]){0}, 1) != 0 ||
                                                 duda_request(d) || !duda_request_id(d).len))
        return -EPROTO;
    note("end", job->payload, job->attempt);
    return 0;
}

/* Records the real time in seconds: the system call bypasses the preloaded library that shifts the clock. */
static int tick(struct duda_ctx *d, const struct duda_job *job)
{
    struct timespec t;
    syscall(SYS_clock_gettime, CLOCK_REALTIME, &t);
    note("tick", job->payload, job->attempt);
    note("slot", duda_sprintf(d, "%lld", (long long)t.tv_sec), job->attempt);
    return 0;
}

static const struct duda_job_type kind = {.name = "work", .fn = work, .concurrency = 2, .max_attempts = 4, .backoff_ms = 1};
static const struct duda_job_type often = {.name = "often", .fn = tick, .schedule = "every 1s"};

static int start(struct mk_worker *w)
{
    int e = duda_jobs_register(w, &kind);
    return e || !getenv("OFTEN") ? e : duda_jobs_register(w, &often);
}

static int push(struct duda_ctx *d)
{
    struct duda_job_options how = {.unique_key = duda_query(d, "unique")};
    int64_t delay = 0;
    mk_str id;
    duda_query_int(d, "delay", &delay);
    how.delay_ms = (uint64_t)delay;
    int e = duda_jobs_enqueue(d, "work", duda_query(d, "text"), &how, &id);
    return e ? duda_printf(d, "%d", -e) : duda_printf(d, "id %.*s", MK_STR_ARG(id));
}

/* Enqueues jobs with NULs in payloads and unique keys. The first job runs at once and releases its key. */
static int binary(struct duda_ctx *d)
{
    static const struct duda_job_options now = {.unique_key = {"u\0", 2}}, one = {.unique_key = {"u\0one", 5}, .delay_ms = 3600000},
                                     two = {.unique_key = {"u\0two", 5}, .delay_ms = 3600000};
    const struct duda_job_options *all[] = {&now, &one, &two, &one};
    int e = 0;
    for (size_t i = 0; i < MK_LEN(all) && !e; i++)
        e = duda_printf(d, "%d ", duda_jobs_enqueue(d, "work", MK_STR("bin\0ary"), all[i], NULL));
    return e;
}

static int counts(struct duda_ctx *d)
{
    struct duda_job_counts n;
    int e = duda_jobs_count(d, "work", &n);
    return e ? e
             : duda_printf(d, "%llu %llu %llu", (unsigned long long)n.waiting, (unsigned long long)n.running,
                           (unsigned long long)n.failed);
}

struct listing {
    struct duda_job jobs[50];
    size_t n;
};

static bool keep(void *ctx, const struct duda_job *job)
{
    struct listing *l = ctx;
    l->jobs[l->n++] = *job;
    return l->n < MK_LEN(l->jobs);
}

/* The strings outlive the list, and end with NULs. */
static int dead(struct duda_ctx *d)
{
    static const struct listing empty;
    struct listing l = empty;
    int e = duda_jobs_list_failed(d, "work", keep, &l);
    for (size_t i = 0; i < l.n && !e; i++)
        e = duda_printf(d, "%s|%s|%s\n", l.jobs[i].id.p, l.jobs[i].payload.p, l.jobs[i].last_error.p);
    return e;
}

static int revive(struct duda_ctx *d)
{
    return duda_printf(d, "%d", -duda_jobs_retry(d, "work", duda_query(d, "id")));
}

static int drop(struct duda_ctx *d)
{
    return duda_printf(d, "%d", -duda_jobs_delete(d, "work", duda_query(d, "id")));
}

DUDA_SERVICE(works,
    DUDA_START(start),
    DUDA_GET("/push", push, "Pushes."), DUDA_GET("/binary", binary, "Pushes NULs."),
    DUDA_GET("/counts", counts, "Counts."), DUDA_GET("/dead", dead, "Lists."),
    DUDA_GET("/revive", revive, "Revives."), DUDA_GET("/drop", drop, "Drops."));
"""


class JobServer:
    """A server with jobs, and the events that its jobs record."""

    def __init__(self, monkey, site, service, section, plugin):
        self.monkey, self.service, self.section, self.plugin = monkey, service, section, plugin
        self.notes = site.path.parent / "notes"
        self.notes.touch()
        self.notes.chmod(0o666)
        self.folder = site.path.parent

    def start(self, workers=2, lease="30s", often=False, environment=None, **more):
        env = {"NOTES": str(self.notes), **({"OFTEN": "1"} if often else {}), **(environment or {})}
        top = f"[JOBS]\n    Lease {lease}\n[DUDA]\n    WritablePaths {self.folder}\n    CrashLimit off\n{self.section}"
        self.server = self.monkey(plugins=[self.plugin, self.service], top=top, workers=workers, environment=env, **more)
        return self

    def push(self, text, **query):
        answer = self.server.get(f"/push?text={text}" + "".join(f"&{k}={v}" for k, v in query.items())).text
        assert answer.startswith("id "), answer
        return answer[3:]

    def get(self, target):
        return self.server.get(target).text

    def noted(self, kind):
        """Returns how many times each event was recorded."""
        lines = [line.split() for line in self.notes.read_text().splitlines()]
        return collections.Counter(words[1] for words in lines if words[0] == kind)

    def wait_for_ends(self, texts):
        wait_until(lambda: set(texts) <= set(self.noted("end")), "all jobs have ended")

    def wait_for_rest(self, counts):
        wait_until(lambda: self.get("/counts") == counts, f"{counts} jobs are waiting, running and failed")


def check_failures(queue):
    """Pushes failing jobs onto an empty queue, checks their attempts, drops one failed job and runs another again."""
    queue.server.allow("has failed")
    queue.push("third")
    queue.wait_for_ends(["third"])
    assert queue.noted("begin")["third"] == 3
    hopeless, never = queue.push("hopeless", unique="x"), queue.push("never")
    queue.wait_for_rest("0 0 2")
    assert queue.noted("begin")["hopeless"] == 1 and queue.noted("begin")["never"] == 4
    dead = [f"{hopeless}|hopeless|no such address\n", f"{never}|never|Input/output error\n"]
    assert queue.get("/dead") == "".join(sorted(dead))  # IDs begin with the time in milliseconds
    assert queue.get(f"/drop?id={hopeless}") == "0"
    assert queue.get(f"/drop?id={hopeless}") == "2"
    assert queue.get(f"/revive?id={never}") == "0"
    queue.wait_for_rest("0 0 1")
    assert queue.noted("begin")["never"] == 8
    queue.push("other", unique="x")  # the failed job no longer holds the unique key
    queue.wait_for_ends(["other"])


def check_retries_claim_unique_keys(queue):
    """At most one of several jobs with a unique key waits or runs, even if failed ones are retried."""
    failed = queue.push("hopeless", unique="u%00nique")
    queue.wait_for_rest("0 0 1")
    waiting = queue.push("later", unique="u%00nique", delay=3600000)
    assert queue.get(f"/revive?id={failed}") == "17"
    queue.wait_for_rest("1 0 1")  # the failed job stays in the list
    assert queue.get("/dead").startswith(f"{failed}|")
    assert waiting not in queue.get("/dead")
    assert queue.get(f"/drop?id={failed}") == "0"
    go = queue.folder / "go"
    go.touch()
    failed = queue.push("held-hopeless", unique="held")
    queue.wait_for_rest("1 0 1")
    go.unlink()
    queue.push("held", unique="held")
    queue.wait_for_rest("1 1 1")
    assert queue.get(f"/revive?id={failed}") == "17"
    go.touch()
    queue.wait_for_ends(["held"])
    queue.wait_for_rest("1 0 1")
    go.unlink()
    # The key is free now: the retried job claims it, and releases it when it has failed again.
    assert queue.get(f"/revive?id={failed}") == "0"
    queue.wait_for_rest("1 1 0")
    assert queue.get("/push?text=other&unique=held") == "17"
    assert queue.get(f"/revive?id={failed}") == "2"
    go.touch()
    queue.wait_for_rest("1 0 1")
    queue.push("other", unique="held")
    queue.wait_for_ends(["other"])
    # Of two failed jobs with the same key, retried many times at once, one runs.
    queue.wait_for_rest("1 0 1")
    other = queue.push("held-hopeless", unique="held")
    queue.wait_for_rest("1 0 2")
    go.unlink()
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda id_: queue.get(f"/revive?id={id_}"), [failed, other] * 8))
    assert results.count("0") == 1
    assert set(results) == {"0", "2", "17"}
    queue.wait_for_rest("1 1 1")
    go.touch()
    queue.wait_for_rest("1 0 2")
