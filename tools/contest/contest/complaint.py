# SPDX-License-Identifier: Apache-2.0
"""What is wrong with what the user gave us: one exception, said without a traceback, and names that are near."""
import difflib


class Complaint(Exception):
    """Says what is wrong, where, and what to do. `code` is the exit code: 2 for a wrong command line, else 1."""

    def __init__(self, text, code=1):
        super().__init__(text)
        self.code = code


def nearest(word, words):
    """', did you mean X?' or, when nothing is near, what there is."""
    words = sorted(words)
    near = difflib.get_close_matches(word, words, 1, 0.5)
    if near:
        return f"; did you mean {near[0]}?"
    return f"; there are: {', '.join(words)}" if words else ""
