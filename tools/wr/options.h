/* SPDX-License-Identifier: Apache-2.0 */
/* Parses the command line. */
#ifndef WR_OPTIONS_H
#define WR_OPTIONS_H

#include "wr/find_server.h"
#include "wr/response_check.h"

enum { WR_OPTIONS_STEPS_MAX = 1000, WR_OPTIONS_SHOTS_MAX = 1000 };

struct wr_options {
    struct wr_find server;
    bool names_server;                    /* false: the port of the URL selects the server */
    unsigned steps[WR_OPTIONS_STEPS_MAX]; /* concurrency of each step; none: as in the command */
    size_t n_steps;
    unsigned shots;
    unsigned warm_up_shots;
    uint64_t warm_up_us;
    uint64_t interval_us, limit_us;
    bool has_client_cores;
    cpu_set_t client_cores;
    bool counts_syscalls;
    struct load_expected expected;
    bool unchecked;
    const char *url;        /* URL to check; NULL: the one in the command */
    const char *csv, *json; /* file names; `json` "-" is standard output */
    uint64_t requests;      /* number of requests, if the command line has the syntax of the first wr */
    bool keep_alive, quiet, help, version;
    char **command; /* NULL-terminated */
};

/* On an invalid command line, prints a message and returns false. */
bool wr_options_parse(int argc, char **argv, struct wr_options *out) MK_MUST_USE;
extern const char wr_options_help[];

#endif
