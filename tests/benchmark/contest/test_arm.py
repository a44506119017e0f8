# SPDX-License-Identifier: Apache-2.0
"""The `raspberry` case under emulation: its ratios, its messages about missing programs, and, if a cross compiler and qemu-user
are installed, a Monkey for ARM that serves files."""
import http.client
import os
import pathlib
import shutil
import signal
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tools" / "contest"))

from contest import arm, case as cases, contestant, emulator, material, record  # noqa: E402
from contest.user_error import UserError  # noqa: E402

FOREIGN = ROOT / "tools" / "dev" / "foreign.sh"


def machine_here(name):
    machine = emulator.MACHINES[name]
    try:
        machine.check()
    except UserError as complaint:
        pytest.skip(str(complaint))
    return machine


# ---- Ratios ----

def made_of(shots):
    """Returns a record of the measurements (contestant, round, metrics)."""
    made = record.Record("custom", "2026-11-21T09:00:00+00:00", {})
    names = ("monkey-armhf", "busybox-armhf")
    made.contestants = {name: record.Contestant(name.partition("-")[0].title(), "present", version="1.0") for name in names}
    made.cases = {"raspberry-armhf": arm.case_for(emulator.MACHINES["armhf"]).for_record(cases.Plan((10,), 3, 5))}
    made.shots = [record.Shot("raspberry-armhf", name, number, 10, metrics) for name, number, metrics in shots]
    return made


def test_ratio_compares_shots_of_the_same_round():
    made = made_of([("monkey-armhf", 1, {"rate": 200.0}), ("busybox-armhf", 1, {"rate": 100.0}),
                    ("monkey-armhf", 2, {"rate": 30.0}), ("busybox-armhf", 2, {"rate": 10.0}),  # this round was disturbed
                    ("monkey-armhf", 3, {"rate": 500.0}), ("busybox-armhf", 3, {"rate": 200.0}),
                    ("monkey-armhf", 4, {"rate": 900.0})])  # busybox has no shot in this round
    found = arm.ratio(made, "raspberry-armhf", "rate", "monkey-armhf", "busybox-armhf")
    assert (found.median, found.low, found.high, found.count) == (2.5, 2.0, 3.0, 3)


def test_ratio_without_measurement_is_none():
    made = made_of([("monkey-armhf", 1, {"rate": 200.0}), ("busybox-armhf", 1, {"rate": 0.0})])
    assert arm.ratio(made, "raspberry-armhf", "instructions", "monkey-armhf", "busybox-armhf") is None
    assert arm.ratio(made, "raspberry-armhf", "rate", "monkey-armhf", "busybox-armhf") is None


def test_text_includes_the_limits():
    made = made_of([each for number in (1, 2, 3) for each in (
        ("monkey-armhf", number, {"rate": 300.0, "cpu_us": 10.0}), ("busybox-armhf", number, {"rate": 100.0, "cpu_us": 40.0}),
        ("monkey-armhf", number, {"instructions": 5000 + number}), ("busybox-armhf", number, {"instructions": 20000.0}))])
    record.validate(made)
    output = arm.text_of(made, [emulator.MACHINES["armhf"]])
    assert "instructions per request  0.25 (0.25 to 0.25)" in output
    assert "5002 (5001 to 5003)" in output
    assert "requests per second       3 (3 to 3)   mostly the emulation; in 2012: 1.82" in output
    assert all(limit in output for limit in arm.LIMITS)


def test_text_names_disqualified_contestants():
    made = made_of([])
    made.disqualified = [record.Exclusion("raspberry-armhf", "busybox-armhf", "wrong response")]
    output = arm.text_of(made, [emulator.MACHINES["armhf"]])
    assert "busybox-armhf is disqualified: wrong response" in output and "unknown" in output


# ---- What is missing ----

def test_missing_emulator_is_reported():
    machine = emulator.Machine("armhf", "arm-linux-gnueabihf", "qemu-that-is-nowhere")
    with pytest.raises(UserError, match=r"armhf: there is no qemu-that-is-nowhere; `tools/dev/need.sh arm` installs it"):
        machine.check()


def test_unavailable_packages_are_reported(tmp_path):
    """An apt-get that reaches no mirror."""
    tools = tmp_path / "bin"
    tools.mkdir()
    (tools / "apt-get").write_text("#!/bin/sh\n[ \"$1\" = indextargets ] && echo http://127.0.0.1:9/debian bookworm && exit\n"
                                   "echo 'E: Could not connect to 127.0.0.1:9'; exit 100\n")
    (tools / "apt-get").chmod(0o755)
    (tools / "dpkg-deb").symlink_to("/bin/false")
    done = subprocess.run([FOREIGN, "armhf", tmp_path / "there", "busybox"], capture_output=True, text=True, timeout=60,
                          env=os.environ | {"PATH": f"{tools}:{os.environ['PATH']}"})
    assert done.returncode == 1
    assert "cannot fetch busybox for armhf: E: Could not connect to 127.0.0.1:9" in done.stderr
    assert f"into {tmp_path}/there/root" in done.stderr and "PACKAGE VERSION" in done.stderr


def test_present_packages_are_not_downloaded(tmp_path):
    (tmp_path / "packages").write_text("busybox 1:1.35\nlibcmocka-dev 1.1\n")
    nothing = {"PATH": f"{pathlib.Path(shutil.which('grep')).parent}", "HOME": str(tmp_path)}
    bash = shutil.which("bash")
    assert subprocess.run([bash, FOREIGN, "armhf", tmp_path, "busybox"], env=nothing, timeout=60).returncode == 0
    assert emulator_complains(tmp_path) == "armhf: there is no busybox in "


def emulator_complains(folder):
    with pytest.raises(UserError) as caught:
        emulator.fetch_busybox(emulator.MACHINES["armhf"], folder)
    return str(caught.value).partition(str(folder))[0]


def test_program_that_does_not_run_is_reported():
    machine = emulator.Machine("armhf", "arm-linux-gnueabihf", "true")
    with pytest.raises(UserError, match="run by true it says '', not its version"):
        emulator.said(machine, "monkey", "-v", r"Monkey (2\S*)")


# ---- Contestants ----

def test_emulated_contestant_uses_the_known_configuration(tmp_path):
    machine = emulator.MACHINES["arm64"]
    each = arm.emulated("monkey", machine, "/somewhere/monkey", "2.0.0", "built here", "/plugin.so", tmp_path / "counter")
    (tmp_path / "www").mkdir()
    prepared = each.prepare(contestant.Setup(tmp_path, tmp_path / "www", 8080))
    at = prepared.command.index("-plugin")
    assert prepared.command[at + 1:] == [f"/plugin.so,counter={tmp_path}/counter", "-L", "/usr/aarch64-linux-gnu",
                                         "/somewhere/monkey", "-c", f"{tmp_path}/monkey.conf"]
    assert "qemu-aarch64" in prepared.command[0]
    assert each.yardstick, "a report must not let anybody win by numbers of an emulation"
    assert "arm64" in each.can() and "tls" not in each.can() and "dynamic" not in each.can()
    assert "Listen               127.0.0.1:8080" in prepared.configuration["monkey.conf"]


# ---- With the emulator ----

@pytest.fixture
def folder():
    """A folder that all users can read, unlike pytest's folders: a server started as root switches to another user."""
    with emulator.scratch() as made:
        yield made


@pytest.mark.parametrize("name", emulator.MACHINES)
def test_monkey_serves_files_under_emulation(name, folder):
    machine = machine_here(name)
    program = emulator.PROJECT / "build" / name / "monkey"
    if not program.exists():
        pytest.skip(f"{program} is not built: cmake --preset {name} && cmake --build --preset {name}")
    version = emulator.said(machine, program, "-v", r"Monkey (2\S*)")
    each = arm.emulated("monkey", machine, program, version, "built here")
    served, own = material.make(folder / "served", tree=0, site=False, tls=False), folder / "own"
    own.mkdir()
    with each.prepare(contestant.Setup(own, served.root, contestant.free_port(), file="1400.html")).start() as running:
        port = running.prepared.setup.port
        for path in ("100.html", "1400.html", "200k.bin", "10m.bin"):
            assert get(port, f"/{path}") == (200, (served.root / path).read_bytes())
        assert get(port, "/none")[0] == 404
        assert get(port, "/10m.bin", Range="bytes=9999990-")[1] == (served.root / "10m.bin").read_bytes()[-10:]
        running.process.send_signal(signal.SIGTERM)
        assert running.process.wait(30) == 0


def get(port, path, **fields):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request("GET", path, headers=fields)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


@pytest.mark.parametrize("name", emulator.MACHINES)
def test_plugin_counts_instructions_reproducibly(name, tmp_path):
    """Two identical runs execute the same number of instructions; a run whose loop has more iterations executes more."""
    machine = machine_here(name)
    source, program = tmp_path / "loop.c", tmp_path / "loop"
    source.write_text("int main(int n, char **v) { (void)v; for (volatile int i = 0; i < n * 100000; i++); return 0; }\n")
    subprocess.run([machine.compiler, "-O1", "-static", "-o", program, source], check=True, timeout=60)
    plugin, why = emulator.counting_plugin(machine, program, tmp_path)
    if not plugin:
        pytest.skip(f"instructions cannot be counted: {why}")
    counts = []
    for number, arguments in enumerate((["a"], ["a"], ["a", "b"])):
        counter = tmp_path / f"counter{number}"
        subprocess.run([*machine.command(plugin, counter), program, *arguments], check=True, timeout=60)
        counts.append(emulator.counted(counter))
    assert abs(counts[0] - counts[1]) < 2000  # libc reads the environment, so the counts differ slightly
    assert 300_000 < counts[2] - counts[0] < 2_000_000
