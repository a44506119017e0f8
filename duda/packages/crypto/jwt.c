/* SPDX-License-Identifier: Apache-2.0 */
/* Signed data in JWS compact form (RFC 7515), and JWTs (RFC 7519). This code trusts no part of a token before
 * it has verified the signature. */
#include <duda/crypto.h>
#include <errno.h>
#include <monkey/json.h>
#include <monkey/sized.h>
#include <stdlib.h>

#include "json.h"
#include "jwt_key.h"

enum { CLAIMS_MAX = 16 * 1024, TOKEN_MAX = 32 * 1024 };

/* `type` may be NULL. */
static int sign_compact_jws(struct mk_buf *out, const struct duda_jwt_key *key, mk_str payload,
                            const char *type)
{
    uint8_t signature[DUDA_JWT_SIGNATURE_MAX];
    struct mk_buf head = mk_buf_growing(DUDA_JWT_KEY_ID_MAX * 6 + 64);
    struct mk_json_writer w = mk_json_writer_to(&head);
    size_t len = 0, begin = out->len;
    if (payload.len > CLAIMS_MAX)
        return -EMSGSIZE;
    mk_json_begin_object(&w);
    mk_json_string(mk_json_key(&w, "alg"), duda_jwt_key_algorithm(key));
    if (type)
        mk_json_cstr(mk_json_key(&w, "typ"), type);
    if (duda_jwt_key_id(key).p)
        mk_json_string(mk_json_key(&w, "kid"), duda_jwt_key_id(key));
    mk_json_end_object(&w);
    duda_base64url_encode(out, mk_buf_str(&head));
    mk_buf_add_char(out, '.');
    duda_base64url_encode(out, payload);
    bool failed = head.failed || out->failed;
    mk_buf_free(&head);
    if (failed)
        return -ENOMEM;
    int e = duda_jwt_key_sign(key, mk_str_skip(mk_buf_str(out), begin), signature, &len);
    if (e)
        return e;
    mk_buf_add_char(out, '.');
    duda_base64url_encode(out, mk_str_of((const char *)signature, len));
    return out->failed ? -ENOMEM : 0;
}

int duda_jws_sign(struct mk_buf *out, const struct duda_jwt_key *key, mk_str payload)
{
    return sign_compact_jws(out, key, payload, NULL);
}

int duda_jwt_sign(struct mk_buf *out, const struct duda_jwt_key *key, mk_str claims)
{
    if (claims.len > CLAIMS_MAX)
        return -EMSGSIZE;
    json_t *json = duda_json_parse_object(claims);
    if (!json)
        return -EINVAL;
    json_decref(json);
    return sign_compact_jws(out, key, claims, "JWT");
}

/* ---- Reasons ---- */

enum { SHOWN_MAX = 100 };

static int reject(const struct duda_jwt_rules *rules, int error, const char *fmt, ...) MK_API_PRINTF(3, 4);

static int reject(const struct duda_jwt_rules *rules, int error, const char *fmt, ...)
{
    if (rules && rules->reason) {
        va_list args;
        va_start(args, fmt);
        mk_buf_addv(rules->reason, fmt, args);
        va_end(args);
    }
    return error;
}

/* Rejects a member of the header or of the claims that differs from the expected text. */
static int reject_member(const struct duda_jwt_rules *rules, const json_t *json, const char *name,
                         mk_str expected)
{
    const json_t *member = json_object_get(json, name);
    char text[SHOWN_MAX];
    size_t len = member ? json_dumpb(member, text, sizeof text, JSON_ENCODE_ANY | JSON_COMPACT) : 0;
    mk_str shown = !member             ? MK_STR("missing")
                   : len > sizeof text ? MK_STR("too long")
                                       : mk_str_of(text, len);
    (void)reject(rules, 0, "`%s` is %.*s, expected \"%.*s\"", name, MK_STR_ARG(shown),
                 MK_STR_ARG(mk_str_first(expected, SHOWN_MAX)));
    return -EKEYREJECTED;
}

/* Checks the header of a token. The key determines the algorithm: a header that names another one is
 * rejected. */
static int check_token_header(mk_str text, const struct duda_jwt_key *key, const struct duda_jwt_rules *rules)
{
    json_t *json = duda_json_parse_object(text);
    int e = 0;
    if (!json)
        e = reject(rules, -EBADMSG, "the header is not a JSON object");
    else if (json_object_get(json, "crit"))
        e = reject(rules, -EBADMSG, "the header has a critical extension (`crit`)");
    else if (!mk_str_eq(duda_json_string_value(json_object_get(json, "alg")), duda_jwt_key_algorithm(key)))
        e = reject_member(rules, json, "alg", duda_jwt_key_algorithm(key));
    else if (duda_jwt_key_id(key).p &&
             !mk_str_eq(duda_json_string_value(json_object_get(json, "kid")), duda_jwt_key_id(key)))
        e = reject_member(rules, json, "kid", duda_jwt_key_id(key));
    json_decref(json);
    return e;
}

/* NumericDate (RFC 7519, section 2): seconds, possibly with a fraction. */
static bool parse_numeric_date(const json_t *json, double *out)
{
    *out = json_number_value(json);
    return json_is_number(json);
}

static bool audience_contains(const json_t *audience, mk_str us)
{
    if (json_is_array(audience))
        return duda_json_array_contains(audience, us);
    return audience && mk_str_eq(duda_json_string_value(audience), us);
}

static int check_claims(const json_t *json, const struct duda_jwt_rules *rules)
{
    const json_t *expires = json_object_get(json, "exp"), *begins = json_object_get(json, "nbf");
    double at = 0;
    if (expires ? !parse_numeric_date(expires, &at) : !rules->allow_no_expiry)
        return reject(rules, -EKEYEXPIRED, "`exp` is %s", expires ? "not a number" : "missing");
    if (expires && at + rules->leeway_s <= (double)rules->now)
        return reject(rules, -EKEYEXPIRED, "the token expired %.0f s ago (`exp`)", (double)rules->now - at);
    if (begins && !parse_numeric_date(begins, &at))
        return reject(rules, -EKEYEXPIRED, "`nbf` is not a number");
    if (begins && at - rules->leeway_s > (double)rules->now)
        return reject(rules, -EKEYEXPIRED, "the token becomes valid in %.0f s (`nbf`)",
                      at - (double)rules->now);
    if (rules->issuer.p && !mk_str_eq(duda_json_string_value(json_object_get(json, "iss")), rules->issuer))
        return reject_member(rules, json, "iss", rules->issuer);
    if (rules->audience.p && !audience_contains(json_object_get(json, "aud"), rules->audience))
        return reject_member(rules, json, "aud", rules->audience);
    return 0;
}

/* Returns 0 and stores the payload in the buffer if the signature is valid. */
static int verify_token_signature(struct mk_buf *buf, const struct duda_jwt_key *key, mk_str token,
                                  const struct duda_jwt_rules *rules)
{
    static const char form[] = "not three parts of base64url text";
    mk_str rest = token, head = mk_str_cut(&rest, '.'), body = mk_str_cut(&rest, '.');
    mk_str data = mk_str_first(token, head.len + 1 + body.len);
    if (!rest.p || !duda_base64url_decode(buf, head))
        return reject(rules, -EBADMSG, "%s", form);
    int e = check_token_header(mk_buf_str(buf), key, rules);
    if (e)
        return e;
    mk_buf_clear(buf);
    if (!duda_base64url_decode(buf, rest))
        return reject(rules, -EBADMSG, "%s", form);
    e = duda_jwt_key_verify(key, data, mk_buf_str(buf));
    if (e)
        return e == -EKEYREJECTED ? reject(rules, e, "the signature does not match the key") : e;
    mk_buf_clear(buf);
    return duda_base64url_decode(buf, body) ? 0 : reject(rules, -EBADMSG, "%s", form);
}

/* Accepts any payload if `rules` is NULL. */
static int verify_token(struct mk_buf *out, const struct duda_jwt_key *key, mk_str token,
                        const struct duda_jwt_rules *rules)
{
    struct mk_buf buf = mk_buf_growing(TOKEN_MAX);
    int e = token.len > TOKEN_MAX ? reject(rules, -EBADMSG, "longer than %d bytes", TOKEN_MAX)
                                  : verify_token_signature(&buf, key, token, rules);
    if (!e && rules) {
        json_t *json = duda_json_parse_object(mk_buf_str(&buf));
        e = json ? check_claims(json, rules) : reject(rules, -EBADMSG, "the claims are not a JSON object");
        json_decref(json);
    }
    if (!e)
        mk_buf_add(out, mk_buf_str(&buf));
    mk_buf_free(&buf);
    return !e && out->failed ? -ENOMEM : e;
}

int duda_jws_verify(struct mk_buf *payload, const struct duda_jwt_key *key, mk_str text)
{
    return verify_token(payload, key, text, NULL);
}

int duda_jwt_verify_sized(struct mk_buf *claims, const struct duda_jwt_key *key, mk_str token,
                          const struct duda_jwt_rules *rules, size_t rules_size)
{
    struct duda_jwt_rules full;
    rules = mk_sized_in(&full, sizeof full, rules, rules_size);
    return verify_token(claims, key, token, rules);
}
