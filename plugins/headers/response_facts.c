/* SPDX-License-Identifier: Apache-2.0 */
#include "response_facts.h"

void headers_response_facts_init(struct response_facts *f, struct mk_request *request,
                                 struct mk_response *response)
{
    f->request = request;
    f->response = response;
    f->path = mk_request_path(request);
    f->type = MK_STR_NULL;
    f->knows_names = false;
    f->status = mk_response_status(response);
}

/* A 304 has no Content-Type, so the type of the file counts, or text/html for a folder. */
static mk_str determine_media_type(const struct response_facts *f)
{
    mk_str type = mk_response_header(f->response, MK_STR("Content-Type"));
    if (type.p)
        return mk_str_trim(mk_str_cut(&type, ';'));
    if (f->status != 304)
        return MK_STR("");
    return mk_str_ends(f->path, MK_STR("/")) ? MK_STR("text/html")
                                             : mk_request_media_type(f->request, f->path);
}

mk_str headers_response_facts_media_type(struct response_facts *f)
{
    if (!f->type.p) {
        mk_str type = mk_str_first(determine_media_type(f), TYPE_MAX);
        memcpy(f->type_buf, type.p, type.len); /* copied, because a rule may remove the header */
        f->type = mk_str_of(f->type_buf, type.len);
    }
    return f->type;
}

/* Returns the name's bit in the bitmap. Ignores case. */
static uint64_t header_name_bit(mk_str name)
{
    if (name.len == 0)
        return 1;
    size_t first = (unsigned char)name.p[0] | 0x20u, last = (unsigned char)name.p[name.len - 1] | 0x20u;
    return (uint64_t)1 << ((first * 5 + last * 3 + name.len) & 63);
}

static void collect_header_name_bits(struct response_facts *f)
{
    mk_str name, value;
    f->names = 0;
    f->knows_names = true;
    for (size_t i = 0; mk_response_header_at(f->response, i, &name, &value); i++)
        f->names |= header_name_bit(name);
}

bool headers_response_has(struct response_facts *f, mk_str name)
{
    if (!f->knows_names)
        collect_header_name_bits(f);
    return (f->names & header_name_bit(name)) && mk_response_header(f->response, name).p;
}

void headers_response_add(struct response_facts *f, mk_str name, mk_str value)
{
    mk_response_add_header_nocopy(f->response, name, value);
    f->names |= header_name_bit(name);
}

void headers_response_remove(struct response_facts *f, mk_str name)
{
    if (headers_response_has(f, name))
        mk_response_remove_header(f->response, name);
}
