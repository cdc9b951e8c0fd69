"""Ten alternating pairs of a command and `baseline.py` on one checkpoint: medians, ratio, peak memory.

    python compare.py DIR [COMMAND...]

COMMAND defaults to `target/release/ckpt-lint`. The baseline runs with the Python that PYTHON names, else with this one.
"""

import os
import pathlib
import statistics
import subprocess
import sys
import time

PAIRS = 10


def run(command: list[str]) -> tuple[float, float]:
    """Wall time in milliseconds and peak resident memory in MB, start of the process included."""
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    took = time.perf_counter() - start
    code = os.waitstatus_to_exitcode(status)
    if code not in (0, 1):
        sys.exit(f"{command[0]} exited with {code}")
    unit = 1 if sys.platform == "darwin" else 1024
    return took * 1e3, usage.ru_maxrss * unit / 1e6


def main() -> None:
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    folder, command = sys.argv[1], sys.argv[2:] or ["target/release/ckpt-lint"]
    here = pathlib.Path(__file__).parent
    baseline = [os.environ.get("PYTHON", sys.executable), str(here / "baseline.py"), folder]
    ours: list[tuple[float, float]] = []
    theirs: list[tuple[float, float]] = []
    # Once each, so that both find everything in the page cache.
    run([*command, folder]), run(baseline)
    for _ in range(PAIRS):
        ours.append(run([*command, folder]))
        theirs.append(run(baseline))
    for name, runs in ((command[0], ours), ("baseline.py", theirs)):
        times = [t for t, _ in runs]
        print(
            f"{name:<40} median {statistics.median(times):8.1f} ms"
            f"  ({min(times):.1f} to {max(times):.1f})  peak {max(m for _, m in runs):6.1f} MB"
        )
    ratio = statistics.median(t for t, _ in theirs) / statistics.median(t for t, _ in ours)
    print(f"ratio of medians over {PAIRS} alternating pairs: {ratio:.1f}")


if __name__ == "__main__":
    main()
