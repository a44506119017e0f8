/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a folder in blocks. A block is the result of one call to getdents64(), with the status of each
 * entry. */
#ifndef DIRLISTING_FOLDER_H
#define DIRLISTING_FOLDER_H

#include <monkey/str.h>
#include <stdalign.h>

enum entry_kind {
    ENTRY_FOLDER, /* folders come before files in every order */
    ENTRY_FILE,
    ENTRY_LINK, /* a link whose target is not resolved yet */
};

struct entry {
    mk_str name; /* in `records`, valid until the next read */
    int64_t size, mtime;
    enum entry_kind kind;
};

enum { FOLDER_RECORDS = 8192, FOLDER_PIECE = FOLDER_RECORDS / 24 }; /* a record has at least 24 bytes */

struct folder {
    int fd;
    bool shows_dot_files;
    bool ended;
    int error; /* negated errno value if reading failed */
    unsigned n;
    struct entry entries[FOLDER_PIECE];
    alignas(8) char records[FOLDER_RECORDS];
};

/* Reads the next block. It may contain no entries although more blocks follow. May wait for a disk. */
void dirlisting_folder_read(struct folder *f);
/* Starts again at the first entry. */
void dirlisting_folder_rewind(struct folder *f);

#endif
