# SPDX-License-Identifier: Apache-2.0
"""Headers of an earlier release: copies of today's headers, whose structs lack their last members.

A struct that crosses the interface with its size (monkey/sized.h) may have more members in later releases. A program that was
compiled with these copies must run with today's server. The header <older.h> has at_end(), which places such a struct directly
before an inaccessible guard page, so that a function that reads or writes today's size crashes.
"""
import re

from monkey import ROOT

FOLDERS = {"mk": ROOT / "include/monkey", "duda": ROOT / "duda/include/duda"}
# Structs from which more than the last member is removed: otherwise the size does not shrink, or not every function reads the member.
MEMBERS = {"mk_cookie": 3, "duda_http_request": 3, "duda_topic_message": 2, "mk_reloads": 2}

AT_END = r"""
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Copies an object to the end of a page, directly before an inaccessible page. */
static void *at_end(const void *object, size_t size)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *p = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED || mprotect(p + page, page, PROT_NONE))
        _exit(1);
    return memcpy(p + page - size, object, size);
}
#define OLDER(...) at_end(&(__VA_ARGS__), sizeof(__VA_ARGS__))
"""


def without_comments(text):
    return re.sub(r"/\*.*?\*/", lambda m: "\n" * m[0].count("\n"), text, flags=re.DOTALL)


def sized_functions(prefix):
    """Returns the functions that take the size of a struct, and the struct of each."""
    found = {}
    for header in sorted(FOLDERS[prefix].glob("*.h")):
        for name, args in re.findall(r"^MK_API [^;(]*\b(\w+)_sized\(((?:[^()]|\([^()]*\))*)\)", without_comments(header.read_text()), re.MULTILINE):
            found[name] = re.search(r"struct (\w+) \*(\w+),\s+size_t \2_size\b", args)[1]
    return found


def cut(text, struct):
    """Removes the last members of a struct."""
    found = re.search(rf"^struct {struct} \{{\n(.*?)^\}};", text, re.MULTILINE | re.DOTALL)
    if not found:
        return text
    members = re.findall(r"[^;]*;", found[1])
    if len(members) == 1:  # one declaration with several names
        kept = re.sub(r", \w+;", ";", found[1])
        assert kept != found[1], struct
    else:
        n = MEMBERS.get(struct, 1)
        assert len(members) > n, struct
        kept = "".join(members[:-n]) + "\n"
    return text.replace(found[0], f"struct {struct} {{\n{kept}}};")


def write(folder):
    """Writes the headers; returns the flags that compile with them."""
    for prefix, source in FOLDERS.items():
        structs = set(sized_functions(prefix).values())
        target = folder / source.name
        target.mkdir(parents=True)
        for header in source.glob("*.h"):
            text = without_comments(header.read_text())
            for struct in structs:
                text = cut(text, struct)
            (target / header.name).write_text(text)
    (folder / "older.h").write_text(AT_END)
    (folder / "duda.h").write_text((ROOT / "duda/include/duda.h").read_text())
    return [f"-I{folder}"]


def sizes_shrink(folder, compile_c):
    """Returns the structs that are as large as today's in these headers; there should be none."""
    structs = sorted(set(sized_functions("mk").values()) | set(sized_functions("duda").values()))
    includes = "".join(f"#include <{source.name}/{header.name}>\n" for source in FOLDERS.values() for header in sorted(source.glob("*.h"))
                       if header.name != "test.h")
    sizes = [compile_c(includes + "#include <stdio.h>\nint main(void)\n{\n" +
                       "".join(f'    printf("%zu ", sizeof(struct {s}));\n' for s in structs) + "}\n", flags).split()
             for flags in ([], [f"-I{folder}"])]
    return [s for s, today, older in zip(structs, *sizes) if int(older) >= int(today)]
