"""``python -m tests.conformance.hived_replay FILE...``: replay recorded outcomes of the HiveD reference.

FILE is a ``.jsonl`` or ``.jsonl.gz`` of traces; ``configs.json.gz`` is taken from beside it unless ``--configs`` says
otherwise. Prints agreement per level, each difference with what justifies it, and every broken law. Exit code 1 when
something differs that nothing justifies, or a law is broken.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from tests.conformance.hived.levels import LEVELS
from tests.conformance.hived.player import Difference, Player, Result
from tests.conformance.hived.trace import read_configs, read_traces


def replay(path: Path, configs: Path) -> list[Result]:
    """Play all traces of a file, each twice: the second time must give the same answers."""
    known = read_configs(configs)
    results = []
    for trace in read_traces(path):
        result = Player(trace, known).play()
        if Player(trace, known).play().answers != result.answers:
            result.broken.append(f"{trace.id}: 7: played twice with different answers")
        results.append(result)
    return results


def summary(results: Sequence[Result]) -> str:
    """Agreement per level, over all operations and over those where no defect is involved."""
    operations = sum(result.operations for result in results)
    differences = [each for result in results for each in result.differences]
    first = Counter(each.level for each in differences)
    justified = Counter(each.level for each in differences if each.why is not None)
    lines = [f"{len(results)} traces, {operations} operations"]
    off = covered = 0
    for level in LEVELS:
        off += first[level]
        covered += justified[level]
        rest = operations - covered
        clean = 100 * (operations - off) / rest if rest else 100.0
        lines.append(
            f"  {level}  {100 * (operations - off) / operations:6.2f} %"
            f"  ({operations - off} agree, {off} differ up to here);"
            f" without the justified ones {clean:6.2f} %"
        )
    same = sum(not result.differences for result in results)
    lines.append(f"  {same} traces agree on every level of every operation")
    codes = Counter(
        f"{each.level} {each.why.code}" if each.why else f"{each.level} UNJUSTIFIED" for each in differences
    )
    lines += [f"  {count:4} x {code}" for code, count in sorted(codes.items())]
    return "\n".join(lines)


def line(each: Difference) -> str:
    """One difference for the reader."""
    why = f"{each.why.code}: {each.why.text}" if each.why else "UNJUSTIFIED"
    text = f"{each.trace} op {each.number} {each.op}: {each.level}: {each.theirs.kind} -> {each.ours.kind}; {why}"
    return text if each.why else f"{text}\n    theirs {each.theirs}\n    ours   {each.ours}"


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.conformance.hived_replay", description=__doc__)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--configs", type=Path, help="the configurations, when not configs.json.gz beside the file")
    parser.add_argument("--quiet", action="store_true", help="only the table and what is not justified")
    options = parser.parse_args(arguments)
    failed = False
    for path in options.files:
        results = replay(path, options.configs or path.with_name("configs.json.gz"))
        print(f"{path.name}: {summary(results)}")
        for result in results:
            for each in result.differences:
                if each.why is None or not options.quiet:
                    print(f"  {line(each)}")
            for law in result.broken:
                print(f"  BROKEN {law}")
            failed = failed or bool(result.broken) or any(each.why is None for each in result.differences)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
