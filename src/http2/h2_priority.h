/* SPDX-License-Identifier: Apache-2.0 */
/* The Priority header (RFC 9218): urgency of a response, and whether partial data is useful. */
#ifndef MK_HTTP2_H2_PRIORITY_H
#define MK_HTTP2_H2_PRIORITY_H

#include "base/str.h"

enum { MK_URGENCIES = 8, MK_URGENCY_USUAL = 3 };

struct mk_h2_priority {
    uint8_t urgency; /* 0 is the most urgent */
    bool incremental;
};

/* Parses a list like "u=1, i"; missing or malformed members keep their defaults. */
struct mk_h2_priority mk_h2_priority_parse(mk_str value);

#endif
