/* SPDX-License-Identifier: Apache-2.0 */
/* Parses the lists and weights of Accept-Encoding and Accept headers. */
#include "base/assert.h"
#include "http/negotiate.h"
#include "unit/headers.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { FIELDS_MAX = 8 };

static void check_list(mk_str list)
{
    mk_str rest = list, element;
    const char *before = list.p;
    while (mk_header_list_next(&rest, &element)) {
        MK_ASSERT(element.len > 0 && mk_str_trim(element).len == element.len);
        MK_ASSERT(element.p >= before && element.p + element.len <= list.p + list.len);
        before = element.p + element.len;
    }
    MK_ASSERT(rest.len == 0);
}

static void check_coding(const struct mk_headers *fields, mk_str coding)
{
    unsigned q = mk_negotiate_coding_q(fields, MK_HEADER_ACCEPT_ENCODING, coding);
    MK_ASSERT(q <= 1000);
    if (mk_headers_has_token(fields, MK_HEADER_ACCEPT_ENCODING, coding) && fields->n == 1)
        MK_ASSERT(q == 1000 || mk_str_find(fields->at[0].value, ';') != MK_STR_NONE);
}

static void check_type(const struct mk_headers *fields, mk_str type)
{
    unsigned q = mk_negotiate_type_q(fields, type);
    MK_ASSERT(q <= 1000);
    if (fields->n == 1 && mk_str_eq_nocase(fields->at[0].value, type))
        MK_ASSERT(q == 1000);
}

static void check_types(mk_str text)
{
    struct mk_header_field buffer[FIELDS_MAX];
    struct mk_headers fields;
    mk_str type = mk_str_cut(&text, '\n'); /* the first line is the type to look for */
    mk_headers_init(&fields, buffer);
    while (text.p)
        if (!headers_add(&fields, FIELDS_MAX, MK_STR("Accept"), mk_str_trim(mk_str_cut(&text, '\n'))))
            break;
    check_type(&fields, MK_STR("text/html"));
    check_type(&fields, MK_STR("image/png"));
    MK_ASSERT(mk_negotiate_type_q(&fields, type) <= 1000);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct mk_header_field buffer[FIELDS_MAX];
    struct mk_headers fields;
    mk_headers_init(&fields, buffer);
    mk_str text = mk_str_of((const char *)data, size);
    while (text.p) {
        mk_str line = mk_str_cut(&text, '\n');
        check_list(line);
        if (!headers_add(&fields, FIELDS_MAX, MK_STR("Accept-Encoding"), mk_str_trim(line)))
            break;
    }
    check_coding(&fields, MK_STR("gzip"));
    check_coding(&fields, MK_STR("br"));
    check_coding(&fields, MK_STR("identity"));
    check_coding(&fields, MK_STR("*"));
    check_types(mk_str_of((const char *)data, size));
    return 0;
}
