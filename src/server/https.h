/* SPDX-License-Identifier: Apache-2.0 */
/* Serves a folder over HTTPS, with a certificate of the machine's local CA. */
#ifndef MK_SERVER_HTTPS_H
#define MK_SERVER_HTTPS_H

#include "base/log.h"
#include "server/local_ca.h"
#include "server/options.h"

struct mk_https {
    struct mk_arena arena;
    struct mk_local_ca ca;
    const char *listens[MK_OPTIONS_LISTENS_MAX + 1]; /* values of Listen; NULL-terminated */
    const char *extra[MK_OPTIONS_LISTENS_MAX + 1];   /* addresses that the certificate must include;
                                                      * NULL-terminated */
    bool failed;                                     /* the last check or renewal of the certificate failed */
};

/* Creates the CA and the certificate if they are missing. False: failed, and the error was printed on
 * standard error. */
bool mk_https_init(struct mk_https *h, const struct mk_arguments *a) MK_MUST_USE;
void mk_https_fini(struct mk_https *h);

/* Writes the TLS settings of the host as lines of a configuration. */
void mk_https_write_config(const struct mk_https *h, struct mk_buf *out);
/* Writes an explanation of the local CA, to be printed when serving begins. */
void mk_https_write_notice(const struct mk_https *h, struct mk_buf *out);
/* Renews the certificate if necessary; the server watches the file and then reloads. */
void mk_https_renew(struct mk_https *h, struct mk_log *log);

/* Runs `monkey ca`, which shows where the CA is, and how to trust it. Returns the exit code. */
MK_NOINLINE int mk_https_show_ca(void);

#endif
