/* SPDX-License-Identifier: Apache-2.0 */
/* The content of a control request: one JSON object without nested values. */
#ifndef CHEETAH_HTTP_CONTENT_H
#define CHEETAH_HTTP_CONTENT_H

#include <monkey/plugin.h>

struct cheetah_http_content {
    mk_str server, state, level; /* in the request, without blanks and control characters */
    uint64_t weight;
    bool has_weight, is_backup, moves, saves;
};

/* Parses the content, which may be empty. Returns NULL, or a static text that describes the error. */
const char *cheetah_http_content_parse(mk_str content, struct cheetah_http_content *out);

#endif
