/* SPDX-License-Identifier: Apache-2.0 */
/* Evaluates conditional headers, given as lines "Name: value": every result is valid for the method. */
#include "base/assert.h"
#include "http/etag.h"
#include "http/precondition.h"
#include "unit/headers.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { FIELDS_MAX = 16, MODIFIED = 784111777, NOW = MODIFIED + 100 };

static const struct mk_validators ours = {.etag = MK_STR_INIT("\"x\""), .modified = MODIFIED};

static void read_fields(struct mk_headers *fields, mk_str text)
{
    while (text.p) {
        mk_str value = mk_str_cut(&text, '\n'), name = mk_str_cut(&value, ':');
        if (!headers_add(fields, FIELDS_MAX, name, value.p ? mk_str_trim(value) : MK_STR("")))
            return;
    }
}

static bool has_any(const struct mk_headers *f)
{
    return mk_headers_has(f, MK_HEADER_IF_MATCH) || mk_headers_has(f, MK_HEADER_IF_NONE_MATCH) ||
           mk_headers_has(f, MK_HEADER_IF_MODIFIED_SINCE) || mk_headers_has(f, MK_HEADER_IF_UNMODIFIED_SINCE);
}

static void check(const struct mk_headers *f, const struct mk_validators *v)
{
    enum mk_precondition get = mk_precondition_check(f, MK_METHOD_GET, v, NOW);
    enum mk_precondition put = mk_precondition_check(f, MK_METHOD_PUT, v, NOW);
    MK_ASSERT(get == mk_precondition_check(f, MK_METHOD_HEAD, v, NOW));
    MK_ASSERT(put != MK_PRECONDITION_NOT_MODIFIED);
    MK_ASSERT(has_any(f) || (get == MK_PRECONDITION_PASS && put == MK_PRECONDITION_PASS));
    /* A condition that fails for GET also fails for PUT, and one that passes for GET also passes for PUT. */
    MK_ASSERT(get != MK_PRECONDITION_FAILED || put == MK_PRECONDITION_FAILED);
    MK_ASSERT(get != MK_PRECONDITION_PASS || put == MK_PRECONDITION_PASS);
    MK_ASSERT(v || get != MK_PRECONDITION_NOT_MODIFIED);
}

static void check_tags(mk_str list)
{
    bool strong = mk_etag_in_list(list, ours.etag, false), weak = mk_etag_in_list(list, ours.etag, true);
    MK_ASSERT(!strong || weak);
    if (mk_etag_is_valid(list))
        MK_ASSERT(mk_etag_in_list(list, list, true));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct mk_header_field buffer[FIELDS_MAX];
    struct mk_headers fields;
    mk_headers_init(&fields, buffer);
    read_fields(&fields, mk_str_of((const char *)data, size));
    check(&fields, &ours);
    check(&fields, NULL);
    if (mk_precondition_if_range_holds(&fields, &ours, MODIFIED))
        MK_ASSERT(mk_precondition_if_range_holds(&fields, &ours, NOW));
    for (unsigned i = 0; i < fields.n; i++)
        check_tags(fields.at[i].value);
    return 0;
}
