/* SPDX-License-Identifier: Apache-2.0 */
/* The configurations that served last, in the state folder: one file for each, which only the owner can read.
 * Servers with different configuration paths share the folder. */
#ifndef MK_SERVER_CONFIG_STORE_H
#define MK_SERVER_CONFIG_STORE_H

#include "setup/config_texts.h"

enum { MK_CONFIG_STORE_KEPT = 10, MK_CONFIG_STORE_TEXT = 96 };

/* How a configuration has served. */
enum mk_config_outcome {
    MK_OUTCOME_SERVES,      /* or has served until another configuration replaced it */
    MK_OUTCOME_UNCONFIRMED, /* waits for a confirmation */
    MK_OUTCOME_CONFIRMED,
    MK_OUTCOME_ROLLED_BACK, /* replaced by an earlier configuration */
    MK_OUTCOMES
};

struct mk_config_entry {
    unsigned number;
    unsigned source; /* number of the configuration of which this one is the return; 0: read from files */
    int64_t time;    /* seconds since 1970 */
    enum mk_config_outcome outcome;
    char by[MK_CONFIG_STORE_TEXT]; /* the user, process or event that requested it */
};

extern const char *const mk_config_outcome_names[MK_OUTCOMES];

struct mk_config_list {
    struct mk_config_entry at[MK_CONFIG_STORE_KEPT]; /* the newest first */
    size_t n;
};

/* All functions return 0 or a negative errno value; *error is static text. `path`: absolute path of the
 * configuration. */

mk_err mk_config_store_list(const char *path, struct mk_config_list *out, const char **error);
/* -ENOENT: no such configuration is kept. -EBADMSG: its file is damaged. */
mk_err mk_config_store_read(const char *path, unsigned number, struct mk_config_entry *entry,
                            struct mk_config_texts *texts, const char **error);
/* Adds the configuration with the next number, which it stores in the entry, and deletes the oldest ones. If the
 * newest one has the same texts, it is replaced. */
mk_err mk_config_store_add(const char *path, struct mk_config_entry *entry,
                           const struct mk_config_texts *texts, const char **error);
/* Stores the outcome in the file of the entry. */
mk_err mk_config_store_update(const char *path, const struct mk_config_entry *entry, const char **error);

#endif
