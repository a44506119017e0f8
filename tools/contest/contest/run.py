# SPDX-License-Identifier: Apache-2.0
"""Runs the contest, or a part of it, and writes its record. Ctrl-C ends the run and keeps the measurements so far."""
import argparse
import contextlib
import datetime
import math
import os
import shutil
import signal
import sys
import tempfile
from pathlib import Path

from contest import case as cases
from contest import contestant, environment, material, record
from contest.user_error import UserError, nearest
from contest.referee import NOISE, Order, Referee, lineup

RELEASE = contestant.PROJECT / "build" / "release"


def add_arguments(parser):
    parser.add_argument("--quick", action="store_true", help="the short run: fewer cases, steps, rounds and seconds")
    parser.add_argument("--only", metavar="A,B", help="these contestants")
    parser.add_argument("--case", metavar="X,Y", help="only these cases, even if the quick run omits them")
    parser.add_argument("--rounds", type=whole, metavar="N", help="instead of the value in each case")
    parser.add_argument("--seconds", type=positive, metavar="S", help="length of a shot, instead of the value in each case")
    parser.add_argument("--output", type=Path, metavar="FOLDER", help="for the record; default: build/contest/TIME")
    parser.add_argument("--server-cores", metavar="LIST", help="such as 0,2-3; default: the first, or the first half")
    parser.add_argument("--client-cores", metavar="LIST", help="default: the others")
    parser.add_argument("--wr", type=Path, metavar="PROGRAM", help="default: build/release/wr, or the one on PATH")
    parser.add_argument("--noise", type=positive, default=NOISE, metavar="SHARE",
                        help=f"repeat a shot if other programs used more than this share of the cores; default: {NOISE}")
    parser.add_argument("--seed", type=whole, metavar="N", help="of the order of contestants, to repeat an order")
    parser.add_argument("--dry-run", action="store_true", help="print what the run would do and how long it would take")


def whole(text):
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"expected a whole number above 0, found {text!r}")
    return int(text)


def positive(text):
    try:
        value = float(text)
    except ValueError:
        value = 0
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"expected a number above 0, found {text!r}")
    return value


# ---- Selection ----

def names_of(text, known, what):
    """Returns the names in a list such as 'a,b'; without a list, all names."""
    if text is None:
        return list(known)
    names = [name for name in (part.strip() for part in text.split(",")) if name]
    if not names:
        raise UserError(f"the list of {what}s is empty; known are: {', '.join(known)}", code=2)
    for name in names:
        if name not in known:
            raise UserError(f"there is no {what} {name!r}{nearest(name, known)}", code=2)
    return [name for name in known if name in names]


def plans(options, known):
    """Returns {name: (case, plan)} for the selected cases."""
    mode, found = "quick" if options.quick else "full", {}
    for name in names_of(options.case, known, "case"):
        plan = known[name].plan(mode)
        if not plan and options.case:
            plan = known[name].plan("full")
        if plan:
            found[name] = (known[name], cases.change(plan, options.rounds, options.seconds))
    if options.seconds and options.seconds % 1:
        whole_ones = sorted({case.client for case, _ in found.values() if case.client in cases.WHOLE_SECONDS})
        if whole_ones:
            raise UserError(f"--seconds {options.seconds:g}: {', '.join(whole_ones)} can only run for whole seconds; use a whole "
                            "number, or select cases with other clients (--case)", code=2)
    return found


def mode_of(options):
    changed = options.case or options.only or options.rounds or options.seconds
    return "custom" if changed else "quick" if options.quick else "full"


def find_program(name, given=None):
    """Finds our own program: as given, as built, or on PATH; None if it is missing."""
    if given:
        found = shutil.which(given)
        if not found:
            raise UserError(f"{given}: no such program", code=2)
        return os.path.abspath(found)
    built = RELEASE / name
    return str(built) if os.access(built, os.X_OK) else shutil.which(name)


# ---- Messages ----

def minutes(seconds):
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"


def estimate(chosen, entries):
    """Returns the estimated seconds of each case: {name: (contestants, seconds)}."""
    present = {name: entry for name, entry in entries.items() if entry.find()}
    found = {}
    for name, (case, plan) in chosen.items():
        takes, _ = lineup(present, case)
        found[name] = (len(takes), case.estimate(plan, len(takes)))
    return found


def say_plan(chosen, entries):
    times = estimate(chosen, entries)
    for name, (case, plan) in chosen.items():
        steps = ", ".join(f"{step:g}" for step in plan.steps)
        count, seconds = times[name]
        print(f"{name:15}{count:3} contestants, {case.axis or 'step'} {steps}; {plan.rounds} x {plan.seconds:g} s: "
              f"{minutes(seconds)}")
    absent = [name for name, entry in entries.items() if not entry.find()]
    if absent:
        print(f"absent: {', '.join(absent)}")
    print(f"estimated time: {minutes(sum(seconds for _, seconds in times.values()))}")


class Progress:
    """Prints progress to standard error; temporary states only on a terminal, in a line that is overwritten."""

    def __init__(self, stream):
        self.stream, self.is_terminal = stream, stream.isatty()

    def __call__(self, text, passing=False):
        start = "\r\033[K" if self.is_terminal else ""
        if not passing:
            self.stream.write(f"{start}contest: {text}\n")
        elif self.is_terminal:
            self.stream.write(f"{start}{text[:shutil.get_terminal_size().columns - 1]}")
        self.stream.flush()

    def end(self):
        if self.is_terminal:
            self.stream.write("\r\033[K")
            self.stream.flush()


# ---- Running ----

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
SCOPE = "systemd-run --user --scope -p Delegate=yes"


def ignore_signals():
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)


def interrupt(*_):
    """Handles the first signal, which ends the run. Ignores further signals, which must not interrupt the cleanup."""
    ignore_signals()
    raise KeyboardInterrupt


@contextlib.contextmanager
def interruptible():
    before = {number: signal.signal(number, interrupt) for number in SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def writable(folder):
    """Creates the folder and checks that it is writable."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return folder
    except OSError as error:
        raise UserError(f"{folder}: not writable ({error.strerror}); --output selects another folder",
                        code=2) from None


def prepare(options):
    """Returns the settings of a run."""
    entries = contestant.load_all()
    entries = {name: entries[name] for name in names_of(options.only, entries, "contestant")}
    chosen = plans(options, cases.load_all())
    if options.dry_run:
        return Order(entries, chosen, mode_of(options), Path(), [], [], "")
    if not any(entry.find() for entry in entries.values()):
        raise UserError("no contestant is installed: " + "; ".join(f"{n}: {e.find().why}" for n, e in entries.items()))
    wr = find_program("wr", options.wr)
    if not wr:
        raise UserError("there is no wr: `make tools` builds it, or --wr names one")
    server, client = environment.share_cores(options.server_cores, options.client_cores)
    clients = {"pace": find_program("pace")}
    folder = options.output or record.RESULTS / datetime.datetime.now().strftime("%Y-%m-%d-%H%M%S")
    return Order(entries, chosen, mode_of(options), writable(folder), server, client, wr,
                 {name: path for name, path in clients.items() if path}, make_material, options.noise,
                 **({"seed": options.seed} if options.seed else {}))


def make_material(folder, lists):
    """Creates the material. The many small files and the web site are included only if a case needs them."""
    try:
        return material.make(folder, tree=material.TREE_FILES if "many" in lists else 0, site="site" in lists)
    except material.NoMaterial as error:
        raise UserError(str(error)) from None


def main(options):
    order = prepare(options)
    if options.dry_run:
        say_plan(order.cases, order.entries)
        return 0
    environment.raise_limits()
    order.say = Progress(sys.stderr)
    order.ending = ignore_signals
    seconds = sum(each for _, each in estimate(order.cases, order.entries).values())
    order.say(f"{len(order.cases)} cases, about {minutes(seconds)}; Ctrl-C ends the run and keeps the measurements")
    with interruptible():
        referee = Referee(order)
        if referee.cgroups.why:
            order.say(f"CPU time is not exact: {referee.cgroups.why}, so the time of short-lived processes may be missing, and "
                      f"servers that start one for each request look better than they are. As root, or with `{SCOPE}` in front of "
                      "the command, it is exact.")
        try:
            made = referee.run()
        finally:
            order.say.end()
    print(order.folder)
    if made.interrupted:
        print("contest: interrupted; the record contains the measurements so far", file=sys.stderr)
        return 128 + signal.SIGINT
    return 0
