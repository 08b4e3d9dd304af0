# SPDX-License-Identifier: Apache-2.0
"""Measures torch_tpu against torch CPU and against hand-written StableHLO, on each CPU engine.

    python bench/run.py [--engine NAME] [--rows PATTERN] [--quick] [--json FILE] [--markdown [FILE]]

Each engine's rows run in a fresh process; both sides of a ratio are timed in turns in one process. "Returns" is the time until
a call comes back, in bursts of 100 calls that meet an idle queue, with the CPU time of the whole process beside it; "completed"
is 1,000 calls (fewer of slow ones) and one synchronize. A value is the median of the ratios within each round.
"""

import argparse
import dataclasses
import json
import os
import pathlib
import subprocess
import sys

import pjrt_loop
import rows
import tables

HERE = pathlib.Path(__file__).resolve().parent
DOCUMENT = HERE.parent / "docs" / "benchmarks.md"

METHOD = """
## Against torch CPU and hand-written StableHLO

{machine}. Ratios are ours over the reference, so smaller is better; a value is the median of the ratios within each
round of one interleaved run (`bench/timing.py`). "Returns" is the time until a call comes back, in bursts of 100 on an idle
queue; "completed" is up to 1,000 calls and one synchronize on both sides. Call-cost rows are judged on the default engine
({default}), model rows on the fastest; "all" means that each engine has to meet the target. The reference of
"hand-written StableHLO" is the fastest form in `bench/programs/`, run by `bench/pjrt_loop.cc` through PJRT alone.
{quick}
"""


def run_worker(names: list[str], engine: str, options: rows.Options, one_cpu: bool = False):
    """Yields one result a row; a row that takes the process down is an error, and those after it get a new process."""
    environment = {**os.environ, "TORCH_TPU_LOG_LEVEL": "error"}
    if engine:
        environment["TORCH_TPU_CPU_PLUGIN"] = engine
    cpu = max(os.sched_getaffinity(0))
    while names:
        task = json.dumps({"rows": names, "options": dataclasses.asdict(options)})
        child = subprocess.Popen(
            [sys.executable, str(HERE / "worker.py"), task],
            env=environment,
            stdout=subprocess.PIPE,
            text=True,
            preexec_fn=(lambda: os.sched_setaffinity(0, {cpu})) if one_cpu else None,
        )
        for line in child.stdout:
            result = json.loads(line)
            names = names[1:]
            yield result.pop("row"), result
        code = child.wait()
        if names:
            yield names[0], {"error": f"the process ended with code {code}"}
            names = names[1:]


def measure(shown: list[rows.Row], engines: list[str], options: rows.Options) -> dict[str, dict[str, dict]]:
    results: dict[str, dict[str, dict]] = {row.name: {} for row in shown}

    def collect(names: list[str], engine: str, one_cpu: bool = False) -> None:
        for name, result in run_worker(names, engine, options, one_cpu):
            results[name][engine] = result
            value = tables.number(result.get("value"))
            print(f"  {engine or 'no engine':24}{name}: {value}  {tables.detail(result)}", file=sys.stderr, flush=True)

    collect([row.name for row in shown if row.process == "no engine"], "")
    for engine in engines:
        collect([row.name for row in shown if row.process == "shared"], engine)
        for row in shown:
            if row.process in ("own", "one cpu"):
                collect([row.name], engine, row.process == "one cpu")
    return results


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engine", choices=["all", *rows.ENGINES], default="all", help="default: all three")
    parser.add_argument("--rows", action="append", metavar="PATTERN", help="part of a name, a shell pattern, or a module")
    parser.add_argument("--list", action="store_true", help="show the rows and stop")
    parser.add_argument("--quick", action="store_true", help="few rounds: shows that the rows work, not how fast they are")
    parser.add_argument("--programs", type=int, default=0, metavar="N", help="also run N distinct programs (30000: minutes)")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE")
    parser.add_argument(
        "--markdown", type=pathlib.Path, nargs="?", const=DOCUMENT, metavar="FILE", help="default: docs/benchmarks.md"
    )
    return parser.parse_args()


def main() -> int:
    args = arguments()
    shown = rows.matching(args.rows or ["*"])
    if args.list or not shown:
        print("\n".join(f"{row.module:10} {row.name}" for row in shown or rows.all_rows()))
        return 0 if shown else 2
    engines = rows.ENGINES if args.engine == "all" else [args.engine]
    options = rows.Options(args.quick, args.programs, pjrt_loop.find())
    machine = tables.machine_line()
    results = measure(shown, engines, options)

    overview, details = tables.overview(shown, results, engines), tables.details(shown, results)
    print(machine, tables.aligned(overview), tables.aligned(details), sep="\n\n")
    if args.json:
        kept = [{"row": r.name, "module": r.module, "unit": r.unit, "target": r.target, "judged": r.judged,
                 "verdict": tables.verdict(r, results[r.name]), "results": results[r.name]} for r in shown]  # fmt: skip
        args.json.write_text(json.dumps({"machine": tables.machine(), "quick": args.quick, "rows": kept}, indent=1) + "\n")
    if args.markdown:
        quick = "**A quick run: these figures only show that the rows work.**" if args.quick else ""
        head = METHOD.format(machine=machine, default=rows.DEFAULT_ENGINE, quick=quick)
        text = "\n\n".join([head.strip(), tables.markdown(overview), "### Details", tables.markdown(details)])
        tables.write_section(args.markdown, "torch CPU", text)
    failed = [name for name, found in results.items() if any("error" in result for result in found.values())]
    if failed:
        print("not measured: " + "; ".join(failed), file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
