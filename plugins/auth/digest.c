/* SPDX-License-Identifier: Apache-2.0 */
#include "digest.h"

#include "credentials.h"
#include "nonce.h"

#include <errno.h>
#include <monkey/text.h>

enum { NC_LEN = 4, CHALLENGE_MAX = 512 };

/* Returns true if the location offers the algorithm. The default is MD5 (RFC 7616, section 3.3). */
static bool parse_algorithm(const struct auth_location *place, mk_str name, enum auth_hash *kind)
{
    *kind = mk_str_eq_nocase(name, MK_STR("SHA-256")) ? AUTH_SHA256 : AUTH_MD5;
    if (*kind == AUTH_MD5 && name.p && !mk_str_eq_nocase(name, MK_STR("MD5")))
        return false;
    return place->offers[*kind];
}

/* The credentials are valid for one target only (RFC 7616, section 3.4.6). A client that requests an absolute
 * URL, as clients of a proxy do, may send only the URL's path in `uri`. */
static bool uri_matches_request(struct mk_request *request, mk_str uri)
{
    mk_str target = mk_request_target(request);
    if (mk_str_eq(uri, target))
        return true;
    mk_str rest = target;
    mk_str scheme = mk_str_cut(&rest, ':');
    if (scheme.len == 0 || scheme.p[0] == '/' || !mk_str_starts(rest, MK_STR("//")))
        return false;
    rest = mk_str_skip(rest, 2);
    return mk_str_eq(uri, mk_str_skip(rest, mk_str_find(rest, '/')));
}

struct lower_hex {
    char text[2 * AUTH_HASH_MAX];
};

static mk_str format_hex(enum auth_hash kind, const uint8_t *bytes, struct lower_hex *out)
{
    struct mk_buf b = mk_buf_fixed(out->text, sizeof out->text);
    mk_hex_encode(&b, mk_str_of((const char *)bytes, auth_hash_len(kind)));
    return mk_buf_str(&b);
}

/* Computes the response for qop=auth (RFC 7616, section 3.4.1). */
static void compute_response(const struct auth_digest *d, enum auth_hash kind, const uint8_t *ha1,
                             mk_str method, uint8_t out[AUTH_HASH_MAX])
{
    struct lower_hex a1, a2;
    uint8_t ha2[AUTH_HASH_MAX];
    mk_str of_target[] = {method, d->at[AUTH_URI]};
    auth_hash_joined(kind, of_target, 2, ha2);
    mk_str parts[] = {format_hex(kind, ha1, &a1), d->at[AUTH_NONCE], d->at[AUTH_NC],
                      d->at[AUTH_CNONCE],         d->at[AUTH_QOP],   format_hex(kind, ha2, &a2)};
    auth_hash_joined(kind, parts, MK_LEN(parts), out);
    explicit_bzero(&a1, sizeof a1);
}

static bool parse_digest(struct mk_request *request, mk_str text, struct auth_digest *d, uint32_t *count)
{
    uint8_t nc[NC_LEN];
    char *buf = mk_request_alloc(request, text.len + 1);
    struct mk_buf b = mk_buf_fixed(buf, text.len + 1);
    if (!buf || !auth_digest_parse(text, &b, d) || !auth_hex_decode(d->at[AUTH_NC], nc, NC_LEN) ||
        !mk_str_eq(d->at[AUTH_QOP], MK_STR("auth")) || d->at[AUTH_CNONCE].len == 0)
        return false;
    *count = (uint32_t)nc[0] << 24 | (uint32_t)nc[1] << 16 | (uint32_t)nc[2] << 8 | nc[3];
    return true;
}

/* Uses up the count only once for each request, because an internal redirect repeats the check with the same
 * count. */
static bool consume_nonce(struct auth_shared *s, const struct auth_location *place,
                          struct mk_request *request, const struct auth_nonce *nonce, uint32_t count,
                          int64_t now)
{
    static const char used; /* only its address matters */
    if (mk_request_attached(request, &used))
        return true;
    return auth_nonce_consume(s, nonce, count, now, (uint32_t)(place->nonce_ms / 1000)) &&
           mk_request_attach(request, &used, (void *)(uintptr_t)&used, NULL) == 0;
}

enum auth_digest_result auth_digest_check(struct auth_shared *s, const struct auth_location *place,
                                          struct mk_request *request, mk_str text, int64_t now, mk_str *user)
{
    static const struct auth_digest_user decoy;
    struct auth_digest d;
    struct auth_nonce nonce;
    enum auth_hash kind;
    uint8_t given[AUTH_HASH_MAX], due[AUTH_HASH_MAX];
    uint32_t count;
    if (!parse_digest(request, text, &d, &count))
        return AUTH_DIGEST_NOT_OURS;
    if (!uri_matches_request(request, d.at[AUTH_URI]))
        return AUTH_DIGEST_WRONG_URI;
    if (!mk_str_eq(d.at[AUTH_REALM], place->title) || !parse_algorithm(place, d.at[AUTH_ALGORITHM], &kind))
        return AUTH_DIGEST_NOT_OURS;
    size_t len = auth_hash_len(kind);
    if (!auth_hex_decode(d.at[AUTH_RESPONSE], given, len))
        return AUTH_DIGEST_NOT_OURS;
    *user = d.at[AUTH_USERNAME];
    const struct auth_digest_user *known = auth_users_find_digest(place->users, *user, place->title, kind);
    compute_response(&d, kind, known ? known->ha1 : decoy.ha1, mk_request_method_text(request), due);
    bool right = mk_consttime_eq(mk_str_of((const char *)given, len), mk_str_of((const char *)due, len));
    if (!right || !known || mk_str_eq_nocase(d.at[AUTH_USERHASH], MK_STR("true")))
        return AUTH_DIGEST_INVALID;
    bool ours = auth_nonce_parse(s, place->title, d.at[AUTH_NONCE], &nonce);
    return ours && consume_nonce(s, place, request, &nonce, count, now) ? AUTH_DIGEST_VALID
                                                                        : AUTH_DIGEST_STALE;
}

int auth_digest_challenge(const struct auth_shared *s, const struct auth_location *place,
                          struct mk_response *response, int64_t now, bool stale)
{
    /* The order tells clients which algorithm to prefer (RFC 7616, section 3.7). */
    static const struct {
        enum auth_hash kind;
        const char *name;
    } algorithms[] = {{AUTH_SHA256, "SHA-256"}, {AUTH_MD5, "MD5"}};
    for (size_t i = 0; i < MK_LEN(algorithms); i++) {
        char buf[CHALLENGE_MAX], nonce[AUTH_NONCE_LEN];
        struct mk_buf b = mk_buf_fixed(buf, sizeof buf);
        if (!place->offers[algorithms[i].kind])
            continue;
        auth_nonce_generate(s, place->title, now, nonce);
        mk_buf_addf(&b, "Digest realm=\"%.*s\", qop=\"auth\", algorithm=%s, nonce=\"%.*s\", charset=UTF-8%s",
                    MK_STR_ARG(place->title), algorithms[i].name, AUTH_NONCE_LEN, nonce,
                    stale ? ", stale=true" : "");
        if (b.failed || mk_response_add_header(response, MK_STR("WWW-Authenticate"), mk_buf_str(&b)) != 0)
            return -ENOMEM;
    }
    return 0;
}
