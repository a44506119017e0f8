/* SPDX-License-Identifier: Apache-2.0 */
/* Reading a folder in pieces: a piece is what one getdents64() answers, each entry looked at once. */
#ifndef DIRLISTING_FOLDER_H
#define DIRLISTING_FOLDER_H

#include <monkey/str.h>
#include <stdalign.h>

enum entry_kind {
    ENTRY_FOLDER, /* before files, in every order */
    ENTRY_FILE,
    ENTRY_LINK, /* where it leads to is not known yet */
};

struct entry {
    mk_str name; /* in `records`, until the next piece is read */
    int64_t size, mtime;
    enum entry_kind kind;
};

enum { FOLDER_RECORDS = 8192, FOLDER_PIECE = FOLDER_RECORDS / 24 }; /* a record has 24 bytes at least */

struct folder {
    int fd;
    bool shows_dot_files;
    bool ended;
    int error; /* a negated errno value: no more can be read */
    unsigned n;
    struct entry entries[FOLDER_PIECE];
    alignas(8) char records[FOLDER_RECORDS];
};

/* Fills the entries with the next piece: perhaps none, although more will come. May wait for a disk. */
void dirlisting_folder_read(struct folder *f);
/* Begins anew. */
void dirlisting_folder_rewind(struct folder *f);

#endif
