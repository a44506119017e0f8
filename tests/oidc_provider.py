# SPDX-License-Identifier: Apache-2.0
"""An OpenID provider for tests, with its own keys: it follows the specification unless a test overrides its behavior.

    with Provider("sample", "secret", "http://site.example/callback") as provider:
        ...                                     # the browser is redirected to `location` at provider.issuer
        target = provider.log_in(location)      # the redirect back to the site
"""
import base64
import hashlib
import hmac
import http.server
import json
import secrets
import threading
import time
from urllib.parse import parse_qs, unquote, urlencode, urlsplit

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

from python_server import PythonServer


def letters(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def of_number(n, size=0):
    return letters(n.to_bytes(size or (n.bit_length() + 7) // 8, "big"))


class RsaKey:
    algorithm = "RS256"

    def __init__(self, name):
        self.name, self.pair = name, rsa.generate_private_key(public_exponent=65537, key_size=2048)

    def jwk(self):
        numbers = self.pair.public_key().public_numbers()
        return {"kty": "RSA", "kid": self.name, "use": "sig", "alg": "RS256", "n": of_number(numbers.n), "e": of_number(numbers.e)}

    def sign(self, data):
        return self.pair.sign(data, padding.PKCS1v15(), hashes.SHA256())


class CurveKey:
    algorithm = "ES256"

    def __init__(self, name):
        self.name, self.pair = name, ec.generate_private_key(ec.SECP256R1())

    def jwk(self):
        numbers = self.pair.public_key().public_numbers()
        return {"kty": "EC", "kid": self.name, "crv": "P-256", "x": of_number(numbers.x, 32), "y": of_number(numbers.y, 32)}

    def sign(self, data):
        r, s = decode_dss_signature(self.pair.sign(data, ec.ECDSA(hashes.SHA256())))
        return r.to_bytes(32, "big") + s.to_bytes(32, "big")


class HmacKey:
    """Signs with a secret that everyone knows, for tokens that must be rejected."""
    algorithm = "HS256"

    def __init__(self, name, secret):
        self.name, self.secret = name, secret

    def sign(self, data):
        return hmac.digest(self.secret, data, "sha256")


class NoKey:
    algorithm, name = "none", None

    def sign(self, _data):
        return b""


def token(key, claims):
    head = {"alg": key.algorithm, "typ": "JWT", **({"kid": key.name} if key.name else {})}
    data = f"{letters(json.dumps(head).encode())}.{letters(json.dumps(claims).encode())}"
    return f"{data}.{letters(key.sign(data.encode()))}"


class Provider:
    """Tests may change `keys` (the published keys), `key` (signs the tokens), `claims` (override those of the token), `answers`
    (by path: status and JSON instead of the default), `held` (by path: an event that responses wait for), `fields` (by path: more
    headers of the response), `lifetime` (of access tokens, in seconds) and `rotates`. `requests` counts the requests by path,
    `refreshes` the requests with a refresh token. A refresh token is valid once; a second use ends the grant, as with real
    providers."""

    def __init__(self, client, secret, callback, key=None):
        self.client, self.secret, self.callback = client, secret, callback
        self.key = key or RsaKey("first")
        self.keys, self.claims, self.answers, self.requests, self.codes = [self.key], {}, {}, {}, {}
        self.held, self.fields, self.lifetime, self.rotates = {}, {}, 3600, True
        self.grants, self.refreshes, self.sold = {}, 0, 0
        self.lock = threading.Lock()
        provider = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                provider.handle(self, b"")

            def do_POST(self):
                provider.handle(self, self.rfile.read(int(self.headers["Content-Length"])))

            def log_message(self, *_):
                pass

        self.server = PythonServer(("127.0.0.1", 0), Handler)
        self.address = f"127.0.0.1:{self.server.server_port}"
        self.issuer = f"http://{self.address}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()

    def metadata(self):
        return {"issuer": self.issuer, "authorization_endpoint": f"{self.issuer}/authorize?tenant=1",
                "token_endpoint": f"{self.issuer}/token", "jwks_uri": f"{self.issuer}/keys",
                "end_session_endpoint": f"{self.issuer}/end", "response_types_supported": ["code"]}

    def handle(self, request, body):
        path = request.path
        with self.lock:
            self.requests[path] = self.requests.get(path, 0) + 1
        if path in self.held:
            self.held[path].wait()
        if path in self.answers:
            status, content = self.answers[path]
        elif path == "/.well-known/openid-configuration":
            status, content = 200, self.metadata()
        elif path == "/keys":
            status, content = 200, {"keys": [key.jwk() for key in self.keys]}
        elif path == "/token":
            status, content = self.sell(request.headers, body)
        else:
            status, content = 404, {}
        data = content if isinstance(content, bytes) else json.dumps(content).encode()
        request.send_response(status)
        request.send_header("Content-Type", "application/json")
        request.send_header("Content-Length", str(len(data)))
        for name, value in self.fields.get(path, {}).items():
            request.send_header(name, value)
        request.end_headers()
        request.wfile.write(data)

    def log_in(self, location):
        """Logs the user in at that address; returns the URL at the site to which the provider redirects, with the code."""
        query = {name: values[0] for name, values in parse_qs(urlsplit(location).query).items()}
        assert location.startswith(f"{self.issuer}/authorize?tenant=1&"), location
        assert query["response_type"] == "code" and "openid" in query["scope"].split()
        assert (query["client_id"], query["redirect_uri"]) == (self.client, self.callback)
        assert query["code_challenge_method"] == "S256" and len(query["nonce"]) >= 22 and len(query["state"]) >= 22
        code = secrets.token_urlsafe(16)
        self.codes[code] = query
        back = {"code": code, "state": query["state"], "iss": self.issuer}
        return f"{urlsplit(self.callback).path}?{urlencode(back)}"

    def sell(self, headers, body):
        form = {name: values[0] for name, values in parse_qs(body.decode()).items()}
        kind, _, pair = headers.get("Authorization", "").partition(" ")
        client, _, secret = base64.b64decode(pair).decode().partition(":")
        if kind != "Basic" or (unquote(client), unquote(secret)) != (self.client, self.secret):
            return 401, {"error": "invalid_client"}
        with self.lock:
            if form.get("grant_type") == "refresh_token":
                return self.refresh(form)
            return self.exchange(form)

    def exchange(self, form):
        query = self.codes.pop(form.get("code"), None)
        challenge = letters(hashlib.sha256(form.get("code_verifier", "").encode()).digest())
        if not query or form.get("redirect_uri") != self.callback or query["code_challenge"] != challenge:
            return 400, {"error": "invalid_grant"}
        return 200, self.tokens({"nonce": query["nonce"]}, {"is_valid": True})

    def refresh(self, form):
        self.refreshes += 1
        grant, is_used = self.grants.get(form.get("refresh_token"), (None, True))
        if not grant or not grant["is_valid"] or is_used:
            if grant:
                grant["is_valid"] = False
            return 400, {"error": "invalid_grant"}
        if self.rotates:
            self.grants[form["refresh_token"]] = grant, True
        return 200, self.tokens({}, grant)

    def tokens(self, more, grant):
        now = int(time.time())
        claims = {"iss": self.issuer, "sub": "user-1", "aud": self.client, "exp": now + 300, "iat": now, "name": "Ana <b>", **more,
                  **self.claims}
        claims = {name: value for name, value in claims.items() if value is not None}
        self.sold += 1
        answer = {"access_token": f"access-{self.sold}", "token_type": "Bearer", "id_token": token(self.key, claims),
                  "expires_in": self.lifetime}
        if self.rotates or "nonce" in more:
            answer["refresh_token"] = secrets.token_urlsafe(16)
            self.grants[answer["refresh_token"]] = grant, False
        return answer

    def logout_token(self, **changes):
        now = int(time.time())
        claims = {"iss": self.issuer, "sub": "user-1", "aud": self.client, "exp": now + 120, "iat": now, "jti": secrets.token_urlsafe(8),
                  "events": {"http://schemas.openid.net/event/backchannel-logout": {}}, **changes}
        return token(self.key, {name: value for name, value in claims.items() if value is not None})
