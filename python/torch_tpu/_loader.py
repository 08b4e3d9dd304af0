# SPDX-License-Identifier: Apache-2.0
"""Private. A name that libraries written for another backend import; importing this package is all there is to do."""


def load(*args, **kwargs) -> None:
    pass
