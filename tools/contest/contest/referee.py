# SPDX-License-Identifier: Apache-2.0
"""The referee: holds the cases one after the other, in interleaved rounds, checks every answer, and keeps the record.

What a contestant does wrong is its own matter: it is disqualified in that case, with the reason, and the run goes on.
"""
import contextlib
import datetime
import os
import shutil
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from contest import answers, contestant, environment, idle, record, shot, slow, template
from contest.stage import Cgroups, Stage

NOISE = 0.05  # the share of the machine that strangers may have before a shot is thrown away
REPEATS = 2  # of one shot
REPEATS_SHARE = 0.05  # of the time of the whole run that may go into repetitions
VERIFY_CONNECTIONS = 100
SAMPLED_PATHS = 12
LARGE = "/10m.bin"


@dataclass
class Order:
    """What is to be done, and with what."""
    entries: dict  # name: contestant.Contestant
    cases: dict  # name: (Case, Plan)
    mode: str
    folder: Path
    server_cores: list
    client_cores: list
    wr: str
    clients: dict = field(default_factory=dict)  # kind: path of the program, where it is not on PATH
    make_material: object = None
    noise: float = NOISE
    say: object = staticmethod(lambda text, passing=False: None)  # passing: of interest only while it is so


class Disqualified(Exception):
    """In this case, with the reason."""


class Silent(Disqualified):
    """It answered nothing at all, which may be no fault of its own: it is asked again before it is disqualified."""


def now():
    return datetime.datetime.now().astimezone().isoformat(timespec="seconds")


def rotated(names, round_number):
    """The order of a round: everybody is first once, and nobody always follows the same one's heat."""
    at = (round_number - 1) % len(names) if names else 0
    return names[at:] + names[:at]


def lineup(entries, case):
    """({name: entry} of those that take part, {name: why} of the others that are present)."""
    takes, absent = {}, {}
    for name, entry in entries.items():
        missing = [each for each in case.features if each not in entry.can()]
        if missing:
            whys = [entry.missing().get(each, f"does not offer {each}") for each in missing]
            absent[name] = "; ".join(whys)
        else:
            takes[name] = entry
    return takes, absent


class Referee:
    def __init__(self, order):
        self.order = order
        self.cgroups = Cgroups()
        self.material = None
        self.scratch = None
        self.counted_by = {}
        self.repeat_budget = REPEATS_SHARE * sum(
            case.estimate(plan, len(order.entries)) for case, plan in order.cases.values())
        self.record = self._new_record()

    def _new_record(self):
        order = self.order
        tools = {"wr": order.wr, **order.clients}
        made = record.Record(order.mode, now(), environment.describe(order.server_cores, order.client_cores, tools))
        made.cases = {name: case.for_record(plan) for name, (case, plan) in order.cases.items()}
        if self.cgroups.why:
            made.notes.append(f"Contestants have no cgroup of their own: {self.cgroups.why}. Processor time is the sum over "
                              "their processes; what short-lived children use may be missed.")
        if set(order.server_cores) & set(order.client_cores):
            made.notes.append("Server and client share a core: there is only one. Rates and latencies are those of both.")
        return made

    # ---- The run ----

    def run(self):
        """Holds all cases. On an interruption what was measured is kept, and the record says so."""
        order = self.order
        try:
            with tempfile.TemporaryDirectory(prefix="contest-") as scratch:
                os.chmod(scratch, 0o755)
                self.scratch = Path(scratch)
                self._prepare()
                for name, (case, plan) in order.cases.items():
                    self._hold(case, plan)
                    self.save()
        except KeyboardInterrupt:
            self.record.interrupted = True
            self.record.notes.append("The run was interrupted; what had been measured until then is here.")
        finally:
            self.cgroups.end()
            self._finish()
        return self.record

    def _prepare(self):
        self.order.say("making the files to be served", passing=True)
        cases = [case for case, _ in self.order.cases.values()]
        self.material = self.order.make_material(self.scratch / "material", {case.paths for case in cases})
        for case in cases:
            if case.body and "dynamic" not in case.features:
                Path(self.material.root, case.path.lstrip("/")).write_text(case.body)
        for name, entry in self.order.entries.items():
            self.record.contestants[name] = self._describe(name, entry)

    def _describe(self, name, entry):
        found = entry.find()
        return record.Contestant(entry.title, "present" if found else "absent", found.why, entry.version() or None,
                                 found.program, entry.package or None, entry.origin() or None, entry.revision, {},
                                 entry.fairness, entry.yardstick, list(entry.can() if found else entry.features))

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
            self.record.notes.append(f"Processor time was counted by processes, not by cgroup, for: {', '.join(apart)}.")
        return "cgroup" if "cgroup" in kinds else next(iter(kinds), None)

    def save(self):
        record.save(self.record, self.order.folder)

    # ---- A case ----

    def _present(self):
        return {name: entry for name, entry in self.order.entries.items() if entry.find()}

    def _lacks(self, case):
        """Why the case cannot be held at all."""
        programs = [case.client] if case.kind == "load" else []
        for name in [*programs, *case.needs]:
            if not shutil.which(self.order.clients.get(name, name)):
                return f"{name} is not installed"
        if case.paths and not getattr(self.material, "tree" if case.paths == "many" else "site"):
            return "there is no such list of files"
        return None

    def _hold(self, case, plan):
        why = self._lacks(case)
        if why:
            self.record.notes.append(f"The case {case.name} was not held: {why}.")
            self.order.say(f"{case.name}: not held: {why}")
            return
        self.order.say(f"{case.name}: {case.title}")
        takes, absent = lineup(self._present(), case)
        self.record.absent_in += [record.Exclusion(case.name, name, why) for name, why in absent.items()]
        stages = {name: Stage(entry, case, self.material, self.order.server_cores, self.cgroups)
                  for name, entry in takes.items()}
        try:
            if not case.alone:
                for name in list(stages):
                    self.order.say(f"{case.name}: {name} starts", passing=True)
                    self._guard(case, stages, name, lambda stage: self._enter(stage, plan))
            for number in range(1, plan.rounds + 1):
                for name in rotated(list(takes), number):
                    if name in stages:
                        self.order.say(f"{case.name}: round {number} of {plan.rounds}: {name}", passing=True)
                        self._guard(case, stages, name, lambda stage: self._visit(stage, plan, number))
            if not case.alone:
                for name in list(stages):
                    self._guard(case, stages, name, self._leave)
        finally:
            for stage in stages.values():
                stage.stop()

    def _guard(self, case, stages, name, act):
        """Acts; if the contestant fails, it is out of this case."""
        try:
            act(stages[name])
        except (Disqualified, OSError) as why:
            why = str(why) if isinstance(why, Disqualified) else f"the referee could not go on with it: {why}"
            self.order.say(f"{case.name}: {name} is disqualified: {why}")
            self.record.disqualified.append(record.Exclusion(case.name, name, why))
            stages.pop(name).stop()

    def _enter(self, stage, plan):
        """Starts it, and lets it sleep when it has proved that it answers as it should."""
        try:
            stage.start()
        except (contestant.Failed, template.Unknown, OSError) as failed:
            raise Disqualified(f"did not start: {failed}") from None
        self.record.contestants[stage.name].configuration |= stage.prepared.configuration
        self._check(stage, "before the shots")
        self._verify(stage, plan)
        stage.sleep()

    def _leave(self, stage):
        stage.wake()
        self._check(stage, "after the shots")
        stage.stop()

    def _visit(self, stage, plan, number):
        """All steps of one round."""
        if stage.case.alone:
            self._enter(stage, plan)
        stage.wake()
        for step in plan.steps:
            self._measure(stage, plan, number, step)
        if stage.case.alone:
            self._leave(stage)
        else:
            stage.sleep()

    # ---- Answers ----

    def _path(self, stage):
        usual = stage.entry.dynamic if "dynamic" in stage.case.features else stage.case.path
        return stage.case.path_of.get(stage.name, usual)

    def _paths(self, case):
        if not case.paths:
            return [case.path]
        return ["/" + path for path in (self.material.tree if case.paths == "many" else self.material.site)]

    def _expected(self, stage):
        """{path: what has to come}: one path, or some of a list."""
        case = stage.case
        if case.body:
            return {self._path(stage): answers.Expected.of(case.body.encode())}
        paths = self._paths(case)
        sampled = paths[::max(1, len(paths) // SAMPLED_PATHS)][:SAMPLED_PATHS]
        return {path: answers.Expected.of(Path(self.material.root, path.lstrip("/")).read_bytes()) for path in sampled}

    def _lengths(self, stage):
        case = stage.case
        if case.body:
            return [len(case.body)]
        return [self.material.files[path.lstrip("/")].length for path in self._paths(case)]

    def _check(self, stage, when):
        fault = answers.check(stage.case.scheme, stage.port, self._expected(stage))
        if fault:
            raise Disqualified(f"a wrong answer {when}: {self._with_last_words(stage, fault)}")

    def _with_last_words(self, stage, fault):
        return fault if stage.is_alive() else f"{fault}; it has died, and its last words were: {stage.last_words()}"

    def _verify(self, stage, plan):
        """The shot that is not counted: it warms the server up, and every answer of it is compared."""
        case, expected, seconds = stage.case, self._expected(stage), plan.verify
        if case.kind == "idle":
            return
        count = min(VERIFY_CONNECTIONS, shot.connections(case, plan.steps[-1]))
        if case.scheme in ("http", "https") and not case.paths:
            body = next(iter(expected.values())).data
            verdict = answers.verify_with_wrk(self._url(stage), body, count, seconds, case.close, self._pin(),
                                              self.scratch)
        else:
            command = self._client_command(stage, plan.steps[0], max(1, seconds))
            load = [*self._pin(), *(part.replace("{c}", str(count)) for part in command)]
            verdict = answers.verify_beside(case.scheme, stage.port, expected, load, seconds, self._client_environment(case))
        if verdict.fault:
            raise Disqualified(self._with_last_words(stage, verdict.fault))

    # ---- Shots ----

    def _pin(self):
        return ["taskset", "-c", ",".join(map(str, self.order.client_cores))]

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
        """One shot, again when strangers used the machine meanwhile, and into the record."""
        take = self._hold_idle if stage.case.kind == "idle" else self._shoot
        repeated, metrics = 0, None
        while True:
            watch, silence = environment.Strangers(stage.pids()), None
            try:
                metrics, bottleneck, samples = take(stage, plan, number, step)
            except Silent as why:
                silence = why
            strangers, stolen = watch.share()
            noisy = max(strangers, stolen) > self.order.noise
            if repeated == REPEATS or not (silence or (noisy and self.repeat_budget >= plan.seconds)):
                break
            repeated += 1
            self.repeat_budget -= plan.seconds
        if silence:
            raise Disqualified(str(silence))
        metrics["strangers"] = round(strangers + stolen, 4)
        self.record.shots.append(record.Shot(stage.case.name, stage.name, number, step, metrics, bottleneck, samples,
                                             repeated, noisy))

    def _shoot(self, stage, plan, number, step):
        case = stage.case
        command = shot.wr_command(self.order.wr, stage.roots(), self.order.client_cores, case, step,
                                  self._client_command(stage, step, plan.seconds), plan.syscalls and number == 1,
                                  stage.cgroup)
        try:
            with self._slow_ones(stage):
                document = shot.run_wr(command, plan.seconds, self._client_environment(case))
            result = shot.shot_of(document)
            count = shot.connections(case, step)
            fault = shot.fault_of(result, case, self._lengths(stage), count, stage.entry.yardstick)
        except shot.NoShot as why:
            result, fault = None, str(why)
        at = f" at {shot.plain(step)} {'requests/s' if case.axis == 'rate' else 'connections'}"
        if not stage.is_alive():
            raise Disqualified(f"it died{at}; its last words were: {stage.last_words()}")
        if fault:
            raise (Silent if fault == shot.SILENT else Disqualified)(fault + at)
        self.counted_by[stage.name] = document.get("cpu_counted_by")
        return shot.metrics_of(result, case.alone), result.get("bottleneck"), shot.samples_of(result, case.alone)

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
        return metrics, None, []
