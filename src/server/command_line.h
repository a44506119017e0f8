/* SPDX-License-Identifier: Apache-2.0 */
/* Types of the command line: options, and the request of `explain`. */
#ifndef MK_SERVER_COMMAND_LINE_H
#define MK_SERVER_COMMAND_LINE_H

#include "base/buf.h"

/* Argument type of an option, for completion. */
enum mk_option_arg { MK_ARG_NONE, MK_ARG_FILE, MK_ARG_FOLDER, MK_ARG_WORD };

struct mk_option {
    char letter; /* the value that getopt_long() returns; below ' ': the option has only a long name */
    const char *name;
    enum mk_option_arg arg;
    const char *arg_name;
    const char *help; /* one sentence */
};

static inline bool mk_option_has_letter(const struct mk_option *o)
{
    return o->letter > ' ';
}

/* The options of `explain`. */
struct mk_explain_request {
    const char *method, *url; /* "http://example.org/a", or a path */
    const char *headers;      /* lines that end in CRLF; NULL: none */
    const char *from;         /* address of the client; NULL: not given */
    /* Instead of a request, explain the sandbox, or print it as a drop-in for systemd. */
    bool sandbox, systemd;
};

/* The options of `certificates`. */
struct mk_certificates_options {
    bool json, has_days;
    uint64_t days;
};

#endif
