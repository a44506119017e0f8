/* SPDX-License-Identifier: Apache-2.0 */
/* Any text is parsed as a URL or rejected. A reference that can be resolved leads to a URL whose normal form
 * is stable. */
#include <http/allow.h>

#include "base/assert.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_normal_form(const struct http_url *url)
{
    struct mk_buf once = mk_buf_growing(4 * HTTP_URL_MAX), twice = mk_buf_growing(4 * HTTP_URL_MAX);
    struct http_url again;
    http_url_write(url, &once);
    MK_ASSERT(!http_url_parse(mk_buf_str(&once), &again) && http_url_has_same_origin(url, &again));
    http_url_write(&again, &twice);
    MK_ASSERT(mk_str_eq(mk_buf_str(&once), mk_buf_str(&twice)));
    mk_buf_free(&once);
    mk_buf_free(&twice);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    mk_str reference = mk_str_of((const char *)data, size), first = mk_str_cut(&reference, '\n');
    struct mk_buf absolute = mk_buf_growing(4 * HTTP_URL_MAX);
    char host[HTTP_URL_HOST_MAX + 1];
    struct http_allow allow;
    struct http_url base, url;
    if (size > HTTP_URL_MAX / 4)
        return 0;
    bool is_entry = http_allow_parse(first, host, &allow);
    if (http_url_parse(first, &base))
        return 0;
    check_normal_form(&base);
    if (is_entry)
        (void)http_allow_matches(&allow, &base);
    if (!http_url_resolve(&base, reference, &absolute) && !http_url_parse(mk_buf_str(&absolute), &url))
        check_normal_form(&url);
    mk_buf_free(&absolute);
    return 0;
}
