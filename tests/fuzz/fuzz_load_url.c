/* SPDX-License-Identifier: Apache-2.0 */
/* A URL is rejected with a reason, or its parts lie inside it, contain nothing that could break a head, and
 * form the same URL when joined. */
#include "base/assert.h"
#include "base/buf.h"
#include "load/url.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { INPUT_MAX = 4096 };

static void check_visible(mk_str text)
{
    for (size_t i = 0; i < text.len; i++)
        MK_ASSERT(text.p[i] > ' ' && text.p[i] <= '~');
}

static void check_again(const struct load_url *u)
{
    char buffer[INPUT_MAX + 16];
    struct load_url again;
    struct mk_buf text = mk_buf_fixed(buffer, sizeof buffer);
    mk_buf_addf(&text, u->tls ? "https://" : "http://");
    mk_buf_add(&text, u->authority);
    mk_buf_add(&text, u->target);
    MK_ASSERT(!text.failed && load_url_parse(mk_buf_str(&text), &again) == NULL);
    MK_ASSERT(again.tls == u->tls && again.port == u->port && strcmp(again.host, u->host) == 0);
    MK_ASSERT(mk_str_eq(again.authority, u->authority) && mk_str_eq(again.target, u->target));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct load_url u;
    mk_str text = mk_str_of((const char *)data, size);
    if (size == 0 || size > INPUT_MAX)
        return 0;
    const char *wrong = load_url_parse(text, &u);
    if (wrong) {
        MK_ASSERT(*wrong);
        return 0;
    }
    MK_ASSERT(load_url_has_scheme(text) && mk_str_eq(u.whole, text) && u.port > 0);
    MK_ASSERT(u.host[0] && strlen(u.host) <= LOAD_URL_HOST_MAX && strlen(u.host) <= u.authority.len);
    MK_ASSERT(u.authority.p > text.p && u.authority.p + u.authority.len <= text.p + text.len);
    MK_ASSERT(u.target.len && u.target.p[0] == '/');
    check_visible(u.authority);
    check_visible(u.target);
    check_again(&u);
    return 0;
}
