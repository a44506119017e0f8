/* SPDX-License-Identifier: Apache-2.0 */
/* The options of `monkey recorder` and `monkey top`, on the command line and on the control socket. The common ones select
 * requests. */
#ifndef TOP_RECORDER_OPTIONS_H
#define TOP_RECORDER_OPTIONS_H

#include <stdio.h>

#include "filter.h"

enum { TOP_FAILURE = 1, TOP_USAGE = 2 }; /* exit codes */
enum { TOP_CONTINUE = -1, TOP_HELP = 0 };

#define TOP_OPTIONS_HELP                                                                                     \
    "  -s, --status STATUS      status 404, 400-499 or 5xx\n"                                                \
    "  -H, --host PATTERN       host, such as *.example.org\n"                                               \
    "  -p, --path PATTERN       path, such as /api/*\n"                                                      \
    "  -c, --client ADDRESS     address or network of the client\n"                                          \
    "  -u, --upstream PATTERN   backend server\n"                                                            \
    "  -i, --id ID              request ID\n"                                                                \
    "      --slower DURATION    took at least so long\n"                                                     \
    "      --failed             status 5xx, no response, aborted or lost\n"                                  \
    "      --open               in flight, or lost in a crash\n"

struct top_option {
    const char *name, *letter;
    bool has_value;
    bool (*set)(void *ctx, mk_str value); /* ctx: see struct top_options */
};

struct top_options {
    const char *command;
    int (*print_usage)(FILE *to, int code);
    /* Options of the command only. */
    const struct top_option *own;
    size_t n_own;
    void *ctx;
    bool has_no_file; /* there is no argument FILE */
    /* The results. `path` is the default before. */
    const char *path;
    bool has_path;
    struct top_filter filter;
    struct mk_buf query; /* the common options, for the control socket: "&name=value" */
};

/* Reads arguments, which must live as long as the options. Returns TOP_CONTINUE, TOP_HELP, or TOP_USAGE after appending
 * the error. */
int top_options_parse(struct top_options *o, int argc, char **argv, struct mk_buf *error);
/* Reads a command line, whose first argument is the command. Returns an exit code, or TOP_CONTINUE. */
int top_options_read(struct top_options *o, int argc, char **argv);
/* Reports that a file cannot be read. Returns an exit code. */
int top_options_report(const struct top_options *o, const char *path, const char *error, bool is_missing);

#endif
