# SPDX-License-Identifier: Apache-2.0
"""Configuration templates: @name@ is replaced with a value; the lines between `@if name@` and `@end@` are included only if the
condition is true, and after `@if not name@` only if it is false. Templates look like their results, because there is no other
syntax."""
import re

from contest.user_error import UserError

NAME = re.compile(r"@([a-z][a-z0-9_]*)@")
CONDITION = re.compile(r"\s*@if (not )?([a-z0-9_]+)@\s*$")
END = re.compile(r"\s*@end@\s*$")


def fill(text: str, known: dict[str, str], where: str) -> str:
    def value(match):
        if match[1] not in known:
            raise UserError(f"{where}: there is no value for {match[0]}")
        return known[match[1]]

    return NAME.sub(value, text)


def render(text: str, known: dict[str, str], on: set[str], where: str) -> str:
    lines, shown = [], [True]
    for line in text.splitlines(keepends=True):
        if condition := CONDITION.match(line):
            shown.append(shown[-1] and (condition[2] in on) != bool(condition[1]))
        elif END.match(line):
            shown.pop()
            if not shown:
                raise UserError(f"{where}: @end@ without @if@")
        elif shown[-1]:
            lines.append(fill(line, known, where))
    if len(shown) != 1:
        raise UserError(f"{where}: @if@ without @end@")
    return "".join(lines)


def words(parts: list[str], known: dict[str, str], on: set[str], where: str) -> list[str]:
    """Renders a command: `@if name@` and `@end@` are separate words."""
    return render("".join(f"{part}\n" for part in parts), known, on, where).splitlines()
