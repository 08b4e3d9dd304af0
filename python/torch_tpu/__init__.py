# SPDX-License-Identifier: Apache-2.0
"""The "tpu" device of PyTorch.

`import torch` is enough: torch finds this package through the entry point group `torch.backends`. Importing registers the
device and does nothing else: no plugin is loaded, no TPU is taken, nothing is printed.
"""

import os
import sys
import warnings

from torch_tpu._version import __version__

__all__ = ["__version__"]

_AUTOLOAD = "TORCH_DEVICE_BACKEND_AUTOLOAD"
_load_error: Exception | None = None


def _import_torch():
    """Imports torch without letting it autoload this half-imported package."""
    previous = os.environ.get(_AUTOLOAD)
    os.environ[_AUTOLOAD] = "0"
    try:
        import torch
    finally:
        if previous is None:
            del os.environ[_AUTOLOAD]
        else:
            os.environ[_AUTOLOAD] = previous
    return torch


def _register(torch) -> None:
    found = torch.__version__.split("+")[0]
    if found.split(".")[:2] != ["2", "13"]:
        # The C++ classes that a backend derives from change with every minor version: loading would crash, not fail.
        raise ImportError(f"torch_tpu {__version__} is built for torch 2.13, but torch {found} is installed")

    from torch_tpu import _C  # its static initialisers register hooks, guard, allocators and kernels

    torch.utils.rename_privateuse1_backend("tpu")
    import torch_tpu.tpu as device_module

    torch._register_device_module("tpu", device_module)
    for name, module in list(sys.modules.items()):  # so that `import torch.tpu.memory` finds the same module again
        if name.startswith("torch_tpu.tpu."):
            sys.modules[name.replace("torch_tpu.", "torch.", 1)] = module
    torch.utils.generate_methods_for_privateuse1_backend(
        for_tensor=True, for_module=True, for_packed_sequence=True, for_storage=True
    )
    torch.nn.parameter.UninitializedTensorMixin._allowed_methods.append(torch.Tensor.tpu)

    from torch_tpu import _import_hook, _other_product, _printing

    _printing.install()
    _C.set_plugin_search_path([path for path in sys.path if path])
    _import_hook.install()
    _other_product.warn_if_present()

    import atexit

    atexit.register(_C.shutdown)


def _autoload() -> None:
    """Called by torch at the end of its import. The registration was done when this package was imported."""
    if _load_error is not None:
        warnings.warn(f'torch_tpu: there is no device "tpu" in this process: {_load_error}', RuntimeWarning)
        del sys.modules["torch_tpu"]  # an explicit `import torch_tpu` raises the error itself


_torch = _import_torch()
try:
    _register(_torch)
except Exception as error:
    # torch turns any exception of an autoloaded package into a failure of `import torch`, for everybody.
    if not getattr(_torch.__spec__, "_initializing", False):
        raise
    _load_error = error
