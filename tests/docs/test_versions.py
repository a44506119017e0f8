# SPDX-License-Identifier: Apache-2.0
"""docs/reference/versions.md contains the same version numbers as the headers and the build."""
import re

from monkey import ROOT


def table():
    rows = [line.split("|") for line in (ROOT / "docs/reference/versions.md").read_text().splitlines() if line.startswith("| ")]
    return {row[1].strip().strip("`"): row[2].strip() for row in rows}


def define(header, name):
    return re.search(rf"^#define {name} +(.+)$", (ROOT / header).read_text(), re.MULTILINE)[1].strip('"')


def test_versions_match_the_headers():
    found = table()
    assert found["Release"] == define("include/monkey/version.h", "MONKEY_VERSION")
    assert found["MK_ABI"] == define("include/monkey/api.h", "MK_ABI")
    assert found["DUDA_ABI"] == define("duda/include/duda/service.h", "DUDA_ABI")
    assert found["Release"] == re.search(r'^version = "(.*)"', (ROOT / "bindings/python/pyproject.toml").read_text(), re.MULTILINE)[1]


def test_versions_match_the_build():
    found = table()
    build = (ROOT / "cmake/symbols.cmake").read_text()
    assert f"{found['Symbol version']} {{" in build
    assert f'"{found["soname"]}"' in (ROOT / "packaging/libmonkeyConfig.cmake.in").read_text()
