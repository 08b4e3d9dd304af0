# SPDX-License-Identifier: Apache-2.0
"""Measures small calls and train steps of torch_tpu against JAX and, with --torch-tpu, against Google's torch-tpu 0.2.0.

Each framework is a process of its own, in an environment of its own; they are timed in turns, one command at a time over pipes,
and all of them run the same PJRT plugin (JAX is shown with its built-in client as well). Google's wheel asks for a TPU: a shim
(peer_shim.cc) in front of a CPU plugin lets it run. That environment is several gigabytes where the package index has no CPU
build of torch for Python 3.12, which is why it is only made on request. Never part of the tests.
"""

import argparse
import ctypes.util
import dataclasses
import json
import os
import pathlib
import shutil
import subprocess
import sys

import rows
import tables
from timing import BURST, CALLS, Spread, compare, interleave

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent
BUILD = ROOT / "build" / "peers"
JAX = ["jax==0.10.2", "jaxlib==0.10.2"]
TORCH_TPU = ["torch==2.13.0", "torch-tpu==0.2.0"]
TORCH_TPU_ENGINE = "lammps-jax-pjrt-cpu"  # its programs need a newer plugin than the others


@dataclasses.dataclass
class PeerRow:
    name: str
    work: dict  # "elements" of an addition, or "model" and "mode" of a step of steps.py
    peer: str
    target: float | None = None
    clock: str = "completed"  # "returns", or "CPU": seconds of all threads for the first call of a new process
    one_cpu: bool = False


FOUR, THOUSAND, MANY = {"elements": 4}, {"elements": 1024}, {"elements": 65536}
ROWS = [
    PeerRow("x + y, 4 elements, completed / jax.jit loop", FOUR, "jax-plugin", 0.4),
    PeerRow("x + y, 4 elements, completed, one CPU / jax.jit loop", FOUR, "jax-plugin", 0.55, one_cpu=True),
    PeerRow("x + y, 4 elements, returns / jax.jit", FOUR, "jax-plugin", clock="returns"),
    PeerRow("x + y, 1,024 elements, completed / jax.jit loop", THOUSAND, "jax-plugin"),
    PeerRow("x + y, 65,536 elements, completed / jax.jit loop", MANY, "jax-plugin"),
    PeerRow("x + y, 4 elements, completed / jax.jit loop, its built-in client", FOUR, "jax"),
    PeerRow("x + y, 4 elements, completed, one CPU / jax.jit loop, its built-in client", FOUR, "jax", one_cpu=True),
    PeerRow("x + y, 4 elements, completed / torch-tpu strict", FOUR, "torch-tpu", 0.15),
    PeerRow("x + y, 4 elements, completed, one CPU / torch-tpu strict", FOUR, "torch-tpu", one_cpu=True),
    PeerRow("x + y, 4 elements, returns / torch-tpu strict", FOUR, "torch-tpu", clock="returns"),
    PeerRow("x + y, 4 elements, completed / torch CPU", FOUR, "torch"),
    *(
        PeerRow(f"small CNN train step, {mode}{where} / {name}", {"model": "cnn", "mode": mode}, peer, target, one_cpu=one_cpu)
        for peer, name, target in (("jax-plugin", "JAX twin", 1.0), ("torch-tpu", "torch-tpu", None))
        for where, one_cpu in (("", False), (", one CPU", True))
        for mode in ("strict", "compile")
    ),
    *(
        PeerRow(f"minGPT train step, {mode}, one CPU / torch-tpu", {"model": "mingpt", "mode": mode}, "torch-tpu", one_cpu=True)
        for mode in ("strict", "compile")
    ),
    PeerRow("first minGPT step, strict / torch-tpu", {"model": "mingpt", "mode": "strict"}, "torch-tpu", 0.8, clock="CPU"),
]


class Peer:
    def __init__(self, framework: str, python: pathlib.Path | str, environment: dict[str, str], cpus: set[int]):
        command = [str(python), str(HERE / "peer_worker.py"), framework]
        self._log = BUILD / f"{framework}.log"
        BUILD.mkdir(parents=True, exist_ok=True)
        with self._log.open("w") as log:  # peers are talkative
            self._start(command, {**os.environ, **environment}, cpus, log)
        self.framework = framework
        self.cpu_seconds: list[float] = []
        self._answer()

    def _start(self, command: list[str], environment: dict[str, str], cpus: set[int], log) -> None:
        self._child = subprocess.Popen(
            command,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            preexec_fn=lambda: os.sched_setaffinity(0, cpus),
        )

    def _answer(self) -> dict:
        line = self._child.stdout.readline()
        if not line:
            raise RuntimeError(f"{self.framework} ended with code {self._child.wait()}, see {self._log.relative_to(ROOT)}")
        return json.loads(line)

    def time(self, row: PeerRow, calls: int) -> float:
        self._child.stdin.write(json.dumps({"work": row.work, "clock": row.clock, "calls": calls}) + "\n")
        self._child.stdin.flush()
        answer = self._answer()
        if "cpu_seconds" in answer:
            self.cpu_seconds.append(answer["cpu_seconds"])
        return answer["seconds"]

    def close(self) -> None:
        self._child.stdin.close()
        self._child.wait()


def make_environment(folder: pathlib.Path, python: str, packages: list[str]) -> pathlib.Path:
    """A virtual environment with exactly these packages asked for; made once."""
    inside = folder / "bin" / "python"
    stamp = folder / ".packages"
    if stamp.exists() and stamp.read_text() == "\n".join(packages):
        return inside
    subprocess.run([python, "-m", "venv", str(folder)], check=True)
    index = ["--extra-index-url", os.environ["TORCH_INDEX"]] if os.environ.get("TORCH_INDEX") else []
    subprocess.run([str(inside), "-m", "pip", "install", "--quiet", *index, *packages], check=True)
    stamp.write_text("\n".join(packages))
    return inside


def build_shim() -> pathlib.Path:
    import importlib.util

    shim = BUILD / "peer_shim.so"
    source = HERE / "peer_shim.cc"
    if not shim.exists() or shim.stat().st_mtime < source.stat().st_mtime:
        BUILD.mkdir(parents=True, exist_ok=True)
        headers = pathlib.Path(next(iter(importlib.util.find_spec("xla_plugins.xla_cpu_pjrt").submodule_search_locations)))
        compiler = os.environ.get("CXX", "c++")
        flags = ["-std=c++20", "-O2", "-shared", "-fPIC", "-fvisibility=hidden", f"-I{headers / 'include'}"]
        subprocess.run([compiler, *flags, str(source), "-ldl", "-o", str(shim)], check=True)
    return shim


def plugin_of(engine: str) -> str:
    program = "import torch, torch_tpu; torch.tpu.init(); print(torch.tpu.plugin_info()['path'])"
    environment = {**os.environ, "TORCH_TPU_CPU_PLUGIN": engine}
    return subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    ).stdout.strip()


class Launcher:
    """Knows how each framework is started."""

    def __init__(self, args: argparse.Namespace):
        self.jax = make_environment(args.venv, sys.executable, JAX)
        self.torch_tpu = None
        if args.torch_tpu:
            folder = args.venv / "torch-tpu"
            self.torch_tpu = make_environment(folder, args.torch_tpu, TORCH_TPU)
            self.shim = build_shim()

    def available(self, framework: str, engine: str) -> bool:
        return framework != "torch-tpu" or (self.torch_tpu is not None and engine == TORCH_TPU_ENGINE)

    def start(self, framework: str, engine: str, cpus: set[int]) -> Peer:
        plugin = plugin_of(engine)
        # None of them may load what another of them registers with torch.
        alone = {"PYTHONPATH": "", "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
        if framework == "ours":
            return Peer(framework, sys.executable, {"TORCH_TPU_CPU_PLUGIN": engine, "TORCH_TPU_LOG_LEVEL": "error"}, cpus)
        if framework == "torch":
            return Peer(framework, sys.executable, {"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}, cpus)
        if framework == "jax":
            return Peer(framework, self.jax, {**alone, "JAX_PLATFORMS": "cpu"}, cpus)
        if framework == "jax-plugin":
            names = {"PJRT_NAMES_AND_LIBRARY_PATHS": f"bench:{plugin}", "JAX_PLATFORMS": "bench"}
            return Peer(framework, self.jax, {**alone, **names}, cpus)
        shim = {"TPU_LIBRARY_PATH": str(self.shim), "BENCH_SHIM_TARGET": plugin}
        if tcmalloc := ctypes.util.find_library("tcmalloc_minimal") or ctypes.util.find_library("tcmalloc"):
            shim["LD_PRELOAD"] = tcmalloc  # as its documentation advises
        return Peer(framework, self.torch_tpu, {**alone, **shim}, cpus)


def calls_of(row: PeerRow) -> int:
    if row.clock == "returns":
        return BURST
    if "model" in row.work:
        return 1
    return 300 if row.work["elements"] > 10000 else CALLS


def first_calls(start, row: PeerRow, rounds: int) -> list[list[float]]:
    """The CPU seconds of the first call in new processes, in turns."""
    seconds: list[list[float]] = [[], []]
    for _ in range(min(rounds, 5)):
        for side, name in zip(seconds, ("ours", row.peer), strict=True):
            peer = start(name)
            try:
                side.append(peer.time(row, 1))
            finally:
                peer.close()
    return seconds


def turns(start, row: PeerRow, rounds: int) -> tuple[list[list[float]], list[Peer]]:
    peers = []
    calls = calls_of(row)
    try:
        for name in ("ours", row.peer):
            peers.append(start(name))
        for peer in peers:  # compiles, and warms
            for _ in range(6 if "model" in row.work else 1):
                peer.time(row, calls)
            peer.cpu_seconds.clear()
        bursts = 5 if row.clock == "returns" else 1
        return interleave([lambda p=p: p.time(row, calls) for p in peers], rounds * bursts), peers
    finally:
        for peer in peers:
            peer.close()


def measure_row(launcher: Launcher, row: PeerRow, engine: str, rounds: int) -> dict:
    if not launcher.available(row.peer, engine):
        return {"skipped": f"only with --torch-tpu, on {TORCH_TPU_ENGINE}"}
    everywhere = os.sched_getaffinity(0)
    cpus = {max(everywhere)} if row.one_cpu else everywhere

    def start(name: str) -> Peer:
        return launcher.start(name, engine, cpus)

    peers = []
    try:
        if row.clock == "CPU":
            seconds = first_calls(start, row, rounds)
        else:
            seconds, peers = turns(start, row, rounds)
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}".splitlines()[0][:160]}
    result = {"clock": row.clock, "calls": calls_of(row), **compare(*seconds)}
    for side, peer in zip(("ours", "reference"), peers, strict=False):
        if peer.cpu_seconds:
            result[side]["cpu_us"] = Spread.of(peer.cpu_seconds).median * 1e6
    return result


METHOD = """
## Against JAX and torch-tpu

{machine}. JAX 0.10.2 through the same plugin's C API unless the row says otherwise; torch-tpu 0.2.0 through
`bench/peer_shim.cc` on {shimmed}. Each framework runs in its own process, timed in turns. Ratios are ours over the peer's.
{quick}
"""


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--venv", type=pathlib.Path, default=ROOT / ".venv-peers", help="where JAX is installed")
    parser.add_argument(
        "--torch-tpu",
        metavar="PYTHON",
        nargs="?",
        const="python3.12",
        type=lambda name: shutil.which(name) or parser.error(f"there is no {name}: torch-tpu needs Python 3.12 or 3.13"),
        help="also measure Google's torch-tpu, in an environment made with this Python (3.12 or 3.13)",
    )
    parser.add_argument("--engine", choices=["all", *rows.ENGINES], default="all")
    parser.add_argument("--rows", default="", metavar="PART", help="only rows whose name has this in it")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE")
    parser.add_argument("--markdown", type=pathlib.Path, nargs="?", const=ROOT / "docs" / "benchmarks.md", metavar="FILE")
    args = parser.parse_args()
    args.venv = args.venv.resolve()
    return args


def main() -> int:
    args = arguments()
    launcher = Launcher(args)
    engines = rows.ENGINES if args.engine == "all" else [args.engine]
    machine = tables.machine_line()
    shown, results = [], {}
    for row in ROWS:
        if args.rows not in row.name:
            continue
        # The plugin is the same on both sides, so each engine is judged; torch-tpu runs on one only.
        judged = "fastest" if row.peer == "torch-tpu" or "model" in row.work else "default"
        shown.append(rows.Row(row.name, "x", row.target, lambda options: {}, judged=judged))
        results[row.name] = {}
        for engine in engines:
            result = results[row.name][engine] = measure_row(launcher, row, engine, 3 if args.quick else 30)
            print(
                f"  {engine:24}{row.name}: {tables.number(result.get('value'))}  {tables.detail(result)}",
                file=sys.stderr,
                flush=True,
            )

    overview, details = tables.overview(shown, results, engines), tables.details(shown, results)
    print(machine, tables.aligned(overview), tables.aligned(details), sep="\n\n")
    if args.json:
        kept = [
            {"row": r.name, "target": r.target, "verdict": tables.verdict(r, results[r.name]), "results": results[r.name]}
            for r in shown
        ]
        args.json.write_text(json.dumps({"machine": tables.machine(), "quick": args.quick, "rows": kept}, indent=1) + "\n")
    if args.markdown:
        quick = "**A quick run: these figures only show that the rows work.**" if args.quick else ""
        head = METHOD.format(machine=machine, shimmed=TORCH_TPU_ENGINE, quick=quick).strip()
        tables.write_section(args.markdown, "peers", "\n\n".join([head, tables.markdown(overview), tables.markdown(details)]))
    return 1 if any("error" in result for found in results.values() for result in found.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
