# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the tests of libmonkey."""
import importlib.util
import shutil
import sys
import sysconfig
from pathlib import Path

import pytest

from package import BINDING, PIP, RELEASE, Package, call


@pytest.fixture(scope="session")
def package(tmp_path_factory):
    """libmonkey, installed in a folder."""
    return Package(tmp_path_factory.mktemp("package"))


@pytest.fixture
def objects(package):
    """Provides the modules that the shared library loads at run time; the archive contains them."""
    link = package.lib / "plugins"
    link.symlink_to(RELEASE / "plugins")
    yield
    link.unlink()


@pytest.fixture(scope="session")
def python(package, tmp_path_factory):
    """The interpreter of a virtual environment. It uses the pip of the tests, so that no pip needs to be installed."""
    if not importlib.util.find_spec("pip"):
        pytest.skip("needs pip")
    if not Path(sysconfig.get_path("include"), "Python.h").exists():
        pytest.skip("needs the headers of Python (Debian: python3-dev)")
    folder = tmp_path_factory.mktemp("python")
    shutil.copytree(BINDING, folder / "source", ignore=shutil.ignore_patterns("__pycache__", "*.so"))
    call(sys.executable, "-m", "venv", "--without-pip", folder / "venv")
    interpreter = folder / "venv" / "bin" / "python"
    call(*PIP, "--python", interpreter, "install", "--quiet", "--no-index", "--no-compile", folder / "source", environment=package.environment)
    return interpreter
