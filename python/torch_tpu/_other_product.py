# SPDX-License-Identifier: Apache-2.0
"""Notices the other product that is published under the distribution name torch-tpu (0.2.0)."""

import importlib.metadata
import logging
import pathlib

from torch_tpu._version import __version__

# Files that its wheel puts into the folder torch_tpu, and ours never has.
_FOREIGN_FILES = ("libxla_base.so", "_versioned_so_loader.py", "XLA_COMMIT")


def find() -> str | None:
    """One line that says what of the other product is here, or None."""
    folder = pathlib.Path(__file__).parent
    files = [name for name in _FOREIGN_FILES if (folder / name).exists()]
    versions = {d.version for d in importlib.metadata.distributions(name="torch-tpu")} - {__version__}
    traces = [str(folder / name) for name in files] + [f"distribution torch-tpu {v}" for v in sorted(versions)]
    if not traces:
        return None
    return (
        f"another product of the name torch-tpu is in the same environment as torch_tpu {__version__} "
        f"({', '.join(traces)}): keep the two in separate environments"
    )


def warn_if_present() -> None:
    line = find()
    if line is not None:
        logging.getLogger("torch_tpu").warning(line)
