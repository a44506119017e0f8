/* SPDX-License-Identifier: Apache-2.0 */
/* Signed texts in the compact form of JWS (RFC 7515), and tokens in it: JWT (RFC 7519). Nothing of them is
 * believed before their signature is right. */
#include <duda/crypto.h>
#include <errno.h>

#include "json.h"
#include "key.h"

enum { CLAIMS_MAX = 16 * 1024, TOKEN_MAX = 32 * 1024 };

/* `type` is the rest of the header. */
static int sign(struct mk_buf *out, const struct duda_jwt_key *key, mk_str payload, const char *type)
{
    uint8_t signature[DUDA_KEY_SIGNATURE_MAX];
    char room[DUDA_KEY_ID_MAX * 6 + 64];
    struct mk_buf head = mk_buf_fixed(room, sizeof room);
    size_t len = 0, begin = out->len;
    if (payload.len > CLAIMS_MAX)
        return -EMSGSIZE;
    mk_buf_addf(&head, "{\"alg\":\"%.*s\"%s", MK_STR_ARG(duda_key_algorithm(key)), type);
    if (duda_key_id(key).p) {
        mk_buf_add(&head, MK_STR(",\"kid\":"));
        mk_json_string(&head, duda_key_id(key));
    }
    mk_buf_add_char(&head, '}');
    duda_base64url_encode(out, mk_buf_str(&head));
    mk_buf_add_char(out, '.');
    duda_base64url_encode(out, payload);
    if (head.failed || out->failed)
        return -ENOMEM;
    int e = duda_key_sign(key, mk_str_skip(mk_buf_str(out), begin), signature, &len);
    if (e)
        return e;
    mk_buf_add_char(out, '.');
    duda_base64url_encode(out, mk_str_of((const char *)signature, len));
    return out->failed ? -ENOMEM : 0;
}

int duda_jws_sign(struct mk_buf *out, const struct duda_jwt_key *key, mk_str payload)
{
    return sign(out, key, payload, "");
}

int duda_jwt_sign(struct mk_buf *out, const struct duda_jwt_key *key, mk_str claims)
{
    if (claims.len > CLAIMS_MAX)
        return -EMSGSIZE;
    json_t *json = duda_json_object(claims);
    if (!json)
        return -EINVAL;
    json_decref(json);
    return sign(out, key, claims, ",\"typ\":\"JWT\"");
}

/* The key decides: a header that names another algorithm is no reason to use it. */
static int check_head(mk_str text, const struct duda_jwt_key *key)
{
    json_t *json = duda_json_object(text);
    int e = 0;
    if (!json || json_object_get(json, "crit"))
        e = -EBADMSG;
    else if (!mk_str_eq(duda_json_text(json_object_get(json, "alg")), duda_key_algorithm(key)))
        e = -EKEYREJECTED;
    else if (duda_key_id(key).p && !mk_str_eq(duda_json_text(json_object_get(json, "kid")), duda_key_id(key)))
        e = -EKEYREJECTED;
    json_decref(json);
    return e;
}

/* NumericDate (RFC 7519, section 2): seconds, maybe with a part of one. */
static bool time_of(const json_t *json, double *out)
{
    *out = json_number_value(json);
    return json_is_number(json);
}

static bool is_for(const json_t *audience, mk_str us)
{
    if (json_is_array(audience))
        return duda_json_has(audience, us);
    return audience && mk_str_eq(duda_json_text(audience), us);
}

static int check_claims(const json_t *json, const struct duda_jwt_rules *rules)
{
    const json_t *expires = json_object_get(json, "exp"), *begins = json_object_get(json, "nbf");
    double at = 0;
    if (expires ? !time_of(expires, &at) : !rules->eternal)
        return -EKEYEXPIRED;
    if (expires && at + rules->leeway <= (double)rules->now)
        return -EKEYEXPIRED;
    if (begins && (!time_of(begins, &at) || at - rules->leeway > (double)rules->now))
        return -EKEYEXPIRED;
    if (rules->issuer.p && !mk_str_eq(duda_json_text(json_object_get(json, "iss")), rules->issuer))
        return -EKEYREJECTED;
    if (rules->audience.p && !is_for(json_object_get(json, "aud"), rules->audience))
        return -EKEYREJECTED;
    return 0;
}

/* 0: the room has the payload. */
static int open_token(struct mk_buf *room, const struct duda_jwt_key *key, mk_str token)
{
    mk_str rest = token, head = mk_str_cut(&rest, '.'), body = mk_str_cut(&rest, '.');
    mk_str data = mk_str_first(token, head.len + 1 + body.len);
    if (!rest.p || !duda_base64url_decode(room, head))
        return -EBADMSG;
    int e = check_head(mk_buf_str(room), key);
    if (e)
        return e;
    mk_buf_clear(room);
    if (!duda_base64url_decode(room, rest))
        return -EBADMSG;
    e = duda_key_verify(key, data, mk_buf_str(room));
    if (e)
        return e;
    mk_buf_clear(room);
    return duda_base64url_decode(room, body) ? 0 : -EBADMSG;
}

/* `rules` is NULL: any payload will do. */
static int check(struct mk_buf *out, const struct duda_jwt_key *key, mk_str token,
                 const struct duda_jwt_rules *rules)
{
    struct mk_buf room = mk_buf_growing(TOKEN_MAX);
    int e = token.len > TOKEN_MAX ? -EBADMSG : open_token(&room, key, token);
    if (!e && rules) {
        json_t *json = duda_json_object(mk_buf_str(&room));
        e = json ? check_claims(json, rules) : -EBADMSG;
        json_decref(json);
    }
    if (!e)
        mk_buf_add(out, mk_buf_str(&room));
    mk_buf_free(&room);
    return !e && out->failed ? -ENOMEM : e;
}

int duda_jws_check(struct mk_buf *payload, const struct duda_jwt_key *key, mk_str text)
{
    return check(payload, key, text, NULL);
}

int duda_jwt_check(struct mk_buf *claims, const struct duda_jwt_key *key, mk_str token,
                   const struct duda_jwt_rules *rules)
{
    return check(claims, key, token, rules);
}
