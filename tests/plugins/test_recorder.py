# SPDX-License-Identifier: Apache-2.0
"""The plugin recorder, and `monkey recorder`, which prints its recording."""
import json
import os
import re
import signal
import struct
import subprocess
import threading

import pytest

from backend import Backend, response
from client import Closed
from monkey import ENVIRONMENT, PROGRAM, ROOT, SECONDS
from proc import wait_until
from recording import HEADER, OPEN, RECORD, SLOT, packed, recording
from sockets import reset


class Recorded:
    """A server that records, and its recording."""

    def __init__(self, monkey, folder, server="", keys="", **how):
        self.file, self.monkey = folder / "recording", monkey
        self.how = dict(plugins=["recorder", *how.pop("plugins", [])], top=f"[RECORDER]\n    File {self.file}\n{keys}{how.pop('top', '')}",
                        server=f"KeepAliveRequests unlimited\n{server}", **how)
        self.server = monkey(**self.how)

    def run(self, *options, code=0, file=None):
        done = subprocess.run([PROGRAM, "recorder", *options, file or self.file], capture_output=True, text=True,
                              env=os.environ | ENVIRONMENT | {"TZ": "UTC"}, timeout=SECONDS, check=False)
        assert done.returncode == code, done.stderr
        return done.stdout if code == 0 else done.stderr

    def requests(self, *options):
        return [json.loads(line) for line in self.run("--json", *options).splitlines()]

    def paths(self, *options):
        return [each["path"] for each in self.requests(*options)]

    def wait_for(self, n, *options):
        return wait_until(lambda: len(found := self.requests(*options)) >= n and found, f"{n} requests")


@pytest.fixture
def record(monkey, tmp_path, site):
    site.add("a.txt", "hello")
    return lambda server="", keys="", **how: Recorded(monkey, tmp_path, server, "".join(f"    {key}\n" for key in keys.split("; ") if key), **how)


ROUTES = "[ROUTES]\n    /bad status 500\n    /* static\n"


@pytest.mark.parametrize("protocol", ["h1", "h2-tls"], indirect=True)
def test_request_is_recorded_with_its_result(record, protocol):
    r = record(sections=ROUTES)
    assert r.server.get("/a.txt?token=secret", host="www.example.org").status == 200
    assert r.server.get("/none", method="HEAD").status == 404
    first, second = r.wait_for(2)
    assert (first["method"], first["host"], first["path"], first["status"], first["sent"]) == ("GET", "www.example.org", "/a.txt", 200, 5)
    assert first["client"].startswith("127.0.0.1") and first["state"] == "ended" and first["outcome"] == "ok" and first["route"] == "/*"
    assert first["protocol"] == ("HTTP/2" if protocol == "h2-tls" else "HTTP/1.1") and first["pid"] in r.server.workers
    assert first.get("tls", False) == (protocol == "h2-tls")
    assert (second["method"], second["status"], second["sent"]) == ("HEAD", 404, 0)
    assert "secret" not in r.run()


@pytest.mark.parametrize("protocol", ["h1", "h1-tls", "h2-tls"], indirect=True)
def test_client_that_leaves_after_the_response_has_not_aborted(record):
    r = record(plugins=["logger", "metrics"], sections="[LOGGER]\n    AccessLog access.log\n    Format %X\n[ROUTES]\n    /metrics metrics\n    /* static\n")
    for i in range(40):
        with r.server.connect() as c:
            assert c.get(f"/a.txt?{i}").body == b"hello"
            reset(c.sock)
    assert {(e["status"], e["outcome"]) for e in r.wait_for(40)} == {(200, "ok")} and r.requests("--failed") == []
    log = r.server.folder / "access.log"
    assert wait_until(lambda: len(lines := log.read_text().split()) >= 40 and lines, "the access log") == ["ok"] * 40
    counted = re.findall(r'monkey_http_outcomes_total{.*outcome="(\w+)"} [1-9]', r.server.get("/metrics").text)
    assert set(counted) == {"ok"}


@pytest.mark.parametrize("routes", [ROUTES, "[ROUTES]\n    /* status 200\n"])
def test_texts_of_all_lengths_are_recorded(record, routes):
    r = record(sections=routes)
    paths = ["/" + ("abcdefghij" * 20)[:n] for n in (0, 1, 2, 3, 4, 7, 8, 14, 15, 16, 17, 30, 31, 32, 148, 149, 150, 199)]
    hosts = [("h" + "0123456789" * 7)[:n] for n in (1, 2, 3, 4, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 70, 12)]
    for path, host in zip(paths, hosts):
        r.server.get(path, host=host)
    found = r.wait_for(len(paths))
    assert [e["path"] for e in found] == [path[:150] for path in paths] and [e["host"] for e in found] == [host[:64] for host in hosts]
    assert [e.get("path_cut", False) for e in found] == [len(path) > 150 for path in paths] and {e["route"] for e in found} == {"/*"}


def test_access_log_is_written_in_addition(record):
    r = record(server="AccessLog access.log\n")
    r.server.get("/a.txt")
    assert r.wait_for(1)[0]["path"] == "/a.txt"
    assert "/a.txt" in wait_until(lambda: (r.server.folder / "access.log").read_text(), "the access log")


def test_query_is_recorded_on_demand(record):
    r = record(keys="Query on")
    r.server.get("/a.txt?token=secret")
    assert r.wait_for(1)[0]["path"] == "/a.txt?token=secret"


def test_recording_belongs_to_its_owner(record):
    r = record()
    assert r.file.stat().st_mode & 0o777 == 0o600


def test_options_select_requests(record):
    r = record(sections=ROUTES)
    for target, host in (("/a.txt", "one.example"), ("/none", "one.example"), ("/bad", "two.example"), ("/a.txt?x", "two.example")):
        r.server.get(target, host=host)
    r.wait_for(4)
    assert r.paths("--status", "5xx") == r.paths("-s", "500") == ["/bad"] and r.paths("--failed") == ["/bad"], r.requests("--failed")
    assert r.paths("--status", "404-500") == ["/none", "/bad"]
    assert r.paths("--host", "one.*") == ["/a.txt", "/none"] and r.paths("--path", "/a*") == ["/a.txt", "/a.txt"]
    assert len(r.paths("--client", "127.0.0.0/8")) == 4 and r.paths("--client", "192.0.2.0/24") == []
    assert r.paths("--last", "1h", "-n", "1") == ["/a.txt"] and r.paths("--slower", "1h") == [] and r.paths("--open") == []
    assert len(r.run().splitlines()) == 4


def test_order_of_requests_survives_the_resolution_of_the_clock(record, tmp_path):
    """The clock of a worker has a resolution of some milliseconds, so that a request may seem to end before an earlier one ends."""
    record()
    now = 1_796_000_000_000
    first = [packed(b"/1", began_ms=now, duration_us=4000, serial=1), packed(b"/2", began_ms=now, serial=2), packed(b"/3", began_ms=now + 3, serial=3)]
    second = [packed(b"/other", began_ms=now + 2, serial=9), packed(b"/set-back", began_ms=now - 3_600_000, serial=10)]
    (tmp_path / "order").write_bytes(recording(first[::-1], second))
    done = subprocess.run([PROGRAM, "recorder", "--json", tmp_path / "order"], capture_output=True, text=True, env=os.environ | ENVIRONMENT, timeout=SECONDS, check=True)
    assert [json.loads(line)["path"] for line in done.stdout.splitlines()] == ["/set-back", "/other", "/1", "/2", "/3"]


@pytest.mark.parametrize("options, error", [
    (["--status", "6xx"], "invalid value of --status: 6xx"), (["--last", "5 minutes"], "invalid value of --last"), (["--last=99999999999999999d"], "invalid value"),
    (["--client", "nowhere"], "invalid value of --client"), (["--slower"], "invalid value of --slower"), (["--bad"], "unknown option: --bad"), (["x"], "more than one FILE"),
    (["--json=1"], "unknown option: --json=1"), (["-n", "0"], "invalid value of --limit: 0")])
def test_wrong_usage_is_reported(record, options, error):
    assert error in record().run(*options, code=2)


@pytest.mark.parametrize("option", ["-h", "--help"])
def test_help_option_prints_usage(record, option):
    assert record().run(option).startswith("usage: monkey recorder [OPTION...] [FILE]")


def test_failed_and_slow_requests_outlive_the_others(record):
    with Backend(lambda _: response("slow")) as backend:
        r = record(keys="Requests 16; Failures 16; Slow 10ms", plugins=["proxy"],
                   sections=f"[ROUTES]\n    /bad status 500\n    /slow proxy http://{backend.address}\n    /* static\n")
        backend.reply = lambda _: threading.Event().wait(0.05) or response("slow")
        assert r.server.get("/bad").status == 500 and r.server.get("/slow").status == 200
        with r.server.connect() as c:
            for i in range(100):
                c.get(f"/a.txt?{i}")
        r.wait_for(18)
        found = r.paths()
        assert found.count("/bad") == found.count("/slow") == 1 and found.count("/a.txt") == 16
        with r.server.connect() as c:
            for i in range(40):
                c.get("/bad")
        assert wait_until(lambda: r.paths().count("/slow") == 0, "the ring of failures to be overwritten") and r.paths().count("/bad") == 16


def test_request_to_backend_has_attempt_and_stage_times(record):
    with Backend(lambda _: threading.Event().wait(0.02) or response("late")) as backend:
        r = record(plugins=["proxy"], sections=f"[ROUTES]\n    /* proxy http://{backend.address}\n")
        r.server.get("/x")
        (found,) = r.wait_for(1)
    assert found["upstream"] == backend.address and found["attempts"] == 1
    assert 20_000 <= found["first_byte_us"] <= found["duration_us"] and found["connect_us"] <= found["first_byte_us"]
    assert f"upstream={backend.address}" in r.run("--upstream", "127.0.0.1:*")


def test_request_in_flight_is_open_and_lost_after_a_crash(record):
    release = threading.Event()
    with Backend(lambda _: release.wait(SECONDS) and response("late")) as backend:
        r = record(plugins=["proxy"], keys="Requests 16; Failures 16", sections=f"[ROUTES]\n    /wait proxy http://{backend.address}\n    /* static\n")
        with r.server.connect() as c:
            c.ask("/wait")
            assert r.wait_for(1, "--open")[0]["state"] == "open"
            with r.server.connect() as other:
                for _ in range(50):
                    other.get("/a.txt")
            assert r.paths("--open") == ["/wait"], "the ring is full, but the request has not ended"
            os.kill(r.server.workers[0], signal.SIGKILL)
            assert wait_until(lambda: [e for e in r.requests("--open") if e["state"] == "lost"], "the lost request")[0]["path"] == "/wait"
            assert r.paths("--failed") == ["/wait"]
            with pytest.raises((Closed, ConnectionError)):
                c.read()
        release.set()
        r.server.allow("was killed by signal 9")
        wait_until(lambda: r.server.get("/a.txt").status == 200, "the next worker")
        assert r.wait_for(1, "--open")[0]["state"] == "lost"


def test_recording_outlives_the_death_of_all_processes(record):
    r = record(workers=2)
    r.server.get("/a.txt")
    r.wait_for(1)
    workers = r.server.workers
    os.kill(r.server.process.pid, signal.SIGKILL)
    for worker in workers:
        os.kill(worker, signal.SIGKILL)
    r.server.exit_code = -signal.SIGKILL
    r.server.process.wait(SECONDS)
    assert r.paths() == ["/a.txt"]
    again = r.monkey(**r.how)
    again.get("/none")
    assert sorted(e["path"] for e in r.wait_for(2)) == ["/a.txt", "/none"]


@pytest.mark.parametrize("where", ["version", "check"])
def test_record_that_was_being_written_is_dropped_by_the_next_worker(record, where):
    """The process died between the two versions of a record in flight: its texts may be those of two requests."""
    release = threading.Event()
    with Backend(lambda _: release.wait(SECONDS) and response("late")) as backend:
        r = record(plugins=["proxy"], sections=f"[ROUTES]\n    /wait proxy http://{backend.address}\n    /* static\n")
        with r.server.connect() as c:
            c.ask("/wait")
            r.wait_for(1, "--open")
            for pid in (r.server.process.pid, *r.server.workers):
                os.kill(pid, signal.SIGKILL)
        release.set()
    r.server.exit_code = -signal.SIGKILL
    r.server.process.wait(SECONDS)
    data = bytearray(r.file.read_bytes())
    at = next(i for i in range(HEADER + SLOT, len(data), RECORD) if b"/wait" in data[i:i + RECORD])
    at += 0 if where == "version" else RECORD - 8
    (version,) = struct.unpack_from("<Q", data, at)
    struct.pack_into("<Q", data, at, version - 1)
    r.file.write_bytes(data)
    again = r.monkey(**r.how)
    again.get("/a.txt")
    assert [e["path"] for e in r.wait_for(1)] == ["/a.txt"]


def test_reload_and_workers_keep_the_recording(record):
    r = record(workers=4)
    for i in range(3):
        for _ in range(10):
            r.server.get(f"/a.txt?{i}")
        before = r.server.workers
        r.server.tell(signal.SIGHUP)
        wait_until(lambda before=before: not set(r.server.workers) & set(before), "new workers")
    assert len(r.wait_for(30)) == 30


def test_worker_without_a_slot_warns_and_serves(record):
    r = record(workers=2, keys="Processes 1")
    r.server.allow("1 processes record already|so this one does not")
    for _ in range(20):
        assert r.server.get("/a.txt").status == 200
    wait_until(lambda: "see `Processes`" in r.server.log, "the warning")


def test_follow_prints_requests_when_they_end(record):
    r = record()
    r.server.get("/none")
    r.wait_for(1)
    with subprocess.Popen([PROGRAM, "recorder", "--follow", "-s", "200", r.file], stdout=subprocess.PIPE, text=True, env=os.environ | ENVIRONMENT) as client:
        r.server.get("/none")
        r.server.get("/a.txt")
        line = client.stdout.readline()
        client.terminate()
    assert " 200 GET localhost/a.txt " in line


def test_control_characters_are_escaped(record):
    r = record()
    r.server.get("/%1b%5b2J%0a")
    r.wait_for(1)
    text = r.run()
    assert "\x1b" not in text and len(text.splitlines()) == 1


def test_aborted_requests_are_recorded(record):
    """Small rings and many aborted requests: records of requests in flight are moved and overwritten."""
    release = threading.Event()
    with Backend(lambda _: release.wait(SECONDS) and response("late")) as backend:
        r = record(keys="Requests 16; Failures 16", plugins=["proxy"], sections=f"[ROUTES]\n    /wait proxy http://{backend.address}\n    /* static\n")
        clients = [r.server.connect() for _ in range(60)]
        for c in clients:
            c.ask("/wait")
        with r.server.connect() as c:
            for _ in range(40):
                c.get("/a.txt")
        for c in clients:
            c.close()
        wait_until(lambda: [e for e in r.requests() if e.get("outcome", "ok") != "ok"], "aborted requests")
        with r.server.connect() as c:
            for _ in range(40):
                assert c.get("/a.txt").status == 200
        release.set()


# ---- Damaged files ----

@pytest.mark.parametrize("content, error", [(b"", "it is not a recording"), (b"x" * 100, "it is not a recording"),
                                            (b"monkey recorder\n" + struct.pack("<5I", 9, 512, 1, 16, 16), "another version"),
                                            (b"monkey recorder\n" + struct.pack("<5I", 2, 512, 1 << 20, 16, 16), "header is damaged")])
def test_file_that_is_no_recording_is_reported(record, tmp_path, content, error):
    (tmp_path / "other").write_bytes(content)
    assert error in record().run(file=tmp_path / "other", code=1)


def test_missing_file_is_reported(record, tmp_path):
    assert "No such file" in record().run(file=tmp_path / "none", code=1)


def test_damaged_and_cut_recordings_are_read_as_far_as_possible(record, tmp_path):
    r = record(keys="Requests 16; Failures 16")
    for _ in range(4):
        r.server.get("/a.txt")
    r.wait_for(4)
    data = bytearray(r.file.read_bytes())
    at = next(i for i in range(HEADER + SLOT, len(data), RECORD) if data[i])
    data[at + RECORD - 8] ^= 1  # the check of the first record
    (tmp_path / "damaged").write_bytes(data)
    (tmp_path / "cut").write_bytes(data[:at + 2 * RECORD + 100])
    for name, n, message in (("damaged", 3, "1 incomplete records were skipped"), ("cut", 1, "records are missing")):
        done = subprocess.run([PROGRAM, "recorder", tmp_path / name], capture_output=True, text=True, env=os.environ | ENVIRONMENT, timeout=SECONDS, check=False)
        assert done.returncode == 0 and len(done.stdout.splitlines()) == n and message in done.stderr


@pytest.mark.parametrize("prepare, error", [
    (lambda path: path.write_text("my thesis"), "it exists and is not a recording"), (lambda path: path.mkdir(), "Is a directory"),
    (lambda path: os.mkfifo(path), "it is not a regular file"), (lambda path: path.symlink_to("/etc/hostname"), "it is a symbolic link")])
def test_server_never_changes_another_file(monkey, tmp_path, prepare, error):
    path = tmp_path / "recording"
    prepare(path)
    path.is_symlink() or path.chmod(0o644)
    mode = path.stat().st_mode
    server = monkey(plugins=["recorder"], top=f"[RECORDER]\n    File {path}\n", expect_start=False)
    server.exit_code = 1
    server.wait()
    assert re.search(rf"monkey\.conf:\d+:\d+: error: .*{error}", server.err.text)
    assert path.is_dir() or path.is_symlink() or not path.is_file() or path.read_text() == "my thesis"
    assert path.stat().st_mode == mode


def test_recording_of_another_size_is_kept_under_another_name(record, monkey, tmp_path):
    r = record(keys="Requests 16")
    r.server.get("/a.txt")
    r.wait_for(1)
    r.server.stop()
    again = Recorded(monkey, tmp_path, keys="    Requests 32\n")
    again.server.get("/none")
    assert sorted(e["path"] for e in again.wait_for(2)) == ["/a.txt", "/none"], "monkey recorder reads both files"



def change(r, *replacements):
    config = r.server.folder / "monkey.conf"
    text = config.read_text()
    for old, new in replacements:
        assert old in text
        text = text.replace(old, new)
    (r.server.folder / "new").write_text(text)
    (r.server.folder / "new").rename(config)


def reload(r):
    before = r.server.workers
    r.server.tell(signal.SIGHUP)
    wait_until(lambda: r.server.workers and not set(r.server.workers) & set(before), "new workers")


def test_reload_with_another_size_keeps_all_requests(record):
    r = record(keys="Requests 16")
    for old, new in ((16, 32), (32, 16), (16, 32)):
        r.server.get(f"/a.txt?{old}")
        change(r, (f"Requests {old}", f"Requests {new}"))
        reload(r)
    r.server.get("/none")
    assert len(r.wait_for(4)) == 4, "a recording of the same size is used again"


@pytest.mark.parametrize("phase", ["worker", "later"])
def test_rejected_reload_keeps_the_recording(record, phase):
    r = record(keys="Requests 16", plugins=[ROOT / "build/dev/tests/plugins/monkey-fails_in_phase.so"], top="[FAIL]\n    What nothing\n")
    r.server.get("/a.txt")
    r.wait_for(1)
    number = r.file.stat().st_ino
    r.server.allow("exited unexpectedly|workers cannot serve|the plugin .?fails-in-phase|worker 0|keeping the old one")
    for n in (32, 48):
        change(r, ("What nothing", f"What {phase}"), ("Requests 16", f"Requests {n}"))
        mark = len(r.server.err.text)
        r.server.tell(signal.SIGHUP)
        wait_until(lambda mark=mark: "Invalid cross-device link" in r.server.err.text[mark:], "the reload to be rejected")
        wait_until(lambda: r.file.stat().st_ino == number, "the recording to have its name again")
        change(r, (f"What {phase}", "What nothing"), (f"Requests {n}", "Requests 16"))
    r.server.get("/none")
    assert r.wait_for(2) and sorted(r.paths()) == ["/a.txt", "/none"]
    assert sorted(each.name for each in r.file.parent.glob("recording*")) == ["recording"]


def test_recording_in_use_is_not_replaced(record):
    """Workers that drain still write to FILE.1."""
    release = threading.Event()
    with Backend(lambda _: release.wait(SECONDS) and response("late")) as backend:
        r = record(keys="Requests 16", plugins=["proxy"], sections=f"[ROUTES]\n    /wait proxy http://{backend.address}\n    /* static\n")
        with r.server.connect() as c:
            c.ask("/wait")
            r.wait_for(1, "--open")
            change(r, ("Requests 16", "Requests 32"))
            r.server.tell(signal.SIGHUP)
            r.server.err.wait_for("the new configuration serves")  # the old worker still has a request
            change(r, ("Requests 32", "Requests 48"))
            r.server.allow("so that it cannot be replaced")
            r.server.tell(signal.SIGHUP)
            r.server.err.wait_for("workers still write to the recording before it")
            assert [e["path"] for e in r.requests("--open")] == ["/wait"]
            release.set()
            assert c.read().status == 200


def test_follow_survives_the_absence_of_the_file(record, tmp_path):
    r = record()
    r.server.get("/a.txt")
    r.wait_for(1)
    with subprocess.Popen([PROGRAM, "recorder", "--follow", r.file], stdout=subprocess.PIPE, text=True, env=os.environ | ENVIRONMENT) as client:
        assert "/a.txt" in client.stdout.readline()
        r.file.rename(tmp_path / "other")
        threading.Event().wait(0.6)
        (tmp_path / "other").rename(r.file)
        r.server.get("/none")
        assert "/none" in client.stdout.readline()
        client.terminate()


def test_process_id_of_the_owner_is_not_trusted(record, tmp_path):
    """The owner of the slot has exited, and another process has its ID."""
    record()
    data = bytearray(recording([packed(b"/gone", state=OPEN)]))
    struct.pack_into("<Q", data, HEADER, 1)  # packed() records the same ID
    (tmp_path / "stale").write_bytes(data)
    done = subprocess.run([PROGRAM, "recorder", "--json", tmp_path / "stale"], capture_output=True, text=True, env=os.environ | ENVIRONMENT, timeout=SECONDS, check=True)
    assert json.loads(done.stdout)["state"] == "lost"


def test_owner_in_another_pid_namespace_is_seen(record):
    """The client sees a running request, although the process ID of the worker means nothing in its namespace."""
    release = threading.Event()
    with Backend(lambda _: release.wait(SECONDS) and response("late")) as backend:
        r = record(plugins=["proxy"], sections=f"[ROUTES]\n    /wait proxy http://{backend.address}\n    /* static\n")
        with r.server.connect() as c:
            c.ask("/wait")
            r.wait_for(1, "--open")
            done = subprocess.run(["unshare", "--user", "--map-root-user", "--pid", "--fork", PROGRAM, "recorder", "--json", "--open", r.file],
                                  capture_output=True, text=True, env=os.environ | ENVIRONMENT, timeout=SECONDS, check=False)
            if done.returncode and "unshare" in done.stderr:
                pytest.skip("namespaces are not permitted")
            assert json.loads(done.stdout)["state"] == "open"
            release.set()
            assert c.read().status == 200
