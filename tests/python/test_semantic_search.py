# SPDX-License-Identifier: Apache-2.0
"""The example as a user runs it. On the CPU it must work without any of our code; on "tpu" it must agree."""

import subprocess
import sys

import pytest

from conftest import ROOT

SCRIPT = ROOT / "examples" / "semantic_search.py"


def search(*args: str) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, str(SCRIPT), *args], capture_output=True, text=True, timeout=300)


def best(done: subprocess.CompletedProcess) -> str:
    return done.stdout.split("monetary policy and markets\n")[1].splitlines()[0]


@pytest.mark.parametrize("device", ["cpu", "tpu"])
def test_the_sample_is_searched(device):
    done = search("--device", device, "--top", "2", "--check")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "central bank" in best(done)
    assert "largest difference" in done.stdout


def test_a_long_file_gets_a_progress_bar(tmp_path):
    text = "Bread is baked from flour. The moon rises at nine. " * 40
    file = tmp_path / "long.txt"
    file.write_text(text)
    done = search("--device", "cpu", "--file", str(file), "--batch-size", "4", "--query", "baking")
    assert done.returncode == 0 and "100%" in done.stderr
    assert "Bread is baked" in done.stdout and "%" not in done.stdout


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"", "has no text"),
        (b" \n\t\n", "has no text"),
        (b"\x7fELF\x00\x01\xff\xfe", "is not a UTF-8 text file"),
        (None, "cannot read"),
    ],
)
def test_bad_files_get_one_line(tmp_path, content, complaint):
    file = tmp_path / "input"
    if content is not None:
        file.write_bytes(content)
    check_one_line(search("--device", "cpu", "--file", str(file)), complaint)


@pytest.mark.parametrize(
    ("args", "complaint"),
    [
        (["--query", ""], "the query is empty"),
        (["--query", "bread", "--query", "  "], "the query is empty"),
        (["--top", "0"], "--top"),
        (["--device", "nonsense"], "cannot use the device"),
    ],
)
def test_bad_arguments_get_one_line(args, complaint):
    check_one_line(search(*args), complaint)


def check_one_line(done: subprocess.CompletedProcess, complaint: str) -> None:
    assert done.returncode == 2 and done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert line.startswith("error: ") and complaint in line


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("One. Two! Three?", ["One.", "Two!", "Three?"]),
        ("Mr. Smith met Dr. A. Jones. They left.", ["Mr. Smith met Dr. A. Jones.", "They left."]),
        ("It costs 3.50 euros. Cheap.", ["It costs 3.50 euros.", "Cheap."]),
        ("A line\nbroken in two.\n\nA paragraph", ["A line broken in two.", "A paragraph"]),
        ("He said “No.” Then he left.", ["He said “No.”", "Then he left."]),
        ("***\n\n", []),
    ],
)
def test_sentences(monkeypatch, text, sentences):
    monkeypatch.syspath_prepend(str(SCRIPT.parent))
    from semantic_search import split_sentences

    assert split_sentences(text) == sentences
