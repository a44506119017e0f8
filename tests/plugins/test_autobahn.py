# SPDX-License-Identifier: Apache-2.0
"""The Autobahn test suite, a fuzzing client for WebSocket servers, against the plugin websocket.

    MONKEY_AUTOBAHN=1      cases 1 to 7 and 10: ten seconds
    MONKEY_AUTOBAHN=all    9, 12 and 13, too, over every kind of compression: most of an hour

It needs `wstest`, which runs on Python 2.7 alone: tools/dev/autobahn.sh makes it."""
import json
import os
import shutil
import subprocess

import pytest

from monkey import PROGRAM, ROOT

BUILT = ROOT / "build" / "dev" / "tests" / "plugins"
WANTED = os.environ.get("MONKEY_AUTOBAHN")
WSTEST = ROOT / "build" / "autobahn" / "bin" / "wstest"
SHORT = [f"{n}.*" for n in (1, 2, 3, 4, 5, 6, 7, 10)]
LONG = ["9.*", "12.*", "13.*"]
HANDLERS = ("echo", "packed", "context")
HOUR = 3600

pytestmark = [pytest.mark.skipif(not WANTED, reason="MONKEY_AUTOBAHN=1 runs it"),
              pytest.mark.skipif(not BUILT.exists() or PROGRAM.parent != BUILT.parents[1], reason="needs build/dev"),
              pytest.mark.timeout(2 * HOUR)]


def wstest():
    found = str(WSTEST) if WSTEST.exists() else shutil.which("wstest")
    if not found:
        pytest.skip("there is no wstest: tools/dev/autobahn.sh makes it, where there is a Python 2.7")
    return found


def test_autobahn(monkey, tmp_path):
    program = wstest()
    routes = "[ROUTES]\n" + "".join(f"    /{name}  socket-{name}\n" for name in HANDLERS)
    server = monkey(plugins=[BUILT / "monkey-sockets.so"], workers=1, sections=routes)
    handlers, cases = (HANDLERS, SHORT + LONG) if WANTED == "all" else (HANDLERS[:2], SHORT)
    url = server.url.rstrip("/").replace("http", "ws", 1)
    spec = {"options": {"failByDrop": False}, "outdir": str(tmp_path / "out"),
            "servers": [{"agent": name, "url": f"{url}/{name}"} for name in handlers],
            "cases": cases, "exclude-cases": [], "exclude-agent-cases": {}}
    (tmp_path / "spec.json").write_text(json.dumps(spec))
    subprocess.run([program, "-m", "fuzzingclient", "-s", tmp_path / "spec.json"], check=True, timeout=2 * HOUR,
                   stdout=subprocess.DEVNULL, cwd=tmp_path)
    results = json.loads((tmp_path / "out" / "index.json").read_text())
    assert set(results) == set(handlers)
    for agent, found in results.items():
        assert len(found) > 200
        bad = {case: (r["behavior"], r["behaviorClose"]) for case, r in found.items()
               if not {r["behavior"], r["behaviorClose"]} <= {"OK", "INFORMATIONAL"}}
        assert not bad, f"{agent}: {bad}"
