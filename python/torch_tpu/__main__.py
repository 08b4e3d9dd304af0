# SPDX-License-Identifier: Apache-2.0
"""python -m torch_tpu doctor [--json]"""

import argparse
import sys


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="torch_tpu", description='The "tpu" device of PyTorch.')
    commands = parser.add_subparsers(dest="command", required=True)
    doctor = commands.add_parser("doctor", help="say what is installed, which engine answers, and what it gets wrong")
    doctor.add_argument("--json", action="store_true", help="print one JSON object instead of text")
    args = parser.parse_args(argv)

    from torch_tpu.doctor import run

    return run(as_json=args.json)


if __name__ == "__main__":
    sys.exit(main())
