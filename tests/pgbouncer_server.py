# SPDX-License-Identifier: Apache-2.0
"""PgBouncer in front of a test's PostgreSQL, in transaction pooling mode."""
import re
import shutil
import subprocess
import tempfile

import postgres_server
from proc import wait_until
from redis_server import start_at_port

PROGRAM = shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin")


def without_statements():
    """Returns the setting that disables prepared statements, for a PgBouncer that supports them (since 1.21)."""
    output = subprocess.run([PROGRAM, "--version"], capture_output=True, text=True, check=True).stdout
    version = tuple(map(int, re.search(r"PgBouncer (\d+)\.(\d+)", output).groups()))
    return "max_prepared_statements = 0\n" if version >= (1, 21) else ""


class PgBouncer:
    """`server` is a Postgres; `pool` is the pool size."""

    def __init__(self, server, pool=2, port=0):
        self.folder = tempfile.mkdtemp(prefix="mk-bouncer-")
        self.port = port
        with open(f"{self.folder}/conf.ini", "w", encoding="ascii") as f:
            f.write(f"""[databases]
* = host={server.folder} port={server.port or 5432}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = {pool}
server_round_robin = 1
ignore_startup_parameters = options,extra_float_digits
{without_statements()}""".replace("auth_type = any", "auth_type = trust\nauth_file = " + self.folder + "/users"))
        with open(f"{self.folder}/users", "w", encoding="ascii") as f:
            f.write('"ana" ""\n')
        how = postgres_server.as_user()
        if how:
            shutil.chown(self.folder, postgres_server.user().pw_uid, postgres_server.user().pw_gid)
        self.process = subprocess.Popen([PROGRAM, "-q", f"{self.folder}/conf.ini"], cwd="/", stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **how)
        wait_until(self.answers, "PgBouncer responds")

    def answers(self):
        assert self.process.poll() is None, "PgBouncer has ended"
        return subprocess.run([f"{postgres_server.BIN}/pg_isready", "-q", "-h", "127.0.0.1", "-p", str(self.port)], cwd="/",
                              check=False, timeout=60).returncode == 0

    def stop(self):
        self.process.kill()
        self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


def start(server, pool=2):
    return start_at_port(lambda port: PgBouncer(server, pool, port))
