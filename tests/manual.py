# SPDX-License-Identifier: Apache-2.0
"""Parses the manual for tests: code blocks, tables, and configurations, which are completed so that they load."""
import os
import pwd
import re
import shutil
import subprocess
import textwrap
from pathlib import Path

import mmdb
from certificates import make_authority
from monkey import ENVIRONMENT, PROGRAM, ROOT, SECONDS

PLUGINS = sorted((ROOT / "plugins").glob("*/README.md"))


# ---- Reading the manual ----

def blocks(page):
    """Yields (line, text) for each code block, fenced or indented, without its indentation."""
    lines = page.read_text().split("\n")
    i = 0
    while i < len(lines):
        start = i
        if lines[i].startswith("```"):
            i += 1
            while i < len(lines) and not lines[i].startswith("```"):
                i += 1
            yield start + 2, "\n".join(lines[start + 1:i]) + "\n"
            i += 1
        elif lines[i].startswith("    ") and (i == 0 or not lines[i - 1].strip()):
            while i < len(lines) and (lines[i].startswith("    ") or not lines[i].strip()):
                i += 1
            text = "\n".join(lines[start:i]).rstrip("\n") + "\n"
            yield start + 1, textwrap.dedent(text)
        else:
            i += 1


def inline_code(page):
    """Yields (line, text) for each inline code span."""
    text = page.read_text()
    for match in re.finditer(r"(?<!`)`([^`\n]+)`(?!`)", text):
        yield text.count("\n", 0, match.start()) + 1, match[1]


def table_rows(page, first):
    """Yields the cells of each row of the tables whose first heading is `first`."""
    rows, inside = [], False
    for line in page.read_text().split("\n"):
        if not line.startswith("|"):
            inside = False
            continue
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if cells[0] == first:
            inside = True
        elif inside and not set(line) <= set("|-"):
            rows.append(cells)
    return rows


# ---- The program ----

SECRETS = {"OIDC_SECRET": "secret"}  # variables that the examples read


def run(*args, folder=None, typed=""):
    return subprocess.run([PROGRAM, *map(str, args)], cwd=folder, input=typed, capture_output=True, text=True,
                          env=os.environ | ENVIRONMENT | SECRETS, timeout=SECONDS, check=False)


# ---- Configurations ----

# A user file for Basic and Digest; the password hash comes from an example of crypt(5).
USERS = "".join(f"{name}:$5$saltstring$5B8vYYiY.CVt1RlTTf8KbXBH3hsxY/GNooZaBBGWEl8\n" for name in ("ana", "bob"))
USERS += "ana:Members only:" + "0" * 64 + "\n"
# The packages whose sections the examples in Duda's headers show.
PACKAGES = {"[SESSIONS]": "duda", "[KV]": "duda-kv", "[REDIS]": "duda-redis", "[HTTP_CLIENT]": "duda-http",
            "[SMTP]": "duda-smtp", "[OIDC]": "duda-oidc", "[JWT]": "duda-jwt"}
SECTION = re.compile(r"(?:(?:#|@SET ).*\n|\s*\n)*\[[A-Z_]+\]\n")


def complete(page, text):
    """Adds the parts that the page omits from its example: a host, and the plugin's Load line."""
    plugin = page.parent.name if page in PLUGINS else ""
    if plugin and not re.search(rf"^\s+Load +{plugin}$", text, re.MULTILINE):
        text = f"[PLUGINS]\n    Load {plugin}\n{text}"
    if "[LOGGER]" in text and "[PLUGINS]" not in text:
        text = f"[PLUGINS]\n    Load logger\n{text}"
    if "[HELLO]" in text and "[PLUGINS]" not in text:
        text = f"[PLUGINS]\n    Load ./monkey-hello.so\n{text}"
    if page.name == "duda-api.md" and "[PLUGINS]" not in text:
        text = f"[PLUGINS]\n    Load {PACKAGES[text.split()[0]]}\n{text}"
    if "[HOST]" not in text:
        host = "[HOST]\n    DocumentRoot .\n"
        text = re.sub(r"^(\[ROUTES\]|\[HANDLERS\])$", rf"{host}\1", text, count=1, flags=re.MULTILINE) if "[ROUTES]" in text else text + host
    return text


def bring_along(folder, text):
    """Creates the folders and user files that the example names, and builds the plugin of the guide."""
    for key, value in re.findall(r"^\s+(DocumentRoot|Alias\s+\S+|AccessLog|ErrorLog|Include|UserFile|DNSHookEnvironment|ServersFile)\s+(.+)$", text, re.MULTILINE):
        path = folder / re.sub(r"\$\{(\w+)\}", lambda m: re.search(rf"^@SET {m[1]} (.*)$", text, re.MULTILINE)[1], value)
        (path if key.startswith(("DocumentRoot", "Alias")) else path.parent).mkdir(parents=True, exist_ok=True)
        if key == "Include":
            path.touch()
        if key == "ServersFile":
            path.write_text("127.0.0.1:9000\n")
        if key in ("UserFile", "DNSHookEnvironment"):
            path.write_text(USERS if key == "UserFile" else "TOKEN=x\n")
            path.chmod(0o600)
    for name in re.findall(r"(\S+\.mmdb)\b", text):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        mmdb.write(folder / name, {"192.0.2.0/24": {"country": {"iso_code": "DE"}, "autonomous_system_number": 64500}})
    for name in re.findall(r"\sfile:(\S+)", text):
        path, shipped = folder / name, ROOT / "conf/lists" / Path(name).name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            path.write_text(shipped.read_text() if shipped.exists() else "192.0.2.0/24\n")
    if "./monkey-hello.so" in text:
        subprocess.run(["cc", "-fPIC", "-shared", "-I", ROOT / "include", "-o", folder / "monkey-hello.so",
                        ROOT / "examples/plugin-hello/hello.c"], check=True, timeout=SECONDS)
    if "./monkey-chat.so" in text:
        build_chat(folder)


def build_chat(folder):
    """Builds the plugin of the WebSocket guide, which calls another plugin."""
    code = re.search(r"^```c\n(.*?)^```$", (ROOT / "docs/guide/websocket.md").read_text(), re.MULTILINE | re.DOTALL)[1]
    (folder / "chat.c").write_text(code)
    subprocess.run(["cc", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared", "-Wl,-Bsymbolic", "-I", ROOT / "include", "-o",
                    folder / "monkey-chat.so", folder / "chat.c"], check=True, timeout=SECONDS)


def bring_certificate(folder, certificate, key):
    """Installs a certificate and its key as an administrator would."""
    pair = make_authority(folder).issue(["example.org"])
    Path(certificate).parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(pair.certificate, certificate)
    shutil.copy(pair.key, key)


def write_configuration(folder, text, page=None):
    """Writes the example with its system paths moved into `folder`; if a page is given, partial examples are completed."""
    user = pwd.getpwuid(os.geteuid()).pw_name
    text = complete(page, text) if page else text
    text = re.sub(r"(?:(?<=\s)|(?<=file:))/(srv|var/log|run|etc/monkey|etc/letsencrypt|usr/share/(?:monkey|GeoIP))\b", rf"{folder}/\1", text)
    text = re.sub(r"^(\s+User\s+).*", rf"\g<1>{user}", text, flags=re.MULTILINE)
    bring_along(folder, text)
    for certificate, key in re.findall(r"^\s+Certificate\s+(\S+) (\S+)", text, re.MULTILINE):
        bring_certificate(folder, certificate, key)
    for authority in re.findall(r"^\s+ClientAuthority\s+(\S+)", text, re.MULTILINE):
        shutil.copy(make_authority(folder).file, authority)
    path = folder / "monkey.conf"
    path.write_text(text)
    return path
