# SPDX-License-Identifier: Apache-2.0
"""What is installed, which engine answers to "tpu", and which known faults its plugin shows."""

import importlib.metadata
import json
import platform
import sys

import torch

from torch_tpu import _C, _other_product, _probes
from torch_tpu._version import __version__

_PACKAGES = ("xla-cpu-pjrt", "fastatomstruct-xla-cpu", "lammps-jax-pjrt-cpu", "libtpu", "transformers", "jax")


def _versions() -> dict[str, str]:
    found = {"torch_tpu": __version__, "torch": torch.__version__, "python": platform.python_version()}
    for name in _PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def _engine() -> dict:
    engine = {"is_available": _C.is_available(), "setting": torch.tpu.settings.get("engine"), "error": ""}
    try:
        _C.init()
    except RuntimeError as error:
        engine["error"] = _C.start_error() or str(error)
        return engine
    engine["plugin"] = _C.plugin_info()
    engine["devices"] = [{"index": i, **_C.device_properties(i)} for i in range(_C.device_count())]
    engine["is_tpu"] = engine["devices"][0]["platform"].lower() == "tpu"
    for device in engine["devices"]:
        device["free_memory"], device["total_memory"] = _C.mem_get_info(device["index"])
    return engine


def collect() -> dict:
    """Everything doctor knows, as one JSON-able dict. Starts the engine."""
    report = {"versions": _versions(), "engine": _engine(), "notes": []}
    works = not report["engine"]["error"]
    report["probes"] = _probes.run_all() if works else []
    report["counters"] = _C.counters()
    report["settings"] = _C.settings()
    report["operators_with_rules"] = len(_C.op_names_with_rules())

    notes = report["notes"]
    if not works:
        notes.append(f"the engine does not start: {report['engine']['error']}")
    elif not report["engine"]["is_tpu"]:
        notes.append('no TPU: XLA\'s CPU engine answers to "tpu"')
    for probe in report["probes"]:
        if probe["torch_tpu"] != "right" and not probe["known_limit"]:
            notes.append(f"through torch_tpu, {probe['name']}: {probe['torch_tpu']}")
    if other := _other_product.find():
        notes.append(other)
    return report


def _table(rows: list[tuple], indent: str = "  ") -> list[str]:
    """Columns as wide as their widest cell; the last one runs free."""
    cells = [[str(cell) for cell in row] for row in rows]
    widths = [max(len(row[i]) for row in cells) for i in range(len(cells[0]) - 1)] if cells else []
    lines = []
    for row in cells:
        lines.append(indent + "".join(f"{c:<{w + 2}}" for c, w in zip(row, widths, strict=False)) + row[-1])
    return [line.rstrip() for line in lines]


def _word(verdict: str) -> str:
    return verdict.split(":", 1)[0]


def format_text(report: dict) -> str:
    engine = report["engine"]
    plugin = engine.get("plugin", {})
    sections = {
        "Versions": _table(list(report["versions"].items())),
        "Engine": _table(
            [(key, engine[key]) for key in ("setting", "is_available")]
            + ([("error", engine["error"])] if engine["error"] else [])
            + [(key, plugin[key]) for key in ("path", "profile", "minor") if key in plugin]
            + [(f"attribute {key}", value) for key, value in dict(plugin.get("attributes", {})).items()]
            + ([("extensions", ", ".join(map(str, plugin["extensions"])))] if plugin.get("extensions") else [])
        ),
        "Devices": _table(
            [
                (f"tpu:{d['index']}", d["name"], d["kind"], f"{d['free_memory']:,} of {d['total_memory']:,} bytes free")
                for d in engine.get("devices", [])
            ]
        ),
        "Known plugin faults": _table(
            [("", "plugin", "torch_tpu", "")]
            + [(p["name"], _word(p["plugin"]), _word(p["torch_tpu"]), p["known_limit"]) for p in report["probes"]]
            if report["probes"]
            else []
        ),
        "Cache and counters": _table(
            [("operators with a rule", report["operators_with_rules"]), *sorted(report["counters"].items())]
        ),
        "Settings (* changed)": _table(
            [
                (("* " if s["value"] != s["default_value"] else "  ") + s["name"], s["value"] or '""', s["help"])
                for s in report["settings"]
            ]
        ),
        "Notes": [f"  {note}" for note in report["notes"]],
    }
    return "\n\n".join("\n".join([title, *lines]) for title, lines in sections.items() if lines)


def run(as_json: bool) -> int:
    report = collect()
    print(json.dumps(report, indent=2, default=str) if as_json else format_text(report))
    sys.stdout.flush()
    return 1 if report["engine"]["error"] else 0
