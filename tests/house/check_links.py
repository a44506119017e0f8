#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every link of the manual within the tree has a target: a file and, if the link names one, a heading. Each decision has a
unique number, and docs/decisions/README.md lists the decisions by ascending number.
"""
import functools
import itertools
import re
from urllib.parse import unquote

import house

PLACES = ("docs", "plugins", "duda", "tools", "examples", "packaging", "include", "src")
LINK = re.compile(r'\[[^\]]*\]\(\s*<?([^)\s>]+)[^)]*\)|<(?:img|a)\s[^>]*?(?:src|href)="([^"]+)"')
CODE = re.compile(r"^```.*?^```|^(?:    |\t).*?$|`[^`\n]+`", re.MULTILINE | re.DOTALL)


def pages(root):
    yield from sorted(root.glob("*.md"))
    yield from house.files(root, PLACES, (".md",))


def without_code(text):
    return CODE.sub(lambda m: "\n" * m.group().count("\n"), text)


@functools.lru_cache(maxsize=None)
def anchors(page):
    """Returns the anchors of the headings (lower case, no punctuation, words joined by hyphens), and explicit anchors."""
    names = re.findall(r'<a id="([^"]+)"></a>', house.read(page))
    for heading in re.findall(r"^#{1,6} +(.+?) *#*$", house.read(page), re.MULTILINE):
        name = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        names.append(name if name not in names else f"{name}-{names.count(name)}")
    return names


def judge_link(page, target):
    """Returns the error of the link, or None."""
    if re.match(r"[a-z][a-z0-9+.-]*:|//", target):
        return None
    path, _, anchor = target.partition("#")
    aim = page.parent / unquote(path) if path else page
    if not aim.exists():
        return "is not there"
    if anchor and aim.suffix == ".md" and anchor not in anchors(aim):
        return "has no such heading"
    return None


def check_tree(root):
    complaints = []
    for page in pages(root):
        text = without_code(house.read(page))
        for m in LINK.finditer(text):
            target = m.group(1) or m.group(2)
            wrong = judge_link(page, target)
            if wrong:
                line = text.count("\n", 0, m.start()) + 1
                complaints.append(f"{page.relative_to(root)}:{line}: {target} {wrong}")
    return complaints


def check_decisions(root):
    """Two branches may choose the same next number, and git merges both without a conflict."""
    folder = root / "docs/decisions"
    names = sorted(path.name for path in folder.glob("[0-9]*.md"))
    complaints = [f"docs/decisions/{name}: its number is taken by {before}"
                  for before, name in zip(names, names[1:]) if before[:4] == name[:4]]
    listed = re.findall(r"^\| \[.*\]\(([0-9][^)]*)\) \|", house.read(folder / "README.md"), re.MULTILINE) if names else []
    if listed != names:
        odd = next((b or a for a, b in itertools.zip_longest(listed, names) if a != b))
        complaints.append(f"docs/decisions/README.md: lists the notes otherwise than by number, from {odd} on")
    return complaints


def check(args):
    return check_tree(args.root) + check_decisions(args.root)


def self_test(test):
    def judge(text, **others):
        more = {f"docs/{name}.md": body for name, body in others.items()}
        return check_tree(test.tree({"README.md": text} | more))

    test.expect("a page", judge("[a](docs/a.md) and ![b](docs/a.md 'title')", a="# A\n"))
    test.expect("a folder", judge("[a](docs)", a=""))
    test.expect("elsewhere", judge("[a](https://example.org/x) [b](mailto:a@example.org)"))
    test.expect("no page", judge("\n[a](docs/b.md)", a=""), r"^README\.md:2: docs/b\.md is not there")
    test.expect("no picture", judge('<img src="site/a.svg" alt="">'), "site/a.svg is not there")
    test.expect("a heading", judge("[a](docs/a.md#what-it-is-2-words) [b](#top)\n# Top\n", a="## What it is, 2 `words`\n"))
    test.expect("an anchor", judge("[a](docs/a.md#mk_a) [b](docs/a.md#mk_b)", a='<a id="mk_a"></a>\n'), "#mk_b has no such heading")
    test.expect("no heading", judge("[a](docs/a.md#other)", a="# A\n"), "has no such heading")
    test.expect("no heading here", judge("[a](#other)\n# A\n"), "#other has no such heading")
    test.expect("in code", judge("    [a](docs/b.md)\n\n```\n[a](docs/b.md)\n```\n`[a](docs/b.md)`\n"))
    test.expect("behind code", judge("    code\n\n```\ncode\n```\n[a](docs/b.md)\n"), r"^README\.md:6: ")
    def judge_notes(listed, *names):
        table = "| Note | Status |\n|---|---|\n" + "".join(f"| [{name[:4]}: `[A]`]({name}) | in force |\n" for name in listed)
        return check_decisions(test.tree({f"docs/decisions/{name}": "# A\n" for name in names} | {"docs/decisions/README.md": table}))

    test.expect("notes", judge_notes(["0001-a.md", "0002-b.md"], "0001-a.md", "0002-b.md"))
    test.expect("two notes of one number", judge_notes(["0001-a.md", "0001-b.md"], "0001-a.md", "0001-b.md"), "0001-b.md: its number is taken")
    test.expect("a note that is not listed", judge_notes(["0001-a.md"], "0001-a.md", "0002-b.md"), "from 0002-b.md on")
    test.expect("notes out of order", judge_notes(["0002-b.md", "0001-a.md"], "0001-a.md", "0002-b.md"), "from 0001-a.md on")
    test.expect("no decisions", check_decisions(test.tree({"README.md": ""})))
    test.expect("seen from its own folder", judge("", a="[a](../README.md) [b](README.md)\n"), r"^docs/a\.md:1: README\.md is")


if __name__ == "__main__":
    house.run(__doc__, check, self_test)
