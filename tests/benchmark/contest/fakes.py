# SPDX-License-Identifier: Apache-2.0
"""Helpers for tests of the contest: fake contestants with known faults, short cases, and a function that runs them."""
import json
import sys
from pathlib import Path

from contest import contestant, environment, material, record
from contest.case import Case, Plan
from contest.referee import Order, Referee
from monkey import PROGRAM

HERE = Path(__file__).resolve().parent
WRK = ("wrk", "-t1", "-c{c}", "-d{seconds}s", "{url}")
WR = PROGRAM.parent / "wr"  # from the same build
ANY_NOISE = 1e9  # a fake shot is so short that a single CPU tick of another program would exceed any real limit


def add_contestant(folder, name, *faults, features=("files", "keepalive", "close"), program=sys.executable, command=None):
    """Adds a contestant folder that runs the fake server."""
    home = Path(folder, name)
    home.mkdir(parents=True)
    command = command or ["@program@", str(HERE / "fake_server.py"), "@port@", *faults]
    (home / "contestant.toml").write_text("\n".join(f"{key} = {json.dumps(value)}" for key, value in {
        "title": name, "about": "a fake", "revision": 1, "programs": [str(program)], "features": list(features),
        "command": command}.items()) + '\nversion = { fixed = "1" }\n')
    (home / "fairness.md").write_text("It is a fake.\n")


def case(name="small", **changed):
    given = {"title": name, "about": "a test", "client": "wrk", "features": ("keepalive",), "metrics": ("cpu_us", "rate"),
             "command": WRK, "path": "/100.html"}
    return Case(name=name, **(given | changed))


def make_material(folder, _lists):
    """Creates the usual files to serve, but with the content that the fake server sends."""
    made = material.make(folder, tree=0, site=False, tls=False)
    for name in made.files:
        Path(made.root, name).write_text("x" * 100)
        made.files[name] = material.File(100, "")
    return made


def order(tmp_path, cases, noise=ANY_NOISE, **changed):
    """Returns the settings of a run with the contestants in tmp_path/contestants; cases: [(Case, Plan)]."""
    entries = contestant.load_all(tmp_path / "contestants")
    server, client = environment.share_cores()
    given = {"entries": entries, "cases": {c.name: (c, p) for c, p in cases}, "mode": "custom", "folder": tmp_path / "out",
             "server_cores": server, "client_cores": client, "wr": str(WR), "make_material": make_material,
             "noise": noise}
    return Order(**(given | changed))


def hold(tmp_path, *cases, **changed):
    """Runs the cases and returns the written record."""
    Referee(order(tmp_path, cases, **changed)).run()
    return record.load(tmp_path / "out")


def plan(*steps, rounds=1, seconds=1, verify=0.3):
    return Plan(steps or (20,), rounds, seconds, verify)

