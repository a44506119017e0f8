/* SPDX-License-Identifier: Apache-2.0 */
/* A log format, compiled at configuration load into literal text and steps that write properties of the
 * request. */
#ifndef LOGGER_FORMAT_H
#define LOGGER_FORMAT_H

#include <monkey/config.h>

#include "log_line.h"

struct format {
    mk_str written;
    bool json;          /* values are escaped as JSON strings */
    bool uses_attempts; /* some verb describes the attempts to get the response from backends */
    const struct step *steps;
    size_t n;
};

/* Implements mk_conf_key.parse and .show. */
bool logger_format_parse(const struct mk_conf_ctx *ctx, mk_str value, void *field);
bool logger_format_show(const void *field, size_t i, struct mk_buf *out);

/* Writes a line, which is never longer than LOGGER_LINE_MAX, as was checked when the format was parsed. */
void logger_format_write(const struct format *f, struct line *line);

#endif
