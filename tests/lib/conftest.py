# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the tests of libmonkey."""
import pytest

from package import Package


@pytest.fixture(scope="session")
def package(tmp_path_factory):
    """libmonkey, installed in a folder."""
    return Package(tmp_path_factory.mktemp("package"))
