/* SPDX-License-Identifier: Apache-2.0 */
/* Which requests a list names: by path ("/health", "*.css") or by status ("404", "5xx"). */
#ifndef LOGGER_CHOICE_H
#define LOGGER_CHOICE_H

#include <monkey/access_record.h>
#include <monkey/config.h>
#include <monkey/text.h>

struct choice {
    mk_str written;
    struct mk_pattern path;
    unsigned status_min, status_max; /* 0: it is a path */
};

struct choices {
    struct choice *v;
    size_t n;
};

/* For mk_conf_key. */
bool logger_choices_parse(const struct mk_conf_ctx *spot, mk_str value, void *field);
bool logger_choices_show(const void *field, size_t i, struct mk_buf *out);

bool logger_choices_have(const struct choices *c, const struct mk_access_record *record);

#endif
