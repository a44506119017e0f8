# SPDX-License-Identifier: Apache-2.0
"""Generates HTML that the contents of a record cannot break: all text except Markup is escaped.

    tag("p", "1 < 2, ", tag("b", "truly"), class_="note")   ->   <p class="note">1 &lt; 2, <b>truly</b></p>
"""
import html
import re

VOID = {"meta", "link", "br", "hr", "input", "img", "col"}


class Markup(str):
    """Text that is already HTML."""


def text(child):
    if child is None or child is False:
        return Markup()
    if isinstance(child, Markup):
        return child
    if isinstance(child, (list, tuple)) or hasattr(child, "__next__"):
        return Markup("".join(map(text, child)))
    return Markup(html.escape(str(child), quote=True))


def tag(name, /, *children, **attributes):
    """Creates an element. In attribute names, a trailing _ is dropped, and any other _ becomes -. Attributes that are None or False
    are omitted."""
    shown = ""
    for key, value in attributes.items():
        if value is not None and value is not False:
            key = key.rstrip("_").replace("_", "-")
            shown += f" {key}" if value is True else f' {key}="{html.escape(str(value), quote=True)}"'
    if name in VOID:
        return Markup(f"<{name}{shown}>")
    return Markup(f"<{name}{shown}>{text(children)}</{name}>")


def inline(line):
    """Converts `code`, **strong** and [text](link) in a line; of a link only the text remains, because the page must not
    load or link to anything."""
    line = html.escape(re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", line), quote=True)
    line = re.sub(r"`([^`]+)`", r"<code>\1</code>", line)
    return Markup(re.sub(r"\*\*([^*]+)\*\*", r"<strong>\1</strong>", line))


def markdown(source, heading="h5"):
    """Converts the Markdown subset of notes: paragraphs, lists, headings, fenced code, `code`, **strong**."""
    source = re.sub(r"<!--.*?-->", "", source, flags=re.DOTALL)
    done, fenced = [], re.split(r"^```.*$\n?", source, flags=re.MULTILINE)
    for i, part in enumerate(fenced):
        if i % 2:
            done.append(tag("pre", tag("code", part.rstrip("\n")), tabindex="0"))
            continue
        for block in re.split(r"\n\s*\n", re.sub(r"^(#+ .*)$", r"\n\1\n", part, flags=re.MULTILINE)):
            done.append(_block(block.strip("\n"), heading))
    return text(done)


ITEM = re.compile(r"^\s*(?:[-*]|\d+\.) ", re.MULTILINE)


def _block(block, heading):
    lines = block.split("\n")
    if not block.strip():
        return None
    if (first := ITEM.search(block)) and first.start():  # a list without an empty line before it
        return text([_block(block[:first.start()].rstrip("\n"), heading), _block(block[first.start():], heading)])
    if block.startswith("#"):
        return tag(heading, inline(block.lstrip("# ")))
    if first:
        items = ITEM.split(block)[1:]
        return tag("ul", [tag("li", inline(" ".join(item.split()))) for item in items])
    if lines[0].startswith("|") and len(lines) > 1:
        rows = [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in lines if not re.match(r"^[|\s:-]+$", line)]
        return tag("div", tag("table", tag("thead", tag("tr", [tag("th", inline(c), scope="col") for c in rows[0]])), tag(
            "tbody", [tag("tr", [tag("td", inline(c)) for c in row]) for row in rows[1:]])), class_="scroll", tabindex="0")
    return tag("p", inline(" ".join(line.strip() for line in lines)))
