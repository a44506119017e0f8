# SPDX-License-Identifier: Apache-2.0
"""Jobs in [KV] and [REDIS] run once, with a delay, again after a failure, or on a schedule. No job is lost when a
worker or the whole server is killed while a job runs."""
import os
import signal
from pathlib import Path

import pytest

import redis_server
import services
from fault_injection import Fault
from job_service import SOURCE, JobServer, check_failures, check_retries_claim_unique_keys
from proc import RELEASE, descriptors, wait_until

pytestmark = pytest.mark.skipif(not services.has("jobs"), reason="this build has no Duda")

@pytest.fixture(scope="module")
def service(tmp_path_factory):
    return services.build(tmp_path_factory.mktemp("service"), "works", SOURCE, packages=["jobs"])


@pytest.fixture
def redis():
    server = redis_server.Redis("--appendonly", "yes", "--appendfsync", "always")
    yield server
    server.stop()


@pytest.fixture(params=["kv", "redis"])
def queue(monkey, site, service, request):
    kind = request.param
    if not services.has(kind) or (kind == "redis" and not redis_server.PROGRAM):
        pytest.skip(f"this build has no {kind}, or its server is not there")
    section = "[KV]\n    Folder data\n" if kind == "kv" else f"[REDIS]\n    Server unix:{request.getfixturevalue('redis').socket}\n"
    return JobServer(monkey, site, service, section, f"duda-{kind}")


def test_jobs_run_once_each(queue):
    queue.start()
    texts = [f"job{i}" for i in range(40)]
    for text in texts:
        queue.push(text)
    queue.wait_for_ends(texts)
    queue.wait_for_rest("0 0 0")
    assert set(queue.noted("begin").values()) == {1}
    # A job has no request: functions that require one return an error.
    queue.push("says")
    queue.wait_for_ends(["says"])
    # A delayed job, whose unique key rejects a second job until the first one has run.
    queue.push("later", delay=1500, unique="u%2f1")
    assert queue.get("/push?text=later&unique=u%2f1") == "17"
    assert queue.noted("begin")["later"] == 0
    queue.wait_for_ends(["later"])
    queue.wait_for_rest("0 0 0")
    queue.push("again", unique="u%2f1")
    queue.wait_for_ends(["again"])
    queue.wait_for_rest("0 0 0")
    assert queue.get("/binary") == "0 0 0 -17 "
    queue.wait_for_rest("2 0 0")
    assert queue.get("/binary") == "0 -17 -17 -17 "


def test_failed_jobs_are_retried(queue):
    check_failures(queue.start())


def test_retried_jobs_claim_their_unique_keys(queue):
    queue.start().server.allow("has failed")
    check_retries_claim_unique_keys(queue)


@pytest.mark.processes("a crash ends the embedding program")
def test_job_runs_again_after_a_crash_of_its_worker(queue):
    """A job whose worker crashes runs again."""
    queue.start(lease="1s")
    queue.server.allow("was killed by signal", "terminated its worker", "the job .* failed", "a crash", "crash")
    queue.push("kills")
    queue.wait_for_ends(["kills"])
    assert queue.noted("begin")["kills"] >= 3


def test_jobs_survive_killed_workers(queue):
    """Workers are killed while they run jobs; every acknowledged job is still completed."""
    queue.start(lease="2s")
    queue.server.allow("was killed by signal", "terminated its worker")
    pushed = []
    for round_ in range(3):
        for i in range(8):
            text = f"slow{round_}-{i}"
            queue.push(text)
            pushed.append(text)
        wait_until(lambda begun=8 * round_: len(queue.noted("begin")) > begun, "some jobs have begun")
        gone = queue.server.workers[0]
        os.kill(gone, signal.SIGKILL)
        wait_until(lambda pid=gone: queue.server.workers and pid not in queue.server.workers, "a new worker has started")
    queue.wait_for_ends(pushed)
    queue.wait_for_rest("0 0 0")


def test_jobs_survive_a_restart_of_the_server(queue):
    queue.start(lease="2s")
    queue.push("long")
    wait_until(lambda: queue.noted("begin")["long"] == 1, "the job has begun")
    queue.push("waits", delay=1000)
    queue.server.stop()
    queue.start(lease="2s")
    queue.wait_for_ends(["waits"])
    wait_until(lambda: queue.noted("begin")["long"] >= 2, "the job runs again")


def is_listening(pid):
    sockets = {name.split("[")[1].rstrip("]") for name in descriptors(pid).values() if name.startswith("socket:[")}
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return any(row[3] == "0A" and row[9] in sockets for row in rows)


@pytest.mark.parametrize("ends", [False, True], ids=["reload", "QUIT"])
def test_draining_worker_finishes_its_jobs_and_takes_no_new_ones(queue, ends):
    """The lease is longer than the test waits: if the draining worker dropped its job, no other worker would run it in time."""
    queue.start(workers=1)
    (old,) = queue.server.workers
    queue.push("held")
    wait_until(lambda: queue.noted("begin")["held"] == 1, "the job has begun")
    queue.server.tell(signal.SIGQUIT if ends else signal.SIGHUP)
    if not ends:
        wait_until(lambda: len(queue.server.workers) == 2 and not is_listening(old), "another worker has taken over")
        later = [f"later{i}" for i in range(20)]
        for text in later:
            queue.push(text)
        queue.wait_for_ends(later)
        assert old in queue.server.workers and queue.noted("by")[str(old)] == 1
    (queue.folder / "go").touch()
    queue.wait_for_ends(["held"])
    wait_until(lambda: queue.server.process.poll() is not None if ends else old not in queue.server.workers, "the worker has ended")
    assert set(queue.noted("begin").values()) == {1}


STATEFUL = r"""
#define DUDA_USE "duda-jobs"
#include <duda.h>
#include <duda/jobs.h>
#include <stdlib.h>

static char *state;

static int work(struct duda_ctx *d, const struct duda_job *job)
{
    duda_log(d, MK_LOG_INFO, "%.*s begins: %s", MK_STR_ARG(job->payload), state);
    int e = duda_sleep(d, 60000);
    duda_log(d, MK_LOG_INFO, "%.*s ends: %s", MK_STR_ARG(job->payload), state);
    return e;
}

static const struct duda_job_type kind = {.name = "work", .fn = work, .concurrency = 2};

static int start(struct mk_worker *w)
{
    state = strdup("open");
    return state ? duda_jobs_register(w, &kind) : -1;
}

static void stop(struct mk_worker *w)
{
    mk_worker_log(w, MK_LOG_INFO, "the service stops");
    free(state);
}

static int push(struct duda_ctx *d)
{
    mk_str id;
    int e = duda_jobs_enqueue(d, "work", duda_query(d, "text"), NULL, &id);
    return e ? e : duda_puts(d, "queued");
}

DUDA_SERVICE(stateful, DUDA_START(start), DUDA_STOP(stop), DUDA_GET("/push", push));
"""


@pytest.mark.processes("the embedding program sets the drain timeout")
@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGTERM])
def test_jobs_are_cancelled_before_their_service_stops(monkey, site, tmp_path, number):
    (site.path.parent / "data").mkdir()
    server = monkey(plugins=["duda-kv", services.build(tmp_path, "stateful", STATEFUL, packages=["jobs"])], top="[KV]\n    Folder data\n",
                    workers=1, server="DrainTimeout 1s")
    for text in ("one", "two"):
        assert server.get(f"/push?text={text}").text == "queued"
        server.err.wait_for(f"{text} begins: open")
    server.tell(number)
    server.err.wait_for("the service stops")
    log = server.err.text
    assert all(f"{text} ends: open" in log[:log.index("the service stops")] for text in ("one", "two")), log


@pytest.mark.processes("the embedding program sets the drain timeout")
def test_job_longer_than_the_drain_timeout_runs_again(queue):
    queue.start(workers=1, lease="1s", server="DrainTimeout 200ms")
    queue.push("held")
    wait_until(lambda: queue.noted("begin")["held"] == 1, "the job has begun")
    queue.server.stop(signal.SIGQUIT)
    assert "aborted work of plugins: DrainTimeout has expired" in queue.server.log
    (queue.folder / "go").touch()
    queue.start()
    queue.wait_for_ends(["held"])


def test_scheduled_job_repeats(queue):
    queue.start(often=True)
    wait_until(lambda: queue.notes.read_text().count("tick every 1s 1\n") >= 2, "the scheduled job repeats")
    assert queue.get("/counts") == "0 0 0"


def slots(queue):
    return [line.split()[1] for line in queue.notes.read_text().splitlines() if line.startswith("slot ")]


def test_scheduled_job_runs_once_for_machines_whose_clocks_differ(monkey, site, redis, tmp_path):
    """The clock of Redis, which is correct, decides when a job runs. Each run records the correct time."""
    if not services.has("redis") or not redis_server.PROGRAM:
        pytest.skip("this build has no redis, or its server is not there")
    service = services.build(tmp_path, "works", SOURCE, packages=["jobs"], objects=RELEASE.parent / "plugins")
    section = f"[REDIS]\n    Server unix:{redis.socket}\n"
    for ahead_ms in (0, -300, 20, -20, 5000):
        folder = tmp_path / f"machine{ahead_ms}"
        folder.mkdir()
        clock = Fault("clock", folder)
        clock.ahead_ms = ahead_ms
        queue = JobServer(monkey, site, service, section, "duda-redis").start(workers=1, often=True, **clock.how)
    wait_until(lambda: len(slots(queue)) >= 8, "the scheduled job has run eight times")
    assert sorted(set(slots(queue))) == sorted(slots(queue)), "a scheduled time ran twice"


def test_late_scheduled_job_runs_once(monkey, site, tmp_path):
    """The machine's clock, which the [KV] store also uses, jumps over ten scheduled times."""
    if not services.has("kv"):
        pytest.skip("this build has no stores in files")
    service = services.build(tmp_path, "works", SOURCE, packages=["jobs"], objects=RELEASE.parent / "plugins")
    clock = Fault("clock", tmp_path)
    queue = JobServer(monkey, site, service, "[KV]\n    Folder data\n", "duda-kv").start(often=True, **clock.how)
    wait_until(lambda: len(slots(queue)) >= 2, "the scheduled job has run twice")
    clock.ahead_ms = 10000
    wait_until(lambda: len(slots(queue)) >= 5, "the scheduled job runs again")
    # The jump does not end at a scheduled time, so one extra run in the same second is allowed.
    assert len(slots(queue)) - len(set(slots(queue))) <= 1


def test_lease_of_a_long_job_is_renewed(queue):
    """A job that lasts longer than its lease runs only once, because the worker renews the lease."""
    queue.start(lease="3s")
    queue.push("lasts")
    queue.wait_for_ends(["lasts"])
    assert queue.noted("begin")["lasts"] == 1


def test_jobs_store_key_names_an_existing_section(run, tmp_path):
    if not services.has("kv"):
        pytest.skip("this build has no stores in files")
    for name, code in (("tasks", 0), ("task", 3), ("main", 3)):
        text = f"[SERVER]\n    Listen 0\n[PLUGINS]\n    Load duda-jobs\n    Load duda-kv\n[JOBS]\n    Store {name}\n[KV]\n    Name tasks\n    Folder data\n[HOST]\n    DocumentRoot .\n"
        (tmp_path / "monkey.conf").write_text(text)
        done = run("-t", "-c", tmp_path / "monkey.conf")
        assert done.code == code, done
        assert not code or f"error: no [KV] or [REDIS] has the Name `{name}`" in done.err
        assert ("did you mean `tasks`?" in done.err) == (name == "task")


def test_jobs_without_a_store_report_an_error(monkey, site, service):
    queue = JobServer(monkey, site, service, "", "duda-jobs").start()
    queue.server.err.wait_for(r"\[JOBS\] Store main: cannot take jobs of the type `work`: there is no \[KV\] or \[REDIS\] with this Name")
    queue.server.allow("no jobs")
    assert queue.get("/push?text=x") == "19"


WRONG = r"""
#define DUDA_USE "duda-jobs"
#include <duda.h>
#include <duda/task.h>
#include <duda/jobs.h>
#include <errno.h>

static int work(struct duda_ctx *d, const struct duda_job *job)
{
    (void)d, (void)job;
    return 0;
}

static int rest(struct duda_ctx *d)
{
    return duda_sleep(d, 1);
}

static int start(struct mk_worker *w)
{
    static const struct duda_job_type kinds[] = {
        {.name = "two words", .fn = work}, {.name = "often", .fn = work, .schedule = "sometimes"},
        {.name = "deep", .fn = work, .stack = DUDA_STACK_MAX + 1}, {.name = "fine", .fn = work, .stack = DUDA_STACK_MAX},
        {.name = "fine", .fn = work}};
    struct duda_ctx *d;
    for (size_t i = 0; i < MK_LEN(kinds); i++)
        if ((duda_jobs_register(w, &kinds[i]) == 0) != (i == 3))
            return -EPROTO;
    return duda_task_spawn(w, &(struct duda_task){.name = "rest", .fn = rest, .stack = DUDA_STACK_MAX + 1}, &d) == -EINVAL ? 0
           : -EPROTO;
}

DUDA_SERVICE(wrong, DUDA_START(start));
"""


def test_invalid_job_types_are_rejected(monkey, tmp_path):
    server = monkey(plugins=[services.build(tmp_path, "wrong", WRONG, packages=["jobs"])])
    for problem in ("`two words`: its name must have 1 to 40 letters, digits", "`often`: .*",
                    "`deep`: a `.stack` is at most 8 MB: put large data on the heap",
                    "`fine`: its service, or a service in the same Share, already has a job type of this name"):
        server.err.wait_for("job type " + problem)
    assert server.get("/none").status == 404
