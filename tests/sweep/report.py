# SPDX-License-Identifier: Apache-2.0
"""What a sweep found, as Markdown."""

import collections
import dataclasses
import datetime
import fnmatch

import torch
from expected import EXPECTED

VERDICTS = ("right", "error", "wrong", "crash")


@dataclasses.dataclass
class Total:
    cases: int = 0
    right: int = 0
    wrong: int = 0
    crash: int = 0
    fallback: int = 0

    @property
    def percent(self) -> str:
        return f"{100 * self.right / self.cases:.2f}" if self.cases else "-"


def verdict(result: dict) -> str:
    """right: every sample is. "" where the CPU can do none of them."""
    if "crash" in result:
        return "crash"
    if result["wrong"]:
        return "wrong"
    if result["errors"] or "no_samples" in result:
        return "error"
    return "right" if result["right"] else ""


def total(results: dict[str, dict]) -> Total:
    found = Total()
    for result in results.values():
        v = verdict(result)
        if not v:
            continue
        found.cases += 1
        found.right += v == "right"
        found.wrong += v == "wrong"
        found.crash += v == "crash"
        found.fallback += v == "right" and result["fallbacks"] > 0
    return found


def reason(name: str) -> str | None:
    """Why this case is expected to raise."""
    return next((why for pattern, why in EXPECTED.items() if fnmatch.fnmatchcase(name, pattern)), None)


def unexpected(results: dict[str, dict]) -> list[str]:
    """Wrong values and crashes always; errors without a reason; and reasons without an error."""
    found = []
    for name, result in results.items():
        v = verdict(result)
        if v in ("wrong", "crash") or (v == "error" and reason(name) is None):
            found.append(name)
        elif v == "right" and reason(name) is not None:
            found.append(f"{name} (passes)")
    return found


def by(results: dict[str, dict], key) -> dict[str, dict[str, dict]]:
    groups = collections.defaultdict(dict)
    for name, result in results.items():
        groups[key(*name.split("|"))][name] = result
    return groups


def table(head: list[str], rows: list[list]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(str(cell).replace("|", "\\|") for cell in line) + " |" for line in lines)


def totals_table(title: str, groups: dict[str, dict]) -> str:
    rows = []
    for name, results in groups.items():
        t = total(results)
        rows.append([name, t.cases, t.right, t.percent, t.cases - t.right - t.wrong - t.crash, t.wrong, t.crash, t.fallback])
    return table([title, "cases", "right", "%", "raise", "wrong", "crash", "right by fallback"], rows)


def operators(results: dict[str, dict]) -> str:
    """An operator counts as right only if all its cases are."""
    groups = {}
    for label, dtypes, forms in (
        ("float32: forward, in-place, out=", ("float32",), ("forward", "in-place", "out=")),
        ("float32: every form", ("float32",), None),
        ("every dtype and form", None, None),
    ):

        def chosen(name: str, dtypes=dtypes, forms=forms) -> bool:
            _database, _op, dtype, form = name.split("|")
            return (dtypes is None or dtype in dtypes) and (forms is None or form in forms)

        cases = by({n: r for n, r in results.items() if chosen(n)}, lambda database, op, dtype, form: f"{database}|{op}")
        groups[label] = {op: worst(list(found.values())) for op, found in cases.items()}
    return totals_table("operators", groups)


def worst(results: list[dict]) -> dict:
    if any("crash" in result for result in results):
        return {"crash": ""}
    summed = {key: sum(result[key] for result in results) for key in ("right", "wrong", "errors", "fallbacks")}
    return summed | ({"no_samples": True} if any("no_samples" in result for result in results) else {})


def text(results: dict[str, dict]) -> str:
    parts = [operators(results)]
    parts.append(totals_table("form", by(results, lambda database, op, dtype, form: form)))
    parts.append(totals_table("dtype", by(results, lambda database, op, dtype, form: dtype)))
    return "\n\n".join(parts)


def failures(results: dict[str, dict]) -> str:
    rows = []
    for name, result in sorted(results.items()):
        if (v := verdict(result)) in ("error", "wrong", "crash"):
            rows.append([f"`{name}`", v, reason(name) or "", result.get("message") or result.get("crash", "")])
    return table(["case", "", "expected, because", "first message"], rows)


HEAD = """# Operator coverage

Made by `make sweep` on {date}: torch {torch}, {cases} cases, {compiles} programs compiled, {minutes:.0f} minutes of work.
An operator is right only if all samples of all its cases are.
"""


def markdown(results: dict[str, dict]) -> str:
    seconds, compiles = (sum(result.get(key, 0) for result in results.values()) for key in ("seconds", "compiles"))
    head = HEAD.format(
        date=datetime.date.today(), torch=torch.__version__, cases=len(results), compiles=compiles, minutes=seconds / 60
    )
    return "\n\n".join([head.strip(), text(results), "## What is not right", failures(results)]) + "\n"
