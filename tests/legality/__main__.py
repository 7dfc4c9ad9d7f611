"""The check of legality beside the oracle, on as many random programs and schedules as asked for.

python -m tests.legality --programs 8000
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings

from stax.errors import StaxWarning
from tests.legality.judge import KINDS, Tally, judge


def main(argv: list[str]) -> int:
    """Judge programs, print the tally, and return 0 where nothing accepted differs and no witness is denied."""
    parser = argparse.ArgumentParser(prog="python -m tests.legality")
    parser.add_argument("--programs", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kinds", nargs="*", default=list(KINDS), choices=KINDS)
    options = parser.parse_args(argv)
    warnings.simplefilter("ignore", StaxWarning)
    found, begin = Tally(), time.process_time()
    for seed in range(options.seed, options.seed + options.programs):
        found.add(judge(seed, tuple(options.kinds)))
    print(found.text())
    print(f"{time.process_time() - begin:.0f} s of one processor")
    return 1 if found.unsound or found.untrue else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
