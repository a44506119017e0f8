# SPDX-License-Identifier: Apache-2.0
"""h2spec: the requirements of RFC 7540 and RFC 7541 for a server, including the strict cases."""
import os
import re
import subprocess
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from monkey import ROOT

H2SPEC = Path(os.environ.get("H2SPEC", ROOT / "build" / "h2spec" / "h2spec"))

pytestmark = [pytest.mark.http2, pytest.mark.skipif(not H2SPEC.exists(), reason="no h2spec here: tools/dev/h2spec.sh")]


def cases_of(report):
    """Yields (name, failure) for each case; a failure of None means that the case passed."""
    for suite in ElementTree.parse(report).getroot().iter("testsuite"):
        for case in suite.iter("testcase"):
            wrong = [f"{child.tag}: {' '.join(' '.join(child.itertext()).split())}" for child in case]
            yield f"{suite.get('package')} ({suite.get('name')}): {case.get('classname')}", "; ".join(wrong) or None


def test_h2spec_strict_cases_pass(monkey, site, tmp_path, protocol):
    site.add("index.html", "hello " * 1000)
    # A listener that also accepts HTTP/1 responds to an invalid preface in HTTP/1, which h2spec does not expect.
    server = monkey(listen="127.0.0.1:0" if protocol == "h2-tls" else "127.0.0.1:0 http2")
    host, port = server.addresses[0]
    tls = ["-t", "-k"] if protocol == "h2-tls" else []
    report = tmp_path / "report.xml"
    done = subprocess.run([H2SPEC, "-h", host, "-p", str(port), *tls, "-S", "-o", "10", "-j", report], capture_output=True,
                          text=True, timeout=50, check=False, stdin=subprocess.DEVNULL)
    found = list(cases_of(report))
    failed = [f"{name}: {wrong}" for name, wrong in found if wrong]
    assert not failed, "\n".join(failed)
    assert done.returncode == 0, done.stdout + done.stderr
    total, passed = map(int, re.search(r"^(\d+) tests, (\d+) passed, 0 skipped, 0 failed$", done.stdout, re.MULTILINE).groups())
    assert total == passed == len(found) and total > 140
    assert server.get("/").text == "hello " * 1000
