/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of pace. */
#ifndef PACE_OPTIONS_H
#define PACE_OPTIONS_H

#include "base/buf.h"
#include "load/url.h"
#include "pace/response_check.h"
#include "pace/schedule.h"

enum { PACE_REQUEST_MAX = 64 * 1024 };

struct pace_options {
    const char *url_text;
    struct load_url url;
    struct mk_buf request; /* the request in wire format */
    enum pace_spacing spacing;
    double rate;
    uint64_t seed, duration, timeout; /* nanoseconds */
    unsigned connections;
    struct pace_response_check reference; /* the expectations; no response recorded yet */
    bool closes, spins, json, version, help;
};

extern const char pace_options_help[];

/* On an invalid command line, prints the reason to standard error and returns false. */
bool pace_options_parse(int argc, char **argv, struct pace_options *out) MK_MUST_USE;
void pace_options_fini(struct pace_options *o);

#endif
