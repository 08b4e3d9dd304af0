# SPDX-License-Identifier: Apache-2.0
"""The installed distribution: version, entry points, what it ships and what it must not."""

import importlib.metadata as metadata
import re

import torch_tpu
from conftest import ROOT


def distribution() -> metadata.Distribution:
    return metadata.distribution("torch-tpu")


def test_version_stands_in_one_place():
    assert distribution().version == torch_tpu.__version__
    assert re.search(rf"^## {re.escape(torch_tpu.__version__)}\b", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)


def test_entry_points():
    points = {(p.group, p.name): p.value for p in distribution().entry_points}
    assert points["torch.backends", "tpu"] == "torch_tpu:_autoload"
    assert points["console_scripts", "torch-tpu"] == "torch_tpu.__main__:main"


def test_requirements():
    requires = distribution().requires or []
    plain = {r.replace(" ", "") for r in requires if "extra" not in r}
    assert plain == {"torch==2.13.*", "xla-cpu-pjrt"}
    assert [r for r in requires if "extra" in r] == ['libtpu; extra == "tpu"']


def test_nothing_of_torch_or_of_an_engine_is_bundled_and_the_wheel_stays_small():
    files = [f for f in distribution().files if "__pycache__" not in f.parts]
    libraries = [f.name for f in files if ".so" in f.name or f.suffix == ".a"]
    assert len(libraries) == 1 and libraries[0].startswith("_C.")
    assert not [f for f in files if f.suffix in (".h", ".cc")]
    assert sum(f.locate().stat().st_size for f in files) < 10e6 * 3  # installed; the wheel is compressed


def test_licence_ships():
    names = {f.name for f in distribution().files}
    assert {"LICENSE", "NOTICE"} <= names


def test_no_registry_host_or_machine_path_is_named():
    tracked = [p for p in ROOT.rglob("*") if p.is_file() and not set(p.relative_to(ROOT).parts) & SKIP]
    hosts = re.compile(r"pypi\.org|pythonhosted|download\.pytorch|debian\.org|/root/|/work/main|/opt/pypi")
    bad = []
    for path in tracked:
        if path.suffix in (".so", ".pyc", ".png") or path.name == "test_package.py":
            continue
        bad += [f"{path}: {m}" for m in hosts.findall(path.read_text(errors="replace"))]
    assert not bad


SKIP = {".git", ".venv", ".venv-peers", "build", "dist", "__pycache__", ".pytest_cache", ".ruff_cache"}
