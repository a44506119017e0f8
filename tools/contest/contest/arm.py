# SPDX-License-Identifier: Apache-2.0
"""The raspberry case on ARM: a cross-compiled Monkey and BusyBox httpd from Debian's armhf and arm64 packages, both under
qemu-user over loopback. The result is a ratio, never a rate: see LIMITS.
"""
import dataclasses
import datetime
import shutil
import signal
import sys
from dataclasses import dataclass
from pathlib import Path

from contest import case as cases
from contest import contestant, emulator, environment, record, run, shot, statistics
from contest.user_error import UserError
from contest.referee import Disqualified, Order, Referee
from contest.stage import Stage

BASE = "busybox"  # base of all ratios, as in 2012
NAMES = ("monkey", BASE)
ROUNDS, SECONDS = 5, 5
COUNTED_EACH = 30  # requests per client while instructions are counted; the count is read after all responses
COUNTED_SECONDS = 120  # at most
THEN = 270.54 / 148.39  # requests per second, Monkey : BusyBox, as measured on a Raspberry Pi in 2012

NEVER_RANKED = True  # reports show the numbers without ranking them
EMULATOR = "mostly the emulation"

LIMITS = (
    "The programs are translated from ARM to the processor of this machine while they run: rates, times and memory are those "
    "of the emulation. Only ratios are meaningful, and they too are those of translated code.",
    "BusyBox httpd forks for each connection. Only the child runs the code that handles a request, so every child translates it "
    "again and copies the memory of the emulator. That takes nearly all of BusyBox's time here (a few commands of a "
    "shell took 0.05 ms in the shell itself, and 2 ms more in each child). The ratios of rate and of CPU time show how "
    "slowly an emulator forks, not how fast a board is.",
    "Instructions per request are counted in the program alone, as the processor would execute them: the emulation does not "
    "distort them. But they do not include the kernel, which does most of the work, and an instruction is not a unit of time.",
    "There are no caches, branch predictor and memory of an ARM board: a program that needs little cache has no advantage "
    "here.",
    "System calls are those of this machine's kernel, at its speed. Calls that the emulator does not know (openat2, preadv2, "
    "Landlock and others) are missing: Monkey uses older calls instead, and does not confine its workers.",
)
NOT_ON_ARM = ("dynamic", "tls", "h2", "h2c")


# ---- Contestants ----

@dataclass
class Emulated(contestant.Contestant):
    """A contestant with the configuration of its folder, but with a program for another architecture."""
    program: str = ""
    said: str = ""  # the version
    counter: Path | None = None  # file with its instruction count

    def find(self):
        return contestant.Found(self.program)

    def version(self):
        return self.said


def emulated(name, machine, program, version, origin, plugin=None, counter=None):
    """Returns the contestant of the folder `name` as a program for `machine`."""
    known = contestant.load(contestant.FOLDER / name)
    data = {key: value for key, value in known.data.items() if key not in ("build", "requires", "dynamic")}
    data |= {"command": [*machine.command(plugin, counter), *known.data["command"]], "origin": origin}
    features = [each for each in known.features if each not in NOT_ON_ARM]
    return Emulated(f"{name}-{machine.name}", known.folder, f"{known.title} ({machine.name})", known.about, known.revision,
                    NEVER_RANKED, known.package, [str(program)], [*features, machine.name], known.fairness, data,
                    str(program), version, counter)


def line_up(machine, programs, plugin=None, scratch=None):
    """Returns {name: Emulated} for one machine; with the counting plugin, each contestant has its own counter in the folder
    `scratch`."""
    found = {}
    for name, (program, version, origin) in programs.items():
        counter = Path(scratch, f"{name}-{machine.name}.counter") if plugin else None
        each = emulated(name, machine, program, version, origin, plugin, counter)
        found[each.name] = each
    return found


def programs_for(machine, say):
    """Builds or downloads the programs; returns {name: (program, version, origin)}."""
    say(f"{machine.name}: building Monkey")
    monkey = emulator.build_monkey(machine)
    version = emulator.said(machine, monkey, "-v", r"Monkey (2\S*)")
    say(f"{machine.name}: fetching BusyBox")
    busybox, package = emulator.fetch_busybox(machine)
    said = emulator.said(machine, busybox, None, r"BusyBox v(\S+)")
    return {"monkey": (monkey, version, f"built here with {machine.compiler}"),
            "busybox": (busybox, said, f"package busybox {package} of Debian's {machine.name}")}


# ---- The case ----

def case_for(machine):
    """Returns the raspberry case with contestants for this machine."""
    known = cases.load_all()["raspberry"]
    history = dataclasses.replace(known.historical, differs="Emulated: the ratio alone can be compared. " + " ".join(LIMITS))
    return dataclasses.replace(
        known, name=f"raspberry-{machine.name}", title=f"{known.title}, {machine.name} under emulation",
        about=f"Monkey and BusyBox httpd as programs for {machine.name}, run by {machine.emulator}. Only ratios mean something.",
        features=(*known.features, machine.name), metrics=("instructions", "rate", "cpu_us"),
        base=f"{BASE}-{machine.name}", historical=history)


class Counting(Referee):
    """Counts instructions under the same load after the shots of a case. Counting is expensive, so it has its own shots."""

    def __init__(self, order, plugins, counted):
        super().__init__(order)
        self.plugins, self.counted = plugins, counted  # {case: reason for not counting, or None}; {case: {name: Emulated with a counter}}

    def _hold(self, case, plan):
        super()._hold(case, plan)
        self.record.absent_in = [each for each in self.record.absent_in if each.case != case.name]
        if self.plugins[case.name]:
            self.record.notes.append(f"{case.name}: instructions are not counted: {self.plugins[case.name]}")
        for name, entry in self.counted[case.name].items():
            if not self.record.is_disqualified(case.name, name):
                self._guard(case, {name: Stage(entry, case, self.material, self.order.server_cores, self.cgroups)}, name,
                            lambda stage: self._count_all(stage, plan))

    def _count_all(self, stage, plan):
        try:
            stage.start()
        except contestant.Failed as failed:
            raise Disqualified(f"did not start: {failed}") from None
        try:
            for number in range(1, plan.rounds + 1):
                self.order.say(f"{stage.case.name}: instructions of {stage.name}, round {number} of {plan.rounds}")
                for step in plan.steps:
                    self._count(stage, number, step)
        finally:
            stage.stop()

    def _count(self, stage, number, step):
        load = [f"-r{COUNTED_EACH}" if part.startswith("-t") else part
                for part in self._client_command(stage, step, COUNTED_SECONDS)]
        command = shot.wr_command(self.order.wr, stage.roots(), self.order.client_cores, stage.case, step, load,
                                  cgroup=stage.cgroup)
        before = emulator.settled(stage.entry.counter)
        try:
            requests = shot.shot_of(shot.run_wr(command, COUNTED_SECONDS))["requests"]
        except shot.NoShot as why:
            raise Disqualified(str(why)) from None
        after = emulator.settled(stage.entry.counter)
        if requests and after > before:
            metrics = {"instructions": (after - before) / requests}
            self.record.shots.append(record.Shot(stage.case.name, stage.name, number, step, metrics))


# ---- Results ----

def by_round(made, case, name, metric):
    """Returns {round: value}."""
    return {each.round: each.metrics[metric] for each in made.shots
            if each.case == case and each.contestant == name and each.metrics.get(metric) is not None}


def ratio(made, case, metric, name, base):
    """Returns an estimate of name : base from the ratio of each round, since a disturbance affects both sides of a round. Returns
    None if there are no values."""
    ours, theirs = by_round(made, case, name, metric), by_round(made, case, base, metric)
    found = [statistics.ratio(ours[number], theirs[number]) for number in sorted(ours.keys() & theirs.keys())]
    return statistics.estimate([each for each in found if each is not None])


def written(estimate):
    return "unknown" if not estimate else f"{estimate.median:.3g} ({estimate.low:.3g} to {estimate.high:.3g})"


def _counts(made, case, name):
    found = statistics.estimate(made.values(case, name, "instructions"))
    return f"    {name:16} {found.median:.0f} ({found.low:.0f} to {found.high:.0f})" if found else f"    {name:16} unknown"


def lines_of(made, machine):
    """Returns the result lines of one machine."""
    case, (ours, base) = f"raspberry-{machine.name}", [f"{name}-{machine.name}" for name in NAMES]
    titles = [f"{made.contestants[name].title} {made.contestants[name].version}" for name in (ours, base)]
    yield f"{machine.name}, under {machine.emulator}: {titles[0]} as a multiple of {titles[1]}"
    for each in made.disqualified:
        if each.case == case:
            yield f"  {each.contestant} is disqualified: {each.why}"
    yield f"  instructions per request  {written(ratio(made, case, 'instructions', ours, base))}   without the kernel"
    yield from (_counts(made, case, name) for name in (ours, base))
    yield f"  requests per second       {written(ratio(made, case, 'rate', ours, base))}   {EMULATOR}; in 2012: {THEN:.2f}"
    yield f"  CPU time per request      {written(ratio(made, case, 'cpu_us', ours, base))}   {EMULATOR}"
    yield f"  {len(by_round(made, case, ours, 'rate'))} rounds; the interval of the median is in parentheses"


def text_of(made, machines):
    parts = ["raspberry on ARM: siege, 10 clients without delay, 1.4 KB, one request per connection"]
    parts += ["\n".join(lines_of(made, machine)) for machine in machines]
    parts += ["Limits of emulation:\n" + "\n".join(f"- {each}" for each in LIMITS)]
    return "\n\n".join(parts) + "\n"


# ---- The command ----

def add_arguments(parser):
    parser.add_argument("--only", metavar="ARCHITECTURE", choices=list(emulator.MACHINES), help="armhf or arm64; default: both")
    parser.add_argument("--rounds", type=run.whole, default=ROUNDS, metavar="N", help=f"default: {ROUNDS}")
    parser.add_argument("--seconds", type=run.positive, default=SECONDS, metavar="S", help=f"length of a shot; default: {SECONDS}")
    parser.add_argument("--output", type=Path, metavar="FOLDER", help="for the record; default: build/contest/TIME-arm")
    parser.add_argument("--wr", type=Path, metavar="PROGRAM", help="default: build/release/wr, or the one on PATH")


def _order(options, folder):
    wr = run.find_program("wr", options.wr)
    if not wr:
        raise UserError("there is no wr: `make tools` builds it, or --wr names one")
    if not shutil.which("siege"):
        raise UserError("there is no siege: `tools/dev/need.sh check` installs it")
    server, client = environment.share_cores()
    return Order({}, {}, "custom", folder, server, client, wr, {}, run.make_material)


def hold(options, order, machines, scratch):
    """Runs the contest on all these machines, and returns the record."""
    plugins, counted = {}, {}
    for machine in machines:
        programs = programs_for(machine, order.say)
        plugin, why = emulator.counting_plugin(machine, programs["busybox"][0], scratch)
        case = case_for(machine)
        plan = cases.change(case.plan("full"), options.rounds, options.seconds)
        order.entries |= line_up(machine, programs)
        order.cases[case.name] = (case, plan)
        plugins[case.name] = why
        counted[case.name] = line_up(machine, programs, plugin, scratch) if plugin else {}
    referee = Counting(order, plugins, counted)
    referee.record.notes += LIMITS
    return referee.run()


def main(options):
    machines = [each for name, each in emulator.MACHINES.items() if options.only in (None, name)]
    for machine in machines:
        machine.check()
    folder = options.output or record.RESULTS / datetime.datetime.now().strftime("%Y-%m-%d-%H%M%S-arm")
    order = _order(options, folder)
    environment.raise_limits()
    order.say = run.Progress(sys.stderr)
    with emulator.scratch() as scratch:
        made = hold(options, order, machines, scratch)
    order.say.end()
    text = text_of(made, machines)
    Path(folder, "arm.txt").write_text(text)
    print(f"{text}\n{folder}")
    if made.interrupted:
        return 128 + signal.SIGINT
    return 1 if made.disqualified else 0
