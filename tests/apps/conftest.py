# SPDX-License-Identifier: Apache-2.0
import pytest

import browser
from php_app import User


@pytest.fixture(scope="module")
def user(encryption, tmp_path_factory):
    if not browser.FOUND:
        pytest.skip("no chromium here")
    with User(tmp_path_factory.mktemp("browser"), encryption) as each:
        yield each
