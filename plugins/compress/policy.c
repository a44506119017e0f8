/* SPDX-License-Identifier: Apache-2.0 */
#include "policy.h"

/* ---- The response ---- */

static bool equals_nocase(mk_str name, const char *other)
{
    return mk_str_eq_nocase(name, mk_str_from_c(other));
}

static bool list_has_element(mk_str list, const char *name)
{
    mk_str element;
    while (mk_header_list_next(&list, &element))
        if (equals_nocase(mk_str_trim(mk_str_cut(&element, '=')), name))
            return true;
    return false;
}

static void record_header(struct response_info *f, mk_str name, mk_str value)
{
    if (equals_nocase(name, "Content-Type"))
        f->type = value;
    else if (equals_nocase(name, "ETag"))
        f->etag = value;
    else if (equals_nocase(name, "Content-Encoding"))
        f->is_coded = true;
    else if (equals_nocase(name, "Content-Range"))
        f->is_part = f->status == 206;
    else if (equals_nocase(name, "Content-MD5") || equals_nocase(name, "Digest") ||
             equals_nocase(name, "Content-Digest") || equals_nocase(name, "Repr-Digest"))
        f->is_part = true;
    else if (equals_nocase(name, "Set-Cookie"))
        f->is_own = true;
    else if (equals_nocase(name, "Vary"))
        f->varies |= list_has_element(value, "Accept-Encoding") || list_has_element(value, "*");
    else if (equals_nocase(name, "Cache-Control")) {
        f->no_transform |= list_has_element(value, "no-transform");
        f->is_own |= list_has_element(value, "private") || list_has_element(value, "no-store");
    }
}

void compress_policy_read_response(struct response_info *f, const struct mk_response *response)
{
    mk_str name, value;
    *f = (struct response_info){.status = mk_response_status(response)};
    for (size_t i = 0; mk_response_header_at(response, i, &name, &value); i++)
        record_header(f, name, value);
    f->is_part |= f->status == 206;
}

static bool is_path_skipped(const struct settings *s, mk_str path)
{
    for (size_t i = 0; i < s->skip.n; i++)
        if (mk_pattern_matches(&s->skip.v[i], path))
            return true;
    return false;
}

/* Returns whether the media type is listed. A 304 has no Content-Type, so the type of the file counts, or
 * text/html for a folder. */
static bool is_type_compressible(const struct settings *s, const struct mk_request *request,
                                 const struct response_info *f)
{
    mk_str path = mk_request_path(request), type = f->type;
    if (!type.p && f->status == 304)
        type = mk_str_ends(path, MK_STR("/")) ? MK_STR("text/html") : mk_request_media_type(request, path);
    return type.p && compress_media_types_contain(&s->types, type);
}

/* Ignores the length of a 206 or 304, which is not that of the whole body. */
static bool is_long_enough(const struct settings *s, const struct mk_response *response,
                           const struct response_info *f)
{
    int64_t length = mk_response_length(response);
    return f->status == 304 || f->status == 206 || length < 0 ||
           (length > 0 && (uint64_t)length >= s->min_length);
}

bool compress_policy_is_worthwhile(const struct settings *s, const struct mk_request *request,
                                   const struct mk_response *response, const struct response_info *f)
{
    return f->status != 204 && !f->is_coded && !f->no_transform && is_long_enough(s, response, f) &&
           is_type_compressible(s, request, f) && !is_path_skipped(s, mk_request_path(request));
}

/* ---- The client ---- */

/* BREACH: an attacker makes a browser send requests with chosen text, and sees the length of the responses.
 * If a response contains both this text and a secret, its compressed length reveals the secret. Only modern
 * browsers send the headers that identify such requests; user clicks are too rare for the attack. */
bool compress_policy_is_breach_safe(const struct settings *s, const struct mk_request *request,
                                    const struct mk_response *response)
{
    if (s->cross_site || mk_response_is_file(response) ||
        !mk_str_eq(mk_request_received_header(request, MK_STR("Sec-Fetch-Site")), MK_STR("cross-site")))
        return true;
    bool is_known = mk_request_received_header(request, MK_STR("Cookie")).p ||
                    mk_request_received_header(request, MK_STR("Authorization")).p;
    return !is_known ||
           mk_str_eq(mk_request_received_header(request, MK_STR("Sec-Fetch-User")), MK_STR("?1"));
}

enum coding compress_policy_choose_coding(const struct settings *s, const struct mk_request *request)
{
    enum coding best = CODINGS;
    if (!mk_request_received_header(request, MK_STR("Accept-Encoding")).p)
        return best;
    unsigned best_q = mk_request_accepts_coding(request, MK_STR("identity"));
    for (size_t i = 0; i < s->codings.n; i++) {
        unsigned q =
            mk_request_accepts_coding(request, mk_str_from_c(compress_coders[s->codings.v[i]]->name));
        if (q && (q > best_q || (q == best_q && best == CODINGS))) {
            best = s->codings.v[i];
            best_q = q;
        }
    }
    return best;
}
