# SPDX-License-Identifier: Apache-2.0
"""Runs the C++ and the Python tests and closes with `N passed, N failed[, N skipped]` over both."""

import argparse
import dataclasses
import pathlib
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable


@dataclasses.dataclass
class Count:
    passed: int = 0
    failed: int = 0
    skipped: int = 0

    def __add__(self, other: "Count") -> "Count":
        return Count(self.passed + other.passed, self.failed + other.failed, self.skipped + other.skipped)

    def __str__(self) -> str:
        skipped = f", {self.skipped} skipped" if self.skipped else ""
        return f"{self.passed} passed, {self.failed} failed{skipped}"


def read_junit(path: pathlib.Path) -> Count:
    """Counts the test cases of a JUnit file. A file that is missing or broken counts as one failure."""
    try:
        cases = list(ElementTree.parse(path).iter("testcase"))
    except (OSError, ElementTree.ParseError):
        return Count(failed=1)
    count = Count()
    for case in cases:
        # Some mark a failure by an attribute as well; "notrun": a test that is switched off.
        if case.find("failure") is not None or case.find("error") is not None or case.get("status") == "fail":
            count.failed += 1
        elif case.find("skipped") is not None or case.get("status") in ("notrun", "disabled"):
            count.skipped += 1
        else:
            count.passed += 1
    return count


def read_ctest(path: pathlib.Path, results: pathlib.Path) -> Count:
    """Counts the cases behind each test of ctest: an executable, which leaves results/<test>.xml."""
    try:
        tests = list(ElementTree.parse(path).iter("testcase"))
    except (OSError, ElementTree.ParseError):
        return Count(failed=1)
    total = Count()
    for test in tests:
        xml = results / f"{test.get('name')}.xml"
        count = read_junit(xml) if xml.exists() else Count()
        # It crashed, hung, never ran, or ran nothing: one failure, beside what its cases say.
        if not count.failed and (test.get("status") != "run" or count == Count()):
            print(f"{test.get('name')}: {test.get('status')}, though no case of it failed", flush=True)
            count.failed += 1
        total += count
    return total


def run(command: list[str], read: Callable[[], Count], no_tests_code: int | None) -> Count:
    print("+", " ".join(command), flush=True)
    code = subprocess.run(command).returncode
    count = read()
    if code == no_tests_code:
        return Count()
    if code != 0 and count.failed == 0:
        # The runner failed beside its tests: a crash while collecting, a broken configuration.
        count.failed += 1
    return count


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build-dir", type=pathlib.Path, required=True)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("pytest_args", nargs="*")
    args = parser.parse_args()

    build = args.build_dir.resolve()
    cpp_xml, python_xml, results = build / "cpp.xml", build / "python.xml", build / "gtest"
    cpp_xml.unlink(missing_ok=True)
    python_xml.unlink(missing_ok=True)
    shutil.rmtree(results, ignore_errors=True)  # no result of another run may count
    cpp = run(
        ["ctest", "--test-dir", str(build), "--output-on-failure", "--no-tests=ignore", "-j", str(args.jobs), "--progress",
         "--output-junit", str(cpp_xml)],
        lambda: read_ctest(cpp_xml, results),
        None,
    )  # fmt: skip
    pytest = [sys.executable, "-m", "pytest", f"--junitxml={python_xml}", *args.pytest_args]
    python = run(pytest, lambda: read_junit(python_xml), 5)

    total = cpp + python
    print(f"C++: {cpp}\nPython: {python}")
    print(total, flush=True)
    return 1 if total.failed or not total.passed else 0


if __name__ == "__main__":
    sys.exit(main())
