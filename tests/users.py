# SPDX-License-Identifier: Apache-2.0
"""User files for tests of the auth plugin, and the credentials that clients send."""
import base64
import hashlib
import os
import re
import subprocess

from monkey import ENVIRONMENT, PROGRAM


def passwd(file, *words, text=None):
    """Runs `monkey passwd ... FILE ...`; the last word is the user. The program reads `text` from its standard input."""
    *options, user = words
    return subprocess.run([PROGRAM, "passwd", *map(str, options), file, user], input=text, capture_output=True,
                          text=True, env=os.environ | ENVIRONMENT, timeout=60)


def add(file, user, password, *options):
    done = passwd(file, "-c", *options, user, text=password + "\n")
    assert done.returncode == 0, done.stderr
    return file


def basic(user, password):
    """Returns the Authorization header for the Basic scheme."""
    return {"Authorization": "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()}


def get(server, user=None, password="", target="/private/a", **how):
    return server.get(target, fields=basic(user, password) if user is not None else {}, **how)


def challenges(reply, scheme="Digest"):
    """Returns the parameters of each WWW-Authenticate header of that scheme."""
    found = []
    for value in reply.all("WWW-Authenticate"):
        if value.startswith(scheme + " "):
            found.append({name: quoted or token for name, quoted, token in
                          re.findall(r'([\w*-]+)=(?:"((?:[^"\\]|\\.)*)"|([^,\s]+))', value)})
    return found


def sha1(password):
    return "{SHA1}" + base64.b64encode(hashlib.sha1(password.encode()).digest()).decode()


class DigestClient:
    """Responds to challenges as RFC 7616 requires or, on request, incorrectly."""

    def __init__(self, user, password, realm="Zone", algorithm="SHA-256"):
        self.user, self.password, self.realm, self.algorithm = user, password, realm, algorithm

    def hash(self, *parts):
        kind = hashlib.md5 if self.algorithm == "MD5" else hashlib.sha256
        return kind(":".join(parts).encode()).hexdigest()

    def params(self, nonce, uri="/zone/a", nc="00000001", method="GET", cnonce="0a4f113b", qop="auth"):
        ha1 = self.hash(self.user, self.realm, self.password)
        response = self.hash(ha1, nonce, nc, cnonce, qop, self.hash(method, uri))
        return {"username": self.user, "realm": self.realm, "nonce": nonce, "uri": uri, "response": response,
                "algorithm": self.algorithm, "cnonce": cnonce, "qop": qop, "nc": nc}

    @staticmethod
    def field(params):
        bare = ("algorithm", "qop", "nc", "userhash", "username*")
        return {"Authorization": "Digest " + ", ".join(
            f"{name}={value}" if name in bare else f'{name}="{value}"' for name, value in params.items())}

    def answer(self, nonce, **how):
        return self.field(self.params(nonce, **how))
