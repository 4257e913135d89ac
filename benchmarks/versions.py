"""Two checkouts of goldspan against each other: is the new one slower anywhere?

    python benchmarks/versions.py OLD NEW

OLD and NEW are checkouts. Both are asked in turn to do the same work, each in a process of its
own that has loaded its data and warmed up; a ratio is the new one's time over the old one's in
one pair.
The table has the median of the pairs and their range. Exit code 1 if a whole range lies above
`WORSE`: every single pair was that much slower.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

WORSE = 1.05
PAIRS = 5
CHILD = """
import gc, sys, time
{prepare}
def work():
{work}
for line in sys.stdin:
    gc.collect()
    begin = time.perf_counter()
    work()
    print(time.perf_counter() - begin, flush=True)
"""
CROWD = """
import goldspan
crowd = goldspan.read_crowd("{data}/ner_mturk/crowd.tsv.gz")
"""
LABELS = """
import goldspan, numpy
rng = numpy.random.default_rng(1)
n, workers = 20_000, 200
truth = rng.integers(4, size=n)
item = numpy.repeat(numpy.arange(n), 5)
worker = rng.integers(workers, size=len(item))
label = numpy.where(rng.random(len(item)) < 0.7, truth[item], rng.integers(4, size=len(item)))
import pyarrow
columns = (item.astype(str), worker.astype(str), label.astype(str))
crowd = goldspan.read_crowd(pyarrow.table(dict(zip(("task", "worker", "label"), columns))))
"""
TAGS = """
import gzip
from goldspan.tagger import CRF
with gzip.open("{data}/conll2003/testb.tsv.gz", "rt") as lines:
    blocks = lines.read().split("\\n", 1)[1].strip().split("\\n\\n")
rows = [[line.split("\\t") for line in block.split("\\n")] for block in blocks if "\\t" in block]
data = [[[row[k] for row in item] for item in rows] for k in (0, 5)]
"""
COMMAND = """
import subprocess, sys, tempfile
from pathlib import Path
def command(*words):
    subprocess.run([sys.executable, "-m", "goldspan", *words], check=True, capture_output=True)
"""
WORK = {
    "read crowd.tsv.gz": (
        "import goldspan",
        'goldspan.read_crowd("{data}/ner_mturk/crowd.tsv.gz")',
    ),
    "read raw.zip": ("import goldspan", 'goldspan.read_crowd("{data}/ner_mturk/raw.zip")'),
    "read pico": ("import goldspan", 'goldspan.read_crowd("{data}/pico/rest.jsonl.gz")'),
    "write span JSONL": (
        CROWD,
        'goldspan.write_crowd(crowd, "{folder}/crowd.jsonl")',
    ),
    "agreement": (CROWD, "goldspan.agreement(crowd)"),
    "score": (
        CROWD + "\nresult = goldspan.aggregate(crowd, 'mv-token')",
        "for _ in range(10): goldspan.score(crowd, result)",
    ),
    **{
        f"aggregate {method}": (CROWD, f"goldspan.aggregate(crowd, {method!r})")
        for method in ("mv-token", "mv-seg", "mace", "ds", "bsc-seq")
    },
    "aggregate bsc-seq+crf, 3 rounds": (
        CROWD,
        "goldspan.aggregate(crowd, 'bsc-seq+crf', max_iter=3)",
    ),
    **{
        f"100,000 single labels, {method}": (LABELS, f"goldspan.aggregate(crowd, {method!r})")
        for method in ("mv-token", "mace", "ds", "wmv-log")
    },
    "train a CRF, 20 steps": (TAGS, "CRF(max_iter=20).fit(*data)"),
    "goldspan --help": (COMMAND, 'command("--help")'),
    "goldspan run, the example": (
        COMMAND,
        'command("run", "{example}", "--out", tempfile.mkdtemp(dir="{folder}"))',
    ),
}
"""What is done: how a process gets ready, and what is timed."""


def main() -> int:
    """Run all, print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--only", default="", help="works whose name has this in it")
    args = parser.parse_args()
    slower = []
    print("| work | old, s | new, s | new / old, median | range |")
    print("|---|---:|---:|---:|---|", flush=True)
    for name, (prepare, work) in WORK.items():
        if args.only not in name:
            continue
        pairs = _pairs((args.old, args.new), args.data.resolve(), prepare, work)
        if not pairs:
            print(f"| {name} | could not be run |", flush=True)
            continue
        ratios = sorted(new / old for old, new in pairs)
        old, new = (statistics.median(pair[side] for pair in pairs) for side in (0, 1))
        print(
            f"| {name} | {old:.3f} | {new:.3f} | {statistics.median(ratios):.2f} | "
            f"{ratios[0]:.2f} to {ratios[-1]:.2f} |",
            flush=True,
        )
        if ratios[0] > WORSE:
            slower.append(name)
    if slower:
        print(f"\nSlower by more than {WORSE - 1:.0%} in every pair: {', '.join(slower)}.")
    return 1 if slower else 0


def _pairs(
    trees: tuple[Path, Path], data: Path, prepare: str, work: str
) -> list[tuple[float, float]]:
    """Time both checkouts in turn, after one run that is not counted."""
    with tempfile.TemporaryDirectory() as folder:
        children = []
        for n, tree in enumerate(trees):
            own = Path(folder, str(n))
            own.mkdir()
            example = (tree / "examples" / "campaign.toml").resolve()
            texts = [t.format(data=data, folder=own, example=example) for t in (prepare, work)]
            code = CHILD.format(prepare=texts[0], work="    " + texts[1])
            children.append(
                subprocess.Popen(
                    [sys.executable, "-c", code],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    text=True,
                    env={**os.environ, "PYTHONPATH": str((tree / "src").resolve())},
                )
            )
        try:
            times = [[_ask(child) for child in children] for _ in range(PAIRS + 1)]
        except (ValueError, BrokenPipeError):
            return []
        finally:
            for child in children:
                child.kill()
                child.wait()
        return [(old, new) for old, new in times[1:]]


def _ask(child: subprocess.Popen[str]) -> float:
    assert child.stdin
    assert child.stdout
    child.stdin.write("go\n")
    child.stdin.flush()
    return float(child.stdout.readline())


if __name__ == "__main__":
    sys.exit(main())
