#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes libmonkey as two files, monkey.h and monkey.c, which a program compiles along with its own sources.

    tools/package/amalgamate.py --build build/std --out FOLDER

--build names a configured build folder, in which Ninja makes generated sources that are missing. monkey.c contains the sources of
libmonkey.a in the same order, from the lowest layer to the highest. Each file becomes a section, and headers precede the files that
include them; system headers move to the beginning. Functions that are not public become static.

If several files use the same static name, the script renames it in each of them, from NAME to NAME__FILE; a name of a private header
becomes NAME__FOLDER_h. Renaming works on tokens and distinguishes the name spaces of C (tags, members, all other names). A name that
cannot be renamed safely is an error: a name that a macro turns into a string, or a name whose new form already exists. The macros of
a source file are undefined at its end.
"""
import argparse
import json
import re
import shlex
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TOKEN = re.compile(r"""
    (?P<comment>/\*.*?\*/|//[^\n]*)
  | (?P<text>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')
  | (?P<name>[A-Za-z_]\w*)
  | (?P<number>\.?\d(?:[eEpP][+-]|[\w.])*)
  | (?P<blank>(?:[ \t]|\\\n)+)
  | (?P<newline>\n)
  | (?P<sign>->|\.\.\.|\#\#|.)
""", re.VERBOSE | re.DOTALL)
INCLUDE = re.compile(r'[ \t]*#[ \t]*include[ \t]*(?:"([^"]+)"|<([^>]+)>)[ \t]*(?:/\*.*\*/)?[ \t]*$')
KEYWORDS = set("""auto break case char const continue default do double else enum extern float for goto if inline int long register
restrict return short signed sizeof static struct switch typedef union unsigned void volatile while _Alignas _Alignof _Atomic _Bool
_Complex _Generic _Noreturn _Static_assert _Thread_local __attribute__ bool __extension__ __typeof__ typeof __asm__ asm""".split())


MEMBER_MACROS = {"offsetof", "MK_CONTAINER", "MK_LIST_ENTRY"} # their last argument is a member


class Problem(Exception):
    """Something that the script cannot do safely."""


def tokens_of(text):
    """Returns the tokens of a text as (kind, text). Their concatenation is the text."""
    return [(match.lastgroup, match.group()) for match in TOKEN.finditer(text)]


# ---- Names of one file

class FileScope:
    """The names that a file declares at file scope with internal or no linkage: static functions and variables, enum constants and
    typedefs (`ordinary`), and tags."""

    def __init__(self, text):
        self.ordinary, self.tags, self.macros, self.external = set(), set(), set(), set()
        self.functions = [] # (offset, name) of declarations of functions with external linkage
        self.variables = set() # other external names, and functions declared with a typedef or as weak
        self.significant = [] # (kind, text, offset)
        self._skip_directives(tokens_of(text))
        self._read()

    def _skip_directives(self, tokens):
        at_start, i, offset, ends = True, 0, 0, []
        for _, text in tokens:
            ends.append(offset := offset + len(text))
        while i < len(tokens):
            kind, text = tokens[i]
            if kind == "sign" and text == "#" and at_start:
                words = []
                while i < len(tokens) and tokens[i][0] != "newline":
                    if tokens[i][0] not in ("blank", "comment"):
                        words.append(tokens[i][1])
                    i += 1
                if len(words) > 2 and words[1] == "define":
                    self.macros.add(words[2])
                continue
            if kind == "newline":
                at_start = True
            elif kind not in ("blank", "comment"):
                at_start = False
                self.significant.append((kind, text, ends[i] - len(text)))
            i += 1

    def _read(self):
        """Splits the file into external declarations: up to `;` or a function body, at depth 0."""
        one, depth, i = [], 0, 0
        words = self.significant
        while i < len(words):
            text = words[i][1]
            one.append(words[i])
            if text == "{" and [word[1] for word in one] == ["extern", '"C"', "{"] or text == "}" and depth == 0:
                one = []
            elif text in "({[":
                depth += 1
            elif text in ")}]":
                depth -= 1
                if depth == 0 and text == "}" and self._is_function(one):
                    self._declare(one)
                    one = []
            elif text == ";" and depth == 0:
                self._declare(one)
                one = []
            i += 1

    @staticmethod
    def _is_function(one):
        """Returns whether the declaration ends with a function body. Otherwise the brace ends a type or an initializer."""
        depth, last = 0, ""
        for _, text, _ in one:
            if text == "{" and depth == 0:
                return last == ")" or last in ("MK_PRINTF",)
            depth += (text in "({[") - (text in ")}]")
            if depth == 0:
                last = text
        return False

    def _declare(self, one):
        texts = [text for _, text, _ in one]
        self._declare_tags_and_constants(one)
        if texts[0] == "typedef":
            self.ordinary.update(self._declarators(one))
        elif self._is_static(texts):
            self.ordinary.update(self._declarators(one))
        else:
            # a name that is the first token has no type before it: it is a macro call, not a declarator
            names = [name for name in self._declarators(one) if name != texts[0]]
            is_function = bool(names) and "extern" not in texts and "weak" not in texts and texts[texts.index(names[0]) + 1] == "("
            self.external.update(names)
            if is_function:
                self.functions.append((one[0][2], names[0]))
            else:
                self.variables.update(names)

    @staticmethod
    def _is_static(texts):
        depth = 0
        for text in texts:
            depth += (text in "({[") - (text in ")}]")
            if text == "static" and depth == 0:
                return True
        return False

    def _declare_tags_and_constants(self, one):
        for i, (_, text, _) in enumerate(one):
            if text not in ("struct", "union", "enum"):
                continue
            at = i + 1
            if at < len(one) and one[at][0] == "name":
                if at + 1 < len(one) and one[at + 1][1] == "{":
                    self.tags.add(one[at][1])
                elif one[at + 1][1] == ";" and i == 0: # forward declaration
                    self.tags.add(one[at][1])
                at += 1
            if text == "enum" and at < len(one) and one[at][1] == "{":
                self._declare_constants(one, at + 1)

    def _declare_constants(self, one, i):
        depth, is_name = 0, True
        while i < len(one) and not (one[i][1] == "}" and depth == 0):
            kind, text, _ = one[i]
            depth += (text in "({[") - (text in ")}]")
            if is_name and kind == "name":
                self.ordinary.add(text)
                is_name = False
            if text == "," and depth == 0:
                is_name = True
            i += 1

    @staticmethod
    def _declarators(one):
        """Returns the names that a declaration declares: each is the last name before `(`, `[`, `=`, `,`, `;` or `{` at depth 0 or,
        for a pointer to a function, the name in `(*name)`."""
        found, depth, last, i, has_name = [], 0, None, 0, False
        while i < len(one):
            kind, text, _ = one[i]
            if text in ("__attribute__", "_Alignas", "MK_PRINTF", "_Atomic", "__typeof__", "_Static_assert") and \
                    i + 1 < len(one) and one[i + 1][1] == "(":
                i = FileScope._skip_group(one, i + 1)
                continue
            if depth == 0 and text in ("struct", "union", "enum"):
                i += 1
                if i < len(one) and one[i][0] == "name":
                    i += 1
                if i < len(one) and one[i][1] == "{":
                    i = FileScope._skip_group(one, i)
                continue
            if kind == "name" and text not in KEYWORDS and depth == 0 and not has_name:
                last = text
            elif text == "(" and depth == 0 and not has_name and i + 1 < len(one) and one[i + 1][1] == "*":
                j = i + 1
                while one[j][1] in ("*", "const"):
                    j += 1
                found.append(one[j][1])
                has_name = True
                i = FileScope._skip_group(one, i)
                continue
            elif depth == 0 and text in ("(", "[", "=", ",", ";", "{"):
                if last and not has_name:
                    found.append(last)
                    has_name = True
                if text == ",":
                    has_name, last = False, None
            if text in "({[":
                i = FileScope._skip_group(one, i)
                continue
            i += 1
        return found

    @staticmethod
    def _skip_group(one, i):
        depth = 0
        while i < len(one):
            depth += (one[i][1] in "({[") - (one[i][1] in ")}]")
            i += 1
            if depth == 0:
                break
        return i


# ---- Renaming

class Renamer:
    """Renames ordinary names and tags of one file."""

    def __init__(self, path, ordinary, tags):
        self.path, self.ordinary, self.tags = path, ordinary, tags

    def apply(self, text):
        tokens = tokens_of(text)
        significant = [i for i, (kind, _) in enumerate(tokens) if kind not in ("blank", "comment", "newline")]
        in_members = self._member_positions(tokens, significant)
        arguments = self._member_arguments([tokens[i][1] for i in significant])
        out = [text for _, text in tokens]
        for at, i in enumerate(significant):
            kind, name = tokens[i]
            if kind != "name" or name not in self.ordinary and name not in self.tags:
                continue
            before = tokens[significant[at - 1]][1] if at else ""
            after = tokens[significant[at + 1]][1] if at + 1 < len(significant) else ""
            if before in ("struct", "union", "enum"):
                if name in self.tags:
                    out[i] = self.tags[name]
            elif name in self.ordinary and before not in (".", "->") and at not in arguments and \
                    not (at in in_members and after in (";", ",", "[", ":", ")")):
                if before in ("#", "##") or after == "##":
                    raise Problem(f"{self.path}: a macro makes text of `{name}`, which another file has, too")
                out[i] = self.ordinary[name]
        return "".join(out)

    @staticmethod
    def _member_arguments(words):
        """Returns the positions of macro arguments that name members: the last argument of offsetof() and the like."""
        found = set()
        for i, word in enumerate(words):
            if word not in MEMBER_MACROS or words[i + 1:i + 2] != ["("]:
                continue
            depth, j, last = 1, i + 2, i + 2
            while depth:
                depth += (words[j] in "([") - (words[j] in ")]")
                if words[j] == "," and depth == 1:
                    last = j
                j += 1
            found.update(range(last, j))
        return found

    @staticmethod
    def _member_positions(tokens, significant):
        """Returns the positions of member names: those before `;`, `,`, `[`, `:` or `)` that are directly in the body of a struct or
        union, outside of brackets."""
        found, stack = set(), []
        for at, i in enumerate(significant):
            text = tokens[i][1]
            if text == "{":
                words = [tokens[significant[j]][1] for j in range(max(0, at - 2), at)]
                stack.append(bool(words) and (words[-1] in ("struct", "union") or len(words) > 1 and words[-2] in ("struct", "union")))
            elif text == "}":
                if stack:
                    stack.pop()
            elif text == "[":
                stack.append(False)
            elif text == "]":
                if stack:
                    stack.pop()
            elif stack and stack[-1]:
                found.add(at)
        return found


# ---- The sources

class Build:
    """The sources of libmonkey.a, with the flags that they are compiled with."""

    def __init__(self, folder):
        self.folder = folder.resolve()
        self.commands, self.folders = {}, {}
        for entry in json.loads((folder / "compile_commands.json").read_text()):
            words = shlex.split(entry["command"])
            self.commands[words[words.index("-o") + 1]] = (Path(entry["file"]), words)
            self.compiler = next(word for word in words if Path(word).name != "ccache")
        self.system_options = []

    def sources(self):
        """Returns (path, definitions) of each source, in the order of the archive."""
        lines = subprocess.run(["ninja", "-C", self.folder, "-t", "query", "libmonkey.a"], capture_output=True, text=True,
                               check=True).stdout.splitlines()
        objects = [line.strip().lstrip("| ") for line in lines if line.strip().endswith(".o")]
        if not objects:
            raise Problem(f"{self.folder} has no libmonkey.a")
        return [self._source(name) for name in objects]

    def libraries(self):
        """Returns the libraries that programs must link."""
        text = (self.folder / "packaging/libmonkey-static.pc").read_text()
        words = re.search(r"^Libs: (.*)$", text, re.MULTILINE).group(1).split() + ["-lm"]
        return [word for word in words if word.startswith("-l") and not word.startswith("-l:")]

    def _source(self, name):
        path, words = self.commands[name]
        if not path.exists(): # generated
            subprocess.run(["ninja", "-C", self.folder, "--quiet", str(path.relative_to(self.folder))], check=True, stdout=sys.stderr)
        self.system_options = [f"-isystem{words[i + 1]}" for i, word in enumerate(words) if word == "-isystem"]
        self.folders[path] = [Path(word[2:]) for word in words if word.startswith("-I")]
        return path, [word[2:] for word in words if word.startswith("-D") and not word.endswith("_EXPORTS") and
                      not word.startswith("-D_FORTIFY_SOURCE")]


def name_of(path, folder):
    for base in (ROOT, folder):
        if path.is_relative_to(base):
            return str(path.relative_to(base))
    return path.name


class Part:
    """A header or a source: its text without #include lines, and those of our headers that it includes."""

    def __init__(self, path, text, headers):
        self.path, self.text, self.headers = path, text, headers
        self.scope = FileScope(text)

    @property
    def is_header(self):
        return self.path.suffix == ".h"


class Amalgamation:
    """Collects the parts of monkey.c, and decides who owns each name."""

    def __init__(self, build):
        self.build, self.sources = build, build.sources()
        self.parts, self.order, self.system, self.features = {}, [], [], []
        self.renamed, self.variables = 0, set()
        self.public = FileScope(public_headers())
        common = set(self.sources[0][1])
        for _, definitions in self.sources:
            common &= set(definitions)
        self.common = [one for one in self.sources[0][1] if one in common]
        if any("MK_PLUGIN_STATIC" in definitions for _, definitions in self.sources):
            self.common.append("MK_PLUGIN_STATIC")
        for path, _ in self.sources:
            self.read(path, self.build.folders[path])

    # ---- Reading

    @staticmethod
    def find(name, of, folders):
        for folder in (of.parent, *folders):
            if (folder / name).is_file():
                return (folder / name).resolve()
        raise Problem(f"{of}: {name} not found")

    def read(self, path, folders):
        """Reads the headers that a file includes, then the file. Moves `#include` lines of system headers outside #if, and the macros
        defined before them, to the beginning of the amalgamation; the others stay in place."""
        if path in self.parts:
            return
        self.parts[path] = None
        out, headers, depth = [], [], 0
        lines = path.read_text().split("\n")
        has_guard = path.suffix == ".h"
        last = max((i for i, line in enumerate(lines) if INCLUDE.match(line)), default=0)
        for i, line in enumerate(lines):
            depth += bool(re.match(r"\s*#\s*if", line)) - bool(re.match(r"\s*#\s*endif", line))
            match = INCLUDE.match(line)
            name = match and (match.group(1) or match.group(2))
            if not match:
                feature = re.match(r"#define (\w+)(?: (\w+))?$", line)
                if feature and i < last and not has_guard and self.precedes_system_header(lines[i + 1:]):
                    self.features.append("=".join(filter(None, feature.groups())))
                else:
                    out.append(line)
            elif name.startswith("monkey/"):
                continue
            elif match.group(1) and depth > has_guard: # one of several alternatives under #if: its text becomes part of this file
                out += [line for line in self.find(name, path, folders).read_text().split("\n")]
            elif match.group(1):
                headers.append(self.find(name, path, folders))
                self.read(headers[-1], folders)
            elif depth > has_guard:
                out.append(line)
            elif name not in self.system:
                self.system.append(name)
        self.parts[path] = Part(path, "\n".join(out), headers)
        self.order.append(path)

    @staticmethod
    def precedes_system_header(lines):
        for line in lines:
            match = INCLUDE.match(line)
            if match and match.group(2) and not match.group(2).startswith("monkey/"):
                return True
            if line.strip() and not match and not line.startswith(("#", "/*", " *")):
                return False
        return False

    # ---- Names

    def visible(self, path):
        """Returns the headers that a file includes, directly or indirectly."""
        found, todo = set(), list(self.parts[path].headers)
        while todo:
            one = todo.pop()
            if one not in found:
                found.add(one)
                todo += self.parts[one].headers
        return found

    def owners(self):
        """Returns {name: owner} for each file and name space. The owner of a name in a header is the header's folder; the owner of any
        other name is its file."""
        found = {}
        for path, part in self.parts.items():
            found[path] = {"ordinary": {}, "tags": {}}
            for space, names in found[path].items():
                if not part.is_header:
                    names.update((name, path) for name in getattr(part.scope, space))
                for header in sorted(self.visible(path) | ({path} if part.is_header else set())):
                    names.update((name, header.parent) for name in getattr(self.parts[header].scope, space))
        return found

    def system_macros(self):
        """Returns the macros of the system headers, which would replace our identifiers of the same name."""
        text = self.settings() + "".join(f"#include <{name}>\n" for name in self.system)
        done = subprocess.run([self.build.compiler, "-std=gnu17", *self.build.system_options, "-dM", "-E", "-"], input=text,
                              capture_output=True, text=True, check=False)
        if done.returncode:
            raise Problem(done.stderr)
        return set(re.findall(r"^#define (\w+)", done.stdout, re.MULTILINE))

    def clashes(self, owners):
        """Returns the names of each name space that have several owners. Names that begin with `mk_` are unique by the rules of this
        tree; if one is not, monkey.c does not compile."""
        seen = {"ordinary": defaultdict(set), "tags": defaultdict(set)}
        macros = self.system_macros()
        for spaces in owners.values():
            for space, names in spaces.items():
                for name, owner in names.items():
                    seen[space][name].add(owner)
        for part in self.parts.values():
            for name in part.scope.external:
                seen["ordinary"][name].add("external")
        for space in seen:
            for name in getattr(self.public, space) | (macros if space == "ordinary" else set()):
                if name in seen[space]:
                    seen[space][name].add("public")
        return {space: {name for name, found in names.items() if len(found) > 1 and not name.lower().startswith("mk_")}
                for space, names in seen.items()}

    def suffix(self, owner):
        if owner.is_dir():
            return f"__{owner.name}_h"
        same = [path for path in self.parts if path.stem == owner.stem and path.suffix == ".c"]
        return "__" + re.sub(r"\W", "_", owner.stem if len(same) == 1 else f"{owner.parent.name}_{owner.stem}")

    def renames(self, names, clashing):
        return {name: name + self.suffix(owner) for name, owner in names.items() if name in clashing}

    # ---- Writing

    def settings(self):
        lines = []
        for one in self.common + sorted(set(self.features)):
            name, _, value = one.partition("=")
            lines.append(f"#ifndef {name}\n#define {name} {value or 1}\n#endif\n".replace(" \n", "\n"))
        return "".join(lines)

    def drop_weak(self):
        """Removes weak definitions that another file replaces."""
        for path, part in list(self.parts.items()):
            for match in re.finditer(r"^__attribute__\(\(weak\)\) (const struct \w+ (\w+)) = \{.*?^\};\n", part.text,
                                     re.MULTILINE | re.DOTALL):
                others = [other for other in self.parts.values() if other is not part and
                          re.search(rf"^{match.group(1)} = ", other.text, re.MULTILINE)]
                if len(others) > 1:
                    raise Problem(f"{path}: `{match.group(2)}` is weak, and has {len(others)} other definitions")
                if others:
                    self.parts[path] = Part(path, part.text.replace(match.group(), ""), part.headers)

    def write(self):
        self.drop_weak()
        self.variables = set().union(*(part.scope.variables for part in self.parts.values()))
        owners = self.owners()
        clashing = self.clashes(owners)
        definitions = dict(self.sources)
        known = set().union(*(part.scope.ordinary | part.scope.tags | part.scope.external for part in self.parts.values()))
        out = []
        for path in self.order:
            part = self.parts[path]
            ordinary, tags = (self.renames(owners[path][space], clashing[space]) for space in ("ordinary", "tags"))
            for new in set(ordinary.values()) | set(tags.values()):
                if new in known:
                    raise Problem(f"{path}: `{new}` exists already")
            self.renamed += sum(name in part.scope.ordinary for name in ordinary) + sum(name in part.scope.tags for name in tags)
            text = Renamer(path, ordinary, tags).apply(self.hide_functions(part))
            out.append(self.section(part, definitions.get(path, []), text))
        return "\n".join(out)

    def hide_functions(self, part):
        """Returns the text with all non-public functions made static: they cannot clash with functions of the program, and the compiler
        omits those that are never called."""
        out, at = [], 0
        for offset, name in part.scope.functions:
            if name not in self.public.external and name not in self.variables:
                out += [part.text[at:offset], "static "]
                at = offset
        return "".join(out) + part.text[at:]

    def section(self, part, definitions, text):
        own = [one for one in definitions if one not in self.common]
        ends = [] if part.is_header else sorted(part.scope.macros | {one.split("=")[0] for one in own})
        lines = [f"/* ---- {name_of(part.path, self.build.folder)} ---- */"]
        lines += [f"#define {one.replace('=', ' ', 1)}" if "=" in one else f"#define {one} 1" for one in own]
        lines.append(text.strip("\n"))
        lines += [f"#undef {name}" for name in ends]
        return "\n".join(lines) + "\n"


# ---- monkey.h

def public_headers():
    """Returns the text of all public headers, each after those that it includes."""
    folder, done, system = ROOT / "include/monkey", set(), []

    def inline(path):
        if path in done:
            return ""
        done.add(path)
        out = [f"/* {path.name} */"]
        for line in path.read_text().split("\n"):
            match = INCLUDE.match(line)
            name = match and (match.group(1) or match.group(2))
            if match and name.startswith("monkey/"):
                out.append(inline(folder / name[len("monkey/"):]))
            elif match:
                if name not in system:
                    system.append(name)
            else:
                out.append(line)
        return "\n".join(out)

    body = "\n".join(inline(path) for path in sorted(folder.glob("*.h")))
    return "".join(f"#include <{name}>\n" for name in sorted(system)) + "\n" + body


def squeeze(text):
    """Returns the text without the license line of each file, and with each run of empty lines reduced to one."""
    text = text.replace("/* SPDX-License-Identifier: Apache-2.0 */\n", "")
    return re.sub(r"\n{3,}", "\n\n", text).strip("\n") + "\n"


HEAD = """\
/* SPDX-License-Identifier: Apache-2.0 */
/* libmonkey {version} in two files, generated by tools/package/amalgamate.py of Monkey. */
"""
BUILD_HELP = """\
/* Compile this file as GNU C17, and link the program with the libraries:
 *
 *     cc -std=gnu17 -O2 -c monkey.c
 *     cc -O2 program.c monkey.o {libraries}
 */
"""
# Every program leaves some functions unused; variables with a cleanup function look unused to clang; gcc reports a
# dangling pointer to the list that mk_pool_run_notifications() empties before it returns.
PRAGMAS = """\
#ifdef __GNUC__
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Wunused-variable"
#endif
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#if __GNUC__ >= 12
#pragma GCC diagnostic ignored "-Wdangling-pointer"
#endif
#endif
"""


def version():
    return re.search(r"project\(monkey VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text()).group(1)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--build", type=Path, required=True, help="folder of a build that is configured")
    parser.add_argument("--out", type=Path, required=True, help="folder for monkey.c and monkey.h")
    arguments = parser.parse_args()
    try:
        build = Build(arguments.build)
        whole = Amalgamation(build)
        body = whole.write()
    except (Problem, subprocess.CalledProcessError) as problem:
        sys.exit(f"amalgamate: {problem}")
    system = "".join(f"#include <{name}>\n" for name in whole.system)
    head = HEAD.format(version=version())
    own = head + BUILD_HELP.format(libraries=" ".join(build.libraries())) + PRAGMAS
    arguments.out.mkdir(parents=True, exist_ok=True)
    (arguments.out / "monkey.h").write_text(head + "#ifndef MONKEY_H\n#define MONKEY_H\n" + squeeze(public_headers()) + "#endif\n")
    (arguments.out / "monkey.c").write_text(f'{own}{whole.settings()}#include "monkey.h"\n\n{system}\n{squeeze(body)}')
    print(f"amalgamate: {len(whole.sources)} files, {whole.renamed} names renamed")


if __name__ == "__main__":
    main()
