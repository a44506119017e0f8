/* SPDX-License-Identifier: Apache-2.0 */
#include "address.h"

#include <string.h>

/* From the registries of special-purpose addresses of IANA (RFC 6890). */
#define IPV4(a, b, c, d) ((uint32_t)(a) << 24 | (b) << 16 | (c) << 8 | (d))

static const struct {
    uint32_t ip;
    unsigned bits;
} special_v4[] = {
    {IPV4(0, 0, 0, 0), 8},     /* this network */
    {IPV4(10, 0, 0, 0), 8},    /* private */
    {IPV4(100, 64, 0, 0), 10}, /* shared by the customers of a provider */
    {IPV4(127, 0, 0, 0), 8},   /* loopback */
    {IPV4(168, 63, 129, 16), 32} /* Azure: the agent of the host */,
    {IPV4(169, 254, 0, 0), 16},  /* link-local, metadata services */
    {IPV4(172, 16, 0, 0), 12},   /* private */
    {IPV4(192, 0, 0, 0), 24},    /* protocol assignments, metadata services */
    {IPV4(192, 0, 2, 0), 24},    /* documentation */
    {IPV4(192, 88, 99, 0), 24},  /* 6to4 relays */
    {IPV4(192, 168, 0, 0), 16},  /* private */
    {IPV4(198, 18, 0, 0), 15},   /* benchmarks */
    {IPV4(198, 51, 100, 0), 24}, /* documentation */
    {IPV4(203, 0, 113, 0), 24},  /* documentation */
    {IPV4(224, 0, 0, 0), 3},     /* multicast, reserved, broadcast */
};

/* Prefixes within 2000::/3, outside of which no address is public. */
static const struct {
    uint32_t ip; /* the first 32 bits */
    unsigned bits;
} special_v6[] = {
    {0x20010000, 23}, /* protocol assignments, Teredo */
    {0x20010db8, 32}, /* documentation */
    {0x20020000, 16}, /* 6to4 */
    {0x3fff0000, 20}, /* documentation */
};

static uint32_t read_u32(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static bool has_prefix(uint32_t ip, uint32_t prefix, unsigned bits)
{
    return (ip ^ prefix) >> (32 - bits) == 0;
}

static bool is_public_v4(uint32_t ip)
{
    for (size_t i = 0; i < sizeof special_v4 / sizeof *special_v4; i++)
        if (has_prefix(ip, special_v4[i].ip, special_v4[i].bits))
            return false;
    return true;
}

static bool is_public_v6(uint32_t high)
{
    for (size_t i = 0; i < sizeof special_v6 / sizeof *special_v6; i++)
        if (has_prefix(high, special_v6[i].ip, special_v6[i].bits))
            return false;
    return has_prefix(high, 0x20000000, 3);
}

bool http_address_is_public(const struct mk_addr *addr)
{
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
    if (addr->is_unix)
        return false;
    if (memcmp(addr->ip, mapped, sizeof mapped) == 0)
        return is_public_v4(read_u32(addr->ip + 12));
    return is_public_v6(read_u32(addr->ip));
}
