# SPDX-License-Identifier: Apache-2.0
"""The referee runs the cases one after the other in interleaved rounds, checks every response, and writes the record.

A contestant that fails a check is disqualified in that case, with the reason, and the run continues.
"""
import contextlib
import datetime
import functools
import os
import random
import shutil
import subprocess
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from contest import response_check, backends, contestant, data, environment, idle, record, running, shot, slow
from contest.user_error import UserError
from contest.metrics import RANKED
from contest.stage import Cgroups, Stage

REPEATS = 2  # maximum number of repeats of a shot
NOISE = 0.05  # if other programs use a larger share of the cores, the shot is discarded
LIMITS = {"full": 45 * 60, "quick": 7 * 60}  # maximum duration of a run in seconds
LEAST_ROUNDS = 3  # these rounds run even if the time limit is exceeded
ALIKE = 3  # after this many failures in the first round without a success, the case itself is at fault
VERIFY_CONNECTIONS = 100
SAMPLED_PATHS = 12
LARGE = "/10m.bin"
MOST_ROWS = 2000  # maximum size in bytes of a response with 20 rows, or with all fortunes


@dataclass
class Order:
    """The settings of a run."""
    entries: dict  # name: contestant.Contestant
    cases: dict  # name: (Case, Plan)
    mode: str
    folder: Path
    server_cores: list
    client_cores: list
    wr: str
    clients: dict = field(default_factory=dict)  # kind: path of the program if it is not on PATH
    make_material: object = None
    noise: float = NOISE
    seed: int = field(default_factory=lambda: random.randrange(1_000_000))
    say: object = staticmethod(lambda text, passing=False: None)  # passing: a temporary status
    ending: object = staticmethod(lambda: None)  # called before the cleanup, which must not be interrupted


class Disqualified(Exception):
    """The contestant is disqualified in this case; the message is the reason."""


class Unmeasured(Exception):
    """The contestant cannot be measured in this case through no fault of its own: wr or the client failed."""


class Silent(Disqualified):
    """The contestant sent no response at all, perhaps through no fault of its own: it gets another attempt before it is
    disqualified."""


PROJECT = Path(__file__).resolve().parents[3]


def inside(program):
    """Returns the path of our own program relative to the project's folder."""
    return str(Path(program).relative_to(PROJECT)) if program and Path(program).is_relative_to(PROJECT) else program


def now():
    return datetime.datetime.now().astimezone().isoformat(timespec="seconds")


def shuffled(names, seed, case, number):
    """Returns the random order of a round, so that no server always follows the same one."""
    return random.Random(f"{seed} {case} {number}").sample(names, len(names))


def lineup(entries, case):
    """Returns ({name: entry} of the participants, {name: reason} of the other available contestants)."""
    takes, absent = {}, {}
    for name, entry in entries.items():
        missing = [each for each in case.features if each not in entry.can()]
        if not entry.joins(case.name):
            absent[name] = "is limited to other cases"
        elif missing:
            whys = [entry.missing().get(each, f"does not support {each}") for each in missing]
            absent[name] = "; ".join(whys)
        else:
            takes[name] = entry
    return takes, absent


class Clock:
    """The elapsed and remaining time of a run; runs in custom mode have no limit."""

    def __init__(self, order, contestants):
        self.limit, self.start = LIMITS.get(order.mode), time.monotonic()
        self.left = {name: case.estimate(plan, contestants) for name, (case, plan) in order.cases.items()}
        self.contestants, self.whole = contestants, sum(self.left.values())

    def done(self, case):
        self.left.pop(case, None)

    def is_late(self, case, plan, number):
        """Returns whether the run would exceed its limit with this round and everything after it, extrapolated from the time used
        so far."""
        if not self.limit:
            return False
        later = sum(self.left.values()) - self.left[case.name]
        of_case = self.left[case.name]
        past, done = time.monotonic() - self.start, self.whole - later - of_case
        here = of_case * (plan.rounds - number + 1) / plan.rounds
        slower = max(1, past / (done + of_case - here)) if done > of_case else 1
        return past + (here + later) * slower > self.limit


class Referee:
    def __init__(self, order):
        self.order = order
        self.cgroups = Cgroups()
        self.material = None
        self.scratch = None
        self.counted_by = {}
        self.repeats_left = {}
        self.clock = None
        self.unsaved = None
        self.record = self._new_record()

    def _new_record(self):
        order = self.order
        tools = {"wr": order.wr, **order.clients}
        made = record.Record(order.mode, now(), environment.describe(order.server_cores, order.client_cores, tools))
        made.seed, made.noise = order.seed, order.noise
        made.cases = {name: case.for_record(plan) for name, (case, plan) in order.cases.items()}
        if self.cgroups.why:
            made.notes.append(f"Contestants have no separate cgroups: {self.cgroups.why}. CPU time is the sum over "
                              "their processes; the time of short-lived children may be missing.")
        if set(order.server_cores) & set(order.client_cores):
            made.notes.append("Server and client share a core, which affects rates and latencies.")
        return made

    # ---- The run ----

    def run(self):
        """Runs all cases. After an interruption, the record contains the measurements so far and is marked as interrupted."""
        order = self.order
        try:
            with tempfile.TemporaryDirectory(prefix="contest-") as scratch:
                os.chmod(scratch, 0o755)
                self.scratch = Path(scratch)
                self._prepare()
                self.clock = Clock(order, len(self._present()))
                for case, plan in order.cases.values():
                    self._hold(case, plan)
                    self.clock.done(case.name)
                    self.save()
        except KeyboardInterrupt:
            self._broken_off("was interrupted")
        except BaseException as error:
            self._broken_off(f"was ended early ({type(error).__name__}: {error})")
            raise
        finally:
            order.ending()
            self.cgroups.end()
            self._finish()
        if self.unsaved:
            raise UserError(f"cannot write the record: {self.unsaved}")
        return self.record

    def _broken_off(self, how):
        self.record.interrupted = True
        self.record.notes.append(f"The run {how}; this report contains the measurements up to then.")

    def _prepare(self):
        self.order.say("creating the files to serve", passing=True)
        cases = [case for case, _ in self.order.cases.values()]
        self.material = self.order.make_material(self.scratch / "material", {case.paths for case in cases})
        self.record.site = self.material.site_name if self.material.site else ""
        for case in cases:
            if case.body and not case.backend and not {"dynamic", "services"} & set(case.features):
                Path(self.material.root, case.path.lstrip("/")).write_text(case.body)
        for name, entry in self.order.entries.items():
            self.record.contestants[name] = self._describe(name, entry)

    def _describe(self, name, entry):
        found = entry.find()
        return record.Contestant(entry.title, "present" if found else "absent", found.why, entry.version() or None,
                                 inside(found.program), entry.package or None, entry.origin() or None, entry.revision, {},
                                 entry.fairness, entry.yardstick, list(entry.can() if found else entry.features), entry.forks)

    def _finish(self):
        self.record.ended = now()
        self.record.environment["load_after"] = list(os.getloadavg())
        self.record.environment["cpu_counted_by"] = self._counted()
        measured = {each.contestant for each in self.record.shots}
        for name, each in self.record.contestants.items():
            whys = [e.why for e in self.record.disqualified if e.contestant == name]
            if name not in measured and any(why.startswith("did not start") for why in whys):
                each.state, each.why = "failed", whys[0]
        self.save()

    def _counted(self):
        kinds = set(self.counted_by.values())
        if len(kinds) > 1:
            apart = sorted(name for name, kind in self.counted_by.items() if kind != "cgroup")
            self.record.notes.append(f"CPU time was measured per process, not by cgroup, for: {', '.join(apart)}.")
        return "cgroup" if "cgroup" in kinds else next(iter(kinds), None)

    def save(self):
        """Saves the record. A write error does not end the run, because the disk may have space later."""
        try:
            record.save(self.record, self.order.folder)
            self.unsaved = None
        except OSError as error:
            self.order.say(f"cannot write the record, will retry: {error}")
            self.unsaved = error

    # ---- A case ----

    def _present(self):
        return {name: entry for name, entry in self.order.entries.items() if entry.find()}

    def _lacks(self, case):
        """Returns why the case cannot run at all, or None."""
        programs = [case.client] if case.kind == "load" else []
        for name in [*programs, *case.needs]:
            if not shutil.which(self.order.clients.get(name, name)):
                return f"{name} is not installed"
        if case.backend and (why := backends.lacks(case.backend)):
            return why
        if case.paths and not getattr(self.material, "tree" if case.paths == "many" else "site"):
            return "the list of files does not exist"
        return None

    def _warn(self, case):
        """Adds notes about limits of this machine that may distort the case."""
        clients, others = self._client_cores(case)
        if case.backend and clients == others:
            self.record.notes.append(f"The case {case.name}: the contestants' backends share their cores with the client, because "
                                     "there are no others. This affects rates and latencies, but not the contestants' CPU time.")
        limits = self.record.environment["limits"]
        if case.close and limits.get("tcp_tw_reuse") not in ("1", "2"):
            first, last = map(int, limits.get("port_range") or (32768, 60999))
            self.record.notes.append(
                f"The case {case.name} opens a connection for each request, tcp_tw_reuse is off, and there are "
                f"{last - first + 1} ports: connection errors may be caused by this machine.")

    def _hold(self, case, plan):
        why = self._lacks(case)
        if why:
            self.record.notes.append(f"The case {case.name} was skipped: {why}.")
            self.order.say(f"{case.name}: skipped: {why}")
            return
        self.order.say(f"{case.name}: {case.title}")
        self._warn(case)
        takes, absent = lineup(self._present(), case)
        self.record.absent_in += [record.Exclusion(case.name, name, why) for name, why in absent.items()]
        stages = {name: Stage(entry, case, self.material, self.order.server_cores, self.cgroups, self._client_cores(case)[1])
                  for name, entry in takes.items()}
        try:
            if not case.alone:
                for name in list(stages):
                    self.order.say(f"{case.name}: {name} starts", passing=True)
                    self._guard(case, stages, name, lambda stage: self._enter(stage, plan))
            self._rounds(case, plan, stages)
            self._say_doubtful(case)
            if not case.alone:
                for name in list(stages):
                    self._guard(case, stages, name, self._leave)
        finally:
            for stage in stages.values():
                self._end(stage)

    def _say_doubtful(self, case):
        shots = [each for each in self.record.shots if each.case == case.name]
        for metric, share in (("p90_us", "90 %"), ("p99_us", "99 %")):
            late = [each for each in shots if metric in each.doubtful]
            if late:
                names = ", ".join(sorted({each.contestant for each in late}))
                self.record.notes.append(
                    f"The case {case.name}: the latency at {share} of {len(late)} of {len(shots)} shots was omitted, because "
                    f"the client reported that more than 10 % of it may be its own delay: {names}.")

    def _rounds(self, case, plan, stages):
        names = list(stages)
        for number in range(1, plan.rounds + 1):
            late = self.clock.is_late(case, plan, number)
            if late and number > LEAST_ROUNDS:
                self.record.notes.append(f"The case {case.name} has {number - 1} rounds instead of {plan.rounds}: "
                                         f"the run would have taken more than {self.clock.limit / 60:.0f} minutes.")
                return
            # All contestants have the same number of repeats in a round.
            self.repeats_left = dict.fromkeys(names, 0 if late else max(1, len(plan.steps) // 2) + self._spare(case, plan))
            for name in shuffled(names, self.order.seed, case.name, number):
                if name in stages:
                    self.order.say(f"{case.name}: round {number} of {plan.rounds}: {name}", passing=True)
                    self._guard(case, stages, name, lambda stage: self._visit(stage, plan, number))
                    if number == 1 and self._is_hopeless(case, len(names)):
                        self._give_up(case, stages)

    @staticmethod
    def _spare(case, plan):
        """Returns the number of extra repeats. A fixed-rate client reports when it fell behind; such shots are repeated, which is
        cheap because they are short."""
        return 2 * len(plan.steps) if case.axis == "rate" else 0

    def _is_hopeless(self, case, count):
        """Returns whether no contestant could be measured so far, after enough attempts."""
        failed = sum(each.case == case.name for each in self.record.unmeasured)
        return failed >= max(2, min(ALIKE, count)) and not any(each.case == case.name for each in self.record.shots)

    def _give_up(self, case, stages):
        why = self.record.unmeasured[-1].why
        self.record.notes.append(f"The case {case.name} was abandoned, because no contestant could be measured. The last reason: {why}")
        for name in list(stages):
            self.record.unmeasured.append(record.Exclusion(case.name, name, "the case was abandoned; see the notes"))
            self._end(stages.pop(name))

    def _end(self, stage):
        try:
            stage.stop()
        except (OSError, subprocess.SubprocessError) as error:
            self.record.notes.append(f"cannot stop {stage.name} in the case {stage.case.name}: {error}")

    def _guard(self, case, stages, name, act):
        """Performs the action; a contestant that fails is excluded from the case."""
        try:
            act(stages[name])
        except Disqualified as why:
            self._exclude(self.record.disqualified, "disqualified", stages.pop(name), str(why))
        except Unmeasured as why:
            self._exclude(self.record.unmeasured, "not measured", stages.pop(name), str(why))
        except (OSError, subprocess.SubprocessError) as why:
            why = f"the referee failed: {why}"
            self._exclude(self.record.unmeasured, "not measured", stages.pop(name), why)

    def _exclude(self, where, what, stage, why):
        self.order.say(f"{stage.case.name}: {stage.name} is {what}: {why}")
        where.append(record.Exclusion(stage.case.name, stage.name, why))
        self._end(stage)

    def _enter(self, stage, plan):
        """Starts the contestant, checks its responses, and freezes it."""
        try:
            stage.start()
        except contestant.PortTaken as taken:
            raise Unmeasured(f"another program took a port before each start of the server: {taken}") from None
        except contestant.Failed as failed:
            raise Disqualified(f"did not start: {failed}") from None
        except UserError as complaint:
            raise Unmeasured(f"cannot create its configuration: {complaint}") from None
        self.record.contestants[stage.name].configuration |= stage.prepared.configuration
        self._check(stage, "before the shots")
        self._verify(stage, plan)
        stage.sleep()

    def _leave(self, stage):
        stage.wake()
        self._check(stage, "after the shots")
        stage.stop()

    def _visit(self, stage, plan, number):
        """Runs all steps of one round."""
        if stage.case.alone:
            self._enter(stage, plan)
        stage.wake()
        for step in plan.steps:
            self._measure(stage, plan, number, step)
        if stage.case.alone:
            self._leave(stage)
        else:
            stage.sleep()

    # ---- Responses ----

    def _path(self, stage):
        usual = stage.entry.dynamic if "dynamic" in stage.case.features else stage.case.path
        return stage.case.path_of.get(stage.name, usual)

    def _paths(self, case):
        if not case.paths:
            return [case.path]
        return ["/" + path for path in (self.material.tree if case.paths == "many" else self.material.site)]

    def _expected(self, stage):
        """Returns {path: Expected} for the path of the case, or for samples of a list."""
        case = stage.case
        if case.body:
            return {self._path(stage): response_check.Expected.of(case.body.encode())}
        if case.backend:
            return {case.path: response_check.Expected.of(Path(self.material.root, case.backend).read_bytes())}
        paths = self._paths(case)
        sampled = paths[::max(1, len(paths) // SAMPLED_PATHS)][:SAMPLED_PATHS]
        return {path: response_check.Expected.of(Path(self.material.root, path.lstrip("/")).read_bytes()) for path in sampled}

    def _lengths(self, stage):
        case = stage.case
        if case.body:
            return [len(case.body)]
        if case.backend == backends.DATA:
            return [1, MOST_ROWS]
        if case.backend:
            return [self.material.files[case.backend].length]
        return [self.material.files[path.lstrip("/")].length for path in self._paths(case)]

    def _check(self, stage, when):
        if stage.case.backend == backends.DATA:
            fault = data.check(stage.port, stage.case.path, functools.partial(data.number_of, stage.backend.folder))
        else:
            fault = response_check.check(stage.case.scheme, stage.port, self._expected(stage))
        if fault:
            self._forgive_ports(stage)
            raise Disqualified(f"wrong response {when}: {self._with_last_words(stage, fault)}")

    @staticmethod
    def _forgive_ports(stage):
        if not stage.is_alive(after_fault=True) and running.has_lost_port(stage.last_words()):
            raise Unmeasured(f"the server exited because its port was in use: {stage.last_words()}")

    def _with_last_words(self, stage, fault):
        return fault if stage.is_alive(after_fault=True) else f"{fault}; the server has died; the end of its output: {stage.last_words()}"

    def _verify(self, stage, plan):
        """Takes the verification shot, which does not count: it warms up the server and compares every response."""
        case, seconds, asks = stage.case, plan.verify, None
        expected = {} if case.backend == backends.DATA else self._expected(stage)
        if case.kind == "idle":
            return
        if case.backend == backends.DATA:
            asks = [functools.partial(data.check, stage.port, case.path)]
        count = min(VERIFY_CONNECTIONS, shot.connections(case, plan.steps[-1]))
        if case.scheme in ("http", "https") and not asks:
            body = None if case.paths else next(iter(expected.values())).data
            variables = self._client_environment(case) | {"CONTEST_ROOT": str(self.material.root)}
            verdict = response_check.verify_with_wrk(self._url(stage), body, count, seconds, case.close, self._pin(case),
                                              self.scratch, variables)
        else:
            command = self._client_command(stage, plan.steps[0], max(1, seconds))
            load = [*self._pin(case), *(part.replace("{c}", str(count)) for part in command)]
            verdict = response_check.verify_beside_load(case.scheme, stage.port, expected, load, seconds, self._client_environment(case),
                                            asks)
        if verdict.ours and stage.is_alive(after_fault=True):
            raise Unmeasured(verdict.fault)
        if verdict.fault:
            self._forgive_ports(stage)
            raise Disqualified(self._with_last_words(stage, verdict.fault))
        self._count_verified(stage, verdict.responses)

    def _count_verified(self, stage, n_responses):
        counts = self.record.verified.setdefault(stage.case.name, {})
        counts[stage.name] = counts.get(stage.name, 0) + n_responses

    # ---- Shots ----

    def _client_cores(self, case):
        """Returns the cores of the client and those of the backends. Backends get their own core if there is more than one."""
        cores = self.order.client_cores
        return (cores[:-1], cores[-1:]) if case.backend and len(cores) > 1 else (cores, cores)

    def _pin(self, case):
        return ["taskset", "-c", ",".join(map(str, self._client_cores(case)[0]))]

    def _url(self, stage):
        scheme = "https" if stage.case.scheme in ("https", "h2") else "http"
        path = self._paths(stage.case)[0] if stage.case.paths else self._path(stage)
        return f"{scheme}://127.0.0.1:{stage.port}{path}"

    def _client_command(self, stage, step, seconds):
        case = stage.case
        return shot.expand(case, self._url(stage), step, seconds, self.order.clients.get(case.client))

    def _client_environment(self, case):
        return {"CONTEST_PATHS": str(shot.write_paths(self.scratch, self._paths(case)))} if case.paths else {}

    def _measure(self, stage, plan, number, step):
        """Takes one shot, repeats it if other programs used the machine, and records it."""
        take = self._hold_idle if stage.case.kind == "idle" else self._shoot
        repeated, metrics, cores = 0, None, [*self.order.server_cores, *self.order.client_cores]
        while True:
            watch, failure = environment.Strangers(stage.pids(), cores), None
            try:
                metrics, bottleneck, samples, counted_by, doubtful = take(stage, plan, number, step)
            except (Silent, Unmeasured) as why:
                failure = why
            noise = watch.share().noise
            noisy = noise > self.order.noise
            late = not failure and any(metric in doubtful for metric in RANKED)
            again = ((noisy or late) and self.repeats_left.get(stage.name, 0)
                     or failure and (isinstance(failure, Silent) or not repeated))
            if not again or repeated >= REPEATS:
                break
            repeated += 1
            self.repeats_left[stage.name] = max(0, self.repeats_left.get(stage.name, 0) - 1)
        if failure:
            raise failure
        self.record.shots.append(record.Shot(stage.case.name, stage.name, number, step, metrics, bottleneck, samples,
                                             repeated, noisy, round(noise, 4), counted_by, doubtful))

    def _shoot(self, stage, plan, number, step):
        case = stage.case
        command = shot.wr_command(self.order.wr, stage.roots(), self._client_cores(case)[0], case, step,
                                  self._client_command(stage, step, plan.seconds), plan.syscalls and number == 1,
                                  stage.cgroup)
        try:
            with self._slow_ones(stage):
                document = shot.run_wr(command, plan.seconds, self._client_environment(case))
            result = shot.shot_of(document)
            count = shot.connections(case, step)
            fault = shot.fault_of(result, case, self._lengths(stage), count, stage.entry.yardstick)
        except shot.NoShot as why:
            result, fault, failure = None, None, str(why)
        at = f" at {shot.plain(step)} {'requests/s' if case.axis == 'rate' else 'connections'}"
        if not stage.is_alive(after_fault=bool(fault or not result)):
            self._forgive_ports(stage)
            raise Disqualified(f"the server died{at}; the end of its output: {stage.last_words()}")
        if fault and (result.get("errors") or {}).get("connect") and environment.ports_ran_out():
            raise Unmeasured(f"this machine ran out of ports for connections{at}")
        if fault:
            raise (Silent if fault == shot.SILENT else Disqualified)(fault + at)
        if not result:
            self._check(stage, f"after a shot that failed{at}")  # a server that stopped responding makes clients fail
            raise Unmeasured(failure + at)
        counted_by = document.get("cpu_counted_by")
        self.counted_by[stage.name] = counted_by
        return (shot.metrics_of(result, case.alone), shot.bottleneck_of(result), shot.samples_of(result, case.alone),
                counted_by, shot.doubtful(result))

    def _slow_ones(self, stage):
        if not stage.case.slow:
            return contextlib.nullcontext()
        return slow.beside(stage.port, stage.case.slow, stage.case.path, LARGE, self.order.client_cores)

    def _hold_idle(self, stage, _plan, _number, step):
        expected = self._expected(stage)
        path = next(iter(expected))
        try:
            metrics = idle.cost(stage.pids, stage.port, path, expected[path].data, int(step))
        except idle.NotHeld as why:
            raise Disqualified(self._with_last_words(stage, str(why))) from None
        except idle.NotMeasurable as why:
            raise Unmeasured(str(why)) from None
        self._count_verified(stage, int(step) + 1)
        return metrics, None, [], None, []
