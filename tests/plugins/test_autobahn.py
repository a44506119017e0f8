# SPDX-License-Identifier: Apache-2.0
"""The Autobahn test suite, a fuzzing client for WebSocket servers, against the websocket plugin and both forms of Duda's WebSockets.

    MONKEY_AUTOBAHN=1      cases 1 to 7 and 10: half a minute
    MONKEY_AUTOBAHN=all    also 9, 12 and 13, over every kind of compression: more than an hour, mostly the suite's own time
    MONKEY_AUTOBAHN="12.1.* 13.2.9"    these

It needs `wstest`, which runs only on Python 2.7: tools/dev/autobahn.sh installs it."""
import json
import os
import shutil
import subprocess

import pytest

import services
from monkey import PROGRAM, ROOT

BUILT = ROOT / "build" / "dev" / "tests" / "plugins"
WANTED = os.environ.get("MONKEY_AUTOBAHN")
WSTEST = ROOT / "build" / "autobahn" / "bin" / "wstest"
SHORT = [f"{n}.*" for n in (1, 2, 3, 4, 5, 6, 7, 10)]
LONG = ["9.*", "12.*", "13.*"]
PLAIN, PACKED = ("echo", "calls"), ("packed", "kept", "line")
HOUR = 3600

SERVICE = r"""
#include <duda.h>

static void hear(struct duda_websocket *s, enum mk_websocket_kind kind, mk_str data, void *ctx)
{
    (void)ctx;
    if (duda_websocket_try_send(s, kind, data))
        duda_websocket_close(s, 1011, MK_STR("full"));
}

static const struct duda_websocket_options called = {.on_message = hear, .message_max = 20 << 20, .queue_max = 64 << 20};
static const struct duda_websocket_options straight = {.compress = true, .message_max = 20 << 20};

static int calls(struct duda_ctx *d)
{
    struct duda_websocket *s;
    return duda_websocket_open(d, &called, NULL, &s);
}

static int line(struct duda_ctx *d)
{
    struct duda_websocket *s;
    struct duda_message m;
    int e = duda_websocket_open(d, &straight, NULL, &s);
    while (!e && (e = duda_websocket_receive(d, s, &m)) > 0)
        e = duda_websocket_send(d, s, m.kind, m.data);
    return e;
}

DUDA_SERVICE(echoes, DUDA_GET("/calls", calls, ""), DUDA_GET("/line", line, ""));
"""

pytestmark = [pytest.mark.skipif(not WANTED, reason="MONKEY_AUTOBAHN=1 runs it"),
              pytest.mark.skipif(not BUILT.exists() or PROGRAM.parent != BUILT.parents[1], reason="needs build/dev"),
              pytest.mark.timeout(2 * HOUR)]


def wstest():
    found = str(WSTEST) if WSTEST.exists() else shutil.which("wstest")
    if not found:
        pytest.skip("there is no wstest: tools/dev/autobahn.sh makes it, where there is a Python 2.7")
    return found


def test_autobahn_cases_pass(monkey, tmp_path):
    program = wstest()
    plugins = [BUILT / "monkey-sockets.so"]
    if services.BUILT.exists():
        plugins.append(services.build(tmp_path, "echoes", SERVICE))
    handlers = [name for name in PLAIN + PACKED if services.BUILT.exists() or name not in ("calls", "line")]
    routes = "[ROUTES]\n" + "".join(f"    /{name}  socket-{name}\n" for name in handlers if name not in ("calls", "line"))
    server = monkey(plugins=plugins, workers=1, sections=routes)
    cases = {"1": SHORT, "all": SHORT + LONG}.get(WANTED, WANTED.split())
    least = 200 if WANTED in ("1", "all") else 0
    url = server.url.rstrip("/").replace("http", "ws", 1)
    spec = {"options": {"failByDrop": False}, "outdir": str(tmp_path / "out"),
            "servers": [{"agent": name, "url": f"{url}/{name}"} for name in handlers],
            "cases": cases, "exclude-cases": [], "exclude-agent-cases": dict.fromkeys(PLAIN, LONG[1:])}
    (tmp_path / "spec.json").write_text(json.dumps(spec))
    subprocess.run([program, "-m", "fuzzingclient", "-s", tmp_path / "spec.json"], check=True, timeout=2 * HOUR,
                   stdout=subprocess.DEVNULL, cwd=tmp_path)
    results = json.loads((tmp_path / "out" / "index.json").read_text())
    assert set(results) == set(handlers) or not least
    for agent, found in results.items():
        assert len(found) > least
        bad = {case: (r["behavior"], r["behaviorClose"]) for case, r in found.items()
               if not {r["behavior"], r["behaviorClose"]} <= {"OK", "INFORMATIONAL"}}
        assert not bad, f"{agent}: {bad}"
