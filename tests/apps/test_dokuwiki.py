# SPDX-License-Identifier: Apache-2.0
"""DokuWiki from the Debian package, configured as the guide describes, with a user in a browser and an attacker."""
import pathlib

import pytest

import php_fpm
from php_app import PROTOCOLS, RUNS, App, picture

pytestmark = [
    pytest.mark.skipif(not pathlib.Path("/usr/share/dokuwiki/doku.php").exists(), reason="there is no DokuWiki"),
    pytest.mark.skipif(not php_fpm.PROGRAM, reason="there is no php-fpm"),
]
each_protocol = pytest.mark.parametrize("scheme", PROTOCOLS)


@pytest.fixture(scope="module")
def wiki(encryption):
    with App("dokuwiki", encryption) as app:
        yield app


def log_in(user, url, password):
    user.visit(f"{url}/start?do=login")
    user.fill("#focus__this", "admin")
    user.fill("input[name=p]", password)
    user.follow("#dw__login button[type=submit]")
    assert "Admin" in user.run("document.querySelector('.user').innerText")


def upload(user, url, file):
    user.goto(f"{url}/start?do=media&tab_files=upload")
    user.choose(".qq-uploader input[type=file]", file)
    user.click("#mediamanager__upload_button")
    user.wait_for(f"document.querySelector('.qq-upload-success a').innerText == '{file.name}'")


@each_protocol
def test_user_creates_page_with_picture_and_anonymous_client_reads_it(wiki, user, tmp_path, scheme):
    url, name = wiki.urls[scheme], f"banana-{scheme}"
    file = tmp_path / f"{name}.png"
    file.write_bytes(picture())
    log_in(user, url, wiki.password)
    upload(user, url, file)
    user.goto(f"{url}/fruit:{name}?do=edit")
    user.fill("#wiki__text", f"====== Yellow {scheme} ======\nIt bends. {{{{:{name}.png|A banana}}}}\n")
    user.follow("#edbtn__save")
    assert user.run("location.pathname") == f"/fruit:{name}"

    user.visit(f"{url}/fruit:{name}")
    assert user.protocol() == PROTOCOLS[scheme]
    assert f"Yellow {scheme}" in user.run("document.querySelector('h1.sectionedit1').innerText")
    assert "It bends." in user.text() and "Admin" not in user.text()
    user.wait_for("document.querySelector('img[alt=\"A banana\"]').naturalWidth == 40")
    user.follow("a.media")
    assert user.run("location.pathname") == f"/_detail/{name}.png"


PRIVATE = ("/data/pages/secret.txt", "/conf/users.auth.php", "/conf/local.php", "/inc/init.php", "/bin/dwpage.php",
           "/vendor/autoload.php", "/data", "/data/", "/conf", "//data/pages/secret.txt", "/lib/../data/pages/secret.txt",
           "/%64ata/pages/secret.txt", "/data/media/evil.php", "/data/media/evil.php/x", "/inc%2finit.php")


@each_protocol
def test_paths_open_pages_but_not_private_folders(wiki, scheme):
    for path in ("/no:such.page", "/v1.2/x.html?do=show"):
        assert b"This topic does not exist yet" in wiki.get(scheme, path).body
    assert wiki.get(scheme, "/lib/images/license/button/cc-by-sa.png")["Content-Type"] == "image/png"
    assert wiki.get(scheme, "/feed.php").status == 200
    (wiki.site / "data/pages/secret.txt").write_text("it is secret")
    (wiki.site / "data/media/evil.php").write_bytes(RUNS)
    for path in PRIVATE:
        reply = wiki.get(scheme, path)
        assert reply.status in (400, 403, 404), path
        assert b"it is secret" not in reply.body and b"it runs" not in reply.body, path


@each_protocol
def test_uploaded_script_is_not_executed(wiki, scheme):
    (wiki.site / "lib/images/evil.png").write_bytes(picture())
    assert RUNS in wiki.get(scheme, "/lib/images/evil.png").body
    for path in ("/x.php", "/index.php", "%00.php", "/.php", "%2fx.php", "/x.php/y", "/../evil.png/x.php"):
        assert b"it runs" not in wiki.get(scheme, f"/lib/images/evil.png{path}").body, path
