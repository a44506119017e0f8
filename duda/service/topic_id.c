/* SPDX-License-Identifier: Apache-2.0 */
#include "service/topic_id.h"

#include <monkey/text.h>
#include <stdio.h>

static bool parse_number(mk_str text, uint64_t *out)
{
    uint64_t n = 0;
    if (!text.len)
        return false;
    for (size_t i = 0; i < text.len; i++) {
        unsigned digit = (unsigned)text.p[i] - '0';
        if (digit > 9 || __builtin_mul_overflow(n, 10, &n) || __builtin_add_overflow(n, digit, &n))
            return false;
    }
    *out = n;
    return true;
}

bool duda_topic_id_parse(mk_str text, struct duda_topic_id *out)
{
    struct duda_topic_id id = {0};
    mk_str number = text, epoch = mk_str_cut(&number, '-');
    *out = id;
    if (mk_str_eq(text, MK_STR("0")))
        return true;
    if (!number.p || !parse_number(epoch, &id.epoch) || !parse_number(number, &id.number))
        return false;
    *out = id;
    return true;
}

mk_str duda_topic_id_format(const struct duda_topic_id *id, char out[DUDA_TOPIC_ID_TEXT_SIZE])
{
    int n = snprintf(out, DUDA_TOPIC_ID_TEXT_SIZE, "%llu-%llu", (unsigned long long)id->epoch,
                     (unsigned long long)id->number);
    return mk_str_of(out, (size_t)n);
}
