# SPDX-License-Identifier: Apache-2.0
"""Writes docs/settings.md from the one list in src/base/settings.h; with --check, only says whether it is up to date."""

import argparse
import ast
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
HEADER = ROOT / "src" / "base" / "settings.h"
PAGE = ROOT / "docs" / "settings.md"

INTRO = """# Settings

<!-- Made by tools/settings_doc.py from src/base/settings.h: edit that file, then `make docs`. -->

Each setting is read once from the environment, as `TORCH_TPU_<NAME>`, and can be changed from Python:

```python
torch.tpu.settings.get("fallback")
torch.tpu.settings.set("fallback", "forbid")
with torch.tpu.settings(eager_mode="debug", explain=1):  # until the end of the block
    ...
```

`engine`, `plugin_path`, `cpu_plugin` and `device_count` shape the engine: set them before the device is first used.

| setting | in the environment | values | default | meaning |
|---|---|---|---|---|
"""

ENTRY = re.compile(r'\b(INT|TEXT)\(\s*(\w+)\s*,\s*((?:"(?:\\.|[^"\\])*"|[^"()]|\([^()]*\))*)\)')
STRING = re.compile(r'"((?:\\.|[^"\\])*)"')


def parse(text: str) -> list[dict[str, str]]:
    macro = re.search(r"#define TPU_SETTINGS\(INT, TEXT\)((?:.*\\\n)*.*\n)", text)
    if macro is None:
        raise ValueError("TPU_SETTINGS not found")
    entries = []
    for kind, name, arguments in ENTRY.findall(macro.group(1).replace("\\\n", "\n")):
        strings = [ast.literal_eval(f'"{s}"') for s in STRING.findall(arguments)]
        if kind == "INT":
            default, values, help_text = arguments.split(",", 1)[0].strip(), "integer", "".join(strings)
            shift = re.fullmatch(r"(\d+)(?:ll)?\s*<<\s*(\d+)", default)
            default = str(int(shift[1]) << int(shift[2])) if shift else default.removesuffix("ll")
        else:
            default, values, help_text = strings[0], strings[1] or "text", "".join(strings[2:])
        entries.append({"name": name, "default": default, "values": values, "help": help_text})
    return entries


def render(entries: list[dict[str, str]]) -> str:
    def cell(text: str) -> str:
        return text.replace("|", "\\|")

    rows = [
        f"| `{e['name']}` | `TORCH_TPU_{e['name'].upper()}` | {cell(e['values'])} | "
        f"{'`' + cell(e['default']) + '`' if e['default'] else ''} | {cell(e['help'])} |"
        for e in entries
    ]
    return INTRO + "\n".join(rows) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    args = parser.parse_args()
    page = render(parse(HEADER.read_text()))
    if not args.check:
        PAGE.write_text(page)
        return 0
    if not PAGE.exists() or PAGE.read_text() != page:
        print("docs/settings.md is out of date: run `make docs`", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
