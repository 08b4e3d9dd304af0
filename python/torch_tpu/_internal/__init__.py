# SPDX-License-Identifier: Apache-2.0
"""Private. Thin names that libraries written for another "tpu" backend import. Nothing in torch_tpu uses them, and they
promise nothing: use torch.tpu."""
