# SPDX-License-Identifier: Apache-2.0
"""Redis servers for tests, each in its own folder: one on a unix socket that tests can freeze, kill and restart; a master with
replicas and Sentinels; a cluster of six.
"""
import contextlib
import re
import shutil
import signal
import socket
import subprocess
import tempfile

from proc import wait_until
from sockets import free_port

PROGRAM = shutil.which("redis-server")


class Redis:
    """If `port` is given, the server also listens there, at the address `host`."""

    def __init__(self, *options, port=0, host="127.0.0.1"):
        # A socket path has at most 107 bytes, too few for a path in the folder of the test.
        self.folder = tempfile.mkdtemp(prefix="mk-redis-")
        self.socket = f"{self.folder}/redis.sock"
        self.options = options
        self.port, self.host = port, host
        self.start()

    def command(self):
        return [PROGRAM, "--port", str(self.port), "--bind", self.host, "--unixsocket", self.socket, "--dir", self.folder,
                "--save", "", "--appendonly", "no", *self.options]

    def start(self):
        self.process = subprocess.Popen(self.command(), stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
        wait_until(self.answers, "Redis responds")

    def start_again(self):
        """Retries the start, because another test may hold the port for a while."""
        def starts():
            with contextlib.suppress(AssertionError):
                self.start()
                return True
            return False

        wait_until(starts, "Redis responds after its restart")

    def answers(self):
        assert self.process.poll() is None, "Redis has ended"
        return self.ask("PING").startswith((b"+PONG", b"-NOAUTH"))

    def ask(self, *words):
        """Returns the first bytes of the reply to a command, or b"" if no server responds."""
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as s:
            s.settimeout(10)
            s.connect(self.socket)
            s.sendall(" ".join(words).encode() + b"\r\n")
            return s.recv(4096)
        return b""

    def info(self, section, name):
        """Returns a value of INFO, or "" if it is absent."""
        found = re.search(rf"^{name}:(.*?)\r$", self.ask("INFO", section).decode(), re.MULTILINE)
        return found[1] if found else ""

    def kill(self):
        self.process.kill()
        self.process.wait()

    def freeze(self):
        self.process.send_signal(signal.SIGSTOP)

    def thaw(self):
        self.process.send_signal(signal.SIGCONT)

    def stop(self):
        if self.process.poll() is None:
            self.thaw()
            self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)


def start_at_port(make):
    """Starts the server; if another test takes the port first, tries another port."""
    for _ in range(5):
        with contextlib.suppress(AssertionError):
            return make(free_port())
    raise AssertionError("no server has found a port")


class Sentinel(Redis):
    """Watches the master and declares it dead after one second."""

    def __init__(self, port, master, quorum):
        self.quorum = quorum
        self.master = master
        super().__init__(port=port)

    def command(self):
        conf = f"{self.folder}/sentinel.conf"
        with open(conf, "w", encoding="ascii") as f:
            f.write(f"port {self.port}\nbind 127.0.0.1\nunixsocket {self.socket}\ndir {self.folder}\n"
                    f"sentinel monitor shop 127.0.0.1 {self.master.port} {self.quorum}\n"
                    "sentinel down-after-milliseconds shop 1000\nsentinel failover-timeout shop 3000\n")
        return [PROGRAM, conf, "--sentinel"]


class Pair:
    """A master and a replica."""

    def __init__(self):
        soon = ("--repl-diskless-sync-delay", "0")
        self.servers = [start_at_port(lambda port: Redis(*soon, port=port))]
        with contextlib.ExitStack() as stack:
            stack.callback(self.stop)
            master = self.servers[0]
            self.servers.append(start_at_port(lambda port: Redis("--replicaof", "127.0.0.1", str(master.port), *soon, port=port)))
            wait_until(lambda: self.servers[1].info("replication", "master_link_status") == "up", "replica in sync")
            stack.pop_all()

    def stop(self):
        for server in self.servers:
            server.stop()


class SentinelPair(Pair):
    """A master, a replica, and three Sentinels that call the master `shop`."""

    def __init__(self):
        super().__init__()
        master = self.servers[0]
        with contextlib.ExitStack() as stack:
            stack.callback(self.stop)
            self.sentinels = [start_at_port(lambda port: Sentinel(port, master, 2)) for _ in range(3)]
            wait_until(lambda: all(b"slaves=1,sentinels=3" in s.ask("INFO", "sentinel") for s in self.sentinels),
                       "the Sentinels know each other and the replica")
            stack.pop_all()

    def stop(self):
        for server in getattr(self, "sentinels", []):
            server.stop()
        super().stop()


class Cluster:
    """Three masters with one replica each; server i + 3 initially replicates server i."""

    def __init__(self, hosts=("127.0.0.1",) * 6, make=Redis, node_timeout=1500):
        options = ("--cluster-enabled", "yes", "--cluster-node-timeout", str(node_timeout), "--cluster-replica-validity-factor", "0",
                   "--cluster-config-file", "nodes.conf", "--repl-diskless-sync-delay", "0")
        self.servers = []
        with contextlib.ExitStack() as stack:
            stack.callback(self.stop)
            for host in hosts:
                self.servers.append(start_at_port(
                    lambda port, host=host: make(*options, "--cluster-port", str(free_port()), port=port, host=host)))
            self.join()
            stack.pop_all()

    def join(self):
        first = self.servers[0]
        for i, server in enumerate(self.servers):
            assert server.ask("CLUSTER", "SET-CONFIG-EPOCH", str(i + 1)) == b"+OK\r\n"
        for i, server in enumerate(self.servers[:3]):
            assert server.ask("CLUSTER", "ADDSLOTSRANGE", str(i * 5462), str(min((i + 1) * 5462, 16384) - 1)) == b"+OK\r\n"
        for server in self.servers[1:]:
            bus = server.options[server.options.index("--cluster-port") + 1]
            assert first.ask("CLUSTER", "MEET", server.host, str(server.port), bus) == b"+OK\r\n"
        for server in self.servers:
            wait_until(lambda server=server: self.known(server) == 6, "the nodes know each other")
        for master, replica in zip(self.servers[:3], self.servers[3:]):
            name = master.ask("CLUSTER", "MYID").split(b"\r\n")[1].decode()
            wait_until(lambda name=name, replica=replica: replica.ask("CLUSTER", "REPLICATE", name) == b"+OK\r\n",
                       "the replica knows its master")
        for server in self.servers:
            wait_until(lambda server=server: b"cluster_state:ok" in server.ask("CLUSTER", "INFO"), "the cluster works")
        for replica in self.servers[3:]:
            wait_until(lambda replica=replica: replica.info("replication", "master_link_status") == "up", "replica in sync")

    @staticmethod
    def known(server):
        return int(re.search(rb"cluster_known_nodes:(\d+)", server.ask("CLUSTER", "INFO"))[1])

    def masters(self):
        return [s for s in self.servers if s.process.poll() is None and s.info("replication", "role") == "master"]

    def stop(self):
        for server in self.servers:
            server.stop()
