# SPDX-License-Identifier: Apache-2.0
import pytest

from certificates import make_authority
from tls_server import PLUGIN, TlsServer


@pytest.fixture
def authority(tmp_path):
    return make_authority(tmp_path / "authority")


@pytest.fixture
def secure(monkey, site, authority):
    """secure("Certificate ..."): starts a server with these keys in [SERVER] and one host, unless `sections` adds more."""
    site.add("index.html", "hello")

    def start(server="", host="", sections="", listen="127.0.0.1:0 tls", plugin=False, **how):
        if plugin:
            how["plugins"] = [str(PLUGIN)]
            sections += "\n[ROUTES]\n    /facts encrypted\n    /* static\n"
        return TlsServer(monkey(server=server, host=host, sections=sections, listen=listen, protocol="h1",
                             encryption=None, **how), authority)

    return start
