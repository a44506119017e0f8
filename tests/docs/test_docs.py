# SPDX-License-Identifier: Apache-2.0
"""Checks the manual against the program: configurations load, commands exist, every key is documented, and default values
match. Also checks the man page and the shell completion. (tests/house checks links and the generated reference.)"""
import functools
import os
import re
import shlex
import shutil
import subprocess

import pytest

from manual import PLUGINS, SECTION, blocks, inline_code, run, table_rows, write_configuration
from monkey import PROGRAM, ROOT, SECONDS

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), *PLUGINS, *sorted((ROOT / "examples").rglob("*.md"))]
MADE = PROGRAM.parent / "docs"  # every build generates the man page and completions


@pytest.fixture(scope="module")
def help_text():
    return run("--help").stdout


# ---- Configurations ----

# tests/duda/test_guide_tracker.py starts servers with the configurations of these pages, next to the files that they need.
APART = ("duda.md", "duda-production.md")
CONFIGURATIONS = [pytest.param(page, text, id=f"{page.relative_to(ROOT)}:{line}")
                  for page in PAGES if page.parent.name != "guide" or page.name not in APART for line, text in blocks(page) if SECTION.match(text)]


def test_manual_has_configurations():
    assert len(CONFIGURATIONS) >= 15, "too few are found"


def complaints(stderr):
    """Returns the errors and warnings, except for those about missing error pages and services, and about services that run as
    the user of the public workers: they are expected here."""
    expected = "there is no `|no service `.*` is loaded|the service `.*` runs as the user of the public workers"
    return [line for line in stderr.splitlines() if re.search(rf": (error|warning): (?!{expected})", line)]



@pytest.mark.parametrize("page, text", CONFIGURATIONS)
def test_configuration_of_the_manual_loads(tmp_path, page, text):
    done = run("-t", "-c", write_configuration(tmp_path, text, page))
    assert done.returncode == 0, done.stderr
    assert not complaints(done.stderr) or page.name == "from-monkey-1.md", done.stderr


def test_migration_guide_shows_the_real_output(tmp_path):
    """The end of the migration guide shows an example and its output."""
    page = ROOT / "docs/guide/from-monkey-1.md"
    texts = [text for _, text in blocks(page)]
    example = next(text for text in texts if text.startswith("# /etc/monkey/sites/default\n"))
    output = next(text for text in texts if text.startswith("$ monkey -t -c /etc/monkey\n"))
    folder = tmp_path / "etc/monkey"
    (folder / "sites").mkdir(parents=True)
    (folder / "monkey.conf").write_text("[SERVER]\n    Listen 2001\n")
    (folder / "sites/default").write_text(write_configuration(tmp_path, example).read_text())
    (folder / "plugins.load").write_text(next(text for text in texts if text.startswith("# /etc/monkey/plugins.load\n")))
    done = run("-t", "-c", folder)
    assert (done.stderr + done.stdout).replace(str(tmp_path), "") == output.partition("\n")[2]


def test_format_reference_shows_the_real_error(tmp_path):
    page = ROOT / "docs/reference/configuration-format.md"
    output = next(text for _, text in blocks(page) if text.startswith("/etc/monkey/monkey.conf:"))
    line = re.search(r"^ {4}( {4}\S.*)$", output, re.MULTILINE)[1]
    config = tmp_path / "monkey.conf"
    config.write_text(f"#\n#\n#\n[SERVER]\n{line}\n[HOST]\n    DocumentRoot .\n")
    done = run("-t", "-c", config)
    assert done.returncode == 3
    assert done.stderr.replace(str(tmp_path), "/etc/monkey") == output


@pytest.mark.parametrize("path", sorted((ROOT / "plugins").glob("*/*.conf")), ids=lambda path: path.name)
def test_configuration_file_of_a_plugin_loads_unchanged(tmp_path, path):
    text = f"@INCLUDE {path}\n[HOST]\n    DocumentRoot .\n"
    done = run("-t", "-c", write_configuration(tmp_path, text))
    assert (done.returncode, complaints(done.stderr)) == (0, []), done.stderr


def test_manual_lists_every_plugin():
    names = {path.parent.name for path in (ROOT / "plugins").glob("*/CMakeLists.txt")}
    guide = table_rows(ROOT / "docs/guide/using-plugins.md", "Plugin")
    assert [re.match(r"\[([\w-]+)\]", row[0])[1] for row in guide] == sorted(names)
    assert re.findall(r"^## ([\w-]+)$", (ROOT / "docs/reference/plugins.md").read_text(), re.MULTILINE) == sorted(names | {"duda-dev"})
    assert {path.parent.name for path in PLUGINS} == names, "every plugin has a README"


# ---- Commands ----

COMMAND = re.compile(r"^(?:\$ )?(?:sudo )?(?:build/\w+/)?monkey(?:\s|$)")


def commands(page):
    """Yields (line, words) for each command line that starts the program. Text after two spaces is an explanation."""
    shown = [(number + i, line) for number, text in blocks(page) for i, line in enumerate(text.split("\n"))]
    for number, line in shown + list(inline_code(page)):
        for part in line.split(" && "):
            if COMMAND.match(part):
                words = shlex.split(re.split(r"\s{2,}", part.strip())[0].replace("`", ""))
                yield number, words[next(i for i, word in enumerate(words) if word.endswith("monkey")) + 1:]


@functools.cache
def list_of_plugins():
    return run("plugins").stdout


@functools.cache
def options_of_a_plugin(word):
    """Returns the options in `monkey WORD --help` if a plugin provides the command."""
    if not re.search(rf"^ +commands .*\b{re.escape(word)}\b", list_of_plugins(), re.MULTILINE):
        return []
    return re.findall(r"(?<![\w-])--?\w[\w-]*", run(word, "--help").stdout)


def test_manual_has_commands():
    assert sum(1 for page in PAGES for _ in commands(page)) >= 20, "too few are found"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_commands_of_the_manual_use_existing_options(page, help_text):
    letters = re.findall(r"^  (-\w), --", help_text, re.MULTILINE)
    names = re.findall(r"^  (?:-\w,|   ) (--[\w-]+)", help_text, re.MULTILINE)
    verbs = re.findall(r"^  monkey ([a-z]+) ", help_text, re.MULTILINE)
    assert letters and names and verbs
    for line, words in commands(page):
        own = options_of_a_plugin(words[0]) if words else []
        for word in words:
            known = word.partition("=")[0] in letters + names + own or not word.startswith("-")
            assert known, f"{page.name}:{line}: there is no {word}"
        if "explain" in words:
            assert "explain" in verbs and ({"-X", "-H", "--sandbox", "--systemd"} & set(words) or len(words[words.index("explain"):]) in (1, 3)), f"{page.name}:{line}"


# ---- Keys and defaults ----

def printed_configuration():
    """Returns {section: {key: value}} as `monkey -T` prints it; None for a key without a value."""
    sections = {}
    for line in run("-T", ROOT).stdout.splitlines():
        if match := re.fullmatch(r"\[(\w+)\]", line):
            keys = sections.setdefault(match[1], {})
        elif match := re.fullmatch(r"    (# )?(\w+)(?: +(.*))?", line):
            keys[match[2]] = None if match[1] else match[3]
    return sections


def reference_keys():
    """Returns every key that has a row in the generated reference."""
    rows = table_rows(ROOT / "docs/reference/configuration.md", "Key")
    return {row[0].strip("`") for row in rows}


def test_reference_has_every_key_of_the_program():
    sections = printed_configuration()
    missing = {key for name in ("SERVER", "HOST") for key in sections[name]} - reference_keys()
    assert {"SERVER", "HOST"} <= set(sections) and not missing


def test_guide_mentions_every_key():
    words = set()
    for page in sorted((ROOT / "docs/guide").glob("*.md")):
        words |= set(re.findall(r"\w+", page.read_text()))
    assert reference_keys() - words == set()


def test_guide_mentions_every_section():
    reference = (ROOT / "docs/reference/configuration.md").read_text()
    guide = "".join(page.read_text() for page in (ROOT / "docs/guide").glob("*.md"))
    for section in re.findall(r"^## (\[\w+\])$", reference, re.MULTILINE):
        assert section in guide, section


def amount(text):
    """Converts a duration to seconds, a size to bytes, and any other word to lower case."""
    match = re.fullmatch(r"(\d+)(ms|[smhBKMG])?", text)
    if not match:
        return text.lower()
    units = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "B": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, None: 1}
    return int(match[1]) * units[match[2]]


def test_guide_states_the_defaults_of_the_program():
    server = printed_configuration()["SERVER"]
    seen = 0
    for row in table_rows(ROOT / "docs/guide/limits.md", "Key"):
        if re.fullmatch(r"`\w+`", row[0]):
            key = row[0].strip("`")
            assert amount(row[1]) == amount(server[key]), key
            seen += 1
    assert seen >= 15


# ---- Messages ----

def source_text():
    """Returns all string literals of the program, with adjacent ones joined."""
    text = "".join(path.read_text() for path in sorted((ROOT / "src").rglob("*.c")))
    return re.sub(r'"\s*\n\s*"', "", text).replace('\\"', '"')


def test_guide_explains_only_existing_messages():
    source = source_text()
    rows = table_rows(ROOT / "docs/guide/troubleshooting.md", "Text")
    assert len(rows) >= 10
    for message, *_ in rows:
        pieces = [piece for piece in re.split(r"\.\.\.|\bN\b|`", message) if len(piece) >= 6]
        assert pieces, message
        for piece in pieces:
            assert piece.strip().removesuffix("workers").strip() in source, message


def test_guide_explains_only_existing_reasons():
    explain = (ROOT / "src/server/explain.c").read_text()
    reasons = [reason for reason, *_ in table_rows(ROOT / "docs/guide/troubleshooting.md", "`explain` says") if reason[0] != "`"]
    assert len(reasons) >= 5
    for reason in reasons:
        assert reason.split(" ...")[0].removeprefix("decided ") in explain, reason


# ---- Code ----

def test_handler_example_compiles(tmp_path):
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if not compiler:
        pytest.skip("no compiler here")
    code = next(text for _, text in blocks(ROOT / "docs/internals.md") if "const struct mk_handler" in text)
    path = tmp_path / "count.c"
    path.write_text(f"#include <errno.h>\n#include <stdio.h>\n#include <monkey/handler.h>\n{code}")
    done = subprocess.run([compiler, "-std=gnu17", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", "-I", ROOT / "include",
                           path], capture_output=True, text=True, timeout=SECONDS, check=False)
    assert done.returncode == 0, done.stderr


# ---- Man page ----

@pytest.fixture(scope="module")
def man_page():
    path = MADE / "monkey.1"
    assert path.exists(), f"{path} is not built"
    return path


def test_man_page_renders_without_warnings(man_page):
    if shutil.which("groff"):
        command = ["groff", "-man", "-Tutf8", "-ww", "-z", man_page]
    elif shutil.which("man"):
        command = ["man", "--warnings", "-E", "UTF-8", "-l", man_page]
    else:
        pytest.skip("neither groff nor man here")
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"MANROFFSEQ": "", "LC_ALL": "C.UTF-8"},
                          timeout=SECONDS, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_man_page_has_every_option_and_command(man_page, help_text):
    text = re.sub(r"\\f[BIR]", "", man_page.read_text()).replace("\\-", "-")
    for name in re.findall(r"--[\w-]+", help_text) + re.findall(r"^  monkey ([a-z]+) ", help_text, re.MULTILINE):
        assert re.search(rf"(?<![\w-]){re.escape(name)}\b", text), name
