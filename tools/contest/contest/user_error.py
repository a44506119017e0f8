# SPDX-License-Identifier: Apache-2.0
"""User errors: an exception that is printed without a traceback, and suggestions of similar names."""
import difflib


class UserError(Exception):
    """Describes the error, its location and the remedy. `code` is the exit code: 2 for a wrong command line, else 1."""

    def __init__(self, text, code=1):
        super().__init__(text)
        self.code = code


def nearest(word, words):
    """Returns ', did you mean X?' or, without a similar name, the list of all names."""
    words = sorted(words)
    near = difflib.get_close_matches(word, words, 1, 0.5)
    if near:
        return f"; did you mean {near[0]}?"
    return f"; known are: {', '.join(words)}" if words else ""
