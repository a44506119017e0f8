/* SPDX-License-Identifier: Apache-2.0 */
#include "http/field_role.h"

static const uint8_t by_id[256] = {
    [MK_FIELD_CONNECTION] = MK_ROLE_CONNECTION,
    [MK_FIELD_CONTENT_LENGTH] = MK_ROLE_FRAMING,
    [MK_FIELD_DESTINATION] = MK_ROLE_DESTINATION,
    [MK_FIELD_EXPECT] = MK_ROLE_HOP,
    [MK_FIELD_FORWARDED] = MK_ROLE_FORWARDED,
    [MK_FIELD_HOST] = MK_ROLE_HOST,
    [MK_FIELD_HTTP2_SETTINGS] = MK_ROLE_HOP,
    [MK_FIELD_KEEP_ALIVE] = MK_ROLE_HOP,
    [MK_FIELD_MAX_FORWARDS] = MK_ROLE_MAX_FORWARDS,
    [MK_FIELD_PROXY_AUTHORIZATION] = MK_ROLE_NONE,
    [MK_FIELD_PROXY_CONNECTION] = MK_ROLE_HOP,
    [MK_FIELD_TE] = MK_ROLE_HOP,
    [MK_FIELD_TRAILER] = MK_ROLE_HOP,
    [MK_FIELD_TRANSFER_ENCODING] = MK_ROLE_FRAMING,
    [MK_FIELD_UPGRADE] = MK_ROLE_HOP,
    [MK_FIELD_VIA] = MK_ROLE_VIA,
    [MK_FIELD_X_FORWARDED_FOR] = MK_ROLE_FORWARDED,
    [MK_FIELD_X_FORWARDED_HOST] = MK_ROLE_FORWARDED,
    [MK_FIELD_X_FORWARDED_PROTO] = MK_ROLE_FORWARDED,
};

/* Those without an id, in lower case. */
static const struct {
    mk_str name;
    enum mk_field_role role;
} others[] = {
    {MK_STR_INIT("client-cert"), MK_ROLE_CERTIFICATE},
    {MK_STR_INIT("client-cert-chain"), MK_ROLE_CERTIFICATE},
    {MK_STR_INIT("proxy"), MK_ROLE_NONE}, /* HTTP_PROXY, which programs obey */
    {MK_STR_INIT("x-real-ip"), MK_ROLE_FORWARDED},
    {MK_STR_INIT("x-original-url"), MK_ROLE_FORWARDED},
    {MK_STR_INIT("x-original-uri"), MK_ROLE_FORWARDED},
    {MK_STR_INIT("x-rewrite-url"), MK_ROLE_FORWARDED},
    {MK_STR_INIT("x-original-host"), MK_ROLE_FORWARDED},
    {MK_STR_INIT("x-host"), MK_ROLE_FORWARDED},
    {MK_STR_INIT("x-scheme"), MK_ROLE_FORWARDED},
    {MK_STR_INIT("x-url-scheme"), MK_ROLE_FORWARDED},
    {MK_STR_INIT("x-forwarded"), MK_ROLE_FORWARDED},
    {MK_STR_INIT("forwarded-for"), MK_ROLE_FORWARDED},
    {MK_STR_INIT("client-ip"), MK_ROLE_FORWARDED}, /* Rails and many PHP programs believe it */
    {MK_STR_INIT("x-client-ip"), MK_ROLE_FORWARDED},
    {MK_STR_INIT("x-cluster-client-ip"), MK_ROLE_FORWARDED},
    {MK_STR_INIT("front-end-https"), MK_ROLE_FORWARDED},
    {MK_STR_INIT("x-sendfile-type"), MK_ROLE_FORWARDED}, /* Rack answers with the path of a file */
    {MK_STR_INIT("x-accel-mapping"), MK_ROLE_FORWARDED},
};

enum { NAME_MAX_LEN = 24 }; /* of those that are looked for in full */

static bool is_odd(char c)
{
    return !mk_char_is_alpha(c) && !mk_char_is_digit(c) && c != '-';
}

static bool has_odd(mk_str name)
{
    for (size_t i = 0; i < name.len; i++)
        if (is_odd(name.p[i]))
            return true;
    return false;
}

/* A name in lower case, in which every odd character is a dash: how programs that turn names into variables
 * confuse them. Longer ones are cut. */
static mk_str simplify(mk_str name, char room[NAME_MAX_LEN])
{
    name = mk_str_first(name, NAME_MAX_LEN);
    for (size_t i = 0; i < name.len; i++)
        room[i] = is_odd(name.p[i]) ? '-' : mk_char_lower(name.p[i]);
    return mk_str_of(room, name.len);
}

static enum mk_field_role find_other(mk_str name)
{
    char room[NAME_MAX_LEN];
    mk_str simple = simplify(name, room);
    if (mk_str_starts(simple, MK_STR("x-forwarded-")))
        return MK_ROLE_FORWARDED;
    for (size_t i = 0; i < MK_LEN(others); i++)
        if (name.len == simple.len && mk_str_eq(simple, others[i].name))
            return others[i].role;
    return MK_ROLE_CLIENT;
}

static bool may_be_other(mk_str name)
{
    char first = name.len ? mk_char_lower(name.p[0]) : '\0';
    return first == 'x' || first == 'c' || first == 'p' || first == 'f';
}

/* A name that only looks like another one never passes. */
static enum mk_field_role find_odd(mk_str name)
{
    char room[NAME_MAX_LEN];
    bool is_whole = name.len <= NAME_MAX_LEN;
    bool is_known = is_whole && by_id[mk_field_find_id(simplify(name, room))] != MK_ROLE_CLIENT;
    if (is_known || find_other(name) != MK_ROLE_CLIENT)
        return MK_ROLE_NONE;
    return mk_str_find(name, '_') != MK_STR_NONE ? MK_ROLE_UNDERSCORE : MK_ROLE_CLIENT;
}

enum mk_field_role mk_field_role_of(enum mk_field_id id, mk_str name)
{
    if (id != MK_FIELD_OTHER)
        return (enum mk_field_role)by_id[id];
    if (has_odd(name))
        return find_odd(name);
    return may_be_other(name) ? find_other(name) : MK_ROLE_CLIENT;
}

enum mk_field_role mk_field_role(mk_str name)
{
    return mk_field_role_of(mk_field_find_id(name), name);
}
