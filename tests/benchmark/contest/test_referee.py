# SPDX-License-Identifier: Apache-2.0
"""The referee with faulty contestants: wrong responses exclude one, a slow one loses, and no process is left running."""
import contextlib
import copy
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from contest import response_check, environment, record, referee, running, statistics
from contest.referee import Referee, shuffled
from contest.user_error import UserError
from fakes import add_contestant, case, hold, order, plan
from proc import wait_until

pytestmark = pytest.mark.timeout(120)


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "contestants"


def excluded(made):
    return {each.contestant: each.why for each in made.disqualified}


# ---- Winners ----

def test_slow_server_loses_to_a_fast_one(tmp_path, folder):
    add_contestant(folder, "fast")
    add_contestant(folder, "slow", "burn=3000")
    made = hold(tmp_path, (case(), plan(20, rounds=3)))
    assert not made.disqualified
    for metric in ("cpu_us", "p50_us"):
        fast, slow = (statistics.estimate(made.values("small", name, metric)) for name in ("fast", "slow"))
        assert statistics.better(fast, slow, more=False), f"{metric}: {fast} {slow}"
        assert not statistics.better(slow, fast, more=False)
    assert statistics.estimate(made.values("small", "slow", "cpu_us")).low >= 3000


def test_client_bottleneck_is_recorded(tmp_path, folder):
    """A second process keeps wrk's core busy: wrk alone would be the bottleneck only by chance."""
    add_contestant(folder, "fast")
    client = tmp_path / "bin" / "wrk"
    client.parent.mkdir()
    client.write_text(f"#!{sys.executable}\nimport subprocess, sys\n"
                      f"wrk = subprocess.Popen([{shutil.which('wrk')!r}, *sys.argv[1:]])\nwhile wrk.poll() is None: pass\n")
    client.chmod(0o755)
    made = hold(tmp_path, (case(), plan(1)), clients={"wrk": str(client)})
    (shot,) = made.shots
    if shot.noise > .02:
        pytest.skip("others used the machine, and were the bottleneck")
    assert shot.bottleneck == "client" and shot.metrics["client_busy"] > shot.metrics["server_busy"]


def test_bottleneck_of_wr_is_recorded(tmp_path, folder, monkeypatch):
    add_contestant(folder, "fast")
    document = copy.deepcopy(DOCUMENT)
    document["steps"][0]["shots"][0]["bottleneck"] = "client"
    fake_shots(monkeypatch, document)
    assert [shot.bottleneck for shot in hold(tmp_path, (case(), plan())).shots] == ["client"]


# ---- Backends ----

def test_each_contestant_has_its_own_backend(tmp_path, folder):
    """The fake proxy sends a request to the origin at startup, and exits if the request fails."""
    script = ("import socket, sys; sock = socket.create_connection(('127.0.0.1', int(sys.argv[2]))); "
            "sock.sendall(b'GET / HTTP/1.0\\r\\n\\r\\n'); assert sock.recv(15).startswith(b'HTTP/1.1 200'); "
            "import runpy; sys.argv = ['fake_server', sys.argv[1]]; runpy.run_path(%r, run_name='__main__')")
    fake = str(Path(__file__).parent / "fake_server.py")
    for name in ("one", "two"):
        add_contestant(folder, name, features=("files", "keepalive", "proxy"), command=["@program@", "-c", script % fake, "@port@", "@origin@"])
    add_contestant(folder, "other")
    made = hold(tmp_path, (case("proxy", features=("proxy",), backend="100.html", path="/origin/100.html"), plan()))
    assert not made.disqualified and {shot.contestant for shot in made.shots} == {"one", "two"}
    assert [each.contestant for each in made.absent_in] == ["other"]
    alone = len(made.environment["client_cores"]) > 1
    assert alone or "backends share their cores with the client" in " ".join(made.notes)
    assert made.verified["proxy"].keys() == {"one", "two"}


def test_case_without_its_backend_is_skipped(tmp_path, folder, monkeypatch):
    add_contestant(folder, "one", features=("files", "keepalive", "php"))
    monkeypatch.setattr(referee.backends, "lacks", lambda what: f"there is no {what}")
    made = hold(tmp_path, (case("php", features=("php",), backend="php"), plan()))
    assert made.notes[-1] == "The case php was skipped: there is no php." and not made.shots


@pytest.mark.parametrize("cores, client, backend", [([1], [1], [1]), ([1, 2, 3], [1, 2], [3])])
def test_backend_has_its_own_core_if_there_are_two(tmp_path, folder, cores, client, backend):
    add_contestant(folder, "one")
    proxy_case = case(backend="100.html")
    judge = Referee(order(tmp_path, [(proxy_case, plan())], client_cores=cores))
    assert judge._client_cores(proxy_case) == (client, backend)
    assert judge._client_cores(case()) == (cores, cores)


# ---- Exclusions ----

@pytest.mark.parametrize("how, message", [("content", "different content"), ("length", "101 bytes instead of 100"),
                                       ("status", "status 404")])
def test_one_wrong_response_in_a_hundred_disqualifies(tmp_path, folder, how, message):
    add_contestant(folder, "honest")
    add_contestant(folder, "wrong", "wrong=100", f"how={how}")
    made = hold(tmp_path, (case(), plan(verify=1)))  # long enough for hundreds of responses on a busy machine
    assert set(excluded(made)) == {"wrong"}
    assert message in excluded(made)["wrong"] and "under load" in excluded(made)["wrong"]
    assert {shot.contestant for shot in made.shots} == {"honest"}, "the run goes on with the others"
    assert made.contestants["wrong"].state == "present"


def test_wrong_response_only_under_load_disqualifies(tmp_path, folder):
    add_contestant(folder, "wrong", "wrong=50", "crowd=60")
    made = hold(tmp_path, (case(), plan(100)))
    assert "different content" in excluded(made)["wrong"]


def test_wrong_status_during_a_shot_disqualifies(tmp_path, folder, monkeypatch):
    monkeypatch.setattr(Referee, "_verify", lambda *_: None)
    add_contestant(folder, "wrong", "wrong=100", "how=status", "crowd=5")
    made = hold(tmp_path, (case(), plan(20)))
    assert "status" in excluded(made)["wrong"] and "at 20 connections" in excluded(made)["wrong"]
    assert not made.shots


def test_short_responses_during_a_shot_disqualify(tmp_path, folder, monkeypatch):
    monkeypatch.setattr(Referee, "_verify", lambda *_: None)
    monkeypatch.setattr(Referee, "_check", lambda *_: None)
    monkeypatch.setattr(Referee, "_lengths", lambda *_: [1000])
    add_contestant(folder, "short")
    made = hold(tmp_path, (case(), plan()))
    assert "the shortest response has 1000" in excluded(made)["short"]


def test_server_that_exits_is_disqualified_with_its_last_output(tmp_path, folder):
    add_contestant(folder, "mortal", "die=400")
    add_contestant(folder, "other")
    made = hold(tmp_path, (case(), plan(rounds=3, seconds=1)))
    assert set(excluded(made)) == {"mortal"}
    assert "the end of its output: fake: cannot go on like this" in excluded(made)["mortal"]
    assert len(made.values("small", "other", "rate")) == 3


def test_server_that_cannot_start_is_failed(tmp_path, folder):
    add_contestant(folder, "lame", command=["@program@", "-c", "import sys; sys.exit('fake: no legs')"])
    add_contestant(folder, "other")
    made = hold(tmp_path, (case(), plan()))
    lame = made.contestants["lame"]
    assert lame.state == "failed" and "fake: no legs" in lame.why
    assert {shot.contestant for shot in made.shots} == {"other"}


def test_referee_error_ends_the_case_of_one_contestant(tmp_path, folder, monkeypatch):
    fake_shots(monkeypatch, DOCUMENT)
    sleep = referee.Stage.sleep

    def fail(stage):
        if stage.name == "odd":
            raise OSError("no space left")
        sleep(stage)

    monkeypatch.setattr(referee.Stage, "sleep", fail)
    add_contestant(folder, "odd")
    add_contestant(folder, "other")
    made = hold(tmp_path, (case(), plan()))
    assert not made.disqualified and left_out(made) == {"odd": "the referee failed: no space left"}
    assert {shot.contestant for shot in made.shots} == {"other"}


def left_out(made):
    return {each.contestant: each.why for each in made.unmeasured}


def fail_for(monkeypatch, fails):
    """Makes a shot fail if `fails(number)` is true for its number."""
    fake_shots(monkeypatch, DOCUMENT)
    shots = []

    def run_wr(*_):
        shots.append(1)
        if fails(len(shots)):
            raise referee.shot.NoShot("wr: it crashed")
        return DOCUMENT

    monkeypatch.setattr(referee.shot, "run_wr", run_wr)
    return shots


def test_failed_client_is_retried(tmp_path, folder, monkeypatch):
    fail_for(monkeypatch, lambda number: number == 1)
    add_contestant(folder, "other")
    made = hold(tmp_path, (case(), plan()))
    assert not made.unmeasured and [shot.repeated for shot in made.shots] == [1]


def test_failed_client_disqualifies_no_contestant(tmp_path, folder, monkeypatch):
    fail_for(monkeypatch, lambda number: number > 2)
    for name in "ab":
        add_contestant(folder, name)
    made = hold(tmp_path, (case(), plan()))
    assert not made.disqualified and list(left_out(made).values()) == []
    made = hold(tmp_path, (case(), plan(rounds=2)))
    assert not made.disqualified and set(left_out(made).values()) == {"wr: it crashed at 20 connections"}


def test_case_without_measurable_contestants_ends_early(tmp_path, folder, monkeypatch):
    shots = fail_for(monkeypatch, lambda number: True)
    for name in "abcdef":
        add_contestant(folder, name)
    made = hold(tmp_path, (case(), plan(rounds=3)))
    assert not made.disqualified and set(left_out(made)) == set("abcdef") and len(shots) == 2 * referee.ALIKE
    assert any("was abandoned" in note and "it crashed" in note for note in made.notes)


def test_failed_client_of_the_verification_is_no_fault(tmp_path, folder, monkeypatch):
    monkeypatch.setattr(referee.response_check, "verify_with_wrk", lambda *_: response_check.Verdict("wrk crashed", ours=True))
    add_contestant(folder, "other")
    made = hold(tmp_path, (case(), plan()))
    assert not made.disqualified and left_out(made) == {"other": "wrk crashed"}


def test_run_continues_if_a_server_cannot_be_stopped(tmp_path, folder, monkeypatch):
    fake_shots(monkeypatch, DOCUMENT)
    stop, failed = referee.Stage.stop, []

    def fail(stage):
        stop(stage)
        if not failed:
            failed.append(stage)
            raise subprocess.TimeoutExpired("server", 5)

    monkeypatch.setattr(referee.Stage, "stop", fail)
    monkeypatch.setattr(Referee, "_check", lambda *_: None)
    add_contestant(folder, "other")
    made = hold(tmp_path, (case(), plan()), (case("second"), plan()))
    assert failed and [shot.case for shot in made.shots] == ["small", "second"] and made.ended and not made.interrupted


def test_internal_error_is_raised_after_saving_the_record(tmp_path, folder, monkeypatch):
    fake_shots(monkeypatch, DOCUMENT)
    monkeypatch.setattr(Referee, "_lengths", lambda *_: 1 / 0)
    add_contestant(folder, "other")
    with pytest.raises(ZeroDivisionError):
        hold(tmp_path, (case(), plan()))
    made = record.load(tmp_path / "out")
    assert made.interrupted and any("was ended early (ZeroDivisionError" in note for note in made.notes)


def test_record_write_is_retried_after_an_error(tmp_path, folder, monkeypatch):
    fake_shots(monkeypatch, DOCUMENT)
    add_contestant(folder, "other")
    save, tries = record.save, []

    def fail(*words):
        tries.append(words)
        if len(tries) == 1:
            raise OSError(28, "No space left on device")
        return save(*words)

    monkeypatch.setattr(record, "save", fail)
    made = hold(tmp_path, (case(), plan()), (case("second"), plan()))
    assert [shot.case for shot in made.shots] == ["small", "second"]
    tries.clear()
    monkeypatch.setattr(record, "save", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with pytest.raises(UserError, match="cannot write the record.*No space left"):
        hold(tmp_path, (case(), plan()))


def test_absent_contestants_and_missing_features_are_recorded(tmp_path, folder):
    add_contestant(folder, "absent", program="/nowhere/at/all")
    add_contestant(folder, "plain", features=("close",))
    add_contestant(folder, "other")
    made = hold(tmp_path, (case(), plan()))
    assert made.contestants["absent"].state == "absent" and "/nowhere/at/all" in made.contestants["absent"].why
    assert [(e.contestant, e.why) for e in made.absent_in] == [("plain", "does not support keepalive")]


def test_case_without_its_client_is_skipped(tmp_path, folder):
    add_contestant(folder, "other")
    made = hold(tmp_path, (case("gone", client="siege"), plan()), (case(), plan()), clients={"siege": "/nowhere/siege"})
    assert any("gone" in note and "not installed" in note for note in made.notes)
    assert [shot.case for shot in made.shots] == ["small"]


# ---- Order, noise, memory ----

def test_each_round_has_its_own_order():
    names = list("abcdefgh")
    orders = [shuffled(names, 1, "small", n) for n in range(1, 10)]
    assert all(sorted(order) == names for order in orders) and len(set(map(tuple, orders))) > 5
    assert orders == [shuffled(names, 1, "small", n) for n in range(1, 10)], "the seed decides"
    assert orders != [shuffled(names, 2, "small", n) for n in range(1, 10)]


def fake_shots(monkeypatch, document):
    monkeypatch.setattr(referee.shot, "run_wr", lambda *_: document)
    monkeypatch.setattr(Referee, "_verify", lambda *_: None)


DOCUMENT = {"cpu_counted_by": "cgroup", "steps": [{"shots": [{"requests": 10, "rate": 10.0, "bytes": 2000, "errors": {},
                                                              "us_per_request": 1.0, "bottleneck": "neither"}]}]}


def test_rounds_are_interleaved_with_all_steps_of_a_contestant(tmp_path, folder, monkeypatch):
    fake_shots(monkeypatch, DOCUMENT)
    for name in "abc":
        add_contestant(folder, name)
    made = hold(tmp_path, (case(), plan(1, 5, rounds=2)), (case("alone", alone=True), plan(rounds=2)))
    assert [(s.round, s.contestant, s.step) for s in made.shots if s.case == "small"] == [
        (n, name, step) for n in (1, 2) for name in shuffled(list("abc"), made.seed, "small", n) for step in (1, 5)]
    assert [(s.round, s.contestant) for s in made.shots if s.case == "alone"] == [
        (n, name) for n in (1, 2) for name in shuffled(list("abc"), made.seed, "alone", n)]


def test_alone_runs_one_contestant_at_a_time(tmp_path, folder, monkeypatch):
    fake_shots(monkeypatch, DOCUMENT)
    for name in "ab":
        add_contestant(folder, name)
    running, most = set(), {}
    start, stop = referee.Stage.start, referee.Stage.stop

    def started(stage):
        start(stage)
        running.add(stage.name)
        most[stage.case.name] = max(most.get(stage.case.name, 0), len(running))

    def stopped(stage):
        stop(stage)
        running.discard(stage.name)

    monkeypatch.setattr(referee.Stage, "start", started)
    monkeypatch.setattr(referee.Stage, "stop", stopped)
    hold(tmp_path, (case(), plan()), (case("alone", alone=True), plan(rounds=2)))
    assert most == {"small": 2, "alone": 1} and not running


def test_noisy_shot_is_repeated_and_marked(tmp_path, folder, monkeypatch):
    fake_shots(monkeypatch, DOCUMENT)
    shares = iter(map(environment.Share, (.5, .01, .5, .5), (0, 0, 0, .2), (1, 1, 1, 1)))
    monkeypatch.setattr(referee.environment.Strangers, "share", lambda _: next(shares))
    add_contestant(folder, "other")
    made = hold(tmp_path, (case(), plan(rounds=2)), noise=.05)
    assert [(s.repeated, s.noisy, s.noise) for s in made.shots] == [(1, False, .01), (1, True, .7)]
    assert made.noise == .05


@pytest.mark.parametrize("silent_shots, stays", [(2, True), (3, False)])
def test_silent_server_is_retried_before_disqualification(tmp_path, folder, monkeypatch, silent_shots, stays):
    silence = copy.deepcopy(DOCUMENT)
    silence["steps"][0]["shots"][0] |= {"requests": 0, "rate": 0.0}
    fake_shots(monkeypatch, DOCUMENT)
    answers = iter([silence] * silent_shots + [DOCUMENT])
    monkeypatch.setattr(referee.shot, "run_wr", lambda *_: next(answers))
    add_contestant(folder, "other")
    made = hold(tmp_path, (case(), plan()))
    assert (len(made.shots) == 1) == stays
    assert stays or excluded(made) == {"other": "no response at 20 connections"}


def test_all_contestants_have_the_same_number_of_repeats(tmp_path, folder, monkeypatch):
    fake_shots(monkeypatch, DOCUMENT)
    monkeypatch.setattr(referee.environment.Strangers, "share", lambda _: environment.Share(1))
    for name in "ab":
        add_contestant(folder, name)
    made = hold(tmp_path, (case(), plan(rounds=5, seconds=1)), noise=.05)
    assert [s.repeated for s in made.shots] == [1] * 10


def test_late_run_is_limited_to_three_rounds(tmp_path, folder, monkeypatch):
    fake_shots(monkeypatch, DOCUMENT)
    monkeypatch.setattr(referee.environment.Strangers, "share", lambda _: environment.Share(1))
    monkeypatch.setattr(referee, "LIMITS", {"full": .5})
    add_contestant(folder, "other")
    made = hold(tmp_path, (case(), plan(rounds=7)), noise=.05, mode="full")
    assert [(s.round, s.repeated) for s in made.shots] == [(1, 0), (2, 0), (3, 0)]
    assert any("3 rounds instead of 7" in note for note in made.notes)


def test_idle_connections_are_measured(tmp_path, folder):
    add_contestant(folder, "heavy", "heavy=100000")
    made = hold(tmp_path, (case("idle", kind="idle", client="hold", command=(), alone=True,
                                metrics=("idle_bytes", "start_kb")), plan(50)))
    assert not made.disqualified
    metrics = made.shots[0].metrics
    assert 100_000 * .9 <= metrics["idle_bytes"] <= 100_000 * 1.3
    assert metrics["pss_kb"] > metrics["start_kb"] > 1000


def test_slow_clients_run_only_during_the_shot(tmp_path, folder, monkeypatch):
    fake_shots(monkeypatch, DOCUMENT)
    add_contestant(folder, "other")
    seen = []

    def look(*_):
        seen.append(commands_below(os.getpid()))
        return DOCUMENT

    monkeypatch.setattr(referee.shot, "run_wr", look)
    hold(tmp_path, (case(slow=10), plan()))
    assert [sum("contest.slow" in words for words in commands) for commands in seen] == [1]
    assert not any("contest.slow" in words for words in commands_below(os.getpid()))


def commands_below(pid):
    """Returns the command lines of a process and its descendants."""
    found = []
    for each in environment.descendants(environment.table(), [pid]):
        with contextlib.suppress(OSError):
            found.append(Path(f"/proc/{each}/cmdline").read_text().split("\0"))
    return found


# ---- End of a run ----

def test_record_contains_environment_and_details(tmp_path, folder):
    add_contestant(folder, "other")
    made = hold(tmp_path, (case(), plan()))
    assert made.ended and not made.interrupted and made.mode == "custom"
    assert made.environment["cores"] == len(os.sched_getaffinity(0)) and made.environment["clients"]["wrk"]
    assert made.environment["load_after"] and made.environment["cpu_counted_by"] in ("cgroup", "processes")
    assert made.contestants["other"].version == "1" and made.contestants["other"].fairness.startswith("It is a fake")
    assert made.shots[0].metrics["rate"] > 0 and made.shots[0].noise >= 0
    assert made.shots[0].counted_by == made.environment["cpu_counted_by"] and isinstance(made.seed, int)
    assert made.verified["small"]["other"] > 0 and made.cases["small"].verify == .3


RUN = """
import sys
sys.path[:0] = {paths!r}
from pathlib import Path
from contest import record
from contest.referee import Referee
from contest.run import interrupt
import fakes, signal
signal.signal(signal.SIGTERM, interrupt)
tmp = Path({tmp!r})
made = Referee(fakes.order(tmp, [(fakes.case("first"), fakes.plan()), (fakes.case("second"), fakes.plan(seconds=30))])).run()
sys.exit(130 if made.interrupted else 0)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_run_saves_the_record_and_leaves_no_process(tmp_path, folder, number):
    add_contestant(folder, "other")
    here = Path(__file__)
    paths = [str(folder) for folder in (here.parent, here.parents[1], here.parents[2], Path(referee.__file__).parents[1])]
    script = RUN.format(paths=paths, tmp=str(tmp_path))
    with subprocess.Popen([sys.executable, "-c", script], env=os.environ | {"TMPDIR": str(tmp_path)}) as run:
        wait_until(lambda: in_long_shot(run), "the shot of the second case", 60)
        family = environment.descendants(environment.table(), [run.pid]) - {run.pid}
        assert len(family) >= 3, "server, wr and client"
        run.send_signal(number)
        assert run.wait(30) == 130
    wait_until(lambda: not alive(family), f"the end of {family}")
    made = record.load(tmp_path / "out")
    assert made.interrupted and [s.case for s in made.shots] == ["first"]
    assert any("interrupted" in note for note in made.notes)
    assert not list(tmp_path.glob("contest-*")), "no folder is left either"


def in_long_shot(run):
    assert run.poll() is None, "it has ended"
    return any(words[0].endswith("wrk") and "-d30s" in words for words in commands_below(run.pid))


def alive(pids):
    table = environment.table()
    return [pid for pid in pids if pid in table and Path(f"/proc/{pid}/cmdline").read_text()]


def test_run_removes_its_cgroup(tmp_path, folder):
    add_contestant(folder, "other")
    made = Referee(order(tmp_path, [(case(), plan())]))
    cgroup = made.cgroups.folder
    if not cgroup:
        pytest.skip(made.cgroups.why)
    assert cgroup.exists()
    made.run()
    assert not cgroup.exists()


@pytest.mark.parametrize("none_left", [True, False])
def test_port_exhaustion_does_not_disqualify(tmp_path, folder, monkeypatch, none_left):
    document = copy.deepcopy(DOCUMENT)
    document["steps"][0]["shots"][0]["errors"] = {"connect": 3}
    fake_shots(monkeypatch, document)
    monkeypatch.setattr(referee.environment, "ports_ran_out", lambda: none_left)
    add_contestant(folder, "other")
    made = hold(tmp_path, (case(), plan()))
    if none_left:
        assert "ran out of ports" in left_out(made)["other"] and not made.disqualified
    else:
        assert "3 connect" in excluded(made)["other"] and not made.unmeasured


def test_server_with_a_taken_port_is_not_disqualified(tmp_path, folder, monkeypatch):
    monkeypatch.setattr(running.ports, "is_taken", lambda port: True)
    add_contestant(folder, "other")
    made = hold(tmp_path, (case(), plan()))
    assert "another program has port" in left_out(made)["other"] and not made.disqualified and not made.shots


def test_server_that_reports_a_failed_bind_is_not_disqualified(tmp_path, folder, monkeypatch):
    add_contestant(folder, "other", "die=40", "words=Could not bind or listen to port 1")
    made = hold(tmp_path, (case(), plan()))
    assert "its port was in use" in left_out(made)["other"] and not made.disqualified


def test_latency_of_a_late_client_is_omitted_after_repeats(tmp_path, folder, monkeypatch):
    document = copy.deepcopy(DOCUMENT)
    document["steps"][0]["shots"][0] |= {"doubt": "late", "doubtful": ["p99"], "latency_us": {"p50": 5.0, "p99": 9.0}}
    fake_shots(monkeypatch, document)
    add_contestant(folder, "other")
    made = hold(tmp_path, (case(axis="rate", connections=5, metrics=("p99_us",)), plan(100)))
    assert made.shots[0].repeated == referee.REPEATS and made.shots[0].doubtful == ["p99_us"]
    assert "p99_us" not in made.shots[0].metrics and made.shots[0].metrics["p50_us"] == 5
    assert any("1 of 1 shots was omitted" in note and "other" in note for note in made.notes)


def test_server_with_shrinking_memory_is_unmeasured(tmp_path, folder, monkeypatch):
    sizes = iter([5000, 4000] * 2)
    monkeypatch.setattr(referee.idle, "pss_kb", lambda _: next(sizes))
    add_contestant(folder, "other")
    made = hold(tmp_path, (case("idle", kind="idle", client="hold", command=(), alone=True, metrics=("idle_bytes",)), plan(50)))
    assert not made.shots and not made.disqualified and "shrank from 5000 to 4000 KB" in left_out(made)["other"]
