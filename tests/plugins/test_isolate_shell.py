# SPDX-License-Identifier: Apache-2.0
"""Route statistics of an isolated service: the group counts its requests; the shells of both servers, and the metrics of the front
server show them."""
import json
import re

import pytest

import services
from monkey import ROOT
from prometheus import parse
from shell_server import monkey_shell

pytestmark = [pytest.mark.skipif(not services.BUILT.exists(), reason="this build has no Duda"),
              pytest.mark.processes("it starts no group of processes")]

SOURCE = r"""
#include <duda.h>

static int item(struct duda_ctx *d)
{
    return duda_printf(d, "%s\n", duda_param(d, "n").p);
}

DUDA_SERVICE(hello, DUDA_GET("/item/:n", item, ""));
"""
README = (ROOT / "plugins/isolate/README.md").read_text()


def test_isolate_routes_are_counted_in_the_group(monkey, site, tmp_path):
    """Uses the configuration in the README: the group's own shell lists the routes, and the front server's metrics contain them."""
    shown = re.search(r"^## The routes of a service\n.*?\n(^    [^\n]*\n(?:^    [^\n]*\n|^\n)+)", README, re.MULTILINE | re.DOTALL)[1]
    (tmp_path / "hello.conf").write_text(re.sub("^    ", "", shown, flags=re.MULTILINE).replace("/run/hello", "."))
    tmp_path.chmod(0o755)
    server = monkey(plugins=["isolate", "metrics"], root=None,
                    top=f"[ISOLATE]\n    Service {services.build(tmp_path, 'hello', SOURCE)}\n    Include hello.conf\n"
                        "[METRICS]\n    Metrics /metrics\n",
                    sections=f"[HOST]\n    DocumentRoot {site}\n[ROUTES]\n    /hello/* isolate hello\n")
    for n in range(3):
        assert server.get(f"/hello/item/{n}").text == f"{n}\n"
    route, = json.loads(monkey_shell(tmp_path / "shell.sock", "--json", "routes").out)
    assert (route["service"], route["route"], route["requests"]) == ("hello", "/item/:n", 3)
    front = server.get("/metrics")
    assert parse(front.text)["monkey_route_requests_total", {"isolate": "hello", "service": "hello", "route": "/item/:n"}] == 3
    assert re.search(r'^monkey_upstream_requests_total\{[^}]*upstream="unix:[^"]*/hello"[^}]*\} [1-9]', front.text, re.MULTILINE)
