# SPDX-License-Identifier: Apache-2.0
"""The redis package with a cluster of six nodes, and with Sentinels: commands, jobs and shared state reach the right nodes,
even after a slot has migrated, and while a master is killed or frozen under load. Tests check that no acknowledged write is
lost."""
import concurrent.futures
import re
import threading

import pytest

import job_service
import prometheus
import redis_server
import services
import shared_state_service
from proc import wait_until
from redis_client_service import SOURCE, ask

pytestmark = pytest.mark.skipif(not services.has("redis") or not redis_server.PROGRAM,
                                reason="the package is not in this build, or there is no redis-server")


@pytest.fixture(scope="module")
def cluster():
    nodes = redis_server.Cluster()
    yield nodes
    nodes.stop()


def sections(keys, servers, timeout="4s"):
    listed = "".join(f"    Server {s.host}:{s.port}\n" for s in servers)
    return f"[UPSTREAM]\n    Name seeds\n{listed}[REDIS]\n    Server seeds\n    Timeout {timeout}\n{keys}"


def start(monkey, site, keys, servers, workers=1, timeout="4s"):
    service = services.build(site.path.parent, "asks", SOURCE, packages=["redis"])
    return monkey(plugins=["metrics", service], workers=workers,
                  top="[METRICS]\n    Metrics /metrics\n" + sections(keys, servers, timeout))


class Load:
    """Each of several clients writes one key after another, and records the acknowledged keys."""

    def __init__(self, server, path, clients=4):
        self.server, self.path = server, path
        self.acknowledged, self.refused = [], []
        self.over = threading.Event()
        self.pool = concurrent.futures.ThreadPoolExecutor(clients)
        self.ends = [self.pool.submit(self.write, i) for i in range(clients)]

    def write(self, client):
        n = 0
        while not self.over.is_set():
            key = f"{self.path.strip('/?')[:5]}{client}-{n}"
            n += 1
            text = self.server.get(f"{self.path}a={key}&b={key}").text
            (self.acknowledged if text == "OK" else self.refused).append((key, text))

    def wait_for(self, more):
        at = len(self.acknowledged)
        wait_until(lambda: len(self.acknowledged) >= at + more or any(end.done() for end in self.ends), "writes are acknowledged")

    def stop(self):
        self.over.set()
        for end in self.ends:
            end.result(90)
        return [key for key, _ in self.acknowledged]


def lost(server, keys):
    return [key for key in keys if ask(server, "GET", key) != key]


def check_refused(load):
    """Accepts only these errors: 104 and 110 for requests in progress, whose outcome is unknown; 11 and 111 while no server is
    reachable; 67 while the new master has no replica that could acknowledge the write."""
    refused = [text for _, text in load.refused if text.split()[0] not in ("11", "67", "104", "110", "111")]
    assert not refused, refused


def test_cluster_commands_find_their_node(monkey, site, cluster):
    server = start(monkey, site, "    Cluster on\n", cluster.servers[:1])
    assert server.get("/spread").text == "100"
    numbers = prometheus.parse(server.get("/metrics").text)
    labels = {"package": "redis", "section": "main"}
    assert numbers["monkey_package_calls_total", labels] == 2, "each call has queried all nodes"
    assert (numbers["monkey_package_failures_total", labels], numbers["monkey_package_waiting", labels]) == (0, 0)
    assert ask(server, "PING") == "PONG"
    assert ask(server, "SET", "foo", "1") == "OK"
    assert server.get("/script").text == "5"
    assert server.get("/transaction?k=t&n=1").text == "1;"
    assert server.get("/write?a=safe&b=v").text == "OK"
    assert ask(server, "MGET", "foo", "bar") == (
        "18 ![REDIS] main: the keys `foo` (slot 12182) and `bar` (slot 5061) may be on different nodes: give them a common {tag}")
    assert ask(server, "MGET", "{foo}", "{foo}2") == "[nil nil]"
    # Every node has executed commands.
    assert all(int(s.info("stats", "total_commands_processed")) > 20 for s in cluster.servers[:3])


def begin_move(slot, old, new):
    """Starts to migrate a slot to another master. Call the returned function once all keys have moved."""
    names = [s.ask("CLUSTER", "MYID").split(b"\r\n")[1].decode() for s in (old, new)]
    assert new.ask("CLUSTER", "SETSLOT", slot, "IMPORTING", names[0]) == b"+OK\r\n"
    assert old.ask("CLUSTER", "SETSLOT", slot, "MIGRATING", names[1]) == b"+OK\r\n"

    def end():
        for s in (new, old):
            assert s.ask("CLUSTER", "SETSLOT", slot, "NODE", names[1]) == b"+OK\r\n"

    return end


def move_key(key, old, new):
    assert old.ask("MIGRATE", new.host, str(new.port), key, "0", "5000") == b"+OK\r\n"


def test_cluster_migrating_slot_is_followed(monkey, site, cluster):
    server = start(monkey, site, "    Cluster on\n", cluster.servers[3:4])
    old, new = cluster.servers[2], cluster.servers[0]
    assert ask(server, "SET", "foo", "1") == "OK"
    end = begin_move("12182", old, new)
    assert ask(server, "SET", "{foo}new", "2") == "OK"  # redirected by ASK
    assert server.get("/write?a={foo}safe&b=3").text == "OK"
    assert new.ask("CLUSTER", "COUNTKEYSINSLOT", "12182") == b":2\r\n"
    assert ask(server, "GET", "foo") == "1"  # not yet moved
    move_key("foo", old, new)
    assert ask(server, "GET", "foo") == "1"
    end()
    assert ask(server, "MGET", "foo", "{foo}new", "{foo}safe") == "[1 2 3]"  # redirected by MOVED


class Jobs:
    """A server with jobs in the cluster, and the hash slot of its queue."""

    def __init__(self, monkey, site, cluster):
        service = services.build(site.path.parent, "works", job_service.SOURCE, packages=["jobs"])
        section = sections("    Cluster on\n", cluster.servers[:3])
        self.server = job_service.JobServer(monkey, site, service, section, "duda-redis")
        self.cluster = cluster
        self.slot = cluster.servers[0].ask("CLUSTER", "KEYSLOT", "works:work").decode().strip(":\r\n")

    def owner(self):
        """Returns the master that holds the queue."""
        return next(s for s in self.cluster.masters() if s.ask("CLUSTER", "COUNTKEYSINSLOT", self.slot) != b":0\r\n")

    def hold_back(self, name, n):
        """Pushes n jobs: two start and block; the others wait in the queue."""
        texts = [f"held-{name}{i}" for i in range(n)]
        for text in texts:
            self.server.push(text)
        wait_until(lambda: sum(self.server.noted("begin")[text] for text in texts) == 2, "two jobs have begun")
        return texts

    def go(self):
        (self.server.folder / "go").touch()

    def wait_until_done(self, texts):
        self.server.wait_for_ends(texts)
        self.server.wait_for_rest("0 0 0")
        assert {self.server.noted("begin")[text] for text in texts} == {1}
        (self.server.folder / "go").unlink()


def keys_in(server, slot):
    return re.findall(rb"!duda:jobs:\{[\w:]+\}:\w", server.ask("CLUSTER", "GETKEYSINSLOT", slot, "100"))


def tries_again(server):
    """The number of TRYAGAIN errors that the server has sent."""
    return int(server.info("errorstats", "errorstat_TRYAGAIN").removeprefix("count=") or 0)


def test_cluster_jobs_survive_slot_migration_and_failover(monkey, site, cluster):
    jobs = Jobs(monkey, site, cluster)
    queue = jobs.server.start(workers=1, often=True)
    # A delayed job, whose unique key rejects a second job until the first one has run.
    queue.push("later", delay=300, unique="u")
    assert queue.get("/push?text=later&unique=u") == "17"
    job_service.check_failures(queue)
    queue.wait_for_ends(["later"])
    dead = queue.get("/dead").split("|")[0]
    assert queue.get(f"/drop?id={dead}") == "0"

    # The slot migrates while two jobs run and the others wait: for a while, each of two nodes holds a part of the queue.
    texts = jobs.hold_back("moves", 6)
    old = jobs.owner()
    new = next(s for s in cluster.masters() if s is not old)
    before = tries_again(old)
    end = begin_move(jobs.slot, old, new)
    move_key("!duda:jobs:{works:work}:w", old, new)
    jobs.go()
    wait_until(lambda: tries_again(old) >= before + 2, "the end of each job gets TRYAGAIN")
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        pushed = pool.submit(queue.push, "meanwhile")
        for key in keys_in(old, jobs.slot):
            move_key(key.decode(), old, new)
        end()
        assert pushed.result(30)
    jobs.wait_until_done([*texts, "meanwhile"])

    # The master hands over to its replica with CLUSTER FAILOVER.
    texts = jobs.hold_back("stays", 6)
    replica = next(s for s in cluster.servers if s.info("replication", "master_port") == str(new.port))
    assert replica.ask("CLUSTER", "FAILOVER") == b"+OK\r\n"
    wait_until(lambda: new.info("replication", "role") == "slave", "the replica is the master")
    jobs.go()
    jobs.wait_until_done(texts)
    wait_until(lambda: queue.noted("tick"), "the scheduled job runs")


@pytest.mark.parametrize("how", ["kill", "freeze"])
def test_cluster_master_failure_under_load_loses_no_acknowledged_write(monkey, site, cluster, how):
    server = start(monkey, site, "    Cluster on\n", cluster.servers, workers=2)
    load = Load(server, "/write?")
    load.wait_for(40)
    victim = cluster.masters()[0]
    before = len(cluster.masters())
    getattr(victim, how)()
    try:
        others = [s for s in cluster.servers if s is not victim]
        wait_until(lambda: sum(s.info("replication", "role") == "master" for s in others) == before, "a replica is the master")
        wait_until(lambda: all(b"cluster_state:ok" in s.ask("CLUSTER", "INFO") for s in others), "the cluster works")
        load.wait_for(40)
        assert server.get("/spread").text == "100"
        keys = load.stop()
        assert not lost(server, keys)
        check_refused(load)
    finally:
        load.over.set()
        victim.start_again() if how == "kill" else victim.thaw()
        wait_until(lambda: victim.info("replication", "master_link_status") == "up", "the old master follows the new one")


def test_sentinel_failover_loses_no_acknowledged_write(monkey, site):
    watched = redis_server.SentinelPair()
    try:
        server = start(monkey, site, "    Sentinel shop\n", watched.sentinels, workers=2, timeout="3s")
        load = Load(server, "/write?")
        load.wait_for(40)
        old, new = watched.servers
        old.freeze()
        watched.sentinels[0].kill()
        wait_until(lambda: new.info("replication", "role") == "master", "the replica is the master")
        load.over.set()  # writes end: the new master has no replica that could acknowledge them
        keys = load.stop()
        wait_until(lambda: ask(server, "PING") == "PONG", "the worker uses the new master")
        assert not lost(server, keys)
        check_refused(load)
        # The old master returns as a replica, and receives no writes.
        old.thaw()
        wait_until(lambda: old.info("replication", "role") == "slave", "the old master follows the new one")
        assert all(ask(server, "SET", f"k{i}", "v") == "OK" for i in range(20))
    finally:
        watched.stop()


@pytest.mark.parametrize("how", ["kill", "freeze"])
def test_cluster_shared_state_survives_a_master_failure(monkey, site, cluster, how):
    """Locks, sessions, values and limits survive on the replica, and all jobs run."""
    state = shared_state_service.SharedState(monkey, site, sections("    Cluster on\n", cluster.servers, timeout="2s"), how)
    try:
        state.begin()
        victim = next(s for s in cluster.masters() if s.ask("EXISTS", "!duda:l:things:lock0") == b":1\r\n")
        before = len(cluster.masters())
        getattr(victim, how)()
        others = [s for s in cluster.servers if s is not victim]
        wait_until(lambda: sum(s.info("replication", "role") == "master" for s in others) == before, "a replica is the master")
        victim.start_again() if how == "kill" else victim.thaw()
        wait_until(lambda: victim.info("replication", "master_link_status") == "up", "the old master follows the new one")
        state.check()
    finally:
        state.stop()


def test_unreplicated_writes_are_reported(monkey, site):
    """A lock that no replica has acknowledged is released, not granted. Other values are stored, and the result tells the
    handler that no replica has them."""
    pair = redis_server.Pair()
    master, replica = pair.servers
    try:
        state = shared_state_service.SharedState(monkey, site, f"[REDIS]\n    Server {master.host}:{master.port}\n    Timeout 300ms\n")
        wait_until(lambda: state.ask("/put/value").text == "0", "the master knows its replica")
        assert [state.ask(target).text for target in ("/try/lock", "/limit/few", "/push/first")] == ["0"] * 3
        replica.freeze()
        assert [state.ask(target).text for target in ("/try/lock", "/put/other", "/push/second")] == ["67"] * 3
        assert [state.ask("/limit/few").text for _ in range(5)] == ["0"] * 4 + ["122"]
        assert state.ask("/get/other").text == "other"
        replica.thaw()
        wait_until(lambda: state.ask("/put/value").text == "0", "the replica acknowledges again")
        assert state.ask("/try/lock").text == "0"
        wait_until(lambda: state.noted("done") == ["first", "second"], "both jobs have run")
    finally:
        pair.stop()


def test_sentinel_failover_keeps_shared_state(monkey, site):
    watched = redis_server.SentinelPair()
    state = shared_state_service.SharedState(monkey, site, sections("    Sentinel shop\n", watched.sentinels, timeout="1s"))
    old, new = watched.servers
    try:
        state.begin()
        old.freeze()
        wait_until(lambda: new.info("replication", "role") == "master", "the replica is the master")
        old.thaw()
        wait_until(lambda: old.info("replication", "master_link_status") == "up", "the old master follows the new one")
        state.check()
    finally:
        state.stop()
        watched.stop()


def test_sentinel_without_the_master_is_reported(monkey, site):
    master = redis_server.start_at_port(lambda port: redis_server.Redis(port=port))
    sentinel = redis_server.start_at_port(lambda port: redis_server.Sentinel(port, master, 1))
    try:
        server = start(monkey, site, "    Sentinel other\n", [sentinel], timeout="200ms")
        wait_until(lambda: "knows no such master" in ask(server, "PING"), "the error names the cause")
    finally:
        sentinel.stop()
        master.stop()
