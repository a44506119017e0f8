/* SPDX-License-Identifier: Apache-2.0 */
/* A list that selects requests by path ("/health", "*.css") or by status ("404", "5xx"). */
#ifndef LOGGER_REQUEST_FILTER_H
#define LOGGER_REQUEST_FILTER_H

#include <monkey/access_record.h>
#include <monkey/config.h>
#include <monkey/text.h>

struct request_filter {
    mk_str written;
    struct mk_pattern path;
    unsigned status_min, status_max; /* 0: the entry is a path */
};

struct request_filters {
    struct request_filter *v;
    size_t n;
};

/* Implements mk_conf_key.parse and .show. */
bool logger_request_filter_parse(const struct mk_conf_ctx *ctx, mk_str value, void *field);
bool logger_request_filter_show(const void *field, size_t i, struct mk_buf *out);

bool logger_request_filter_match(const struct request_filters *c, const struct mk_access_record *record);

#endif
