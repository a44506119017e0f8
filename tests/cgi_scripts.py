# SPDX-License-Identifier: Apache-2.0
"""Scripts for the cgi plugin, and a server that runs them."""
import sys

from proc import descriptors

ROUTES = "[ROUTES]\n    /cgi-bin/*  cgi\n    *.php       cgi\n    /*          static\n"
SH = "#!/bin/sh\n"
PLAIN = SH + "printf 'Content-Type: text/plain\\n\\n'\n"
ENV = PLAIN + "exec env\n"
PYTHON = f"#!{sys.executable} -I\n"


def serve_scripts(monkey, site, scripts=None, keys="", routes=ROUTES, **how):
    """Starts a server with these scripts in cgi-bin, these keys in [CGI], and a static page in the document root."""
    for name, text in (scripts or {}).items():
        site.add(f"cgi-bin/{name}", text, mode=0o755)
    site.add("page.txt", "the page")
    keys = "".join(f"    {key}\n" for key in keys.splitlines())
    return monkey(plugins=["cgi"], top=f"[CGI]\n{keys}" if keys else "", sections=routes, **how)


def environment(reply):
    """The environment variables that the script ENV printed."""
    assert reply.status == 200, reply
    return dict(line.split("=", 1) for line in reply.text.splitlines())


def pipes_of(worker):
    """The number of pipes to scripts, excluding the server's standard streams."""
    links = descriptors(worker)
    return len({link for link in links.values() if link.startswith("pipe:")} - {links[1], links[2]})
