# SPDX-License-Identifier: Apache-2.0
"""The TCP ports that workers may connect to follow from the upstreams of the configuration. `monkey -T` lists them; that backends
can be reached is proven by the tests of each handler, which run with the sandbox.
"""
import re

import pytest

pytestmark = pytest.mark.processes("it has no sandbox")


@pytest.fixture
def allowed(run, site, tmp_path):
    """Returns what the comments in the output of `monkey -T` allow to the plugin `proxy`."""
    def ask(upstream="", route="proxy http://app", more=""):
        config = tmp_path / "ports.conf"
        lines = "".join(f"    {line}\n" for line in upstream.splitlines())
        config.write_text(f"[SERVER]\n    Listen 127.0.0.1:0\n[PLUGINS]\n    Load proxy\n{more}"
                          + (f"[UPSTREAM]\n    Name app\n{lines}" if upstream else "")
                          + f"[HOST]\n    DocumentRoot {site}\n[ROUTES]\n    /api/* {route}\n")
        result = run("-T", "-c", config)
        assert result.code == 0, result.err
        found = re.search(r"# for it, workers may (.*)", result.out)
        return found[1].split(", ") if found else []
    return ask


def test_ports_of_route(allowed):
    assert allowed(route="proxy http://127.0.0.1:8081") == ["connect to port 8081"]
    assert allowed(route="proxy http://[::1]:8082") == ["connect to port 8082"]


def test_ports_of_upstream(allowed):
    assert allowed("Server 127.0.0.1:8081\nServer 127.0.0.2:8081\nServer 127.0.0.1:8082\nServer unix:/run/app.sock") \
        == ["connect to port 8081", "connect to port 8082"]


def test_unix_sockets_need_no_port(allowed):
    assert allowed("Server unix:/run/app.sock") == []


def test_port_of_health_checks(allowed):
    assert allowed("Server 127.0.0.1:8081\nHealthCheck /ok\nHealthPort 9000") == ["connect to port 8081", "connect to port 9000"]


def test_ports_of_name(allowed):
    assert allowed("Server localhost:8081") == ["connect to port 8081", "resolve names"]


def test_ports_of_servers_that_may_be_added(allowed):
    assert "connect to all ports" in allowed("Server 127.0.0.1:8081\nMaxServers 4")
    assert "connect to all ports" not in allowed("Server 127.0.0.1:8081\nMaxServers 1")


def test_ports_of_discovery(allowed):
    found = allowed("Server app.example:8081 resolve\nResolver 127.0.0.1:5353")
    assert "connect to port 5353" in found and "connect to all ports" in found


def test_ports_of_saved_server(allowed, tmp_path):
    """The administrator had added a server, which the state file names."""
    state = tmp_path / "state"
    state.write_text("")
    assert "connect to all ports" in allowed(f"Server 127.0.0.1:8081\nMaxServers 2\nStateFile {state}")
