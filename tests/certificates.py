# SPDX-License-Identifier: Apache-2.0
"""Certificates of an authority that lives as long as the tests, made with the command `openssl`."""
import ssl
import subprocess
from pathlib import Path

NAMES = "DNS:localhost,DNS:*.localhost,IP:127.0.0.1,IP:::1"
CURVE = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]


class Authority:
    """`authority.certificate`, `.key` of the server and `.trust`, what a client has to trust; all in `folder`."""

    def __init__(self, folder):
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.trust, self.certificate, self.key = (self.folder / name for name in ("ca.pem", "server.pem", "server.key"))
        if not self.certificate.exists():
            self._make()
        self._contexts = {}

    def _openssl(self, *words):
        done = subprocess.run(["openssl", *map(str, words)], cwd=self.folder, capture_output=True, text=True, timeout=30,
                              check=False, stdin=subprocess.DEVNULL)
        assert done.returncode == 0, done.stderr

    def _make(self):
        (self.folder / "names").write_text(f"subjectAltName={NAMES}\nextendedKeyUsage=serverAuth\n")
        self._openssl("req", "-x509", *CURVE, "-keyout", "ca.key", "-out", "ca.pem", "-days", 2, "-subj", "/CN=Monkey tests")
        self._openssl("req", *CURVE, "-keyout", "server.key", "-out", "server.csr", "-subj", "/CN=localhost")
        self._openssl("x509", "-req", "-in", "server.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", 2,
                      "-extfile", "names", "-out", "server.new")
        (self.folder / "server.new").rename(self.certificate)

    def context(self, *protocols):
        """For a client that offers these by ALPN."""
        if protocols not in self._contexts:
            context = ssl.create_default_context(cafile=self.trust)
            context.set_alpn_protocols(list(protocols))
            self._contexts[protocols] = context
        return self._contexts[protocols]
