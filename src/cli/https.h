/* SPDX-License-Identifier: Apache-2.0 */
/* A folder served by https, with a certificate of the machine's own authority. */
#ifndef MK_CLI_HTTPS_H
#define MK_CLI_HTTPS_H

#include "base/log.h"
#include "cli/authority.h"
#include "cli/options.h"

struct mk_https {
    struct mk_arena arena;
    struct mk_authority authority;
    const char *listens[MK_OPTIONS_LISTENS_MAX + 1]; /* as in a configuration; NULL-terminated */
    const char *extra[MK_OPTIONS_LISTENS_MAX + 1];   /* the addresses in them */
    bool failed;                                     /* when it was looked at last */
};

/* Makes what is needed. False: it was said on standard error what is wrong. */
bool mk_https_start(struct mk_https *h, const struct mk_arguments *a) MK_MUST_USE;
void mk_https_end(struct mk_https *h);

/* What the configuration of the host says about it. */
void mk_https_write_config(const struct mk_https *h, struct mk_buf *out);
/* What people have to know of the authority, once it serves. */
void mk_https_write_news(const struct mk_https *h, struct mk_buf *out);
/* Is everything as it was, and fresh? If not, there are new files: who serves them will see that. */
void mk_https_look(struct mk_https *h, struct mk_log *log);

/* The command: where the authority is, and how it comes to be trusted. Answers the exit code. */
int mk_https_show_authority(void);

#endif
