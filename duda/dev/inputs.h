/* SPDX-License-Identifier: Apache-2.0 */
/* The input files of a compilation: their hash, whether they were saved during the compilation, and the
 * dependencies that the compiler reports. Lists of files have one path per line. */
#ifndef DUDA_DEV_INPUTS_H
#define DUDA_DEV_INPUTS_H

#include "source.h"

#include <time.h>

/* Returns a hash that detects changes of a text. */
uint64_t dev_inputs_hash_text(mk_str text);
/* Returns a hash of the contents of the files. */
uint64_t dev_inputs_hash(mk_str files);
/* Like dev_inputs_hash(), but for `source`, if given, hashes the text that was read before the compiler ran:
 * the file may have been saved again since then. */
uint64_t dev_inputs_hash_with(mk_str files, const struct dev_source *source);

/* The input files of the compiler that are known before it runs. */
struct dev_inputs_snapshot {
    struct mk_buf files;
    uint64_t mark;
    struct timespec begin;
};

struct dev_inputs_snapshot dev_inputs_take_snapshot(mk_str known, mk_str sources);
/* Returns whether one of the files was saved since the snapshot. For headers that were unknown before the
 * compilation, only the time counts. */
bool dev_inputs_changed_since(const struct dev_inputs_snapshot *m, mk_str files);

/* Adds the files that the list does not contain yet. */
void dev_inputs_add_files(struct mk_buf *files, mk_str more);
/* Parses the compiler's rule for make(1), "object: source header...", where a backslash escapes a blank
 * or continues a line, and `$$` is one dollar. Adds each dependency to `files`, unless its path begins with
 * `cache`. */
void dev_inputs_parse_depfile(mk_str rule, const char *cache, struct mk_buf *files);
/* Adds the dependencies in the file to `files`, and removes the file. */
void dev_inputs_read_depfile(const char *path, const char *cache, struct mk_buf *files);

#endif
