# SPDX-License-Identifier: Apache-2.0
"""Reads the wire cases of this folder; README.md describes their format.

    for case in read_cases():
        send(case.data)
        check(case.expect)

When run as a program, it lists all cases and checks that they can be parsed.
"""
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent
MARK, EXPECT = "=== ", "--- expect"
SIMPLE = {"r": b"\r", "n": b"\n", "t": b"\t", "\\": b"\\"}
KINDS = {"request", "status", "incomplete", "host", "port", "path", "query", "field", "continue", "body", "data",
         "keep", "close"}


@dataclass(frozen=True)
class Case:
    file: str  # "heads.txt"
    line: int  # line of the file in which the case begins
    name: str
    data: bytes  # bytes that the client sends
    expect: tuple  # expected lines as bytes, without escapes

    @property
    def id(self):
        """A unique ID that is valid as a file name and as a test parameter."""
        return f"{Path(self.file).stem}-{'-'.join(self.name.split())}".replace("/", "_")

    def events(self, kind):
        """Returns the text after `kind` for each expected line that begins with it."""
        head = kind.encode()
        return [line[len(head):].lstrip(b" ") for line in self.expect if line.split(b" ")[0] == head]

    @property
    def statuses(self):
        """Returns the statuses of the responses, in order; None stands for an accepted request, whatever its status. A request
        whose body is rejected yields one or two responses: see README.md."""
        answers = []
        for line in self.expect:
            if line.startswith(b"request "):
                answers.append(None)
            elif line.startswith(b"status "):
                answers.append(int(line.split()[1]))
        return answers

    @property
    def is_incomplete(self):
        return b"incomplete" in self.expect


def decode(text):
    """Returns the bytes that a line encodes."""
    data, rest = _decode(text, False)
    assert not rest
    return data


def _decode(text, inside):
    out = bytearray()
    while text:
        if inside and text[0] == "}":
            return bytes(out), text[1:]
        if text[0] != "\\":
            out += text[0].encode("ascii")
            text = text[1:]
        elif text[1] == "x":
            out.append(int(text[2:4], 16))
            text = text[4:]
        elif text[1] == "{":
            count, text = text[2:].split(":", 1)
            piece, text = _decode(text, True)
            out += piece * int(count)
        else:
            out += SIMPLE[text[1]]
            text = text[2:]
    if inside:
        raise ValueError("a repetition does not end")
    return bytes(out), ""


def read_file(path):
    """Yields the cases of one file."""
    name, start, expecting = None, 0, False
    data, expect = bytearray(), []

    def finish():
        if not expect:
            raise ValueError(f"{path}:{start}: nothing is expected")
        return Case(path.name, start, name, bytes(data), tuple(expect))

    for number, line in enumerate(path.read_text(encoding="ascii").split("\n"), 1):
        try:
            if line.startswith(MARK):
                if name:
                    yield finish()
                name, start, expecting = line[len(MARK):], number, False
                data, expect = bytearray(), []
            elif not line or line.startswith("#"):
                continue
            elif line.endswith(" "):
                raise ValueError("ends with a blank")
            elif line == EXPECT:
                expecting = True
            elif expecting:
                expect.append(decode(line))
                if line.split(" ")[0] not in KINDS:
                    raise ValueError("no such expectation")
            else:
                data += decode(line)
        except (ValueError, KeyError, IndexError) as error:
            raise ValueError(f"{path}:{number}: {error}: {line}") from error
    if name:
        yield finish()


def read_cases(folder=FOLDER):
    """Yields the cases of all files, and checks that their names are unique."""
    seen = set()
    for path in sorted(Path(folder).glob("*.txt")):
        for case in read_file(path):
            if case.id in seen:
                raise ValueError(f"{path}:{case.line}: the name is taken: {case.name}")
            seen.add(case.id)
            yield case


if __name__ == "__main__":
    for each in read_cases():
        print(f"{each.file}:{each.line}: {each.name} ({len(each.data)} bytes)")
