/* SPDX-License-Identifier: Apache-2.0 */
/* Whatever a client sends, the server uses the address that our own proxy appends. */
#include "security/real_ip.c"

#include <stddef.h>

#include "base/assert.h"
#include "os/network_set.h"
#include "web/request_type.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { ROOM = 8192 };

static void check(const struct security_real_ip *real, struct mk_header_field *fields, unsigned n,
                  mk_str expected)
{
    struct mk_request request = {.fields = {.at = fields, .n = n}};
    struct mk_addr expected_addr;
    struct security_client client;
    MK_ASSERT(mk_addr_parse(expected, &expected_addr) && mk_addr_parse(MK_STR("10.0.0.1"), &client.peer));
    MK_ASSERT(security_real_ip_find(real, &request, &client) == SECURITY_REAL_IP_FOUND);
    MK_ASSERT(memcmp(&expected_addr, &client.peer, sizeof expected_addr) == 0);
    security_real_ip_find_scheme(real, &request, &client);
    MK_ASSERT(!real->scheme_field.p || (client.knows_scheme && !client.is_secure));
}

static void add(const char *name, mk_str value, const char *address)
{
    char text[ROOM];
    struct mk_buf joined = mk_buf_fixed(text, sizeof text);
    struct mk_network network;
    _Alignas(max_align_t) char memory[256];
    MK_ASSERT(mk_network_parse(MK_STR("10.0.0.0/8"), &network) && mk_network_set_size(1) <= sizeof memory);
    const struct mk_network_set *trusted = mk_network_set_build(memory, &network, NULL, 1);
    struct security_real_ip real = {.field = mk_str_from_c(name),
                                    .is_forwarded = strcmp(name, "Forwarded") == 0,
                                    .scheme_is_forwarded = true,
                                    .trusted = trusted};
    struct mk_header_field fields[] = {{.name = real.field, .value = value}, {.name = real.field}};
    struct mk_request alone = {.fields = {.at = fields, .n = 1}};
    struct security_client client;
    MK_ASSERT(mk_addr_parse(MK_STR("10.0.0.1"), &client.peer));
    real.scheme_field = real.is_forwarded ? real.field : MK_STR_NULL;
    (void)security_real_ip_find(&real, &alone, &client);
    security_real_ip_find_scheme(&real, &alone, &client);
    mk_buf_addf(&joined, ", %s", address);
    fields[1].value = mk_buf_str(&joined);
    check(&real, fields, 2, MK_STR("203.0.113.9"));
    mk_buf_clear(&joined);
    mk_buf_add(&joined, value);
    mk_buf_addf(&joined, ", %s, %s", address, real.is_forwarded ? "for=\"10.1.2.3:80\"" : "10.1.2.3");
    fields[0].value = mk_buf_str(&joined);
    check(&real, fields, 1, MK_STR("203.0.113.9"));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    mk_str value = mk_str_of((const char *)data, size);
    if (size > ROOM / 2 || !mk_is_header_value(value))
        return 0;
    add("X-Forwarded-For", value, "203.0.113.9");
    add("Forwarded", value, "host=\"a, for=6.6.6.6;\\\"\";for=203.0.113.9;proto=http");
    return 0;
}
