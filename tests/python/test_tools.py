# SPDX-License-Identifier: Apache-2.0
"""The project's own tools, and that each of them can fail."""

import subprocess
import sys

import pytest

from conftest import ROOT

SPDX = "// SPDX-License-Identifier: Apache-2.0\n"


def tool(name: str, *args: str) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, str(ROOT / "tools" / name), *args], capture_output=True, text=True)


def test_rooms_are_in_order():
    done = tool("check_rooms.py")
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    ("path", "line", "complaint"),
    [
        ("src/base/a.h", '#include "pjrt/client.h"', "room base includes the higher room pjrt"),
        ("src/hlo/a.cc", '#include "graph/key.h"', "room hlo includes its sibling graph"),
        ("src/lower/a.cc", '#include "compile/cache.h"', "room lower includes its sibling compile"),
        ("src/engine/a.cc", '#include "aten/tensor.h"', "room engine includes the higher room aten"),
        ("src/engine/a.cc", "#include <c10/core/Device.h>", "includes a header of torch"),
        ("src/lower/a.cc", "#include <ATen/ATen.h>", "includes a header of torch"),
        ("src/aten/a.cc", "#include <pybind11/pybind11.h>", "Python is known in bindings alone"),
        ("src/aten/a.cc", "#include <torch/extension.h>", "Python is known in bindings alone"),
        ("src/hlo/a.cc", "#include <pjrt_c_api.h>", "only room pjrt includes pjrt_c_api.h"),
        ("src/pjrt/a.cc", '#include "client.h"', 'are included as "room/file.h"'),
        ("src/pjrt/a.cc", 'auto* v = std::getenv("X");', "the environment is read in src/base/settings.cc alone"),
        ("src/aten/a.cc", "auto y = at::add(x, x);", "at::add computes outside the fallback file"),
        ("src/other/a.cc", "", "src/other is no room"),
    ],
)
def test_rooms_tool_finds(tmp_path, path, line, complaint):
    file = tmp_path / path
    file.parent.mkdir(parents=True)
    file.write_text(SPDX + line + "\n")
    done = tool("check_rooms.py", str(tmp_path))
    assert done.returncode == 1 and complaint in done.stdout
    assert done.stdout.startswith(path)


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("src/bindings/a.cc", '#include "aten/tensor.h"'),
        ("src/engine/a.cc", '#include "lower/rule.h"'),
        ("src/aten/a.cc", "#include <ATen/ATen.h>"),
        ("src/aten/fallback.cc", "auto y = at::add(x, x);"),
        ("src/base/settings.cc", 'auto* v = std::getenv("X");'),
        ("src/pjrt/a.cc", "// getenv() is not called here"),
        ("src/pjrt/a.cc", 'Log("getenv(3) failed");'),
    ],
)
def test_rooms_tool_allows(tmp_path, path, line):
    file = tmp_path / path
    file.parent.mkdir(parents=True)
    file.write_text(SPDX + line + "\n")
    done = tool("check_rooms.py", str(tmp_path))
    assert done.returncode == 0, done.stdout


def test_rooms_tool_asks_for_the_licence_line(tmp_path):
    (tmp_path / "a.py").write_text("pass\n")
    done = tool("check_rooms.py", str(tmp_path))
    assert done.returncode == 1 and "SPDX" in done.stdout


def test_settings_page_is_up_to_date():
    done = tool("settings_doc.py", "--check")
    assert done.returncode == 0, done.stderr


def test_settings_page_lists_what_the_library_has():
    import torch

    page = (ROOT / "docs" / "settings.md").read_text()
    for entry in torch.tpu.settings.describe():
        assert f"| `{entry['name']}` |" in page
        assert not entry["default_value"] or f"| `{entry['default_value']}` |" in page


JUNIT = "<testsuites><testsuite>{}</testsuite></testsuites>"


@pytest.mark.parametrize(
    ("cases", "text"),
    [
        ("<testcase/><testcase/>", "2 passed, 0 failed"),
        ("<testcase/><testcase><failure/></testcase>", "1 passed, 1 failed"),
        ("<testcase><error/></testcase><testcase><skipped/></testcase>", "0 passed, 1 failed, 1 skipped"),
        ('<testcase status="fail"/><testcase status="run"/>', "1 passed, 1 failed"),
        ("", "0 passed, 0 failed"),
        (None, "0 passed, 1 failed"),
    ],
)
def test_results_are_counted(tmp_path, monkeypatch, cases, text):
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    from run_tests import read_junit

    path = tmp_path / "junit.xml"
    path.write_text("<broken" if cases is None else JUNIT.format(cases))
    assert str(read_junit(path)) == text


CASES = "<testsuites><testsuite><testcase/><testcase/><testcase>{}</testcase></testsuite></testsuites>"


@pytest.mark.parametrize(
    ("status", "cases", "text"),
    [
        ("run", CASES.format(""), "3 passed, 0 failed"),
        ("run", CASES.format("<skipped/>"), "2 passed, 0 failed, 1 skipped"),
        ("fail", CASES.format("<failure/>"), "2 passed, 1 failed"),
        ("fail", CASES.format(""), "3 passed, 1 failed"),  # fell over after its last case
        ("fail", None, "0 passed, 1 failed"),  # crashed or hung
        ("fail", "<broken", "0 passed, 1 failed"),
        ("notrun", None, "0 passed, 1 failed"),  # was not built
        ("run", None, "0 passed, 1 failed"),
        ("run", JUNIT.format(""), "0 passed, 1 failed"),  # ran nothing
    ],
)
def test_cases_behind_ctest_are_counted(tmp_path, monkeypatch, status, cases, text):
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    from run_tests import read_ctest

    (tmp_path / "cpp.xml").write_text(JUNIT.format(f'<testcase name="graph_test" status="{status}"/>'))
    if cases is not None:
        (tmp_path / "graph_test.xml").write_text(cases)
    assert str(read_ctest(tmp_path / "cpp.xml", tmp_path)) == text
