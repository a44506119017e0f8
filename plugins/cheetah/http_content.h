/* SPDX-License-Identifier: Apache-2.0 */
/* The content of a control request: one JSON object without nested values. */
#ifndef CHEETAH_HTTP_CONTENT_H
#define CHEETAH_HTTP_CONTENT_H

#include <monkey/plugin.h>

enum cheetah_http_member {
    CHEETAH_HTTP_SERVER = 1 << 0,
    CHEETAH_HTTP_STATE = 1 << 1,
    CHEETAH_HTTP_WEIGHT = 1 << 2,
    CHEETAH_HTTP_BACKUP = 1 << 3,
    CHEETAH_HTTP_MOVE = 1 << 4,
    CHEETAH_HTTP_SAVE = 1 << 5,
    CHEETAH_HTTP_LEVEL = 1 << 6,
    CHEETAH_HTTP_CONFIRM = 1 << 7,
    CHEETAH_HTTP_NUMBER = 1 << 8,
    CHEETAH_HTTP_TIMEOUT = 1 << 9,
};

struct cheetah_http_content {
    unsigned given;                                /* enum cheetah_http_member */
    mk_str server, state, level, confirm, timeout; /* in the request, without blanks and control characters */
    uint64_t weight, number;
    bool is_backup, moves, saves;
};

/* Parses the content, which may be empty. `allowed`: the members that the request may have (enum
 * cheetah_http_member). Returns NULL, or a static text that describes the error. */
const char *cheetah_http_content_parse(mk_str content, unsigned allowed, struct cheetah_http_content *out);

#endif
