"""Random programs under automatic schedules: legal, compiled, equal to the oracle to the bit, and no slower.

python -m tests.auto --programs 300 [--seed 0] [--timed] [--limit 1.5]
"""

from __future__ import annotations

import argparse
import sys
import traceback

from tests.auto.pipelines import tried


def main() -> int:
    """Try programs and print what was found; return 1 where one is wrong, refused, or slower than the limit."""
    parser = argparse.ArgumentParser(prog="python -m tests.auto", description=__doc__)
    parser.add_argument("--programs", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--timed", action="store_true", help="beside the default schedule")
    parser.add_argument("--limit", type=float, default=1.5, help="how much slower is too slow")
    options = parser.parse_args()
    done = wrong = slow = taken_back = 0
    ratios: list[tuple[float, int]] = []
    seed = options.seed
    while done < options.programs:
        try:
            found = tried(seed, options.timed)
        except Exception:
            wrong += 1
            done += 1
            print(f"seed {seed}: {traceback.format_exc(limit=-3)}", flush=True)
        else:
            done += found is not None
            if found is not None:
                taken_back += bool(found.refused)
                for text in found.refused:
                    print(f"seed {seed}: taken back: {text}", flush=True)
                if options.timed:
                    ratios.append((found.auto_ns / found.default_ns, seed))
                    if ratios[-1][0] > options.limit:
                        slow += 1
                        times = f"{found.auto_ns / 1e3:.1f} us, default {found.default_ns / 1e3:.1f} us"
                        print(f"seed {seed}: {ratios[-1][0]:.2f} times as long: {times}", flush=True)
        seed += 1
    print(f"{done} programs: {wrong} wrong, {taken_back} with something taken back, {slow} too slow")
    if ratios:
        ratios.sort()
        print(f"automatic / default: median {ratios[len(ratios) // 2][0]:.2f}, worst {ratios[-1]}")
    return 1 if wrong or slow else 0


if __name__ == "__main__":
    sys.exit(main())
