#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes sure that GoogleTest can be found: from Debian's libgtest-dev, unless it is there already.
set -eu
have_gtest() { printf '#include <gtest/gtest.h>\n' | c++ -std=c++20 -E -x c++ - >/dev/null 2>&1; }

if ! command -v c++ >/dev/null; then
  echo "error: no C++ compiler (c++) on the PATH; on Debian: apt-get install g++" >&2
  exit 1
fi
have_gtest && exit 0
if ! command -v apt-get >/dev/null; then
  echo "error: GoogleTest is not installed and this is no Debian system: install its development package" >&2
  exit 1
fi
as_root=""
[ "$(id -u)" = 0 ] || as_root="sudo -n"
export DEBIAN_FRONTEND=noninteractive
$as_root apt-get install -y -qq --no-install-recommends libgtest-dev >/dev/null 2>&1 ||
  { $as_root apt-get update -qq && $as_root apt-get install -y -qq --no-install-recommends libgtest-dev >/dev/null; }
have_gtest || { echo "error: libgtest-dev is installed, yet gtest/gtest.h is not found" >&2; exit 1; }
