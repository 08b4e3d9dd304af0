# SPDX-License-Identifier: Apache-2.0
"""Holds the structure of src/: which room may include which, and the few other rules that a compiler cannot see.

    python tools/check_rooms.py [ROOT]

Prints one line a violation, `path:line: what`, and exits with 1 when there are any.
"""

import pathlib
import re
import sys

# base < pjrt | hlo | graph < lower | compile < engine < aten | c10d < bindings
RANKS = (("base",), ("pjrt", "hlo", "graph"), ("lower", "compile"), ("engine",), ("aten", "c10d"), ("bindings",))
RANK_OF = {room: rank for rank, rooms in enumerate(RANKS) for room in rooms}
TORCH_ROOMS = ("aten", "c10d", "bindings")
PYTHON_ROOMS = ("bindings",)
PJRT_HEADER_ROOMS = ("pjrt",)
GETENV_FILE = "src/base/settings.cc"
# Where ATen may compute: the CPU fallback, and the engine's FFI handlers for factorisations.
ATEN_COMPUTE_FILES = re.compile(r"src/aten/(cpu_)?fallback\w*\.(cc|h)$|src/aten/linalg_handler\w*\.(cc|h)$")
# Functions of namespace at that launch nothing: registration, contexts, sizes, checks, aliases of memory.
ATEN_NO_COMPUTE = re.compile(
    r"(assert_\w+|check_\w+|infer_size\w*|infer_dense_strides|is_\w+|has_\w+|get_\w+|get[A-Z]\w*|set[A-Z]\w*"
    r"|Register\w+|global[A-Z]\w*|default[A-Z]\w*|detail|isIntegralType|toString|symint|elementSize|from_blob"
    r"|empty\w*|promote_types|result_type|make_generator|check_generator|maybe_wrap_dim\w*|expand_inplace|isSignedType"
    r"|wrapped_scalar_tensor|scalar_to_tensor|canCast|[A-Z]\w*)$"
)

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
TORCH_HEADER = re.compile(r"(torch|ATen|c10|caffe2)/")
PYTHON_HEADER = re.compile(r"pybind11/|Python\.h$|torch/extension\.h$|torch/csrc/(utils/pybind|Exceptions)\.h$")
GETENV = re.compile(r"\b(secure_getenv|getenv|setenv|putenv|unsetenv)\s*\(")
ATEN_CALL = re.compile(r"\bat::(\w+)\s*\(")
SPDX = "SPDX-License-Identifier: Apache-2.0"
SOURCES = ("*.cc", "*.h", "*.py", "*.sh", "*.cmake", "CMakeLists.txt", "Makefile")
SKIPPED_FOLDERS = {".git", ".venv", ".venv-peers", "build", "dist", "__pycache__", ".ruff_cache", ".pytest_cache"}


def strip_comments(line: str) -> str:
    """Without // comments and without the insides of string literals: a text that mentions getenv calls nothing."""
    line = re.sub(r'"(\\.|[^"\\])*"', '""', line)
    return line.split("//", 1)[0]


def check_include(room: str, bracket: str, header: str) -> str | None:
    if header == "pjrt_c_api.h":
        return None if room in PJRT_HEADER_ROOMS else f"only room {PJRT_HEADER_ROOMS[0]} includes pjrt_c_api.h"
    if PYTHON_HEADER.match(header) and room not in PYTHON_ROOMS:
        return f"room {room} includes {header}: Python is known in bindings alone"
    # "c10d/..." in quotes is our room; torch's own folder of that name comes in angle brackets.
    first = header.split("/", 1)[0]
    if bracket == '"' and "/" in header and first in RANK_OF:
        if first == room or RANK_OF[first] < RANK_OF[room]:
            return None
        kind = "its sibling" if RANK_OF[first] == RANK_OF[room] else "the higher room"
        return f"room {room} includes {kind} {first} ({header})"
    if TORCH_HEADER.match(header):
        return None if room in TORCH_ROOMS else f"room {room} includes a header of torch ({header})"
    if bracket == '"':
        return f'"{header}": headers of a room are included as "room/file.h"'
    return None


def check_room_file(root: pathlib.Path, path: pathlib.Path) -> list[str]:
    name = path.relative_to(root).as_posix()
    room = path.relative_to(root / "src").parts[0]
    if room not in RANK_OF:
        return [f"{name}:1: src/{room} is no room"]
    found = []
    for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
        if include := INCLUDE.match(line):
            if problem := check_include(room, *include.groups()):
                found.append(f"{name}:{number}: {problem}")
            continue
        code = strip_comments(line)
        if GETENV.search(code) and name != GETENV_FILE:
            found.append(f"{name}:{number}: the environment is read in {GETENV_FILE} alone")
        if room in TORCH_ROOMS and not ATEN_COMPUTE_FILES.search(name):
            found += [
                f"{name}:{number}: at::{call} computes outside the fallback file"
                for call in ATEN_CALL.findall(code)
                if not ATEN_NO_COMPUTE.match(call)
            ]
    return found


def source_files(root: pathlib.Path) -> list[pathlib.Path]:
    files = []
    for pattern in SOURCES:
        for path in root.rglob(pattern):
            if path.is_file() and not SKIPPED_FOLDERS.intersection(path.relative_to(root).parts):
                files.append(path)
    return sorted(files)


def check(root: pathlib.Path) -> list[str]:
    found = []
    for path in source_files(root):
        name = path.relative_to(root).as_posix()
        if not any(SPDX in line for line in path.read_text(errors="replace").splitlines()[:3]):
            found.append(f"{name}:1: the line `{SPDX}` is missing")
        if name.startswith("src/") and path.suffix in (".cc", ".h"):
            found += check_room_file(root, path)
    return found


def main(argv: list[str]) -> int:
    root = pathlib.Path(argv[1]) if len(argv) > 1 else pathlib.Path(__file__).resolve().parent.parent
    found = check(root)
    print("\n".join(found) if found else "rooms: in order")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
