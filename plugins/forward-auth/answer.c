/* SPDX-License-Identifier: Apache-2.0 */
#include "answer.h"

#include <monkey/mem.h>

static struct forward_auth_answer *new_answer(unsigned status, size_t n, size_t text_size)
{
    size_t size = sizeof(struct forward_auth_answer) + n * sizeof(struct forward_auth_field) + text_size;
    struct forward_auth_answer *a = mk_mem_alloc(size);
    if (a)
        *a = (struct forward_auth_answer){.refs = 1, .status = status, .size = size};
    return a;
}

struct forward_auth_answer *forward_auth_answer_new_error(unsigned status)
{
    return new_answer(status, 0, 0);
}

void forward_auth_answer_unref(struct forward_auth_answer *a)
{
    if (a && --a->refs == 0)
        mk_mem_free(a);
}

/* Only a 2xx allows the request. A redirection without a target is as useless as an unknown status. */
static unsigned status_for_client(const struct mk_upstream_request *upstream)
{
    unsigned status = mk_upstream_request_status(upstream);
    switch (status) {
    case 301:
    case 302:
    case 303:
    case 307:
    case 308:
        return mk_upstream_request_header(upstream, MK_STR("Location")).len ? status : 502;
    case 401:
    case 403:
        return status;
    default:
        return status >= 200 && status < 300 ? 200 : 502;
    }
}

/* Returns the name as configured; absent: the request does not get this header. */
static mk_str find_copied_name(const struct forward_auth_location *place, mk_str name)
{
    for (size_t i = 0; i < place->copy_headers.n; i++)
        if (mk_str_eq_nocase(place->copy_headers.v[i], name))
            return place->copy_headers.v[i];
    return place->user_header.p && mk_str_eq_nocase(place->user_header, name) ? place->user_header
                                                                              : MK_STR_NULL;
}

/* Selects a header of the service's response. Returns false if neither the request nor the client gets it. */
static bool select_field(const struct forward_auth_location *place, unsigned status, mk_str name,
                         struct forward_auth_field *field)
{
    static const mk_str for_client[] = {MK_STR_INIT("Set-Cookie"), MK_STR_INIT("Location"),
                                        MK_STR_INIT("WWW-Authenticate")};
    size_t n_for_client = status == 200 ? 1 : status < 500 ? MK_LEN(for_client) : 0;
    field->is_for_request = status == 200 && (field->name = find_copied_name(place, name)).p;
    for (size_t i = 0; !field->is_for_request && i < n_for_client; i++)
        if (mk_str_eq_nocase(for_client[i], name)) {
            field->name = for_client[i];
            return true;
        }
    return field->is_for_request;
}

struct forward_auth_answer *forward_auth_answer_new(const struct forward_auth_location *place,
                                                    const struct mk_upstream_request *upstream)
{
    unsigned status = status_for_client(upstream);
    struct forward_auth_field field;
    mk_str name, value;
    size_t n = 0, text = 0;
    for (size_t i = 0; mk_upstream_request_header_at(upstream, i, &name, &value); i++)
        if (select_field(place, status, name, &field)) {
            n++;
            text += value.len;
        }
    struct forward_auth_answer *a = new_answer(status, n, text);
    char *to = a ? (char *)(a->fields + n) : NULL;
    for (size_t i = 0; a && mk_upstream_request_header_at(upstream, i, &name, &value); i++) {
        if (!select_field(place, status, name, &field))
            continue;
        if (value.len)
            memcpy(to, value.p, value.len);
        field.value = mk_str_of(to, value.len);
        a->fields[a->n++] = field;
        a->sets_cookies |= mk_str_eq(field.name, MK_STR("Set-Cookie"));
        to += value.len;
    }
    return a;
}
