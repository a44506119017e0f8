# SPDX-License-Identifier: Apache-2.0
"""Lists the contestants, with version and state or the reason for their absence, and the cases, with steps and duration."""
from contest import case as cases
from contest import contestant, run


def add_arguments(parser):
    parser.add_argument("--quick", action="store_true", help="show the steps and times of the quick run")


def contestant_line(name, entry):
    found = entry.find()
    mark = " (yardstick, not ranked)" if entry.yardstick else ""
    if not found:
        return f"  {name:15}absent   {entry.title}{mark}: {found.why}"
    lacks = "".join(f"; no {feature}: {why}" for feature, why in entry.missing().items())
    return f"  {name:15}present  {entry.title} {entry.version()}, {entry.origin() or found.program}{mark}{lacks}"


def case_line(case, mode, count, seconds):
    plan = case.plan(mode)
    if not plan:
        return f"  {case.name:15}{case.title} (only in the full run)"
    steps = ", ".join(f"{step:g}" for step in plan.steps)
    return (f"  {case.name:15}{case.title}\n{'':17}{case.client}, {case.axis or 'steps'} {steps}; {plan.rounds} rounds of "
            f"{plan.seconds:g} s; {count} contestants, {run.minutes(seconds)}")


def main(options):
    entries, known = contestant.load_all(), cases.load_all()
    mode = "quick" if options.quick else "full"
    chosen = {name: (case, case.plan(mode)) for name, case in known.items() if case.plan(mode)}
    times = run.estimate(chosen, entries)
    print("Contestants")
    for name, entry in entries.items():
        print(contestant_line(name, entry))
    print(f"\nCases of the {mode} run")
    for name, case in known.items():
        print(case_line(case, mode, *times.get(name, (0, 0))))
    print(f"\nAll of it takes about {run.minutes(sum(seconds for _, seconds in times.values()))}.")
