/* SPDX-License-Identifier: Apache-2.0 */
/* Parses the file of DNSHookEnvironment: lines NAME=VALUE, as in an EnvironmentFile of systemd. */
#ifndef ACME_HOOK_ENVIRONMENT_H
#define ACME_HOOK_ENVIRONMENT_H

#include <monkey/str.h>

/* Begins with .rest = the text. */
struct acme_hook_environment {
    mk_str rest;
    unsigned line;     /* number of the last line read */
    const char *error; /* what is wrong with it; NULL: nothing */
};

/* Gets the next variable, without quotes around the value. Returns false at the end of the text and after an
 * error. */
bool acme_hook_environment_next(struct acme_hook_environment *e, mk_str *name, mk_str *value);

#endif
