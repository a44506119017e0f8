# SPDX-License-Identifier: Apache-2.0
"""A Python program that changes its running server: listeners, certificates, accepting or rejecting connections, a successor; and
limits of queues."""
import sysconfig

from certificates import make_authority
from monkey import ROOT
from package import call

FOLDER = ROOT / "tests" / "lib"


def test_python_program_changes_running_server(package, python, objects, tmp_path):
    authority = make_authority(tmp_path)
    pairs = [authority.issue(file="one"), authority.issue(file="two")]
    files = [file for pair in pairs for file in (pair.certificate, pair.key)]
    environment = package.environment | {"PYTHONPATH": sysconfig.get_path("purelib")}  # of the tests, for websockets
    assert call(python, FOLDER / "python_control.py", *files, environment=environment) == "end\n"


QUEUES = """
import asyncio
from libmonkey.asgi import MESSAGES_MAX, WebSocket
from libmonkey.websocket import QUEUED_MAX, WebSocket as Plain, count_bytes

class Fake(WebSocket):
    _is_open = True
    paused = []
    def _pause(self, is_paused):
        self.paused.append(is_paused)

fake = Fake(None)
fake.received.clear()
text = "\\u20ac" * (MESSAGES_MAX // 3 + 1)  # fewer characters than the limit has bytes
fake.on_message(text[:-1])
assert fake.paused == [] and fake.size == 3 * (len(text) - 1)
fake.on_message(text[-1])
assert fake.paused == [True]
assert asyncio.run(fake.receive())["text"] == text[:-1] and fake.paused == [True, False]
assert asyncio.run(fake.receive())["text"] == text[-1] and fake.size == 0
assert [count_bytes(data) for data in ("abc", "\\u20ac", "\\xe9", b"\\xe9", "")] == [3, 3, 2, 1, 0]
print("end")
"""


def test_python_queues_of_websockets_are_limited_in_bytes(package, python):
    assert call(python, "-c", QUEUES, environment=package.environment) == "end\n"
