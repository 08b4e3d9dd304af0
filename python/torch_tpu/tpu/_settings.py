# SPDX-License-Identifier: Apache-2.0
"""Access to the one list of settings (src/base/settings.h)."""

import contextlib

from torch_tpu import _C


def _to_text(value) -> str:
    return str(int(value)) if isinstance(value, bool) else str(value)


class _Restore(contextlib.AbstractContextManager):
    """What a change returns: the change stands, and a with block undoes it at its end."""

    def __init__(self, previous: dict[str, str]):
        self._previous = previous

    def __exit__(self, *exc_info):
        for name, value in self._previous.items():
            _C.set_setting(name, value)


class Settings:
    """torch.tpu.settings: get and set by name, or call it with values for the length of a with block."""

    def describe(self) -> list[dict]:
        """Name, value, default, choices and help of each setting."""
        return _C.settings()

    def get(self, name: str) -> int | str:
        for entry in _C.settings():
            if entry["name"] == name:
                return int(entry["value"]) if entry["is_int"] else entry["value"]
        raise ValueError(f'no setting named "{name}"')

    def set(self, name: str, value) -> None:
        _C.set_setting(name, _to_text(value))

    def __call__(self, **values) -> _Restore:
        previous = {name: _to_text(self.get(name)) for name in values}
        undo = _Restore(previous)
        try:
            for name, value in values.items():
                self.set(name, value)
        except BaseException:
            undo.__exit__()
            raise
        return undo

    def __repr__(self) -> str:
        return "\n".join(f"{entry['name']} = {entry['value']}" for entry in _C.settings())


settings = Settings()


def eager_mode() -> str:
    """ "strict" (one program an operation, asynchronous) or "debug" (the same, waiting after each)."""
    return settings.get("eager_mode")


def set_eager_mode(mode: str) -> _Restore:
    """Sets the mode; used as a context manager, the previous one comes back at the end of the block."""
    return settings(eager_mode=mode)
