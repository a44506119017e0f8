/* SPDX-License-Identifier: Apache-2.0 */
/* Answers of name servers. The first two bytes select the type of the query; the rest is the answer, whose ID and question
 * are made to match if there is room. */
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "upstream/dns_message.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void use_records(const struct mk_dns_query *q, const uint8_t *message, size_t len,
                        const struct mk_dns_answer *answer)
{
    char name[MK_DNS_NAME_MAX];
    volatile uint8_t sum = 0;
    for (unsigned i = 0; i < answer->n; i++) {
        size_t at = answer->records[i].at, bytes = q->type == MK_DNS_A ? 4 : 16;
        if (q->type == MK_DNS_SRV) {
            if (mk_dns_read_name(message, len, at, name))
                MK_ASSERT(strlen(name) > 0 && strlen(name) < MK_DNS_NAME_MAX);
            continue;
        }
        MK_ASSERT(at + bytes <= len);
        for (size_t k = 0; k < bytes; k++)
            sum = (uint8_t)(sum + message[at + k]);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const enum mk_dns_type types[] = {MK_DNS_A, MK_DNS_AAAA, MK_DNS_SRV};
    static struct mk_dns_answer answer;
    unsigned char question[MK_DNS_QUERY_MAX];
    if (size < 1)
        return 0;
    const struct mk_dns_query q = {.name = MK_STR("a.example"), .type = types[data[0] % 3], .id = 7};
    size_t len = mk_dns_write_query(&q, question), n = size - 1;
    uint8_t *message = malloc(n + 1); /* of its own, so that the sanitizer sees reads beyond its end */
    if (!message)
        return 0;
    memcpy(message, data + 1, n);
    if (n >= len) {
        memcpy(message, question, 2);
        memcpy(message + 12, question + 12, len - 12);
        message[2] |= 0x80;
        message[4] = 0;
        message[5] = 1;
    }
    if (mk_dns_read_answer(&q, message, n, &answer) == 0)
        use_records(&q, message, n, &answer);
    free(message);
    return 0;
}
