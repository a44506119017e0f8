/* SPDX-License-Identifier: Apache-2.0 */
/* Every reading of a path is a path, not longer than it was, and without anything that could be read once
 * more. */
#include "security/reading.c"

#include "base/assert.h"
#include "base/mem.h"
#include "http/path.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(mk_str path, unsigned flags, unsigned how, bool lower)
{
    char *room = mk_mem_alloc(path.len ? path.len : 1);
    bool encoded = flags & MK_PATH_ENCODED_SLASH;
    mk_str read = room ? security_reading_make(path, how, lower, room) : path;
    MK_ASSERT(room && read.len >= 1 && read.len <= path.len && read.p[0] == '/');
    for (size_t i = 0; i + 1 < read.len; i++) {
        MK_ASSERT(read.p[i] != '/' || read.p[i + 1] != '/');
        MK_ASSERT(!(how & SECURITY_READ_TAILS) || read.p[i] != ';');
        MK_ASSERT(!(how & SECURITY_READ_SLASHES) || read.p[i] != '\\');
        MK_ASSERT(!lower || mk_char_lower(read.p[i]) == read.p[i]);
    }
    if (how == SECURITY_READ_ALL)
        MK_ASSERT(!(security_reading_of(read, false) & SECURITY_READ_SLASHES));
    if (how == 0 || !(security_reading_of(path, encoded) & how))
        MK_ASSERT(lower ? mk_str_eq_nocase(read, path) : mk_str_eq(read, path));
    mk_mem_free(room);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *room = mk_mem_alloc(size + 1);
    unsigned flags;
    mk_str path;
    if (room && mk_path_decode(mk_str_of((const char *)data, size), room, &path, &flags) == 0)
        for (unsigned how = 0; how <= SECURITY_READ_ALL; how++) {
            check(path, flags, how, false);
            check(path, flags, how, true);
        }
    mk_mem_free(room);
    return 0;
}
