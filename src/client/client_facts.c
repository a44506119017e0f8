/* SPDX-License-Identifier: Apache-2.0 */
/* What callers of the client ask of an exchange: its response, its server, what went wrong. */
#include "client/client_type.h"
#include "http/trailer.h"

unsigned mk_client_status_of(int error)
{
    switch (error) {
    case -EHOSTUNREACH:
    case -EBUSY:
    case -EMFILE:
    case -ENFILE:
    case -ENOBUFS:
    case -ENOMEM:
        return 503;
    case -ETIMEDOUT:
        return 504;
    case -EBADMSG:
        return 400;
    case -EMSGSIZE:
    case -EFBIG:
        return 413;
    case -E2BIG:
        return 431;
    case -EINVAL:
    case -EIO:
    case -ENOSPC:
    case -EDQUOT:
        return 500;
    default:
        return 502;
    }
}

const char *mk_client_problem(const struct mk_client *c)
{
    return c->state == MK_CLIENT_FAILED && c->problem ? c->problem : "";
}

bool mk_client_takes(const struct mk_client *c)
{
    return c->state == MK_CLIENT_WAITING || c->output == MK_CLIENT_OUTPUT_HELD ||
           c->output == MK_CLIENT_OUTPUT_SENDING || c->output == MK_CLIENT_OUTPUT_ENDING;
}

unsigned mk_client_status(const struct mk_client *c)
{
    return c->input.reply.head.status;
}

bool mk_client_field_at(const struct mk_client *c, size_t i, mk_str *name, mk_str *value)
{
    if (i >= c->n_fields)
        return false;
    *name = c->fields[i].name;
    *value = c->fields[i].value;
    return true;
}

const struct mk_field_line *mk_client_lines(const struct mk_client *c, mk_str *text, size_t *n)
{
    *text = c->text;
    *n = c->n_fields;
    return c->fields;
}

mk_str mk_client_field(const struct mk_client *c, mk_str name)
{
    for (unsigned i = 0; i < c->n_fields; i++)
        if (mk_str_eq_nocase(c->fields[i].name, name))
            return c->fields[i].value;
    return MK_ABSENT;
}

int64_t mk_client_length(const struct mk_client *c)
{
    return c->length;
}

bool mk_client_is_upgraded(const struct mk_client *c)
{
    return c->state == MK_CLIENT_UPGRADED;
}

bool mk_client_is_local_redirect(const struct mk_client *c)
{
    return c->is_local_redirect;
}

static bool is_named(const struct mk_client *c, mk_str name)
{
    mk_str rest = mk_buf_str(&c->named), option;
    while (mk_element_next(&rest, &option))
        if (mk_str_eq_nocase(option, name))
            return true;
    return false;
}

bool mk_client_trailer_at(const struct mk_client *c, size_t i, mk_str *name, mk_str *value)
{
    mk_str rest = mk_buf_str(&c->trailers);
    if (c->state != MK_CLIENT_DONE)
        return false;
    while (mk_trailer_next(&rest, name, value))
        if (mk_trailer_is_allowed(*name) && !is_named(c, *name) && i-- == 0)
            return true;
    return false;
}

/* ---- The server ---- */

mk_str mk_client_server_name(const struct mk_client *c)
{
    return c->link ? mk_link_server_name(c->link) : c->server_name;
}

int mk_client_server(const struct mk_client *c)
{
    return c->link ? mk_link_server(c->link) : c->server;
}
