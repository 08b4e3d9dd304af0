# SPDX-License-Identifier: Apache-2.0
"""Talks to the program pjrt_loop, which runs hand-written StableHLO with nothing of ours between it and the plugin."""

import os
import pathlib
import subprocess
import tempfile

import torch

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROGRAMS = pathlib.Path(__file__).resolve().parent / "programs"
DTYPES = {torch.float32: "f32", torch.int64: "i64", torch.bool: "i1"}


def find() -> str:
    """The newest built helper, or ""."""
    built = sorted(ROOT.glob("build/*/bench/pjrt_loop"), key=lambda path: path.stat().st_mtime)
    return str(built[-1]) if built else ""


class PjrtLoop:
    def __init__(self, helper: str, plugin: str):
        self._folder = tempfile.TemporaryDirectory()
        self._child = subprocess.Popen([helper, plugin], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._answer()

    def close(self) -> None:
        self._child.stdin.close()
        self._child.wait()
        self._folder.cleanup()

    def _answer(self) -> str:
        line = self._child.stdout.readline().rstrip("\n")
        if not line.startswith("ok"):
            raise RuntimeError(line or "pjrt_loop died")
        return line[3:]

    def _do(self, *words) -> str:
        self._child.stdin.write(" ".join(map(str, words)) + "\n")
        self._child.stdin.flush()
        return self._answer()

    def load(self, op: str, arguments: list[torch.Tensor]) -> list[str]:
        """Gives the helper every form of `op` that lies in programs/; their names."""
        names = []
        for number, tensor in enumerate(arguments):
            path = os.path.join(self._folder.name, f"{op}.{number}")
            tensor.contiguous().numpy().tofile(path)
            self._do("argument", f"{op}.{number}", DTYPES[tensor.dtype], "x".join(map(str, tensor.shape)) or "scalar", path)
            os.unlink(path)
        for path in sorted(PROGRAMS.glob(f"{op}.*.mlir")):
            self._do("program", path.stem, path, *(f"{op}.{number}" for number in range(len(arguments))))
            names.append(path.stem)
        return names

    def completed(self, name: str, calls: int) -> float:
        """Seconds a call; the wait for the last result included, the pipe not."""
        return int(self._do("run", name, calls)) * 1e-9 / calls

    def output(self, name: str, like: torch.Tensor) -> torch.Tensor:
        path = os.path.join(self._folder.name, "output")
        self._do("output", name, path)
        with open(path, "rb") as file:
            return torch.frombuffer(bytearray(file.read()), dtype=like.dtype).reshape(like.shape)
