# SPDX-License-Identifier: Apache-2.0
"""The oidc sample logs in through an OpenID provider. It accepts a token only if it is signed, has not expired, was issued
for the sample, and answers the sample's own request."""
import re
import threading
import time
from concurrent.futures import ThreadPoolExecutor, wait
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest

from oidc_provider import CurveKey, HmacKey, NoKey, Provider, RsaKey
from proc import wait_until
from samples import CAN_RUN, UserAgent, needs, starter

pytestmark = [CAN_RUN, needs("oidc")]
SECRET = "a secret: with/odd+characters%"
SITE = "http://site.example"


@pytest.fixture(scope="module")
def keys():
    """All tests share the key, because generating RSA keys is slow."""
    return RsaKey("first"), RsaKey("second")


@pytest.fixture
def provider(keys):
    with Provider("sample", SECRET, f"{SITE}/callback", key=keys[0]) as provider:
        yield provider


@pytest.fixture
def server(monkey, tmp_path, tmp_path_factory, provider):
    start = starter(monkey, tmp_path, tmp_path_factory)
    started = start("oidc", environment={"OIDC_SECRET": SECRET}, conf={
        "127.0.0.1:8081": provider.address, "http://127.0.0.1:2001": SITE})
    started.allow("OpenID Connect: ")
    return started


def go(agent):
    answer = agent.get("/in")
    assert answer.status == 303, answer.text
    return answer["Location"]


def log_in(server, provider):
    """Logs in; returns the response to the callback request, and the browser."""
    agent = UserAgent(server)
    return agent.get(provider.log_in(go(agent))), agent


def is_refused(answer, agent, status=403):
    assert answer.status == status, answer.text
    assert "Log in</a>" in agent.get("/").text
    return True


def test_oidc_login_and_logout(server, provider):
    agent = UserAgent(server)
    assert '<a href=/in>Log in</a>' in agent.get("/").text
    target = provider.log_in(go(agent))
    before = dict(agent.cookies)
    answer = agent.get(target)
    assert (answer.status, answer["Location"]) == (303, "/"), answer.text
    assert agent.cookies != before, "the session ID has changed"
    assert "<h1>Hello Ana &lt;b&gt;</h1>" in agent.get("/").text
    assert agent.get(target).status == 403, "a callback is accepted only once"
    assert "Hello Ana" in agent.get("/").text
    assert server.get("/out", "POST").status == 403, "other sites cannot log out"
    out = agent.post("/out")
    assert out.status == 303 and out["Location"].startswith(f"{provider.issuer}/end?"), out.text
    query = parse_qs(urlsplit(out["Location"]).query)
    assert query.pop("id_token_hint")[0].startswith("eyJ")
    assert query == {"client_id": ["sample"], "post_logout_redirect_uri": [f"{SITE}/"]}
    assert "Log in</a>" in agent.get("/").text


def test_oidc_logout_at_the_provider_ends_the_sessions_here(server, provider):
    answer, agent = log_in(server, provider)
    assert answer.status == 303 and "Hello Ana" in agent.get("/").text
    body = urlencode({"logout_token": provider.logout_token()}).encode()
    assert server.get("/logged-out", "POST", [("Content-Type", "application/x-www-form-urlencoded")], body).status == 200
    assert "Log in</a>" in agent.get("/").text


def test_oidc_login_uses_new_secrets_each_time(server, provider):
    queries = [parse_qs(urlsplit(go(UserAgent(server))).query) for _ in range(2)]
    for name in ("state", "nonce", "code_challenge"):
        assert queries[0][name] != queries[1][name]
    assert re.fullmatch(r"[A-Za-z0-9_-]{43}", queries[0]["code_challenge"][0])
    for _ in range(3):
        assert log_in(server, provider)[0].status == 303
    assert provider.requests == {"/.well-known/openid-configuration": 1, "/keys": 1, "/token": 3}, "the rest is cached"


def test_oidc_accepts_ec_keys_and_several_audiences(server, provider):
    provider.key = CurveKey("curve")
    provider.keys.append(provider.key)
    assert log_in(server, provider)[0].status == 303
    for claims in ({"aud": ["other", "sample"], "azp": "sample"}, {"aud": ["sample"]}):
        provider.claims = claims
        assert log_in(server, provider)[0].status == 303, claims
    for claims in ({"aud": ["other", "sample"]}, {"aud": ["other", "sample"], "azp": "other"}):
        provider.claims = claims
        assert is_refused(*log_in(server, provider))


def test_oidc_rejects_invalid_claims(server, provider):
    now = int(time.time())
    for claims in ({"aud": "other"}, {"aud": ["other"]}, {"aud": None}, {"exp": now - 120}, {"exp": None}, {"nbf": now + 600},
                   {"iss": "http://evil.example"}, {"iss": None}, {"nonce": "x" * 43}, {"nonce": None}, {"sub": None}, {"sub": ""},
                   {"azp": "other"}):
        provider.claims = claims
        assert is_refused(*log_in(server, provider)), claims


def test_oidc_rejects_invalid_signatures(server, provider, keys):
    public = keys[0].jwk()["n"].encode()
    for key in (NoKey(), HmacKey("first", public), HmacKey("first", SECRET.encode()), HmacKey(None, public)):
        provider.key = key
        assert is_refused(*log_in(server, provider)), key
    assert provider.requests["/keys"] == 1, "such tokens do not cause a fetch of the keys"
    forged = RsaKey("first")  # another key with the same key ID
    provider.key = forged
    assert is_refused(*log_in(server, provider))


def test_oidc_fetches_changed_keys_once(server, provider, keys):
    assert log_in(server, provider)[0].status == 303
    provider.key = keys[1]
    provider.keys = [keys[1]]
    assert log_in(server, provider)[0].status == 303, "the new key was fetched"
    assert provider.requests["/keys"] == 2
    for _ in range(3):
        provider.key = CurveKey("nobody's")
        assert is_refused(*log_in(server, provider))
    assert provider.requests["/keys"] == 2, "unknown keys do not cause repeated fetches"


def test_oidc_changed_keys_serve_concurrent_logins(server, provider, keys):
    """The second login arrives while the first one fetches the new keys: it waits for them, and both succeed."""
    assert log_in(server, provider)[0].status == 303
    provider.key, provider.keys = keys[1], [keys[1]]
    provider.held["/keys"] = threading.Event()
    with ThreadPoolExecutor(2) as pool:
        try:
            answers = [pool.submit(log_in, server, provider) for _ in range(2)]
            wait_until(lambda: provider.requests == {**provider.requests, "/keys": 2, "/token": 3}, "both logins have their tokens")
            done, _ = wait(answers, timeout=0.5)
            assert not done, "a rejection would not wait for the keys"
        finally:
            provider.held["/keys"].set()
        assert [each.result()[0].status for each in answers] == [303, 303]
    assert provider.requests["/keys"] == 2


def test_oidc_rejects_unsolicited_callbacks(server, provider):
    agent, other = UserAgent(server), UserAgent(server)
    assert is_refused(agent.get("/callback?code=x&state=y"), agent)
    target = provider.log_in(go(agent))
    go(other)
    assert is_refused(other.get(target), other), "a callback for another browser"
    code = parse_qs(urlsplit(target).query)["code"][0]
    assert is_refused(agent.get(f"/callback?code={code}&state=wrong"), agent)
    assert is_refused(agent.get(target), agent), "a wrong callback ends the attempt"
    target = provider.log_in(go(agent))
    assert is_refused(agent.get(target.replace("iss=http", "iss=https")), agent), "RFC 9207"
    state = parse_qs(urlsplit(go(agent)).query)["state"][0]
    refused = agent.get(f"/callback?error=access_denied&error_description=%3Cscript%3E&state={state}")
    assert is_refused(refused, agent) and "script" not in refused.text
    assert "/token" not in provider.requests


def test_oidc_rejects_invalid_codes(server, provider):
    agent = UserAgent(server)
    target = provider.log_in(go(agent))
    provider.codes.clear()
    assert is_refused(agent.get(target), agent, 502)
    agent = UserAgent(server)
    target = provider.log_in(go(agent))
    for query in provider.codes.values():
        query["code_challenge"] = "stolen"
    assert is_refused(agent.get(target), agent, 502), "PKCE"


def test_oidc_rejects_invalid_token_responses(server, provider):
    for answer in ((500, {}), (200, b"<html>"), (200, {"access_token": "x"}), (200, {"id_token": 7}), (302, {}),
                   (200, {"id_token": "x" * 40000})):
        provider.answers["/token"] = answer
        assert is_refused(*log_in(server, provider), 502), answer
    provider.answers["/token"] = (200, {"id_token": "a.b"})
    assert is_refused(*log_in(server, provider))


def test_oidc_rejects_an_invalid_provider_configuration(server, provider):
    path = "/.well-known/openid-configuration"
    for change in ({"issuer": "http://evil.example"}, {"jwks_uri": "http://evil.example/keys"}, {"jwks_uri": "file:///etc/passwd"},
                   {"jwks_uri": provider.issuer.replace("http", "https") + "/keys"}, {"token_endpoint": None},
                   {"authorization_endpoint": "x" * 600}, {"jwks_uri": f"{provider.issuer}/a%0d%0a b"}):
        provider.answers[path] = 200, {name: value for name, value in {**provider.metadata(), **change}.items() if value}
        assert UserAgent(server).get("/in").status == 502, change
    for keys in ({}, {"keys": 7}, [], b"nonsense"):
        provider.answers = {"/keys": (200, keys)}
        assert UserAgent(server).get("/in").status == 502, keys
    provider.answers = {}
    assert log_in(server, provider)[0].status == 303, "login works again once the provider does"
