/* SPDX-License-Identifier: Apache-2.0 */
/* A format of log lines, read when the configuration is loaded: pieces of text, and steps that write
 * something about a request. */
#ifndef LOGGER_FORMAT_H
#define LOGGER_FORMAT_H

#include <monkey/config.h>

#include "log_line.h"

struct format {
    mk_str written;
    bool json; /* texts are those of JSON strings */
    const struct step *steps;
    size_t n;
};

/* For mk_conf_key. */
bool logger_format_parse(const struct mk_conf_ctx *spot, mk_str value, void *field);
bool logger_format_show(const void *field, size_t i, struct mk_buf *out);

/* Never longer than LOGGER_LINE_MAX: that was seen to when the format was read. */
void logger_format_write(const struct format *f, struct line *line);

#endif
