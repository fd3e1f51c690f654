"""``python -m tests.conformance.hived_replay FILE...``: replay recorded outcomes of the HiveD reference.

FILE is a ``.jsonl`` or ``.jsonl.gz`` of traces; ``configs.json.gz`` is taken from beside it unless ``--configs`` says
otherwise. Prints agreement per level, each difference with what justifies it, and every broken law.

Exit code 1 when something differs that nothing justifies, or a law is broken; 2 when a file cannot be read.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from tests.conformance.hived.player import Difference, Player, Result
from tests.conformance.hived.trace import Unreadable, read_configs, read_traces

MEANINGS = {
    "L0": "the kind of outcome",
    "L1": "and who ends, is displaced or cancelled",
    "L2": "and chain, pods per node, cells left free",
    "L3": "and the very nodes and devices",
}
CODES = {
    "D6": "there a group that is spared stays marked as a victim",
    "D7": "there gangs of unequal pods are missed",
    "D8": "there cells are dropped while they are split",
    "D10": "leaves of the same node, in cells as small, by another order",
    "D11": "the order of hash maps or of history decides there",
    "D12": "there groups end although a later chain has room",
    "S4": "here fewer groups lose something",
    "earlier": "the state differs as after a difference listed before",
    "UNEXPLAINED": "a fault of ours, until somebody can argue otherwise",
}
"""Numbers as in docs/scheduling.md, *Differences from the reference*."""


def replay(path: Path, configs: Path) -> list[Result]:
    """Play all traces of a file, each twice: the second time must give the same answers."""
    known = read_configs(configs)
    results = []
    for trace in read_traces(path, known):
        result = Player(trace, known).play()
        if Player(trace, known).play().answers != result.answers:
            result.broken.append(f"{trace.id}: 7: played twice with different answers")
        results.append(result)
    return results


def summary(results: Sequence[Result]) -> str:
    """Agreement per level, over all operations and over those on which no defect of the reference has a part."""
    operations = sum(result.operations for result in results)
    differences = [each for result in results for each in result.differences]
    lines = [
        f"{len(results)} traces, {operations} operations; each level includes those before it",
        f"  level {'':42}  agree  involved  unexplained  of all   without involved",
    ]
    off = involved = 0
    for level, meaning in MEANINGS.items():
        off += sum(each.level == level for each in differences)
        involved += sum(each.level == level and each.why is not None for each in differences)
        rest = operations - involved
        clean = f"{100 * (operations - off) / rest:6.2f} % of {rest}" if rest else "nothing is left"
        lines.append(
            f"  {level:<5} {meaning:42}  {operations - off:5}  {involved:8}  {off - involved:11}"
            f"  {100 * (operations - off) / operations:6.2f} %  {clean}"
        )
    same = sum(not result.differences for result in results)
    lines.append(f"  {same} of {len(results)} traces agree on every level of every operation")
    codes = Counter((each.why.code if each.why else "UNEXPLAINED", each.level) for each in differences)
    if codes:
        lines.append("  involved: a defect of the reference or an improvement upon it, argued from the state before:")
    lines += [f"  {count:4} x {code} on {level}: {CODES[code]}" for (code, level), count in sorted(codes.items())]
    return "\n".join(lines)


def line(each: Difference) -> str:
    """One difference for the reader."""
    why = f"{each.why.code}: {each.why.text}" if each.why else "UNEXPLAINED"
    text = f"{each.trace} op {each.number} {each.op}: {each.level}: {each.theirs.kind} -> {each.ours.kind}; {why}"
    return text if each.why else f"{text}\n    theirs {each.theirs}\n    ours   {each.ours}"


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.conformance.hived_replay", description=__doc__)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--configs", type=Path, help="the configurations, when not configs.json.gz beside the file")
    parser.add_argument("--quiet", action="store_true", help="only the tables and what is unexplained")
    options = parser.parse_args(arguments)
    failed = False
    for path in options.files:
        try:
            results = replay(path, options.configs or path.with_name("configs.json.gz"))
        except Unreadable as error:
            print(error, file=sys.stderr)
            return 2
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
