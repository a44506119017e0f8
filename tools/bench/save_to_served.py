#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures how long `monkey run` takes from a saved file to the first response of the new version.

    save_to_served.py PROGRAM [--lines N] [--saves N] [--files N]

The service has N lines of handlers and routes (default: 700), in one file, or in several with --files. It is saved N times (default: 20);
after each save, requests follow each other until the new version responds. The compiler is wrapped in a script that records when
it starts and ends, so the table also shows where the time goes: noticing the change, the compiler, the linker, and loading the
service into a new server and switching to it.
"""
import argparse
import os
import pathlib
import re
import shutil
import signal
import socket
import statistics
import subprocess
import tempfile
import time

PATIENCE_S = 30
WRAPPER = """#!/bin/sh
begin=$(date +%s%N)
cc "$@"
code=$?
echo "$begin $(date +%s%N) $*" >> {log}
exit $code
"""
HANDLER = """
static int handle_{i}(struct duda_ctx *d)
{{
    mk_str name = duda_query(d, "name");
    int64_t n = 0;
    if (!duda_query_int(d, "n", &n) || n < 0)
        n = {i};
    for (int k = 0; k < n && k < 10; k++) {{
        int e = duda_printf(d, "%d %.*s\\n", k, MK_STR_ARG(name));
        if (e)
            return e;
    }}
    return duda_puts(d, "{i}\\n");
}}
"""


def write_service(folder, lines, files):
    """Writes main.c, and further files with a share of the handlers each."""
    n = max(files, lines // (HANDLER.count("\n") + 1))
    parts = [range(i, n, files) for i in range(files)]
    for f, part in enumerate(parts):
        text = "#include <duda.h>\n" + "".join(HANDLER.format(i=i) for i in part)
        routes = ",\n    ".join(f'DUDA_GET("/{i}", handle_{i}, "Handler {i}.")' for i in part)
        if f:
            (folder / f"part{f}.c").write_text(text + f"DUDA_ROUTES(part{f},\n    {routes});\n")
            continue
        text += "".join(f"DUDA_ROUTES_DECLARE(part{k});\n" for k in range(1, files))
        groups = "".join(f',\n    DUDA_GROUP("/part{k}", part{k})' for k in range(1, files))
        text += 'static int version(struct duda_ctx *d) { return duda_puts(d, "version 0"); }\n'
        text += f'DUDA_SERVICE(bench, DUDA_GET("/version", version, "The version."),\n    {routes}{groups});\n'
        (folder / "main.c").write_text(text)


def get(port, target):
    with socket.create_connection(("127.0.0.1", port), timeout=30) as sock:
        sock.sendall(f"GET {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
        parts = []
        while part := sock.recv(65536):
            parts.append(part)
    return b"".join(parts)


def stages(log, saved_ns, served_ns):
    """Splits the time at the recorded runs of the compiler; None if it did not run."""
    runs = [line.split(" ", 2) for line in log.read_text().splitlines()]
    compiled = [(int(a), int(b)) for a, b, words in runs if " -c " in f" {words} "]
    linked = [(int(a), int(b)) for a, b, words in runs if "-shared" in words]
    if not compiled or not linked:
        return None
    begin, end = min(a for a, _ in compiled), max(b for _, b in compiled)
    points = [saved_ns, begin, end, linked[0][0], linked[0][1], served_ns]
    return [(b - a) / 1e6 for a, b in zip(points, points[1:])]


def measure(program, lines, saves, files):
    folder = pathlib.Path(tempfile.mkdtemp(prefix="save-"))
    source, log, wrapper = folder / "src", folder / "log", folder / "cc"
    source.mkdir()
    log.touch()
    wrapper.write_text(WRAPPER.format(log=log))
    wrapper.chmod(0o755)
    write_service(source, lines, files)
    environment = os.environ | {"CC": str(wrapper), "XDG_CACHE_HOME": str(folder)}
    server = subprocess.Popen([program, "run", "-p", "0", source], env=environment, stdout=subprocess.PIPE, text=True)
    try:
        while not (match := re.search(r"http://127.0.0.1:(\d+)/", server.stdout.readline())):
            pass
        port, rows = int(match[1]), []
        get(port, "/version")
        text = (source / "main.c").read_text()
        for i in range(1, saves + 1):
            log.write_text("")
            (source / "main.c").write_text(text.replace("version 0", f"version {i}"))
            saved = time.time_ns()
            while f"version {i}".encode() not in (answer := get(port, "/version")):
                if time.time_ns() - saved > PATIENCE_S * 1e9:
                    raise SystemExit(f"the new version is not served:\n{answer.decode(errors='replace')}")
            served = time.time_ns()
            rows.append(((served - saved) / 1e6, stages(log, saved, served)))
            time.sleep(0.1)
        return rows
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait(timeout=30)
        shutil.rmtree(folder)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--lines", type=int, default=700)
    parser.add_argument("--saves", type=int, default=20)
    parser.add_argument("--files", type=int, default=1)
    a = parser.parse_args()
    rows = measure(a.program, a.lines, a.saves, a.files)
    total = sorted(ms for ms, _ in rows)
    print(f"save to served: median {statistics.median(total):.0f} ms, least {total[0]:.0f} ms, most {total[-1]:.0f} ms ({len(total)} saves)")
    split = [parts for _, parts in rows if parts]
    for name, column in zip(("notice the change", "compile", "plan the link", "link", "load and switch"), zip(*split)):
        print(f"  {name:18} {statistics.median(column):6.0f} ms")


if __name__ == "__main__":
    main()
