/* SPDX-License-Identifier: Apache-2.0 */
/* The texts of a configuration: every file that the reader has read, with its path. A configuration can be loaded
 * again from these texts after its files have changed. The files that a configuration only refers to, such as
 * certificates, are not part of it. */
#ifndef MK_SETUP_CONFIG_TEXTS_H
#define MK_SETUP_CONFIG_TEXTS_H

#include "base/map.h"
#include "setup/config_generation_type.h"

struct mk_config_text {
    struct mk_config_text *next; /* in the order in which the files were read first */
    mk_str path, text;
};

struct mk_config_texts {
    unsigned n_refs;
    unsigned number; /* of the kept configuration that these texts were stored as first; 0: none */
    struct mk_arena arena;
    mk_str folder; /* base of relative paths */
    struct mk_config_text *first, **end;
    struct mk_map by_path;
    size_t n_bytes;
    struct mk_conf_io io;
};

/* Returns one reference. NULL: out of memory. */
struct mk_config_texts *mk_config_texts_new(void) MK_MUST_USE;
/* Adds a reference, and returns `t`. NULL is accepted. */
struct mk_config_texts *mk_config_texts_ref(struct mk_config_texts *t) MK_MUST_USE;
/* Drops a reference; the last one frees `t`. NULL is accepted. */
void mk_config_texts_unref(struct mk_config_texts *t);

/* Loading `source` from now on adds the files that it reads to the empty `t`. Then call
 * mk_config_texts_end_recording(). */
void mk_config_texts_record(struct mk_config_texts *t, struct mk_config_source *source);
/* `g`: the configuration that was loaded. False: out of memory, or nothing was read. */
bool mk_config_texts_end_recording(struct mk_config_texts *t, const struct mk_config_generation *g);
/* Reads the files of `source` into the empty `t`, without loading the configuration. False: out of memory, or nothing
 * was read. */
bool mk_config_texts_read(struct mk_config_texts *t, const struct mk_config_source *source);
/* Loading `source` from now on reads the texts in place of the files. */
void mk_config_texts_replay(struct mk_config_texts *t, struct mk_config_source *source);

bool mk_config_texts_equal(const struct mk_config_texts *a, const struct mk_config_texts *b);

void mk_config_texts_encode(const struct mk_config_texts *t, struct mk_buf *out);
/* Adds encoded texts to the empty `t`. False: they are malformed, or out of memory. */
bool mk_config_texts_decode(struct mk_config_texts *t, mk_str encoded);

#endif
