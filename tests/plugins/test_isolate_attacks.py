# SPDX-License-Identifier: Apache-2.0
"""[ISOLATE] groups that share a user: possible attacks by one group, or by any process of that user, on the other groups."""
import contextlib
import os
import pwd
import re
import shutil
import signal
import socket
import subprocess
import tempfile
from pathlib import Path

import pytest

import proc
import services
from cgi_scripts import PLAIN
from monkey import PROGRAM

pytestmark = [pytest.mark.skipif(not services.BUILT.exists(), reason="this build has no Duda"),
              pytest.mark.processes("it starts no group of processes")]

SOURCE = r"""
#include <duda.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

extern char **environ;

/* Runs wherever the object is loaded: in the group, and in the configuration check. */
__attribute__((constructor)) static void tell_environment(void)
{
    int fd = open(FOLDER "/environment", O_WRONLY | O_CREAT | O_APPEND, 0644);
    for (char **e = environ; fd >= 0 && *e; e++)
        dprintf(fd, "%s\n", *e);
    if (fd >= 0)
        close(fd);
}

static int who(struct duda_ctx *d)
{
    struct mk_request *r = duda_request(d);
    mk_str user = mk_request_user(r), client = mk_request_header(r, MK_STR("Monkey-Client")),
           max = mk_request_header(r, MK_STR("Monkey-Body-Max")), proof = mk_request_header(r, MK_STR("Monkey-Signature"));
    return duda_printf(d, "%.*s|%.*s|%.*s|%.*s|%.*s\n", MK_STR_ARG(mk_request_client_text(r)), MK_STR_ARG(user), MK_STR_ARG(client),
                       MK_STR_ARG(max), MK_STR_ARG(proof));
}

static int pids(struct duda_ctx *d)
{
    return duda_printf(d, "%d %d\n", (int)getpid(), (int)getppid());
}

static int tell(struct duda_ctx *d)
{
    int n = kill((pid_t)atoi(duda_query(d, "pid").p), 0);
    return duda_printf(d, "%s\n", n == 0 ? "0" : errno == EPERM ? "EPERM" : strerror(errno));
}

static int abstract(struct duda_ctx *d)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    mk_str name = duda_query(d, "name");
    memcpy(at.sun_path + 1, name.p, name.len);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int n = connect(fd, (struct sockaddr *)&at, (socklen_t)(sizeof(sa_family_t) + 1 + name.len)), e = errno;
    close(fd);
    return duda_printf(d, "%s\n", n == 0 ? "0" : e == EPERM ? "EPERM" : strerror(e));
}

static int say(struct duda_ctx *d)
{
    static const char text[] = "\033[2J\007bell\xc2\x9b" "31m\n2026-01-01T00:00:00+0000 [error] 1: FORGED\nlast\n";
    return write(STDERR_FILENO, text, sizeof text - 1) > 0 ? duda_puts(d, "said\n") : 500;
}

DUDA_SERVICE(SERVICE, DUDA_GET("/who", who, ""), DUDA_GET("/pids", pids, ""), DUDA_GET("/kill", tell, ""),
             DUDA_GET("/abstract", abstract, ""), DUDA_GET("/say", say, ""));
"""

TWO = "[ROUTES]\n    /shop/* isolate shop\n    /vault/* isolate vault\n    /* static\n"


@pytest.fixture
def objects(tmp_path):
    """Builds the same service under two names."""
    return [services.build(tmp_path, name, SOURCE.replace("SERVICE,", f"{name},"), f'-DFOLDER="{tmp_path}"') for name in ("shop", "vault")]


def sections(objects, *keys):
    return "".join(f"[ISOLATE]\n    Service {each}\n" + "".join(f"    {key}\n" for key in keys) for each in objects)


@pytest.fixture
def server(monkey, objects):
    return monkey(plugins=["isolate"], top=sections(objects), sections=TWO)


def sockets(server):
    """Returns {service: path} of the groups' unix sockets."""
    keepers = [pid for pid in proc.children(server.pid) if proc.name(pid) == "monkey: keeper"]
    inodes = {os.readlink(f"/proc/{pid}/fd/3")[8:-1] for pid in keepers}
    bound = [line.split()[7] for line in Path("/proc/net/unix").read_text().splitlines() if line.split()[6] in inodes]
    return {Path(path).name: path for path in bound}


def ask(path, *lines, target="/vault/who"):
    """Returns the response that a process of the same user receives from a group's socket."""
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(proc.SECONDS)
        s.connect(path)
        s.sendall("\r\n".join([f"GET {target} HTTP/1.1", "Host: x", "Connection: close", *lines, "", ""]).encode())
        return s.makefile("rb").read().decode()


def reload(server):
    server.tell(signal.SIGHUP)
    server.err.wait_for(r"\d: the new configuration serves")


def facts(server, service, **fields):
    """Returns the service's view of a request: address, user, and the headers that the outer server sets."""
    return server.get(f"/{service}/who", **fields).text.strip().split("|")


def test_isolate_forged_client_header_is_refused(server):
    path = sockets(server)["vault"]
    assert server.get("/vault/who").status == 200
    made_up = "Monkey-Client: 6.6.6.6 1 https root"
    for lines in ([], [made_up], [made_up, "Monkey-Signature:"], [made_up, "Monkey-Body-Max: 9", "Monkey-Signature: " + "0" * 64],
                  [made_up, "Monkey-Signature: " + "f" * 63]):
        answer = ask(path, *lines)
        assert answer.startswith("HTTP/1.1 403 ") and "|root|" not in answer, answer
    server.err.wait_for(r"\[warn\] \d+: vault: a process other than a worker of the front server has sent a request")
    assert server.get("/vault/who").status == 200


def test_isolate_signature_is_valid_for_one_request_only(server):
    """A service may show all headers of its requests to clients."""
    paths = sockets(server)
    _, _, client, body_max, proof = facts(server, "vault")
    real = [f"Monkey-Client: {client}", f"Monkey-Body-Max: {body_max}", f"Monkey-Signature: {proof}"]
    assert len(proof) == 64
    assert ask(paths["vault"], *real).startswith("HTTP/1.1 200 ")
    for i, value in ((0, f"Monkey-Client: {client} root"), (0, f"Monkey-Client: 6.6.6.6 1 https root"), (1, "Monkey-Body-Max: 1"),
                     (2, f"Monkey-Signature: {proof[:-1]}{'0' if proof[-1] != '0' else '1'}")):
        assert ask(paths["vault"], *real[:i], value, *real[i + 1:]).startswith("HTTP/1.1 403 "), value
    assert ask(paths["vault"], "Monkey-Client: 6.6.6.6 1 https root", *real).startswith("HTTP/1.1 403 ")
    assert ask(paths["shop"], *real, target="/shop/who").startswith("HTTP/1.1 403 ")


def test_isolate_clients_cannot_send_signature_headers(server):
    made_up = {"Monkey-Client": "6.6.6.6 1 https root", "Monkey-Body-Max": "1", "Monkey-Signature": "0" * 64}
    address, user, client, _, proof = facts(server, "shop", fields=made_up)
    assert (address, user) == ("127.0.0.1", "") and client.startswith("127.0.0.1 ") and proof != "0" * 64


def test_isolate_secret_lives_as_long_as_the_processes(server):
    _, _, client, body_max, proof = facts(server, "vault")
    path = sockets(server)["vault"]
    reload(server)
    assert server.get("/vault/who").status == 200
    assert ask(path, f"Monkey-Client: {client}", f"Monkey-Body-Max: {body_max}", f"Monkey-Signature: {proof}").startswith("HTTP/1.1 200 ")


def has_scopes(run):
    found = re.search(r"Landlock +yes, ABI (\d+)", run("-V").out)
    return found and int(found[1]) >= 6


def test_isolate_sandbox_blocks_signals_and_abstract_sockets(server, run, tmp_path):
    if not has_scopes(run):
        pytest.skip("needs a kernel with Landlock's ABI 6")
    worker, master = map(int, server.get("/shop/pids").text.split())
    other, _ = map(int, server.get("/vault/pids").text.split())
    public = [pid for pid in proc.children(server.pid) if proc.name(pid) != "monkey: keeper"]
    for pid in [other, master, server.pid, os.getpid(), *public]:
        assert server.get(f"/shop/kill?pid={pid}").text == "EPERM\n", pid
    assert server.get(f"/shop/kill?pid={worker}").text == "0\n"
    name = f"monkey-test-{os.getpid()}"
    with socket.socket(socket.AF_UNIX) as s:
        s.bind("\0" + name)
        s.listen()
        assert server.get(f"/shop/abstract?name={name}").text == "EPERM\n"


def test_isolate_cgi_scripts_cannot_kill_a_group(monkey, run, site, objects):
    """CGI scripts run as the user of the workers, like groups that have no user of their own."""
    if not has_scopes(run):
        pytest.skip("needs a kernel with Landlock's ABI 6")
    script = PLAIN + "kill -0 $QUERY_STRING 2>/dev/null && echo may || echo may not\nkill -0 $$ && echo itself\n"
    site.add("cgi-bin/kill", script, mode=0o755)
    server = monkey(plugins=["isolate", "cgi"], top=sections(objects[:1]),
                    sections="[ROUTES]\n    /shop/* isolate shop\n    /cgi-bin/* cgi\n")
    for pid in server.get("/shop/pids").text.split() + [str(server.pid)]:
        assert server.get(f"/cgi-bin/kill?{pid}").text == "may not\nitself\n"


SECRETS = {"DUDA_KEYS": "k" * 40, "SHOP_DB_PASSWORD": "hunter2", "WANTED": "yes", "AWS_SECRET_ACCESS_KEY": "x", "LC_TIME": "C"}


def test_isolate_environment_contains_only_listed_names(monkey, objects, tmp_path, run):
    """Both the group and the check, which also loads the service, see only the listed names."""
    server = monkey(plugins=["isolate"], top=sections(objects[:1], "Env WANTED"), sections="[ROUTES]\n    /shop/* isolate shop\n",
                    environment=SECRETS)
    assert server.get("/shop/who").status == 200
    seen = (tmp_path / "environment").read_text().splitlines()
    names = {line.partition("=")[0] for line in seen}
    assert {"PATH", "TZ", "LC_ALL", "LC_TIME", "WANTED", "DUDA_KEYS"} <= names
    assert not names & {"SHOP_DB_PASSWORD", "AWS_SECRET_ACCESS_KEY", "PYTEST_CURRENT_TEST", "USER", "LOGNAME", "PWD"}
    keys = {line for line in seen if line.startswith("DUDA_KEYS=")}
    assert len(keys) == 1 and re.fullmatch("DUDA_KEYS=[0-9a-f]{64} ", keys.pop())  # both processes have the same key
    (tmp_path / "environment").unlink()
    done = run("-t", "-c", server.config, environment=SECRETS)
    assert done.code == 0, done.err
    assert "hunter2" not in (tmp_path / "environment").read_text() and "k" * 40 not in (tmp_path / "environment").read_text()


def test_isolate_env_key_may_change_on_reload(monkey, objects, tmp_path):
    routes = "[ROUTES]\n    /shop/* isolate shop\n"
    server = monkey(plugins=["isolate"], top=sections(objects[:1]), sections=routes, environment=SECRETS)
    assert server.get("/shop/who").status == 200
    before = server.config.read_text()
    server.config.write_text(before.replace("monkey-shop.so\n", "monkey-shop.so\n    Env SHOP_DB_PASSWORD\n", 1))
    (tmp_path / "environment").unlink()
    reload(server)
    assert "SHOP_DB_PASSWORD=hunter2" in (tmp_path / "environment").read_text()


@pytest.mark.parametrize("names, message", [("MONKEY_ISOLATE", "error: expected names of environment variables"),
                                         ("A=B", "error: expected names of environment variables"),
                                         ("NO_SUCH_VARIABLE_HERE", "warning: the server has no environment variable `NO_SUCH_VARIABLE_HERE`")])
def test_isolate_env_key_with_invalid_name_is_reported(run, tmp_path, objects, names, message):
    (tmp_path / "monkey.conf").write_text(f"[SERVER]\n    Listen 127.0.0.1:0\n[PLUGINS]\n    Load isolate\n"
                                          f"{sections(objects[:1], 'Env ' + names)}[HOST]\n    DocumentRoot {tmp_path}\n")
    done = run("-t", "-c", tmp_path / "monkey.conf")
    assert message in done.err and done.code == (3 if "error" in message else 0)


def test_isolate_shared_user_is_warned_of(server):
    server.err.wait_for(r"warning: the service `shop` runs as the user of the public workers")
    server.err.wait_for(r"warning: the service `vault` runs as the user of the public workers")


@pytest.fixture
def public(objects):
    """Copies the objects to a folder that every user can read."""
    folder = Path(tempfile.mkdtemp(prefix="monkey-test-"))
    folder.chmod(0o755)
    yield [Path(shutil.copy(each, folder)) for each in objects]
    shutil.rmtree(folder)


def can_run(user):
    return bool(shutil.which("setpriv")) and os.spawnvp(os.P_WAIT, "setpriv", ["setpriv", f"--reuid={user}", "--clear-groups", "test",
                                                                             "-x", str(PROGRAM)]) == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can start groups as other users")
def test_isolate_warning_names_only_groups_that_share_a_user(run, tmp_path, public):
    if not can_run("daemon"):
        pytest.skip("other users cannot run the program here")

    def tell(*users):
        parts = "".join(f"[ISOLATE]\n    Service {each}\n    User {user}\n" for each, user in zip(public, users))
        (tmp_path / "monkey.conf").write_text(f"[SERVER]\n    Listen 127.0.0.1:0\n    User nobody\n[PLUGINS]\n    Load isolate\n"
                                              f"{parts}[HOST]\n    DocumentRoot {tmp_path}\n"
                                              "[ROUTES]\n    /shop/* isolate shop\n    /vault/* isolate vault\n")
        done = run("-t", "-c", tmp_path / "monkey.conf")
        assert done.code == 0, done.err
        return [re.search(r"the service `\w+` runs as (the user of the public workers|the same user as the service `\w+`)", line)[0]
                for line in done.err.splitlines() if ", so only the sandbox separates " in line]

    assert tell("daemon", "daemon") == ["the service `vault` runs as the same user as the service `shop`"]
    assert tell("daemon", "games") == []
    assert tell("nobody", "games") == ["the service `shop` runs as the user of the public workers"]


def with_descendants(pid):
    """Returns the process and all its descendants."""
    return [pid, *(each for child in proc.children(pid) for each in with_descendants(child))]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can start workers as another user")
@pytest.mark.skipif(not proc.RELEASE.exists(), reason="sanitizers attach to their own processes, and there is no release build")
def test_isolate_memory_of_workers_is_unreadable_for_same_user(monkey, tmp_path, public):
    """Workers hold the secrets of the groups, so no process may be dumpable even for a moment, not even after a reload."""
    if not can_run("nobody"):
        pytest.skip("other users cannot run the program here")
    released = proc.RELEASE.parent / "plugins"
    (tmp_path / "release").mkdir()
    shop = services.build(tmp_path / "release", "shop", SOURCE.replace("SERVICE,", "shop,"), f'-DFOLDER="{tmp_path}"', objects=released)
    shutil.copy(shop, public[0])
    server = monkey(program=proc.RELEASE, plugins=[released / "monkey-isolate.so"], server="User nobody", top=sections(public[:1]),
                    sections="[ROUTES]\n    /shop/* isolate shop\n")
    for _ in range(2):
        assert server.get("/shop/who").status == 200
        own = [pid for pid in with_descendants(server.pid) if "\nUid:\t65534\t" in Path(f"/proc/{pid}/status").read_text()]
        assert len(own) >= 3  # the worker, its spawner, and the processes of the group
        for pid in own:
            peep = ["setpriv", "--reuid=nobody", "--clear-groups", "cat", f"/proc/{pid}/mem"]
            refusal = subprocess.run(peep, capture_output=True, text=True).stderr
            assert "Permission denied" in refusal or not Path(f"/proc/{pid}").exists(), refusal
        reload(server)


def can_connect(user, path):
    pid = os.fork()
    if pid == 0:
        code = 1
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as s:
            os.setgroups([])
            os.setuid(pwd.getpwnam(user).pw_uid)
            s.connect(str(path))
            code = 0
        os._exit(code)
    return os.waitpid(pid, 0)[1] == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can start workers as another user")
def test_isolate_socket_cannot_be_replaced_by_same_user(monkey, public):
    """An impostor would receive the clients' requests, with cookies and passwords."""
    if not can_run("nobody"):
        pytest.skip("other users cannot run the program here")
    server = monkey(plugins=["isolate"], server="User nobody", top=sections(public), sections=TWO)
    path = Path(sockets(server)["vault"])
    assert path.stat().st_uid != os.geteuid() and path.stat().st_mode & 0o777 == 0o600
    for command in (["mv", path, f"{path}.old"], ["rm", "-f", path], ["touch", f"{path}.new"], ["mv", path.parent, "/tmp/monkey-moved"],
                    ["chmod", "0777", path.parent], ["rmdir", path.parent / "none"], ["ls", path.parent]):
        done = subprocess.run(["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups", *command], capture_output=True, text=True, check=False)
        assert done.returncode != 0 and re.search("Permission denied|not permitted", done.stderr), (command, done.stderr)
    assert server.get("/vault/who").status == 200
    assert can_connect("nobody", path) and not can_connect("daemon", path)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can start workers as another user")
@pytest.mark.parametrize("user", ["root", "daemon", "nobody"])
def test_isolate_runtime_directory_is_used_only_by_its_user(monkey, public, user):
    """The workers run as another user and could not reach a socket there."""
    if not can_run(user):
        pytest.skip("other users cannot run the program here")
    with tempfile.TemporaryDirectory(prefix="r") as runtime:
        server = monkey(plugins=["isolate"], server=f"User {user}", top=sections(public), sections=TWO,
                        environment={"RUNTIME_DIRECTORY": runtime})
        assert server.get("/vault/who").status == 200
        assert str(sockets(server)["vault"]).startswith(runtime) == (user == "root")
        server.stop()


def test_isolate_service_cannot_forge_log_lines(server):
    assert server.get("/shop/say").text == "said\n"
    server.err.wait_for(r"shop: last\n")
    text = server.err.text
    stamp = r"20[2-9]\d-\d\d-\d\dT[\d:]{8}[+-]\d{4} \[info\] \d+: shop: "
    assert re.search(stamp + r"\\x1B\[2J\\x07bell\\xC2\\x9B31m\n", text), text
    assert re.search(stamp + r"2026-01-01T00:00:00\+0000 \[error\] 1: FORGED\n", text), text
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f\x80-\x9f]", text)
    assert not re.search(r"^2026-01-01", text, re.MULTILINE)
