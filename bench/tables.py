# SPDX-License-Identifier: Apache-2.0
"""Results as aligned text and as Markdown."""

import math
import os
import pathlib
import platform

import rows


def number(value: float | None) -> str:
    if value is None:
        return "-"
    if value == int(value) and abs(value) < 1e6:
        return str(int(value))
    return f"{value:.3f}" if abs(value) < 1 else f"{value:.2f}"


def detail(result: dict) -> str:
    """What stands behind a value."""
    parts = []
    if "ours" in result:
        for side in ("ours", "reference"):
            figures = result[side]
            text = f"{side} {number(figures['median_us'])} (min {number(figures['min_us'])})"
            parts.append(text + (f" CPU {number(figures['cpu_us'])}" if "cpu_us" in figures else ""))
        parts.append(f"min/min {number(result['ratio_of_minima'])}")
    parts += [f"form {result['form'].split('.', 1)[1]}"] if "form" in result else []
    parts += [result[key] for key in ("error", "skipped") if key in result]
    return ", ".join(parts)


def aligned(table: list[list[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in table)


def markdown(table: list[list[str]]) -> str:
    head, *body = (f"| {' | '.join(cell.replace('|', '/') for cell in line)} |" for line in table)
    return "\n".join([head, "|" + "---|" * len(table[0]), *body])


def verdict(row: rows.Row, by_engine: dict[str, dict]) -> str:
    """met, missed, or "" where nothing is to be met. `by_engine` holds the results of this row."""
    values = {engine: result["value"] for engine, result in by_engine.items() if result.get("value") is not None}
    if row.target is None or all("skipped" in result for result in by_engine.values()):
        return ""
    if row.judged == "default" and row.process != "no engine":
        values = {engine: value for engine, value in values.items() if engine == rows.DEFAULT_ENGINE}
        complete = bool(values)
    else:
        complete = bool(values) and not any("error" in result for result in by_engine.values())
    if not values or not complete:
        return "not measured"
    worst = min(values.values()) if row.judged == "fastest" else max(values.values())
    return "met" if worst <= row.target and not math.isnan(worst) else "missed"


def overview(shown: list[rows.Row], results: dict[str, dict[str, dict]], engines: list[str]) -> list[list[str]]:
    """A line a row: target, the value on each engine, whether it is met."""
    table = [["row", "unit", "target", *engines, "", "judged on"]]
    for row in shown:
        found = results.get(row.name, {})
        if row.process == "no engine":
            cells = [number(found.get("", {}).get("value"))] + [""] * (len(engines) - 1)
        else:
            cells = [number(found.get(engine, {}).get("value")) for engine in engines]
        judged = "" if row.target is None or row.process == "no engine" else row.judged
        table.append([row.name, row.unit, number(row.target), *cells, verdict(row, found), judged])
    return table


def details(shown: list[rows.Row], results: dict[str, dict[str, dict]]) -> list[list[str]]:
    table = [["row", "engine", "clock", "calls", "microseconds a call: median (minimum)"]]
    for row in shown:
        for engine, result in results.get(row.name, {}).items():
            if text := detail(result):
                table.append([row.name, engine, result.get("clock", ""), str(result.get("calls", "")), text])
    return table


def machine() -> dict:
    """What the figures were taken on."""
    import torch

    model = platform.machine()
    with open("/proc/cpuinfo") as info:
        model = next((line.split(":", 1)[1].strip() for line in info if line.startswith("model name")), model)
    load = os.getloadavg()
    return {
        "cpu": model,
        "cpus": len(os.sched_getaffinity(0)),
        "load": [round(value, 2) for value in load],
        "python": platform.python_version(),
        "torch": torch.__version__,
    }


def machine_line() -> str:
    m = machine()
    return f"{m['cpus']} CPUs ({m['cpu']}), load before the run {m['load'][0]}, Python {m['python']}, torch {m['torch']}"


HEAD = """# Benchmarks

`make bench ARGS=--markdown` measures and writes the first part, `make bench-peers ARGS=--markdown` the second, on an otherwise
idle machine. Figures are never part of the tests.

"""


def write_section(path: pathlib.Path, name: str, text: str) -> None:
    """Replaces one section of the file, keeps the others."""
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    old = path.read_text() if path.exists() else HEAD
    section = f"{begin}\n{text.strip()}\n{end}"
    if begin in old:
        before, rest = old.split(begin, 1)
        new = before + section + rest.split(end, 1)[1]
    else:
        new = old.rstrip("\n") + "\n\n" + section + "\n"
    path.write_text(new)
