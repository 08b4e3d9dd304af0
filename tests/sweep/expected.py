# SPDX-License-Identifier: Apache-2.0
"""Cases that raise, by pattern of `database|operator|dtype|form`, each with its reason. Never a wrong value; only shrinks."""

EXPECTED = {
    "*|chalf*": "no complex of half precision in PJRT",
    "*|complex32|*": "no complex of half precision in PJRT",
    "*|to_sparse|*": "strided tensors only",
    "*|sparse.*": "strided tensors only",
    "*|tensor_split|*": "core wants the indices on the CPU, for every device",
}
