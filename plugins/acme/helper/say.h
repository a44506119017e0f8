/* SPDX-License-Identifier: Apache-2.0 */
/* What the helper tells the plugin that started it: lines on its standard output, each with a letter in
 * front. */
#ifndef ACME_SAY_H
#define ACME_SAY_H

#include <monkey/buf.h>
#include <monkey/log.h>

/* Into the error log of the server. */
void acme_say(enum mk_log_level level, const char *fmt, ...) MK_API_PRINTF(2, 3);
/* When to be started again: seconds from now. */
void acme_say_next(uint64_t seconds);

/* Why something did not go well. */
struct acme_fault {
    char type[128];   /* the kind of a problem (RFC 8555, section 6.7) without its prefix; "" for others */
    uint64_t wait_s;  /* the authority wants us not to come back before that; 0: it did not say */
    unsigned status;  /* of HTTP; 0: none was answered */
    bool is_everyone; /* not a matter of this certificate: the others would fare no better */
    char text[1024];
};

/* Always false, for `return acme_fault(...)`. */
bool acme_fault(struct acme_fault *f, const char *fmt, ...) MK_API_PRINTF(2, 3);
/* The same for a matter of the account or the authority. */
bool acme_fault_everyone(struct acme_fault *f, const char *fmt, ...) MK_API_PRINTF(2, 3);

#endif
