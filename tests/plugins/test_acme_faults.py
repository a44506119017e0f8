# SPDX-License-Identifier: Apache-2.0
"""The acme plugin and failures: invalid names, damaged files, unreachable CAs, killed processes."""
import json
import os
import re
import signal
import time

import pytest

from acme import MARKS, NEW, helpers, slow, state, wait_for, world  # noqa: F401 (fixtures)
from certificates import make_authority

pytestmark = MARKS


# ---- Failures ----


def test_acme_name_of_another_server_fails_with_backoff(world, state):
    """Pebble tries to validate the name at a port without a listener."""
    world.start_pebble()
    world.pebble.settings["httpPort"] = 1
    world.pebble.stop()
    world.pebble.start()
    server = world.start()
    output = server.err.wait_for(r"\[error\] \d+: acme: www.example.test: the authority could not verify www.example.test by "
                               r"http-01 on port 80 \(invalid\): (.*); the next attempt is in (\d+) s", count=3)
    assert "connection" in output[1]
    waits = [int(s) for s in re.findall(r"the next attempt is in (\d+) s", server.log)]
    assert waits[:3] == [1, 2, 4] or (1 <= waits[0] <= 2 and 2 <= waits[1] <= 3 and 4 <= waits[2] <= 5)
    server.stop()
    before = state.failure("www.example.test")
    assert before["failures"] >= 3 and "connection" in before["why"]
    # The backoff continues after a restart.
    server = world.start()
    output = server.err.wait_for(r"the next attempt is in (\d+) s")
    assert int(output[1]) >= 8
    assert state.failure("www.example.test")["failures"] == before["failures"] + 1
    server.stop()
    # A new configuration is tried immediately.
    server = world.start(names="other.example.test www.example.test")
    assert int(server.err.wait_for(r"the next attempt is in (\d+) s")[1]) <= 2
    assert not list((state / "http-01").iterdir())


@pytest.mark.parametrize("name, subject", [("www.example.test", "www.example.test: "), ("_account", "")])
def test_acme_delay_after_a_failure_is_logged_at_each_start(world, state, name, subject):
    world.start_pebble()
    if name == "_account":
        world.pebble.stop()
    else:
        world.pebble.settings["httpPort"] = 1
        world.pebble.stop()
        world.pebble.start()
    server = world.start()
    server.err.wait_for(r"the next attempt is in \d+ s")
    server.stop()
    note = state / f"failures/{name}.json"
    content = json.loads(note.read_text())
    note.write_text(json.dumps({**content, "until": content["until"] + 3600}))
    server = world.start()
    server.err.wait_for(rf"\[warn\] \d+: acme: {subject}the last attempt failed, and another one follows in 3\d\d\d s; "
                        rf"to try now, remove failures/{name}.json in the StateFolder, and reload")


def test_acme_delay_is_logged_in_the_first_run_only(world, state):
    """Each name that fails has runs of its own, which must not repeat the messages about all others."""
    names = ["a.blocked.test", "b.blocked.test"]
    server = world.start(names=" ".join(names[:1]), blocked=["blocked.test"],
                         sections=f"[HOST]\n    ServerName {names[1]}\n    DocumentRoot site\n")
    for name in names:
        server.err.wait_for(rf"{name}: .*the next attempt is in \d+ s", count=3)
    assert "the last attempt failed" not in server.err.text


def test_acme_failing_name_does_not_delay_others(world, state):
    server = world.start(names="bad.blocked.test", blocked=["blocked.test"],
                         sections="[HOST]\n    ServerName good.example.test\n    DocumentRoot site\n")
    server.err.wait_for(NEW.format("good.example.test"))
    assert re.search(r"\[error\] \d+: acme: bad.blocked.test: the authority rejected the request with status \d+: .*\(rejectedIdentifier\)", server.log)
    assert state.failure("good.example.test") is None


def test_acme_authority_without_listener_is_retried(world, state):
    world.start_pebble()
    world.pebble.stop()
    server = world.start()
    server.err.wait_for(r"\[error\] \d+: acme: cannot reach https://\S+/dir: .*; the next attempt is in (\d+) s")
    world.pebble.start()
    server.err.wait_for(NEW.format("www.example.test"))
    wait_for(lambda: state.failure("_account") is None)


def test_acme_untrusted_authority_is_refused(world, tmp_path, state):
    world.start_pebble()
    world.pebble.authority = make_authority(tmp_path / "other").file
    world.start().err.wait_for(r"cannot reach \S+: .*certificate")
    assert not (state / "account.json").exists()


@pytest.mark.parametrize("content", [b"", b"-----BEGIN PRIVATE KEY-----\nnonsense\n", b"\0" * 4096])
def test_acme_damaged_account_key_is_kept(world, state, content):
    state.path.mkdir()
    (state / "account.key").write_bytes(content)
    server = world.start()
    server.err.wait_for(r"\[error\] \d+: acme: account.key is damaged: .*to create a new account")
    assert (state / "account.key").read_bytes() == content
    (state / "account.key").unlink()
    server.err.wait_for(NEW.format("www.example.test"))


def test_acme_other_damaged_files_are_replaced(world, state):
    world.start().err.wait_for(NEW.format("www.example.test"))
    whole = state.pem("www.example.test").read_text()
    other = whole[whole.index("-----BEGIN PRIVATE"):]
    pieces = whole.split("-----END CERTIFICATE-----")
    for content in (b"", b"\xff\xfe nonsense", whole[:len(whole) // 2].encode(), other.encode(),
                    (pieces[0][:-40] + "-----END CERTIFICATE-----" + pieces[-1]).encode()):
        state.pem("www.example.test").write_bytes(content)
        for name in ("account.json", "orders/www.example.test.json", "orders/www.example.test.key",
                     "failures/www.example.test.json", "failures/_account.json"):
            (state / name).write_bytes(content)
        server = world.start()
        server.err.wait_for(r"acme: www.example.test: .*(damaged|no chain|another authority)")
        server.err.wait_for(NEW.format("www.example.test"))
        wait_for(lambda: not helpers(server))
        state.check("www.example.test")


def test_acme_mismatched_key_is_replaced(world, state):
    world.start().err.wait_for(NEW.format("www.example.test"))
    theirs = state.pem("www.example.test").read_text()
    state.pem("www.example.test").unlink()
    server = world.start()
    server.err.wait_for(NEW.format("www.example.test"))
    server.stop()
    ours = state.pem("www.example.test").read_text()
    at = "-----BEGIN PRIVATE"
    state.pem("www.example.test").write_text(ours[:ours.index(at)] + theirs[theirs.index(at):])
    server = world.start()
    server.err.wait_for("certificate and key do not match")
    server.err.wait_for(NEW.format("www.example.test"))
    state.check("www.example.test")


def test_acme_state_path_that_is_a_file_is_rejected(world, tmp_path):
    (tmp_path / "state").write_text("a file")
    server = world.start(expect_start=False)
    server.exit_code = 3
    server.wait()
    world.server = None
    assert re.search(r"monkey.conf:\d+:\d+: error: \S+/state is not a folder", server.log)


# ---- The helper process ----


def test_acme_helper_exits_when_idle(world):
    server = world.start()
    server.err.wait_for(NEW.format("www.example.test"))
    wait_for(lambda: not helpers(server))


def test_acme_helper_that_is_killed_resumes_its_order(slow, state):
    server = slow.start()
    wait_for(lambda: list((state / "http-01").iterdir()) if (state / "http-01").exists() else None)
    (pid,) = helpers(server)
    os.kill(pid, signal.SIGKILL)
    server.err.wait_for(r"\[error\] \d+: acme: \S+/monkey-acme was killed by signal 9 \(Killed\)")
    server.err.wait_for(NEW.format("www.example.test"), seconds=90)
    assert slow.pebble.count("order-plz") == 1, "it resumes the order"


def test_acme_helper_resumes_after_worker_is_killed(slow, state):
    server = slow.start(workers=2)
    server.allow("worker")
    wait_for(lambda: list((state / "http-01").iterdir()) if (state / "http-01").exists() else None)
    (pid,) = helpers(server)
    for worker in server.workers:
        os.kill(worker, signal.SIGKILL)
    wait_for(lambda: pid not in helpers(server) and not os.path.exists(f"/proc/{pid}"))
    server.err.wait_for(NEW.format("www.example.test"), seconds=90)
    assert slow.pebble.count("order-plz") == 1, server.log + slow.pebble.out.text


def test_acme_helper_ends_with_the_server(slow, state):
    server = slow.start()
    (pid,) = wait_for(lambda: helpers(server))
    server.stop()
    wait_for(lambda: not os.path.exists(f"/proc/{pid}"))


def test_acme_reloads_do_not_restart_order(slow, state):
    server = slow.start()
    wait_for(lambda: (state / "orders/www.example.test.json").exists())
    for i in range(3):
        wait_for(lambda: helpers(server))
        server.tell(signal.SIGHUP)
        server.err.wait_for("the new configuration serves", count=i + 1)
    server.err.wait_for(NEW.format("www.example.test"), seconds=90)
    assert slow.pebble.count("order-plz") == 1, server.log + slow.pebble.out.text


def test_acme_workers_of_old_configuration_request_nothing(world):
    world.start_pebble()
    world.pebble.settings["httpPort"] = 1
    world.pebble.stop()
    world.pebble.start()
    server = world.start()
    (old,) = server.workers
    server.err.wait_for(rf"{old}: acme: www.example.test: .*next attempt")
    with server.connect() as c:
        c.send(b"GET / HTTP/1.1\r\n")  # an incomplete request head keeps the old worker alive
        server.config.write_text(server.config.read_text().replace("www.example.test", "other.example.test"))
        server.tell(signal.SIGHUP)
        server.err.wait_for("the new configuration serves")
        server.err.wait_for(r"acme: other.example.test: .*next attempt", count=4)
        assert old in server.workers
    since = server.log[server.log.index("the new configuration serves"):]
    assert len(re.findall(rf"{old}: acme: ", since)) <= 1, "a running attempt may finish"


def test_acme_servers_with_one_state_folder_share_the_order(slow, monkey, tmp_path, state):
    first = slow.start()
    wait_for(lambda: helpers(first))
    text = first.config.read_text().replace(f":{slow.http}\n", ":0\n")
    second = monkey(config=text.replace("DocumentRoot site", f"DocumentRoot {tmp_path}/site"))
    first.err.wait_for(NEW.format("www.example.test"), seconds=90)
    wait_for(lambda: not helpers(second), seconds=90)
    assert slow.pebble.count("order-plz") == 1 and "new certificate" not in second.log
