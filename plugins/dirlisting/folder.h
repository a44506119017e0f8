/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a folder in pieces: the result of one getdents64(), with the status of each entry. */
#ifndef DIRLISTING_FOLDER_H
#define DIRLISTING_FOLDER_H

#include <monkey/str.h>
#include <stdalign.h>

enum entry_kind {
    ENTRY_FOLDER, /* before files, in every order */
    ENTRY_FILE,
    ENTRY_LINK, /* link whose target is not resolved yet */
};

struct entry {
    mk_str name; /* in `records`, valid until the next piece */
    int64_t size, mtime;
    enum entry_kind kind;
};

enum { FOLDER_RECORDS = 8192, FOLDER_PIECE = FOLDER_RECORDS / 24 }; /* a record has at least 24 bytes */

struct folder {
    int fd;
    bool shows_dot_files;
    bool ended;
    int error; /* a negated errno value: reading failed */
    unsigned n;
    struct entry entries[FOLDER_PIECE];
    alignas(8) char records[FOLDER_RECORDS];
};

/* Reads the next piece; it may have no entries although others follow. May wait for a disk. */
void dirlisting_folder_read(struct folder *f);
/* Starts over. */
void dirlisting_folder_rewind(struct folder *f);

#endif
