/* SPDX-License-Identifier: Apache-2.0 */
#include "name.h"

#include <arpa/inet.h>
#include <monkey/buf.h>
#include <stdio.h>

size_t acme_name_address(const char *name, unsigned char address[16])
{
    unsigned char own[16];
    unsigned char *to = address ? address : own;
    if (inet_pton(AF_INET, name, to) == 1)
        return 4;
    return inet_pton(AF_INET6, name, to) == 1 ? 16 : 0;
}

void acme_name_sni(const char *name, char *buf, size_t size)
{
    unsigned char a[16];
    size_t n = acme_name_address(name, a);
    struct mk_buf text = mk_buf_fixed(buf, size - 1);
    for (size_t i = n; i-- > 0;)
        if (n == 4)
            mk_buf_addf(&text, "%u.", a[i]);
        else
            mk_buf_addf(&text, "%x.%x.", a[i] & 15u, a[i] >> 4);
    mk_buf_add(&text, n == 4 ? MK_STR("in-addr.arpa") : n ? MK_STR("ip6.arpa") : mk_str_from_c(name));
    buf[text.len] = '\0';
}
