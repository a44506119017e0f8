# SPDX-License-Identifier: Apache-2.0
"""The package oidc with oidc-provider, a real provider: login, refreshed access tokens, both kinds of logout, new keys. Its
refresh tokens are valid once, and a second use ends the session there."""
import time
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

import pytest

import services
from oidc_provider import RsaKey
from oidc_service import SOURCE, Browser
from proc import wait_until
from real_oidc_provider import RealProvider, User, query_of
from sockets import free_port

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not services.has("oidc"), reason="this build has no package oidc")]


@pytest.fixture(scope="module")
def keys():
    return RsaKey("first"), RsaKey("second")


@pytest.fixture
def public_url():
    return f"http://127.0.0.1:{free_port()}"


@pytest.fixture
def provider(tmp_path, keys, public_url):
    client = {"client_id": "shop", "client_secret": "a secret of the client", "redirect_uris": [f"{public_url}/a/back"],
              "post_logout_redirect_uris": [f"{public_url}/show"], "grant_types": ["authorization_code", "refresh_token"],
              "backchannel_logout_uri": f"{public_url}/ended", "default_acr_values": []}
    provider = RealProvider(client, keys[0], tmp_path / "provider.log")
    provider.start()
    yield provider
    provider.stop()


@pytest.fixture
def server(monkey, tmp_path, provider, public_url):
    (tmp_path / "secret").write_text("a secret of the client")
    top = f"[OIDC]\n    Issuer {provider.issuer}\n    Client shop\n    Secret file:{tmp_path / 'secret'}\n    RedirectUrl {public_url}/a/back\n" \
          f"    PostLogoutUrl {public_url}/show\n    Scope openid profile offline_access\n    TokenStore memory\n" \
          f"[HTTP_CLIENT]\n    Name {provider.address}\n    Server {provider.address}\n"
    server = monkey(listen=urlsplit(public_url).netloc, top=top, workers=2,
                    plugins=["upstream", "duda-http", "duda-oidc", services.build(tmp_path, "people", SOURCE, packages=["oidc"])])
    server.allow("OpenID Connect: ")
    return server


def log_in(server, provider, user=None, query="prompt=consent", name="ana"):
    browser, user = Browser(server), user or User(provider)
    target = user.visit(browser.get(f"/again?{query}")["Location"], name)
    assert "code=" in target, target
    parts = urlsplit(target)
    reply = browser.get(f"{parts.path}?{parts.query}")
    assert (reply.status, reply["Location"]) == (303, "/show"), reply.text
    assert browser.get("/show").text == f"main:{name}\n"
    return browser, user


def token_of(browser):
    reply = browser.get("/token")
    assert reply.status == 200, reply.text
    return reply.text.split()[0]


def test_real_provider_refreshes_access_tokens(server, provider):
    browser, _ = log_in(server, provider)
    first = token_of(browser)
    assert token_of(browser) == first
    for _ in range(3):
        time.sleep(3.3)
        with ThreadPoolExecutor(12) as pool:
            tokens = {reply.text.split()[0] for reply in pool.map(lambda _: browser.get("/token"), range(12))}
        assert len(tokens) == 1 and first not in tokens
        first = tokens.pop()
    assert provider.events().count("refresh_token.consumed") == 3 and "grant.revoked" not in provider.events()


def test_real_provider_logout_needs_the_hint(server, provider):
    browser, user = log_in(server, provider)
    location = browser.get("/out", "POST")["Location"]
    assert {"id_token_hint", "client_id", "post_logout_redirect_uri"} == set(query_of(location))
    assert urlsplit(user.visit(location)).path == "/show"
    assert browser.get("/show").text == "-\n" and browser.get("/token").status == 401
    assert "error=login_required" in user.visit(browser.get("/again?prompt=none")["Location"]), "the user is logged out there, too"


def test_real_provider_ends_sessions_by_back_channel_logout(server, provider):
    browser, user = log_in(server, provider)
    second, _ = log_in(server, provider, user)
    other, _ = log_in(server, provider, name="bob")
    location = second.get("/out", "POST")["Location"]
    assert browser.get("/show").text == "main:ana\n"
    user.visit(location)
    wait_until(lambda: "backchannel.success" in provider.events(), "the provider has sent its logout token")
    assert browser.get("/show").text == "-\n" and other.get("/show").text == "main:bob\n"


def test_real_provider_prompts_and_ages(server, provider):
    browser, user = log_in(server, provider)
    target = user.visit(browser.get("/again?prompt=none")["Location"])
    assert "code=" in target, target
    _, other = log_in(server, provider, user=user, query="prompt=none&age=1000")
    assert other is user
    time.sleep(2.2)
    asked = []
    ask = user.ask
    user.ask = lambda url, form=None: asked.append(form) or ask(url, form)
    log_in(server, provider, user=user, query="age=1")
    assert any(form and form.get("prompt") == "login" for form in asked), "the user had to authenticate again"
    stranger = Browser(server)
    target = User(provider).visit(stranger.get("/again?prompt=none")["Location"])
    assert query_of(target)["iss"] == provider.issuer
    parts = urlsplit(target)
    assert stranger.get(f"{parts.path}?{parts.query}").text == "error login_required\n"


def test_real_provider_with_new_keys(server, provider, keys):
    log_in(server, provider)
    provider.stop()
    provider.key = keys[1]
    provider.start()
    for _ in range(2):
        log_in(server, provider)


def test_real_provider_that_forgets_its_grants_ends_them_here(server, provider):
    browser, _ = log_in(server, provider)
    token_of(browser)
    provider.stop()
    time.sleep(3.2)
    assert browser.get("/token").status == 503
    provider.start()
    assert browser.get("/token").status == 401, "the restarted provider does not know the refresh token"
    assert browser.get("/show").text == "main:ana\n"
