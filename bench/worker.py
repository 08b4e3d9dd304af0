# SPDX-License-Identifier: Apache-2.0
"""The process that measures: takes the rows and options as JSON in its one argument, writes one JSON line a row."""

import json
import sys
import traceback

import rows


def measure(row: rows.Row, options: rows.Options) -> dict:
    try:
        return row.measure(options)
    except Exception as error:
        traceback.print_exc()
        return {"error": f"{type(error).__name__}: {error}".splitlines()[0][:160]}


def main() -> None:
    task = json.loads(sys.argv[1])
    options = rows.Options(**task["options"])
    by_name = {row.name: row for row in rows.all_rows()}
    for name in task["rows"]:
        print(json.dumps({"row": name, **measure(by_name[name], options)}), flush=True)


if __name__ == "__main__":
    main()
