"""The automatic schedules of the applications: written, checked, and how long that takes.

    python -m examples.apps.by_machine write [--only blur3x3 ...]      write `schedules/cpu/APP.auto.stax`
    python -m examples.apps.by_machine check --size small|full         run each, beside NumPy

`write` prints the CPU time from a frozen program to its schedule, and fails where the median or the worst is too long.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time

import numpy as np

import stax as sx
from examples.apps import stax_suite

import apps  # isort: skip  (`stax_suite` says where it is)

MEDIAN_S, WORST_S = 1.5, 8.0


def schedule_of(app: str) -> tuple[sx.Schedule, float]:
    """Return the automatic schedule of `app` by its shapes of full size, and the CPU time that it took."""
    params = apps.APPS[app].params("full")
    shapes = {name: a.shape for name, a in apps.APPS[app].make(params).items()}
    program = stax_suite.PROGRAMS[app]()
    start = time.process_time()
    made = sx.auto_schedule(program, arrays=shapes)
    return made, time.process_time() - start


def write(options: argparse.Namespace) -> bool:
    """Write the automatic schedule of each application."""
    times: dict[str, float] = {}
    for app in options.only or stax_suite.PROGRAMS:
        made, times[app] = schedule_of(app)
        made.save(stax_suite.by_machine(app))
        refused = f", refused: {'; '.join(made.refused)}" if made.refused else ""
        print(f"{app:16s} {times[app]:6.2f} s{refused}", flush=True)
    median, worst = statistics.median(times.values()), max(times.values())
    well = median <= MEDIAN_S and worst <= WORST_S
    verdict = "reached" if well else "MISSED"
    print(f"median {median:.2f} s, worst {worst:.2f} s, wanted {MEDIAN_S} and {WORST_S}: {verdict}")
    return well


def check(options: argparse.Namespace) -> bool:
    """Compare each application under its automatic schedule with the NumPy reference, or with the default schedule."""
    well = True
    for app in options.only or stax_suite.PROGRAMS:
        one = apps.APPS[app]
        params = one.params(options.size)
        inputs = one.make(params)
        if options.size == "full" and one.slow_ref:
            want, beside = stax_suite.build(app, inputs, params, "stax")().copy(), "the default schedule"
        else:
            want, beside = one.ref(inputs, params), "NumPy"
        got = stax_suite.build(app, inputs, params, "auto")()
        wrong = one.check(got, want)
        well &= not wrong
        print(f"{app:16s} {options.size}, beside {beside}: {wrong or 'right'}", flush=True)
    return well


def main() -> int:
    """Run what the command line names; return 1 where something is missed."""
    parser = argparse.ArgumentParser(prog="by_machine", description=__doc__)
    commands = parser.add_subparsers(required=True)
    for name, function in {"write": write, "check": check}.items():
        command = commands.add_parser(name, help=(function.__doc__ or "").splitlines()[0])
        command.set_defaults(function=function)
        command.add_argument("--only", nargs="*", default=[], help="some applications")
        if name == "check":
            command.add_argument("--size", default="small", choices=["small", "full"])
    options = parser.parse_args()
    np.seterr(all="ignore")
    return 0 if options.function(options) else 1


if __name__ == "__main__":
    sys.exit(main())
