# SPDX-License-Identifier: Apache-2.0
"""Every operator of PyTorch's databases on "tpu" against the CPU: `make sweep`.

Worker processes run case by case; one that has compiled many programs, crashes or hangs is replaced. Results are lines of JSON
in build/sweep/, and a run goes on where the last one of the same build stopped.
"""

import argparse
import hashlib
import json
import pathlib
import queue
import select
import subprocess
import sys
import threading

import tqdm

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(HERE))

import report
from cases import cases

PROGRAMS = 5000  # after which a worker is replaced
PATIENCE = 300  # seconds for a case


class Worker:
    def __init__(self, log: pathlib.Path):
        self._log = log
        self._child = None
        self._programs = 0

    def run(self, database: str, name: str) -> dict:
        if self._child is None:
            command = [sys.executable, str(HERE / "worker.py")]
            with self._log.open("a") as log:
                self._child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True)
        self._child.stdin.write(f"{database}\t{name}\n")
        self._child.stdin.flush()
        answered, _, _ = select.select([self._child.stdout], [], [], PATIENCE)
        line = self._child.stdout.readline() if answered else ""
        if not line:
            if not answered:
                self._child.kill()
            code = self._child.wait()
            self._child, self._programs = None, 0
            return {"crash": f"no answer for {PATIENCE} s" if not answered else f"ended with code {code}"}
        result = json.loads(line)
        self._programs += result["compiles"]
        if self._programs > PROGRAMS:
            self.close()
        return result

    def close(self) -> None:
        if self._child is not None:
            self._child.stdin.close()
            self._child.wait()
        self._child, self._programs = None, 0


def identity_of_build() -> str:
    """Changes with what is tested and with the tests."""
    import torch_tpu

    parts = sorted(pathlib.Path(torch_tpu.__file__).parent.glob("_C*.so")) + sorted(HERE.glob("*.py"))
    return hashlib.sha256(b"".join(part.read_bytes() for part in parts)).hexdigest()[:16]


def read(path: pathlib.Path) -> dict[str, dict]:
    if not path.exists():
        return {}
    found = {}
    for line in path.read_text().splitlines():
        try:
            entry = json.loads(line)
        except json.JSONDecodeError:  # the last line of a run that was ended
            continue
        found[entry.pop("case")] = entry
    return found


def sweep(path: pathlib.Path, wanted: list[tuple[str, str]], workers: int) -> None:
    todo: queue.SimpleQueue = queue.SimpleQueue()
    for item in wanted:
        todo.put(item)
    lock = threading.Lock()
    with path.open("a") as file, tqdm.tqdm(total=len(wanted), unit="case", smoothing=0.02, disable=None) as bar:

        def work(index: int) -> None:
            worker = Worker(path.with_suffix(f".{index}.log"))
            try:
                while True:
                    database, name = todo.get_nowait()
                    result = worker.run(database, name)
                    with lock:
                        file.write(json.dumps({"case": f"{database}|{name}", **result}) + "\n")
                        file.flush()
                        bar.update()
            except queue.Empty:
                worker.close()

        threads = [threading.Thread(target=work, args=(index,)) for index in range(workers)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--database", choices=["op_db", "foreach_fn_db"], action="append")
    parser.add_argument("--only", default="", metavar="PART", help="only cases whose name has this in it")
    parser.add_argument("--shard", default="1/1", metavar="I/N", help="the I-th of N parts")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--markdown", type=pathlib.Path, nargs="?", const=ROOT / "docs" / "coverage.md", metavar="FILE")
    args = parser.parse_args()
    part, parts = map(int, args.shard.split("/"))

    folder = ROOT / "build" / "sweep"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{identity_of_build()}.jsonl"
    names = [(database, case.name) for database in args.database or ["op_db", "foreach_fn_db"] for case in cases(database)]
    names = [item for item in names if args.only in item[1]]
    names = [item for i, item in enumerate(names) if i % parts == part - 1]
    done = read(path)
    sweep(path, [item for item in names if "|".join(item) not in done], args.workers)
    asked = {"|".join(item) for item in names}
    results = {name: result for name, result in read(path).items() if name in asked}
    print(report.text(results))
    if args.markdown:
        args.markdown.write_text(report.markdown(results))
    return 1 if report.unexpected(results) else 0


if __name__ == "__main__":
    sys.exit(main())
