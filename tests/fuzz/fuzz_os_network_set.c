/* SPDX-License-Identifier: Apache-2.0 */
/* A network set finds the same networks for a peer as a linear search. The input is the number of networks,
 * the length and address of each, and the peer's address. */
#include "os/network_set.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MAX = 128, EACH = 6, PEER = 5 };

/* Builds a network from a length, a family and 4 address bytes. The other address bytes are fixed, so that
 * many networks contain each other. */
static struct mk_network network_of(const uint8_t *p)
{
    struct mk_network n = {.is_unix = p[1] == 250, .is_all = p[1] == 251};
    if (n.is_unix || n.is_all)
        return n;
    bool is_v4 = p[1] & 1;
    if (is_v4)
        memset(n.ip + 10, 0xff, 2);
    memcpy(n.ip + (is_v4 ? 12 : p[1] & 2 ? 0 : 8), p + 2, 4);
    n.bits = (uint8_t)(is_v4 ? 96 + p[0] % 33 : p[0] % 129);
    for (unsigned i = n.bits; i < 128; i++)
        n.ip[i / 8] &= (uint8_t)(~(0x80u >> i % 8));
    return n;
}

static uint32_t next_in_list(const struct mk_network *v, const uint32_t *numbers, size_t n,
                             const struct mk_addr *p, uint32_t from)
{
    uint32_t lowest = MK_NETWORK_NONE;
    for (size_t i = 0; i < n; i++)
        if (numbers[i] >= from && numbers[i] < lowest && mk_network_contains(&v[i], p))
            lowest = numbers[i];
    return lowest;
}

static void check(const struct mk_network_set *s, const struct mk_network *v, const uint32_t *numbers,
                  size_t n, const struct mk_addr *p)
{
    for (uint32_t from = 0; from != MK_NETWORK_NONE;) {
        uint32_t next = mk_network_set_next(s, p, from);
        MK_ASSERT(next == next_in_list(v, numbers, n, p, from));
        from = next == MK_NETWORK_NONE ? next : next + 1;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct mk_network v[MAX];
    uint32_t numbers[MAX];
    size_t n = 0;
    for (; n < MAX && size >= EACH + PEER; n++, data += EACH, size -= EACH) {
        v[n] = network_of(data);
        numbers[n] = data[0] & 0x40 ? (uint32_t)n : data[5] % MAX;
    }
    if (size < PEER)
        return 0;
    const uint8_t length_of_all[EACH] = {128, data[0], data[1], data[2], data[3], data[4]};
    struct mk_network at = network_of(length_of_all);
    struct mk_addr p = {.is_unix = at.is_unix};
    memcpy(p.ip, at.ip, sizeof p.ip);
    void *memory = malloc(mk_network_set_size(n));
    MK_ASSERT(memory);
    const struct mk_network_set *set = mk_network_set_build(memory, v, numbers, n);
    check(set, v, numbers, n, &p);
    for (size_t i = 0; i < n; i++) { /* the addresses of the networks themselves are likely to match */
        struct mk_addr own = {.is_unix = v[i].is_unix};
        memcpy(own.ip, v[i].ip, sizeof own.ip);
        check(set, v, numbers, n, &own);
    }
    free(memory);
    return 0;
}
