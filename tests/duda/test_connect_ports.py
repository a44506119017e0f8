# SPDX-License-Identifier: Apache-2.0
"""TCP ports that services may use with their own sockets (ConnectPorts of [DUDA])."""
import errno
import re
import socket

import pytest

import services

pytestmark = [pytest.mark.skipif(not services.BUILT.exists(), reason="this build has no Duda"),
              pytest.mark.processes("it has no sandbox")]

SOURCE = r"""
#include <duda.h>
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

static int use_port(struct duda_ctx *d, int (*use)(int, const struct sockaddr *, socklen_t))
{
    int64_t port = 0;
    (void)duda_param_int(d, "port", &port);
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int e = fd < 0 || use(fd, (const struct sockaddr *)&at, sizeof at) < 0 ? errno : 0;
    close(fd);
    return duda_printf(d, "%d", e);
}

static int connect_to(struct duda_ctx *d)
{
    return use_port(d, connect);
}

static int bind_to(struct duda_ctx *d)
{
    return use_port(d, bind);
}

DUDA_SERVICE(ports, DUDA_GET("/connect/:port", connect_to, "Connects."), DUDA_GET("/bind/:port", bind_to, "Binds."));
"""


@pytest.fixture(scope="module")
def ports(tmp_path_factory):
    return services.build(tmp_path_factory.mktemp("ports"), "ports", SOURCE)


@pytest.fixture
def ask(monkey, run, ports):
    found = re.search(r"Landlock  yes, ABI (\d+)", run("-V").out)
    if not found or int(found[1]) < 4:
        pytest.skip("this kernel cannot restrict TCP ports")

    def start(section):
        server = monkey(plugins=[ports], top=f"[DUDA]\n    {section}\n" if section else "")
        return lambda path: int(server.get(path).text)
    return start


@pytest.fixture
def peers():
    with socket.create_server(("127.0.0.1", 0)) as one, socket.create_server(("127.0.0.1", 0)) as other:
        yield one.getsockname()[1], other.getsockname()[1]


@pytest.mark.parametrize("section", ["", "ConnectPorts all", "ConnectPorts ALL"])
def test_services_use_all_ports_by_default(ask, peers, section):
    get = ask(section)
    assert [get(f"/connect/{peers[0]}"), get(f"/connect/{peers[1]}"), get("/bind/0")] == [0, 0, 0]


def test_services_use_only_listed_ports(ask, peers):
    get = ask(f"ConnectPorts 1 {peers[0]}")
    assert [get(f"/connect/{peers[0]}"), get(f"/connect/{peers[1]}"), get("/bind/0")] == [0, errno.EACCES, errno.EACCES]


def test_services_use_no_ports(ask, peers):
    get = ask("ConnectPorts none")
    assert [get(f"/connect/{peers[0]}"), get("/bind/0")] == [errno.EACCES, errno.EACCES]


@pytest.mark.parametrize("value", ["0", "65536", "http", "80 all", "none 80", "-1"])
def test_invalid_ports_are_rejected(monkey, ports, value):
    server = monkey(plugins=[ports], top=f"[DUDA]\n    ConnectPorts {value}\n", expect_start=False)
    server.exit_code = 3
    server.wait()
    server.err.wait_for(f"ConnectPorts|{value}")
    server.err.wait_for("is not a TCP port: expected numbers from 1 to 65535, or only `all` or `none`")
