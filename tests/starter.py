# SPDX-License-Identifier: Apache-2.0
"""Starts servers, for the fixtures `monkey` and `lasting` of conftest.py."""
from monkey import PROGRAM, STARTERS, Server, needs_processes, over_tls, write_config


class Starter:
    """Starts the program in a folder; at the end, stops and checks all servers that it started."""

    def __init__(self, folder, protocol, encryption=None):
        assert PROGRAM.exists(), f"{PROGRAM} is not built"
        self.servers = []
        self._folder, self._protocol, self._encryption = folder, protocol, encryption

    def start(self, args=None, config=None, environment=None, program=None, expect_start=True, wrapper=(), popen=None,
              protocol=None, encryption=None, **keys):
        protocol, encryption = protocol or self._protocol, encryption or self._encryption
        encrypts, path = self._protocol.endswith("-tls"), None
        assert args is None or program is not None or not encrypts, "a command line cannot name the certificate"
        if args is None:
            path = self._folder / f"monkey{len(self.servers) or ''}.conf"
            if config is None:
                write_config(path, tls=encryption, **keys)
            else:
                path.write_text(over_tls(config, encryption) if encrypts else config)
            args = ["-c", path]
            if expect_start and (plugin := STARTERS.search(path.read_text())):
                needs_processes(f"`{plugin[1]}` starts programs")
        server = Server(self._folder, args, path, environment, program, False, wrapper, protocol, encryption, **(popen or {}))
        self.servers.append(server)
        if expect_start:
            server.wait_until_serving()
        return server

    def stop(self):
        problems = []
        for server in self.servers:
            try:
                server.stop()
            except AssertionError as error:
                problems.append(str(error))
            finally:
                server.kill()
        assert not problems, "\n".join(problems)


def check_lasting(starters, key):
    """Drops a broken server, so that only the test that broke it fails, not the tests after it."""
    starter = starters[key]
    try:
        assert starter.servers, "the server did not start"
        for server in starter.servers:
            assert server.process.poll() is None, f"it has ended:\n{server.log}"
            server.check_log()
    except AssertionError:
        del starters[key]
        for server in starter.servers:
            server.kill()
        raise
