# SPDX-License-Identifier: Apache-2.0
"""Importing: which order, what it leaves behind, what it prints, and what happens when it cannot work."""

import pathlib
import shutil

import pytest

import torch_tpu

PACKAGE = pathlib.Path(torch_tpu.__file__).parent


def test_torch_alone_is_enough_and_prints_nothing(run_python):
    done = run_python("import torch; torch.device('tpu'); torch.tpu; torch.Tensor.tpu")
    assert (done.stdout, done.stderr) == ("", "")


def test_the_package_may_come_first(run_python):
    run_python("import torch_tpu, torch; torch.device('tpu:0'); torch.tpu.device_count()")


@pytest.mark.parametrize("value", [None, "1", "0"])
def test_the_users_autoload_variable_survives(run_python, value):
    done = run_python(
        "import os, torch_tpu; print(os.environ.get('TORCH_DEVICE_BACKEND_AUTOLOAD'))",
        TORCH_DEVICE_BACKEND_AUTOLOAD=value,
    )
    assert done.stdout.strip() == str(value)


def test_without_autoload_the_package_must_be_imported(run_python):
    run_python(
        """
import torch
try:
    torch.device("tpu")
except RuntimeError as error:
    assert "start of device string" in str(error)
else:
    raise AssertionError
import torch_tpu
torch.device("tpu")
""",
        TORCH_DEVICE_BACKEND_AUTOLOAD="0",
    )


def test_importing_starts_nothing(run_python):
    run_python(
        """
import sys, torch
assert not torch.tpu.is_initialized()
assert torch.tpu.is_available() in (True, False) and torch.accelerator.is_available() in (True, False)
torch.tpu.device_count()
torch.manual_seed(7)
assert not torch.tpu.is_initialized()
assert "torch._dynamo" not in sys.modules and "transformers" not in sys.modules
with open("/proc/self/maps") as maps:
    assert "pjrt" not in maps.read()
"""
    )


def test_another_torch_is_refused_before_native_code_loads(run_python):
    done = run_python(
        """
import sys, torch
torch.__version__ = "2.14.1+cpu"
try:
    import torch_tpu
except ImportError as error:
    print(error)
assert "torch_tpu._C" not in sys.modules
""",
        TORCH_DEVICE_BACKEND_AUTOLOAD="0",
    )
    assert "built for torch 2.13, but torch 2.14.1 is installed" in done.stdout


@pytest.fixture
def broken_package(tmp_path):
    """The package with an extension that does not load, in front of the installed one."""
    folder = tmp_path / "broken"
    shutil.copytree(PACKAGE, folder / "torch_tpu", ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    (folder / "torch_tpu" / "_C.py").write_text("raise ImportError('undefined symbol: nonsense')\n")
    return str(folder)


def test_import_torch_works_when_the_package_does_not(run_python, broken_package):
    done = run_python(
        """
import warnings
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    import torch
print(*[w.message for w in caught if "torch_tpu" in str(w.message)])
assert torch.ones(2).sum() == 2
try:
    import torch_tpu
except ImportError as error:
    assert "undefined symbol" in str(error)
else:
    raise AssertionError("an explicit import says what is wrong")
""",
        PYTHONPATH=broken_package,
    )
    assert 'there is no device "tpu" in this process: undefined symbol: nonsense' in done.stdout


def test_the_other_product_is_named_in_one_line(run_python, tmp_path):
    metadata = tmp_path / "elsewhere" / "torch_tpu-0.2.0.dist-info" / "METADATA"
    metadata.parent.mkdir(parents=True)
    metadata.write_text("Metadata-Version: 2.1\nName: torch-tpu\nVersion: 0.2.0\n")
    # Explicitly: metadata that comes first on the path hides our entry point.
    done = run_python("import torch_tpu", PYTHONPATH=str(tmp_path / "elsewhere"))
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert "another product of the name torch-tpu" in line and "0.2.0" in line


def test_submodules_are_the_same_objects_under_both_names(run_python):
    run_python("import torch.tpu.memory as a, torch_tpu.tpu.memory as b, torch.tpu.streams; assert a is b")


def test_compatibility_names_exist(run_python):
    run_python(
        """
import torch, torch_tpu
from torch_tpu import _loader
from torch_tpu._internal import sync
from torch_tpu._internal.execution_mode import EagerMode, get_eager_mode, set_eager_mode
_loader.load()
with set_eager_mode(EagerMode.DEBUG):
    assert torch.tpu.eager_mode() == "debug"
assert get_eager_mode() is EagerMode.STRICT
sync.synchronize(torch.ones(1, device="tpu"), wait=True)
"""
    )


@pytest.mark.parametrize("path", ["/no/such/plugin.so", __file__])
def test_a_missing_or_wrong_plugin_fails_at_first_use_only(run_python, path):
    run_python(
        """
import torch
x = torch.ones(3)
try:
    x.to("tpu")
except RuntimeError as error:
    message = str(error)
else:
    raise AssertionError
assert "plugin" in message and "Traceback" not in message, message
assert x.sum() == 3
""",
        TORCH_TPU_PLUGIN_PATH=path,
    )


def test_engine_off(run_python):
    run_python(
        """
import torch
assert not torch.tpu.is_available()
try:
    torch.ones(1, device="tpu")
except RuntimeError as error:
    assert "off" in str(error), error
else:
    raise AssertionError
""",
        TORCH_TPU_ENGINE="off",
    )
