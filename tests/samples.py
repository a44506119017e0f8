# SPDX-License-Identifier: Apache-2.0
"""The samples of examples/duda: runs each with `monkey run` from a copy of its folder, and visits its pages."""
import re
import shutil
from urllib.parse import urlencode

import pytest

import services
from monkey import ROOT

SAMPLES = ROOT / "examples" / "duda"
CAN_RUN = pytest.mark.skipif(not services.BUILT.exists() or not shutil.which("cc"), reason="no Duda, or no compiler here")


def needs(*packages):
    missing = [package for package in packages if not services.has(package)]
    return pytest.mark.skipif(bool(missing), reason=f"this build has no {', '.join(missing)}")


def starter(monkey, tmp_path, tmp_path_factory):
    """start("items") runs examples/duda/items/items.c with items.conf, if that exists, after replacing the texts in `conf`;
    `conf_name` is another configuration file in the same folder."""
    cache = tmp_path_factory.getbasetemp() / "cache"
    cache.mkdir(exist_ok=True)

    def run(name, conf=(), environment=(), conf_name=None):
        shutil.copytree(SAMPLES / name, tmp_path / name, dirs_exist_ok=True)
        file = tmp_path / name / f"{conf_name or name}.conf"
        for before, after in dict(conf).items():
            file.write_text(file.read_text().replace(before, after))
        words = ["-i", file] if file.exists() else []
        server = monkey(args=["run", "-p", "0", *words, tmp_path / name / f"{name}.c"], environment={
            "XDG_CACHE_HOME": str(cache), "XDG_RUNTIME_DIR": str(tmp_path), **dict(environment)})
        assert "warning" not in server.err.text, server.err.text
        return server

    return run


class UserAgent:
    """A browser without scripts: it keeps cookies, and returns the CSRF token of the last page."""

    def __init__(self, server):
        self.server, self.cookies, self.token = server, {}, ""

    def _ask(self, target, method="GET", fields=(), body=b""):
        cookie = [("Cookie", "; ".join(f"{name}={value}" for name, value in self.cookies.items()))] if self.cookies else []
        answer = self.server.get(target, method, [*fields, *cookie], body)
        for line in answer.all("Set-Cookie"):
            name, _, value = line.partition(";")[0].partition("=")
            self.cookies[name] = value
        found = re.search(r'name=csrf_token value="([^"]+)"', answer.text)
        self.token = found[1] if found else self.token
        return answer

    def get(self, target):
        return self._ask(target)

    def post(self, target, **fields):
        form = urlencode({"csrf_token": self.token, **fields}).encode()
        return self._ask(target, "POST", [("Content-Type", "application/x-www-form-urlencoded")], form)
