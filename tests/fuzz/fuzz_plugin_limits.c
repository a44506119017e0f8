/* SPDX-License-Identifier: Apache-2.0 */
/* Compares the rate table with a model that forgets no client: the table is never stricter, and gives equal
 * results as long as clients share no slot. The input is pairs of bytes: how much time passes, and the
 * client. */
#include "limits/rate_table.c"

#include "base/assert.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { PEOPLE = 32, STEP_MS = 40, ROUND_MAX = 20000 };

struct person {
    uint64_t time; /* when the client would be served, in ticks; never reset */
};

/* Charges the model, and returns the time to wait, in ticks. */
static uint64_t charge(struct person *p, uint64_t now, const struct limits_charge *c)
{
    uint64_t ahead = p->time > now ? p->time - now : 0;
    uint64_t wait = ahead > c->tolerance ? ahead - c->tolerance : 0;
    if (wait <= c->wait_max)
        p->time = now + ahead + c->cost;
    return wait;
}

/* Returns false if the entry expired or another client took the slot. */
static bool is_known(struct limits_bucket *line, uint64_t client_id, uint64_t now_ms)
{
    uint64_t word;
    (void)find_slot(line, subject_tag(client_id), ms_to_ticks(now_ms), &word);
    return word >> TIME_BITS == subject_tag(client_id);
}

static void charge_client(struct limits_bucket *line, struct person *people, unsigned client_id, unsigned n,
                          uint64_t now_ms, const struct limits_charge *c)
{
    uint64_t name = (uint64_t)(client_id + 1) << TIME_BITS, now = now_ms * LIMITS_TICKS;
    if (!is_known(line, name, now_ms))
        people[client_id].time = 0;
    uint64_t expected = charge(&people[client_id], now, c),
             wait = limits_bucket_charge(line, name, now_ms, c);
    MK_ASSERT(wait == expected);
    MK_ASSERT(n > LIMITS_BUCKET_SLOTS || is_known(line, name, now_ms) || wait > c->wait_max);
}

static void play(const uint8_t *data, size_t size, uint64_t began_ms, unsigned n)
{
    static const struct limits_charge rules[] = {
        {.cost = 100 * LIMITS_TICKS},
        {.cost = 100 * LIMITS_TICKS, .tolerance = 400 * LIMITS_TICKS},
        {.cost = 30 * LIMITS_TICKS, .tolerance = 100 * LIMITS_TICKS, .wait_max = 1000 * LIMITS_TICKS}};
    struct limits_bucket line = {0};
    struct person people[PEOPLE] = {0};
    uint64_t now_ms = began_ms;
    for (size_t i = 0; i + 1 < size && i < ROUND_MAX; i += 2) {
        unsigned client_id = data[i + 1] % n;
        now_ms += (uint64_t)(data[i] % 16) * STEP_MS;
        charge_client(&line, people, client_id, n, now_ms, &rules[client_id % 3]);
        if (data[i] > 250)
            limits_bucket_refund(&line, (uint64_t)(PEOPLE + 1) << TIME_BITS, now_ms, UINT64_MAX);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    /* The target repeats the input at several start times; from the last one, the time field of a slot
     * overflows. */
    static const uint64_t begins[] = {1000, (uint64_t)1 << 31,
                                      ((uint64_t)1 << TIME_BITS) / LIMITS_TICKS - 500};
    for (size_t i = 0; i < sizeof begins / sizeof *begins; i++) {
        play(data, size, begins[i], LIMITS_BUCKET_SLOTS);
        play(data, size, begins[i], PEOPLE);
    }
    return 0;
}
