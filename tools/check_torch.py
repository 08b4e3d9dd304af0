# SPDX-License-Identifier: Apache-2.0
"""Fails when the torch of this environment is not the CPU build of 2.13.0, or when CUDA packages came with it."""

import importlib.metadata as metadata
import importlib.util
import pathlib
import re
import sys


def problems() -> list[str]:
    spec = importlib.util.find_spec("torch")
    if spec is None:
        return ["torch is not installed"]
    text = (pathlib.Path(spec.origin).parent / "version.py").read_text()  # not imported: that costs seconds
    found = []
    version = metadata.version("torch")
    if version.split("+")[0] != "2.13.0":
        found.append(f"torch {version} is installed, 2.13.0 is needed")
    cuda = re.search(r"^cuda\b[^=]*=\s*(.+)$", text, re.MULTILINE)
    if cuda and cuda.group(1).strip() != "None":
        found.append(f"torch {version} is a CUDA build ({cuda.group(1).strip()})")
    names = {(d.metadata["Name"] or "").lower() for d in metadata.distributions()}
    extra = sorted(n for n in names if n.startswith("nvidia-") or n in ("triton", "cuda-toolkit", "cuda-bindings"))
    if extra:
        found.append("CUDA packages were installed: " + ", ".join(extra))
    return found


def main() -> int:
    found = problems()
    for problem in found:
        print(f"error: {problem}", file=sys.stderr)
    if found:
        print(
            "error: this project builds against the CPU build of torch. Remove .venv and run make again with "
            "TORCH_INDEX=<PyTorch's own index for CPU builds>",
            file=sys.stderr,
        )
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
