/* SPDX-License-Identifier: Apache-2.0 */
/* The conditions under which a rule applies. */
#ifndef HEADERS_CONDITION_H
#define HEADERS_CONDITION_H

#include <monkey/config.h>
#include <monkey/text.h>

#include "response_facts.h"

/* The conditions of a rule. The rule applies if all conditions that are set are true. */
struct condition {
    struct mk_pattern path;
    mk_str type; /* absent: any; "image/": all image types */
    uint16_t status_min, status_max;
    bool has_path;
};

enum condition_word { CONDITION_NONE, CONDITION_TAKEN, CONDITION_WRONG };

/* Parses a condition. Returns CONDITION_WRONG after reporting an error. */
enum condition_word headers_condition_parse(const struct mk_conf_ctx *ctx, mk_str word, struct condition *c);
/* Parses a media type without `type:`. Returns false, without reporting an error, if it is not a media
 * type. */
bool headers_condition_parse_type(mk_str word, struct condition *c);

bool headers_condition_matches(const struct condition *c, struct response_facts *facts);

/* Parses "90", "90s", "5m", "12h", "30d", "2w" or "1y" to seconds. Returns false for anything else. */
bool headers_parse_duration(mk_str word, uint64_t *seconds);

#endif
