/* SPDX-License-Identifier: Apache-2.0 */
/* Serves a folder over HTTPS, with a certificate from the machine's own authority. */
#ifndef MK_CLI_HTTPS_H
#define MK_CLI_HTTPS_H

#include "base/log.h"
#include "cli/local_ca.h"
#include "cli/options.h"

struct mk_https {
    struct mk_arena arena;
    struct mk_local_ca authority;
    const char *listens[MK_OPTIONS_LISTENS_MAX + 1]; /* as in a configuration; NULL-terminated */
    const char *extra[MK_OPTIONS_LISTENS_MAX + 1];   /* the addresses in them */
    bool failed;                                     /* when it was looked at last */
};

/* Creates what is missing. False: the error was printed on standard error. */
bool mk_https_init(struct mk_https *h, const struct mk_arguments *a) MK_MUST_USE;
void mk_https_fini(struct mk_https *h);

/* What the configuration of the host says about it. */
void mk_https_write_config(const struct mk_https *h, struct mk_buf *out);
/* What people have to know of the authority, once it serves. */
void mk_https_write_notice(const struct mk_https *h, struct mk_buf *out);
/* Renews the files if needed; the server that uses them detects the change. */
void mk_https_renew(struct mk_https *h, struct mk_log *log);

/* The command: where the authority is, and how it comes to be trusted. Answers the exit code. */
int mk_https_show_authority(void);

#endif
