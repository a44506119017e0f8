# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the tests of libmonkey."""
import importlib.util
import shutil
import sys

import pytest

from package import BINDING, PIP, Package, call


@pytest.fixture(scope="session")
def package(tmp_path_factory):
    """libmonkey, installed in a folder."""
    return Package(tmp_path_factory.mktemp("package"))


@pytest.fixture(scope="session")
def python(package, tmp_path_factory):
    """The interpreter of a virtual environment. It uses the pip of the tests, so that no pip needs to be installed."""
    if not importlib.util.find_spec("pip"):
        pytest.skip("needs pip")
    folder = tmp_path_factory.mktemp("python")
    shutil.copytree(BINDING, folder / "source", ignore=shutil.ignore_patterns("__pycache__"))
    call(sys.executable, "-m", "venv", "--without-pip", folder / "venv")
    interpreter = folder / "venv" / "bin" / "python"
    call(*PIP, "--python", interpreter, "install", "--quiet", "--no-index", "--no-compile", folder / "source")
    return interpreter
