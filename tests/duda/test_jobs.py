# SPDX-License-Identifier: Apache-2.0
"""Jobs in [KV] and [REDIS] run once, with a delay, again after a failure, or on a schedule. No job is lost when a
worker or the whole server is killed while a job runs."""
import os
import signal
from pathlib import Path

import pytest

import redis_server
import services
from faults import Fault
from jobs_works import SOURCE, Works, check_failures
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
def works(monkey, site, service, request):
    kind = request.param
    if not services.has(kind) or (kind == "redis" and not redis_server.PROGRAM):
        pytest.skip(f"this build has no {kind}, or its server is not there")
    place = "[KV]\n    Folder data\n" if kind == "kv" else f"[REDIS]\n    Server unix:{request.getfixturevalue('redis').socket}\n"
    return Works(monkey, site, service, place, f"duda-{kind}")


def test_jobs_run_once_each(works):
    works.start()
    texts = [f"job{i}" for i in range(40)]
    for text in texts:
        works.push(text)
    works.wait_for_ends(texts)
    works.wait_for_rest("0 0 0")
    assert set(works.noted("begin").values()) == {1}
    # A job has no request: functions that require one return an error.
    works.push("says")
    works.wait_for_ends(["says"])
    # Delayed jobs, and unique jobs.
    works.push("later", delay=1500, unique="u%2f1")
    assert works.get("/push?text=later&unique=u%2f1") == "17"
    assert works.noted("begin")["later"] == 0
    works.wait_for_ends(["later"])
    works.wait_for_rest("0 0 0")
    works.push("again", unique="u%2f1")
    works.wait_for_ends(["again"])
    works.wait_for_rest("0 0 0")
    assert works.get("/binary") == "0 0 0 -17 "
    works.wait_for_rest("2 0 0")
    assert works.get("/binary") == "0 -17 -17 -17 "


def test_failed_jobs_are_retried(works):
    check_failures(works.start())


@pytest.mark.processes("a crash ends the embedding program")
def test_job_runs_again_after_a_crash_of_its_worker(works):
    """The failed job runs again."""
    works.start(lease="1s")
    works.server.allow("was killed by signal", "ended its worker", "has failed", "a crash", "crash")
    works.push("kills")
    works.wait_for_ends(["kills"])
    assert works.noted("begin")["kills"] >= 3


def test_jobs_survive_killed_workers(works):
    """Workers are killed while they run jobs; every acknowledged job is still completed."""
    works.start(lease="2s")
    works.server.allow("was killed by signal", "ended its worker")
    pushed = []
    for round_ in range(3):
        for i in range(8):
            text = f"slow{round_}-{i}"
            works.push(text)
            pushed.append(text)
        wait_until(lambda begun=8 * round_: len(works.noted("begin")) > begun, "some jobs have begun")
        gone = works.server.workers[0]
        os.kill(gone, signal.SIGKILL)
        wait_until(lambda pid=gone: works.server.workers and pid not in works.server.workers, "a new worker has started")
    works.wait_for_ends(pushed)
    works.wait_for_rest("0 0 0")


def test_jobs_survive_a_restart_of_the_server(works):
    works.start(lease="2s")
    works.push("long")
    wait_until(lambda: works.noted("begin")["long"] == 1, "the job has begun")
    works.push("waits", delay=1000)
    works.server.stop()
    works.start(lease="2s")
    works.wait_for_ends(["waits"])
    wait_until(lambda: works.noted("begin")["long"] >= 2, "the job runs again")


def is_listening(pid):
    sockets = {name.split("[")[1].rstrip("]") for name in descriptors(pid).values() if name.startswith("socket:[")}
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return any(row[3] == "0A" and row[9] in sockets for row in rows)


@pytest.mark.parametrize("ends", [False, True], ids=["reload", "QUIT"])
def test_draining_worker_finishes_its_jobs_and_takes_no_new_ones(works, ends):
    """The lease is longer than the test waits, so a job that its worker dropped would not run in time."""
    works.start(workers=1)
    (old,) = works.server.workers
    works.push("held")
    wait_until(lambda: works.noted("begin")["held"] == 1, "the job has begun")
    works.server.tell(signal.SIGQUIT if ends else signal.SIGHUP)
    if not ends:
        wait_until(lambda: len(works.server.workers) == 2 and not is_listening(old), "another worker has taken over")
        later = [f"later{i}" for i in range(20)]
        for text in later:
            works.push(text)
        works.wait_for_ends(later)
        assert old in works.server.workers and works.noted("by")[str(old)] == 1
    (works.folder / "go").touch()
    works.wait_for_ends(["held"])
    wait_until(lambda: works.server.process.poll() is not None if ends else old not in works.server.workers, "the worker has ended")
    assert set(works.noted("begin").values()) == {1}


@pytest.mark.processes("the embedding program sets the drain timeout")
def test_job_longer_than_the_drain_timeout_runs_again(works):
    works.start(workers=1, lease="1s", server="DrainTimeout 200ms")
    works.push("held")
    wait_until(lambda: works.noted("begin")["held"] == 1, "the job has begun")
    works.server.stop(signal.SIGQUIT)
    assert "broke off work of plugins: DrainTimeout is over" in works.server.log
    (works.folder / "go").touch()
    works.start()
    works.wait_for_ends(["held"])


def test_scheduled_job_repeats(works):
    works.start(often=True)
    wait_until(lambda: works.notes.read_text().count("tick every 1s 1\n") >= 2, "the scheduled job repeats")
    assert works.get("/counts") == "0 0 0"


def slots(works):
    return [line.split()[1] for line in works.notes.read_text().splitlines() if line.startswith("slot ")]


def test_scheduled_job_runs_once_for_machines_whose_clocks_differ(monkey, site, redis, tmp_path):
    """The store's clock decides when a job runs. Each job records the time of Redis, whose clock is correct."""
    if not services.has("redis") or not redis_server.PROGRAM:
        pytest.skip("this build has no redis, or its server is not there")
    service = services.build(tmp_path, "works", SOURCE, packages=["jobs"], objects=RELEASE.parent / "plugins")
    place = f"[REDIS]\n    Server unix:{redis.socket}\n"
    for ahead_ms in (0, -300, 20, -20, 5000):
        folder = tmp_path / f"machine{ahead_ms}"
        folder.mkdir()
        clock = Fault("clock", folder)
        clock.ahead_ms = ahead_ms
        works = Works(monkey, site, service, place, "duda-redis").start(workers=1, often=True, **clock.how)
    wait_until(lambda: len(slots(works)) >= 8, "the scheduled job has run eight times")
    assert sorted(set(slots(works))) == sorted(slots(works)), "a scheduled time ran twice"


def test_late_scheduled_job_runs_once(monkey, site, tmp_path):
    """The machine's clock, which the [KV] store also uses, jumps over ten scheduled times."""
    if not services.has("kv"):
        pytest.skip("this build has no stores in files")
    service = services.build(tmp_path, "works", SOURCE, packages=["jobs"], objects=RELEASE.parent / "plugins")
    clock = Fault("clock", tmp_path)
    works = Works(monkey, site, service, "[KV]\n    Folder data\n", "duda-kv").start(often=True, **clock.how)
    wait_until(lambda: len(slots(works)) >= 2, "the scheduled job has run twice")
    clock.ahead_ms = 10000
    wait_until(lambda: len(slots(works)) >= 5, "the scheduled job runs again")
    # The jump does not end at a scheduled time, so one extra run in the same second is allowed.
    assert len(slots(works)) - len(set(slots(works))) <= 1


def test_lease_of_a_long_job_is_renewed(works):
    """A job that lasts longer than its lease runs only once, because the worker renews the lease."""
    works.start(lease="3s")
    works.push("lasts")
    works.wait_for_ends(["lasts"])
    assert works.noted("begin")["lasts"] == 1


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
    works = Works(monkey, site, service, "", "duda-jobs").start()
    works.server.err.wait_for(r"\[JOBS\] Store main: no jobs `work` from there: there is no \[KV\] or \[REDIS\] of this Name")
    works.server.allow("no jobs")
    assert works.get("/push?text=x") == "95"


WRONG = r"""
#define DUDA_USE "duda-jobs",
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
    for problem in ("`two words`: expected letters, digits", "`often`: .*", "`deep`: a `.stack` is at most 8 MB: what needs more belongs "
                    "on the heap", "`fine`: its service, or one that has a Share with it, has one of this name already"):
        server.err.wait_for("jobs " + problem)
    assert server.get("/none").status == 404
