# SPDX-License-Identifier: Apache-2.0
"""Colors of the page and the plots in two themes, and the marker and dashes of each contestant.

Color is never the only distinction: lines also differ in marker and dashes, and have labels at their ends.
"""
from dataclasses import dataclass

# name: (light, dark)
THEME = {
    "ground": ("#f7f5f1", "#14110f"), "card": ("#ffffff", "#1d1916"), "raised": ("#f3efe8", "#272220"),
    "line": ("#ddd6cb", "#3a332e"), "ink": ("#221c18", "#f0e9e1"), "soft": ("#655a51", "#b5a89c"),
    "accent": ("#9a3f06", "#ffac6b"), "win": ("#0b6b45", "#74d9a8"), "loss": ("#a3213d", "#ff97a6"),
    "warn": ("#7a5600", "#f0c860"), "heat": ("#c2611f", "#d9782f"),
}
# Our server comes first. The colors have enough contrast for text on the light and on the dark card; neighbors also differ in
# lightness.
LINES = (
    ("#b23a00", "#ff9557"), ("#005f9e", "#6ebcf5"), ("#007a5e", "#3fd3a6"), ("#a03a83", "#f09bd6"),
    ("#6b5f00", "#e2d04c"), ("#4a3fb0", "#b0a8ff"), ("#0f6f7c", "#86e0ec"), ("#8f1d3f", "#ff8ba3"),
    ("#4d6b12", "#b4dc74"), ("#6a4a34", "#d8b698"), ("#2d2a6e", "#d3d0ff"), ("#3c4a3e", "#c8d6ca"),
    ("#7d3cc0", "#d2a6ff"), ("#59503f", "#e5dcc6"),
)
YARDSTICK = ("#6b6b6b", "#a3a3a3")
MARKERS = "osD^vPXp*<>hd8"
DASHES = ("solid", (0, (6, 2)), (0, (2, 1.6)), (0, (7, 2, 1.5, 2)), (0, (1, 1.8)), (0, (9, 2, 1.5, 2, 1.5, 2)), (0, (4, 3)))


@dataclass(frozen=True)
class Look:
    color: str      # the name of a CSS variable
    marker: str
    dashes: object
    width: float
    hollow: bool
    above: int       # z-order: drawn over looks with smaller numbers


def looks(results):
    """Returns {name: Look}, the same in every plot of a report."""
    names = [n for n in results.record.contestants if n not in results.yardsticks]
    if results.ours in names:
        names.remove(results.ours)
    found = {}
    for i, name in enumerate(names, 1):
        found[name] = Look(f"c{(i - 1) % (len(LINES) - 1) + 1}", MARKERS[i % len(MARKERS)], DASHES[(i - 1) % 6 + 1], 1.5,
                           i % 2 == 0, 2)
    if results.ours:
        found[results.ours] = Look("c0", MARKERS[0], DASHES[0], 2.6, False, 4)
    for name in results.yardsticks:
        found[name] = Look("yard", "", (0, (1, 2.5)), 1.2, False, 1)
    return found


def variables():
    """Returns {name: (light, dark)} of all colors."""
    return THEME | {f"c{i}": pair for i, pair in enumerate(LINES)} | {"yard": YARDSTICK}


def css(dark):
    return " ".join(f"--{name}: {pair[dark]};" for name, pair in variables().items())


def placeholder(name):
    """Returns the color that stands for a CSS variable in matplotlib's drawings: matplotlib supports only real colors."""
    return f"#fe{list(variables()).index(name):04x}"


def placeholders():
    return {placeholder(name): name for name in variables()}


def contrast(a, b):
    """Returns the contrast ratio of WCAG: text needs 4.5, lines 3."""
    one, other = sorted((_luminance(a), _luminance(b)), reverse=True)
    return (one + .05) / (other + .05)


def _luminance(color):
    parts = [int(color[i:i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (p / 12.92 if p <= .04045 else ((p + .055) / 1.055) ** 2.4 for p in parts)
    return .2126 * red + .7152 * green + .0722 * blue
