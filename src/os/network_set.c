/* SPDX-License-Identifier: Apache-2.0 */
#include "os/network_set.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"

enum kind { ADDRESSES, UNIX, ALL };
enum { V4_BEFORE = 96 }; /* length of the prefix of IPv4-mapped addresses, in bits */
/* A large set has an index by up to 16 bits of the address: the first ones of IPv4, and those after the prefix
 * 2000::/3 of IPv6, which all addresses of the Internet share. */
enum { INDEXED_MIN = 64, INDEX_BITS_MAX = 16 };

#define NONE    UINT32_MAX
#define V4_BASE ((uint64_t)0xffff << 32) /* low half of ::ffff:0.0.0.0 */
#define V6_BASE ((uint64_t)1 << 61)      /* high half of 2000:: */

/* A network. During construction, each input network has a node, whose `first` is the network's number. */
struct network_node {
    uint64_t high, low; /* the address */
    uint32_t first, n;  /* range of `numbers` with the numbers of the network, in ascending order */
    uint32_t parent;    /* the smallest enclosing network; NONE: none */
    uint8_t bits, kind;
};

struct mk_network_set {
    bool is_empty;
    uint32_t n;          /* networks with addresses, which come first */
    uint32_t unix_, all; /* indexes of the networks for Unix sockets and for all clients; NONE: not in the
                            set */
    uint32_t *numbers;
    unsigned index_bits; /* 0: no index */
    /* By slot of the index: the number of networks that begin before the addresses of the slot. The end of a
     * slot is the next one. */
    uint32_t *v4_slots, *v6_slots;
    struct network_node nodes[];
};

/* Returns about log2(n). */
static unsigned index_bits_for(size_t n)
{
    unsigned bits = 0;
    if (n < INDEXED_MIN)
        return 0;
    while (bits < INDEX_BITS_MAX && (size_t)2 << bits <= n)
        bits++;
    return bits;
}

/* Returns the number of slots of one address family, with the end of the last one. */
static size_t count_slots(unsigned bits)
{
    return bits ? ((size_t)1 << bits) + 1 : 0;
}

size_t mk_network_set_size(size_t n)
{
    return sizeof(struct mk_network_set) + n * (sizeof(struct network_node) + sizeof(uint32_t)) +
           2 * count_slots(index_bits_for(n)) * sizeof(uint32_t);
}

static uint64_t read_be64(const uint8_t *p)
{
    uint64_t n;
    memcpy(&n, p, sizeof n);
    return be64toh(n);
}

static uint64_t prefix_mask(unsigned bits)
{
    return bits == 0 ? 0 : bits >= 64 ? UINT64_MAX : UINT64_MAX << (64 - bits);
}

static bool node_contains(const struct network_node *n, uint64_t high, uint64_t low)
{
    return ((n->high ^ high) & prefix_mask(n->bits)) == 0 &&
           (n->bits <= 64 || ((n->low ^ low) & prefix_mask(n->bits - 64u)) == 0);
}

/* ---- Building ---- */

static int compare_u64(uint64_t a, uint64_t b)
{
    return a < b ? -1 : a > b;
}

/* Orders each network before the networks that it contains, and equal networks by number. */
static int compare_nodes(const void *a, const void *b)
{
    const struct network_node *x = a, *y = b;
    int order = compare_u64(x->kind, y->kind);
    order = order ? order : compare_u64(x->high, y->high);
    order = order ? order : compare_u64(x->low, y->low);
    order = order ? order : compare_u64(x->bits, y->bits);
    return order ? order : compare_u64(x->first, y->first);
}

static bool is_same_network(const struct network_node *a, const struct network_node *b)
{
    return a->kind == b->kind && a->high == b->high && a->low == b->low && a->bits == b->bits;
}

static uint32_t find_parent(const struct network_node *nodes, uint32_t i)
{
    uint32_t parent = i ? i - 1 : NONE;
    while (parent != NONE && !(nodes[parent].bits <= nodes[i].bits &&
                               node_contains(&nodes[parent], nodes[i].high, nodes[i].low)))
        parent = nodes[parent].parent;
    return parent;
}

static void add_node(struct mk_network_set *s, uint32_t i)
{
    struct network_node *network_node = &s->nodes[i];
    if (network_node->kind == UNIX)
        s->unix_ = i;
    else if (network_node->kind == ALL)
        s->all = i;
    else
        network_node->parent = find_parent(s->nodes, s->n++);
}

static struct network_node make_network_node(const struct mk_network *v, uint32_t number)
{
    struct network_node n = {.first = number,
                             .parent = NONE,
                             .kind = v->is_all    ? ALL
                                     : v->is_unix ? UNIX
                                                  : ADDRESSES};
    if (n.kind != ADDRESSES)
        return n;
    n.bits = v->bits;
    n.high = read_be64(v->ip) & prefix_mask(v->bits);
    n.low = read_be64(v->ip + 8) & prefix_mask(v->bits > 64 ? v->bits - 64u : 0);
    return n;
}

static bool begins_before(const struct network_node *n, uint64_t high, uint64_t low)
{
    return n->high < high || (n->high == high && n->low < low);
}

static void fill_slots(struct mk_network_set *s)
{
    uint32_t v4 = 0, v6 = 0;
    for (uint64_t i = 0; i < count_slots(s->index_bits); i++) {
        while (v4 < s->n && begins_before(&s->nodes[v4], 0, V4_BASE + (i << (32 - s->index_bits))))
            v4++;
        while (v6 < s->n && begins_before(&s->nodes[v6], V6_BASE + (i << (61 - s->index_bits)), 0))
            v6++;
        s->v4_slots[i] = v4;
        s->v6_slots[i] = v6;
    }
}

MK_COLD struct mk_network_set *mk_network_set_build(void *memory, const struct mk_network *v,
                                                    const uint32_t *numbers, size_t n)
{
    struct mk_network_set *s = memory;
    uint32_t made = 0;
    *s = (struct mk_network_set){.unix_ = NONE,
                                 .all = NONE,
                                 .is_empty = n == 0,
                                 .numbers = (uint32_t *)(void *)(s->nodes + n),
                                 .index_bits = index_bits_for(n)};
    s->v4_slots = s->numbers + n;
    s->v6_slots = s->v4_slots + count_slots(s->index_bits);
    for (size_t i = 0; i < n; i++)
        s->nodes[i] = make_network_node(&v[i], numbers ? numbers[i] : (uint32_t)i);
    qsort(s->nodes, n, sizeof *s->nodes, compare_nodes);
    for (uint32_t i = 0; i < n; i++) {
        struct network_node one = s->nodes[i];
        s->numbers[i] = one.first;
        one.first = i;
        one.n = 1;
        if (made && is_same_network(&s->nodes[made - 1], &one)) {
            s->nodes[made - 1].n++;
        } else {
            s->nodes[made] = one;
            add_node(s, made++);
        }
    }
    fill_slots(s);
    return s;
}

/* ---- Looking up ---- */

/* Returns the network's lowest number that is at least `from`; NONE: none. */
static uint32_t first_number_from(const struct mk_network_set *s, uint32_t network_node, uint32_t from)
{
    const uint32_t *numbers = s->numbers + s->nodes[network_node].first;
    uint32_t begin = 0, end = s->nodes[network_node].n;
    while (begin < end) {
        uint32_t middle = begin + (end - begin) / 2;
        if (numbers[middle] < from)
            begin = middle + 1;
        else
            end = middle;
    }
    return begin < s->nodes[network_node].n ? numbers[begin] : NONE;
}

/* Returns the last network that begins at or before the address; NONE: none. */
static uint32_t find_last_starting_before(const struct mk_network_set *s, uint64_t high, uint64_t low)
{
    const uint32_t whole[] = {0, s->n}, *range = whole;
    if (s->index_bits && high == 0 && low - V4_BASE <= UINT32_MAX)
        range = s->v4_slots + ((uint32_t)low >> (32 - s->index_bits));
    else if (s->index_bits && high >> 61 == V6_BASE >> 61)
        range = s->v6_slots + ((high - V6_BASE) >> (61 - s->index_bits));
    uint32_t begin = range[0], end = range[1];
    while (begin < end) {
        uint32_t middle = begin + (end - begin) / 2;
        const struct network_node *n = &s->nodes[middle];
        if (n->high < high || (n->high == high && n->low <= low))
            begin = middle + 1;
        else
            end = middle;
    }
    return begin ? begin - 1 : NONE;
}

uint32_t mk_network_set_next(const struct mk_network_set *s, const struct mk_addr *p, uint32_t from)
{
    uint32_t best = NONE;
    if (!s || s->is_empty)
        return NONE;
    if (s->all != NONE)
        best = first_number_from(s, s->all, from);
    if (p->is_unix)
        return s->unix_ == NONE ? best : (uint32_t)mk_min(best, first_number_from(s, s->unix_, from));
    uint64_t high = read_be64(p->ip), low = read_be64(p->ip + 8);
    bool is_v4 = high == 0 && low >> 32 == 0xffff; /* an IPv6 network never contains an IPv4 client */
    for (uint32_t i = find_last_starting_before(s, high, low); i != NONE; i = s->nodes[i].parent)
        if (node_contains(&s->nodes[i], high, low) && !(is_v4 && s->nodes[i].bits < V4_BEFORE))
            best = (uint32_t)mk_min(best, first_number_from(s, i, from));
    return best;
}
