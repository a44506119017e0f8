# SPDX-License-Identifier: Apache-2.0
"""WordPress from the Debian package with MariaDB, configured as the guide describes, with a user in a browser and an
attacker. The packages are large, so `make check` does not install them; `tools/dev/need.sh apps` does."""
import pathlib
import shutil

import pytest

import php_fpm
from php_app import PROTOCOLS, RUNS, App, picture

THERE = (pathlib.Path("/usr/share/wordpress/index.php").exists() and php_fpm.PROGRAM
         and shutil.which("mariadbd", path="/usr/sbin:/usr/local/sbin:/usr/bin"))
pytestmark = [pytest.mark.timeout(200),
              pytest.mark.skipif(not THERE, reason="no WordPress with MariaDB here: tools/dev/need.sh apps installs them")]
each_protocol = pytest.mark.parametrize("scheme", PROTOCOLS)


@pytest.fixture(scope="module")
def blog(encryption):
    with App("wordpress", encryption) as app:
        yield app


def log_in(user, url, password):
    user.visit(f"{url}/wp-login.php")
    user.fill("#user_login", "admin")
    user.fill("#user_pass", password)
    user.follow("#wp-submit")
    assert user.run("location.pathname") == "/wp-admin/" and "Dashboard" in user.text()


def choose_permalinks(user, url):
    """Sets a custom permalink structure, as the guide describes."""
    user.goto(f"{url}/wp-admin/options-permalink.php")
    user.click("#custom_selection")
    user.fill("#permalink_structure", "/%year%/%postname%/")
    user.follow("#submit")
    assert user.run("document.querySelector('#permalink_structure').value") == "/%year%/%postname%/"


def upload(user, url, file):
    """Returns the URL of the uploaded picture."""
    user.goto(f"{url}/wp-admin/media-new.php?browser-uploader=1")
    user.choose("#async-upload", file)
    user.follow("#html-upload")
    user.goto(f"{url}/wp-admin/upload.php?mode=list&s={file.stem}")
    user.follow("#the-list .row-title, #the-list strong a")
    return user.run("document.querySelector('#attachment_url').value")


def write(user, url, title, text, image):
    """Types a post into the block editor and publishes it."""
    user.goto(f"{url}/wp-admin/post-new.php")
    user.wait_for("wp.data.select('core/editor').getCurrentPostId() && document.querySelector('.editor-post-title__input')")
    user.run("wp.data.dispatch('core/preferences').set('core/edit-post', 'welcomeGuide', false); 0")
    user.fill(".editor-post-title__input", title)
    user.run(f"""wp.data.dispatch('core/block-editor').insertBlocks([
        wp.blocks.createBlock('core/paragraph', {{content: '{text}'}}),
        wp.blocks.createBlock('core/image', {{url: '{image}', alt: 'A banana'}})]); 0""")
    user.wait_for("wp.data.select('core/editor').isEditedPostSaveable()")
    user.click(".editor-post-publish-panel__toggle:not([aria-disabled=true])")
    user.click(".editor-post-publish-panel .editor-post-publish-button:not([aria-disabled=true])")
    user.wait_for("wp.data.select('core/editor').isCurrentPostPublished() && !wp.data.select('core/editor').isSavingPost()")


@each_protocol
def test_user_publishes_post_with_picture_and_anonymous_client_reads_it(blog, user, tmp_path, scheme):
    url, name = blog.urls[scheme], f"banana-{scheme}"
    file = tmp_path / f"{name}.png"
    file.write_bytes(picture())
    log_in(user, url, blog.password)
    choose_permalinks(user, url)
    image = upload(user, url, file)
    assert f"{url}/wp-content/uploads/" in image
    write(user, url, f"Yellow {scheme}", "It bends.", image)

    user.visit(f"{url}/")
    assert user.protocol() == PROTOCOLS[scheme]
    user.leave(lambda: user.run(
        f"[...document.links].find(a => a.innerText.trim().toLowerCase() == 'yellow {scheme}').click()"))
    year = user.run("new Date().getFullYear()")
    assert user.run("location.pathname") == f"/{year}/yellow-{scheme}/"
    assert "It bends." in user.text() and "Edit Post" not in user.text()
    user.wait_for("document.querySelector('img[alt=\"A banana\"]').naturalWidth == 40")
    for path in ("/x.php", "/index.php", "%00.php", "/../evil.php"):
        assert b"it runs" not in blog.get(scheme, image.removeprefix(url) + path).body
    assert RUNS in blog.get(scheme, image.removeprefix(url)).body
    assert blog.get(scheme, "/no/such/page/").status == 404


@each_protocol
def test_paths_reach_wordpress_but_uploaded_scripts_are_not_executed(blog, scheme):
    reply = blog.get(scheme, "/no/such/page/")
    assert reply.status in (200, 404) and b"A blog behind Monkey" in reply.body, "404 once permalinks are configured"
    assert blog.get(scheme, "/index.php/no/such/page/").status in (200, 301)
    assert blog.get(scheme, "/wp-admin/")["Location"].endswith("wp-admin%2F&reauth=1")
    assert blog.get(scheme, "/wp-includes/css/dashicons.min.css")["Content-Type"].startswith("text/css")
    folder = blog.site / "wp-content/uploads"
    (folder / "2026").mkdir(exist_ok=True)
    for path in (folder, folder / "2026"):
        (path / "evil.php").write_bytes(RUNS)
    for path in ("evil.php", "evil.php/x", "2026/evil.php", "%65vil.php", "../uploads/evil.php", "evil.php%2fx"):
        reply = blog.get(scheme, f"/wp-content/uploads/{path}")
        assert reply.status in (403, 404) and b"it runs" not in reply.body, path
