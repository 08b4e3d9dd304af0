# SPDX-License-Identifier: Apache-2.0
"""The one import hook: torch.compile learns about "tpu" when torch imports its compiler, not before.

Two modules of torch are completed right after they have been executed. `torch._dynamo.device_interface` registers its own
idea of a "tpu" late, inside `init_device_reg`: ours is registered after it. `torch._dynamo.backends.registry` holds what
`torch.compile` without `backend=` uses: "tpu", which hands graphs without a tensor on the device to inductor.
"""

import functools
import sys


def _complete_device_interface(module) -> None:
    original = module.init_device_reg

    @functools.wraps(original)
    def init_device_reg():
        original()
        from torch_tpu.compile.device_interface import register

        register()

    module.init_device_reg = init_device_reg
    if module._device_initialized:
        from torch_tpu.compile.device_interface import register

        register()


def _complete_registry(module) -> None:
    if module.get_default_backend() == "inductor":
        module.set_default_backend("tpu")


_COMPLETE = {
    "torch._dynamo.device_interface": _complete_device_interface,
    "torch._dynamo.backends.registry": _complete_registry,
}


class _Finder:
    """Leaves finding to the finders after it, and has the two modules completed once they have been executed."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        complete = _COMPLETE.get(name)
        if complete is None:
            return None
        for finder in sys.meta_path:
            spec = None if finder is _Finder else finder.find_spec(name, path, target)
            if spec is not None:
                break
        else:
            return None
        loader = spec.loader
        execute = loader.exec_module

        def exec_module(module):
            execute(module)
            complete(module)

        loader.exec_module = exec_module
        return spec


def install() -> None:
    for name, complete in _COMPLETE.items():
        if name in sys.modules:
            complete(sys.modules[name])
    sys.meta_path.insert(0, _Finder)
