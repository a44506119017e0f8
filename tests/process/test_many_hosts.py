# SPDX-License-Identifier: Apache-2.0
"""Many hosts: the descriptors that they need at start and reload, and the descriptor limit of the programs that the server runs."""
import os
import resource
import signal
import subprocess
import sys

import pytest

from monkey import ENVIRONMENT, PROGRAM, needs_processes

pytestmark = [pytest.mark.processes("a library leaves the limits of its program alone"), pytest.mark.http1]


def limited(soft, hard):
    """Returns arguments of Popen that set the server's initial descriptor limits."""
    return {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))}


@pytest.fixture
def hosts(tmp_path):
    """Returns [HOST] sections, each with its own folder unless all share one."""
    def write(n, shared=False):
        text = ""
        for i in range(n):
            folder = tmp_path / ("shared" if shared else f"www{i}")
            folder.mkdir(exist_ok=True)
            (folder / "index.html").write_text("shared" if shared else f"host {i}")
            text += f"[HOST]\n    ServerName h{i}.example\n    DocumentRoot {folder}\n\n"
        return text
    return write


def descriptors(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


def reload(server, n=1):
    server.tell(signal.SIGHUP)
    server.err.wait_for("the new configuration serves|keeping the old one", n)
    assert "keeping the old one" not in server.err.text, server.err.text


def test_server_above_soft_limit_starts_and_reloads(monkey, hosts):
    server = monkey(root=None, sections=hosts(400), popen=limited(100, 700))
    before = descriptors(server.pid)
    assert before > 400
    for n in (1, 2, 3):
        reload(server, n)
        assert descriptors(server.pid) <= before + 2
    assert server.get("/", fields=[("Host", "h399.example")]).text == "host 399"


def test_hosts_with_one_folder_share_its_descriptor(monkey, hosts):
    server = monkey(root=None, sections=hosts(300, shared=True), popen=limited(128, 128))
    reload(server)
    assert descriptors(server.pid) < 40
    assert server.get("/", fields=[("Host", "h299.example")]).text == "shared"


def test_reload_opens_replaced_folder(monkey, hosts, tmp_path):
    sections = hosts(2)
    server = monkey(root=None, sections=sections)
    (tmp_path / "www1").rename(tmp_path / "old")
    (tmp_path / "www1").mkdir()
    (tmp_path / "www1" / "index.html").write_text("replaced")
    before = descriptors(server.pid)
    reload(server)
    assert server.get("/", fields=[("Host", "h1.example")]).text == "replaced"
    assert server.get("/", fields=[("Host", "h0.example")]).text == "host 0"
    assert descriptors(server.pid) <= before + 1
    server.config.write_text(server.config.read_text().replace("www1", "old"))
    reload(server, 2)
    assert server.get("/", fields=[("Host", "h1.example")]).text == "host 1"


def test_cgi_program_gets_the_original_soft_limit(monkey, site):
    needs_processes("a library leaves the limit alone")
    site.add("limit.cgi", f"#!{sys.executable}\nimport resource\n"
                          "print('Content-Type: text/plain\\n\\n%d' % resource.getrlimit(resource.RLIMIT_NOFILE)[0])\n",
             mode=0o755)
    server = monkey(plugins=["cgi"], sections="[ROUTES]\n    *.cgi cgi\n", popen=limited(200, 900))
    assert server.get("/limit.cgi").text.strip() == "200"
    limits = open(f"/proc/{server.workers[0]}/limits").read()
    assert "Max open files            900                  900" in limits


def check(config, soft, hard):
    return subprocess.run([PROGRAM, "-t", "-c", config], capture_output=True, text=True, env=os.environ | ENVIRONMENT,
                          **limited(soft, hard))


@pytest.mark.parametrize("keys, hard, message", [
    ("Workers 8", 330, "300 hosts need about "),
    ("MaxConnections 1000\n    Workers 1", 700, "remain for connections: 1000 are its share of MaxConnections"),
    ("MaxConnections 10000\n    Workers 10", 700, "remain for connections: 1000 are its share of MaxConnections"),
    ("FDLimit 310", 700, "a worker may have 310 file descriptors, of which 0 remain"),
])
def test_check_warns_of_insufficient_descriptor_limit(hosts, tmp_path, keys, hard, message):
    (tmp_path / "c").write_text(f"[SERVER]\n    Listen 127.0.0.1:0\n    {keys}\n\n" + hosts(300))
    done = check(tmp_path / "c", 64, hard)
    assert done.returncode == 0 and message in done.stderr, done.stderr
    assert "raise the limit: LimitNOFILE=" in done.stderr


def test_check_accepts_sufficient_descriptor_limit(hosts, tmp_path):
    (tmp_path / "c").write_text("[SERVER]\n    Listen 127.0.0.1:0\n    MaxConnections 100\n\n" + hosts(300))
    done = check(tmp_path / "c", 64, 700)
    assert (done.returncode, done.stderr) == (0, "")


def test_check_reports_descriptor_shortage_once(hosts, tmp_path):
    (tmp_path / "c").write_text("[SERVER]\n    Listen 127.0.0.1:0\n\n" + hosts(300))
    done = check(tmp_path / "c", 64, 200)
    assert done.returncode == 3
    assert done.stderr.count("cannot open the folders of all hosts: Too many open files") == 1
    assert "this process may have 200" in done.stderr
    assert "cannot serve the folder" not in done.stderr


HOST = "[HOST]\n    ServerName h{}.example\n    DocumentRoot www\n"
MANY = {
    "hosts": ("", HOST),
    "hosts with sections": ("", HOST + "[ROUTES]\n    /* static\n[REWRITE]\n    Redirect 301 prefix /o /n\n"),
    "redirects": (HOST.format(0) + "[REWRITE]\n", "    Redirect 301 prefix /old/{} /new\n"),
    "routes": (HOST.format(0) + "[ROUTES]\n", "    /old/{} redirect 301 /new\n"),
    "routes with warnings": (HOST.format(0) + "[ROUTES]\n", "    /old/{}/ proxy http://127.0.0.1:1\n"),
    "upstreams": (HOST.format(0), "[UPSTREAM]\n    Name app{}\n    Server 127.0.0.1:1\n"),
}


@pytest.mark.parametrize("kind", MANY)
def test_check_time_is_linear_in_the_number_of_lines(tmp_path, kind):
    """In quadratic time, 10,000 hosts would exceed systemd's start timeout."""
    (tmp_path / "www").mkdir()
    first, line = MANY[kind]

    def seconds(n):
        lines = "".join(line.format(i) for i in range(n))
        (tmp_path / "c").write_text(f"[SERVER]\n    Listen 127.0.0.1:0\n[PLUGINS]\n    Load rewrite\n    Load proxy\n{first}{lines}")
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        done = subprocess.run([PROGRAM, "-t", "-c", tmp_path / "c"], capture_output=True, text=True, env=os.environ | ENVIRONMENT)
        assert done.returncode == 0, done.stderr
        return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before

    few, many = seconds(3000), seconds(12000)
    assert many < 8 * max(few, 0.05), (few, many)  # shorter times are those of the start, and of the clock's ticks


WRONG = {
    "handlers": (HOST.format(0) + "[ROUTES]\n", "    /{} no-handler\n", "there is no handler `no-handler`"),
    "sections": (HOST.format(0), "[DIRLISTING]\n    Wrong {}\n", "the plugin `dirlisting` has it"),
    "plugins": (HOST.format(0) + "[PLUGINS]\n", "    Load /gone/monkey-{}.so\n", "there is no `/gone/monkey-0.so`"),
}


@pytest.mark.parametrize("kind", WRONG)
def test_check_with_thousands_of_errors_opens_plugins_once(tmp_path, kind):
    """The hints name plugins that are not loaded. If each error opened all plugins, the check would take minutes."""
    (tmp_path / "www").mkdir()
    first, line, message = WRONG[kind]
    lines = "".join(line.format(i) for i in range(3000))
    (tmp_path / "c").write_text(f"[SERVER]\n    Listen 127.0.0.1:0\n{first}{lines}")
    command = [PROGRAM, "-t", "-c", tmp_path / "c"]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | ENVIRONMENT, timeout=20)
    assert done.returncode == 3 and message in done.stderr
    assert "and 2900 more" in done.stderr or "and 2901 more" in done.stderr
