# SPDX-License-Identifier: Apache-2.0
"""An upstream group of servers, for tests of their state and statistics."""
import contextlib
import threading

from backend import Backend, response

ROUTES = "[ROUTES]\n    /api/* proxy http://group\n    /* static\n"


def group(*backends, keys=""):
    """Returns the [UPSTREAM] section; a backend is a Backend or an address."""
    lines = "".join(f"    Server {each if isinstance(each, str) else each.address}\n" for each in backends)
    return f"[UPSTREAM]\n    Name group\n{lines}" + "".join(f"    {key}\n" for key in keys.splitlines())


class HoldingBackend(Backend):
    """A backend that holds its responses back until release()."""

    def __init__(self, **how):
        self._gate = threading.Event()
        super().__init__(self._answer, **how)

    def _answer(self, _):
        self._gate.wait()
        return response("late")

    def release(self):
        self._gate.set()

    def hold(self):
        """Holds back responses again, to all later requests."""
        self._gate.clear()

    def stop(self):
        self.release()
        super().stop()


@contextlib.contextmanager
def open_requests(server, n, target="/api/x"):
    """Opens n clients that have sent a request but have not read the response."""
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(server.connect()) for _ in range(n)]
        for each in clients:
            each.ask(target)
        yield clients
