/* SPDX-License-Identifier: Apache-2.0 */
#include "http/header_role.h"

const uint8_t mk_header_roles_by_id[256] = {
    [MK_HEADER_CONNECTION] = MK_ROLE_CONNECTION,
    [MK_HEADER_CONTENT_LENGTH] = MK_ROLE_FRAMING,
    [MK_HEADER_DESTINATION] = MK_ROLE_DESTINATION,
    [MK_HEADER_EXPECT] = MK_ROLE_HOP,
    [MK_HEADER_FORWARDED] = MK_ROLE_FORWARDED,
    [MK_HEADER_HOST] = MK_ROLE_HOST,
    [MK_HEADER_HTTP2_SETTINGS] = MK_ROLE_HOP,
    [MK_HEADER_KEEP_ALIVE] = MK_ROLE_HOP,
    [MK_HEADER_MAX_FORWARDS] = MK_ROLE_MAX_FORWARDS,
    [MK_HEADER_PROXY_AUTHORIZATION] = MK_ROLE_NONE,
    [MK_HEADER_PROXY_CONNECTION] = MK_ROLE_HOP,
    [MK_HEADER_TE] = MK_ROLE_HOP,
    [MK_HEADER_TRAILER] = MK_ROLE_HOP,
    [MK_HEADER_TRANSFER_ENCODING] = MK_ROLE_FRAMING,
    [MK_HEADER_UPGRADE] = MK_ROLE_HOP,
    [MK_HEADER_VIA] = MK_ROLE_VIA,
    [MK_HEADER_X_FORWARDED_FOR] = MK_ROLE_FORWARDED,
    [MK_HEADER_X_FORWARDED_HOST] = MK_ROLE_FORWARDED,
    [MK_HEADER_X_FORWARDED_PROTO] = MK_ROLE_FORWARDED,
};

/* Names without an id, in lower case. */
static const struct {
    mk_str name;
    enum mk_header_role role;
} others[] = {
    {MK_STR_INIT("client-cert"), MK_ROLE_CERTIFICATE},
    {MK_STR_INIT("client-cert-chain"), MK_ROLE_CERTIFICATE},
    {MK_STR_INIT("proxy"), MK_ROLE_NONE}, /* would become the variable HTTP_PROXY, which programs obey */
    {MK_STR_INIT("x-real-ip"), MK_ROLE_FORWARDED},
    {MK_STR_INIT("x-original-url"), MK_ROLE_FORWARDED},
    {MK_STR_INIT("x-original-uri"), MK_ROLE_FORWARDED},
    {MK_STR_INIT("x-original-method"), MK_ROLE_FORWARDED},
    {MK_STR_INIT("x-rewrite-url"), MK_ROLE_FORWARDED},
    {MK_STR_INIT("x-original-host"), MK_ROLE_FORWARDED},
    {MK_STR_INIT("x-host"), MK_ROLE_FORWARDED},
    {MK_STR_INIT("x-scheme"), MK_ROLE_FORWARDED},
    {MK_STR_INIT("x-url-scheme"), MK_ROLE_FORWARDED},
    {MK_STR_INIT("x-forwarded"), MK_ROLE_FORWARDED},
    {MK_STR_INIT("forwarded-for"), MK_ROLE_FORWARDED},
    {MK_STR_INIT("client-ip"), MK_ROLE_FORWARDED}, /* trusted by Rails and many PHP programs */
    {MK_STR_INIT("x-client-ip"), MK_ROLE_FORWARDED},
    {MK_STR_INIT("x-cluster-client-ip"), MK_ROLE_FORWARDED},
    {MK_STR_INIT("front-end-https"), MK_ROLE_FORWARDED},
    {MK_STR_INIT("x-sendfile-type"), MK_ROLE_FORWARDED}, /* makes Rack respond with a file path */
    {MK_STR_INIT("x-accel-mapping"), MK_ROLE_FORWARDED},
};

enum { NAME_MAX_LEN = 24 }; /* maximum name length for exact lookup */

static bool is_unusual_char(char c)
{
    return !mk_char_is_alpha(c) && !mk_char_is_digit(c) && c != '-';
}

static bool has_unusual_char(mk_str name)
{
    for (size_t i = 0; i < name.len; i++)
        if (is_unusual_char(name.p[i]))
            return true;
    return false;
}

/* Converts the name to lower case, and replaces every unusual character with a dash, because programs that
 * turn header names into variables do not distinguish these characters. Truncates names longer than
 * NAME_MAX_LEN. */
static mk_str normalize_name(mk_str name, char buf[NAME_MAX_LEN])
{
    name = mk_str_first(name, NAME_MAX_LEN);
    for (size_t i = 0; i < name.len; i++)
        buf[i] = is_unusual_char(name.p[i]) ? '-' : mk_char_lower(name.p[i]);
    return mk_str_of(buf, name.len);
}

static enum mk_header_role role_by_name(mk_str name)
{
    char buf[NAME_MAX_LEN];
    mk_str simple = normalize_name(name, buf);
    if (mk_str_starts(simple, MK_STR("x-forwarded-")))
        return MK_ROLE_FORWARDED;
    for (size_t i = 0; i < MK_LEN(others); i++)
        if (name.len == simple.len && mk_str_eq(simple, others[i].name))
            return others[i].role;
    return MK_ROLE_CLIENT;
}

static bool may_have_role(mk_str name)
{
    char first = name.len ? mk_char_lower(name.p[0]) : '\0';
    return first == 'x' || first == 'c' || first == 'p' || first == 'f';
}

/* A name that programs may mistake for a reserved name must not be passed to them (MK_ROLE_NONE). */
static enum mk_header_role role_of_unusual_name(mk_str name)
{
    char buf[NAME_MAX_LEN];
    bool is_whole = name.len <= NAME_MAX_LEN;
    bool is_known =
        is_whole && mk_header_roles_by_id[mk_header_find_id(normalize_name(name, buf))] != MK_ROLE_CLIENT;
    if (is_known || role_by_name(name) != MK_ROLE_CLIENT)
        return MK_ROLE_NONE;
    return mk_str_find(name, '_') != MK_STR_NONE ? MK_ROLE_UNDERSCORE : MK_ROLE_CLIENT;
}

enum mk_header_role mk_header_role_of_other(mk_str name)
{
    if (has_unusual_char(name))
        return role_of_unusual_name(name);
    return may_have_role(name) ? role_by_name(name) : MK_ROLE_CLIENT;
}

enum mk_header_role mk_header_role(mk_str name)
{
    return mk_header_role_of_id(mk_header_find_id(name), name);
}

static char comparable_char(char c)
{
    return mk_char_is_alpha(c) || mk_char_is_digit(c) ? mk_char_lower(c) : '-';
}

bool mk_header_is_same_variable(mk_str a, mk_str b)
{
    if (a.len != b.len)
        return false;
    for (size_t i = 0; i < a.len; i++)
        if (comparable_char(a.p[i]) != comparable_char(b.p[i]))
            return false;
    return true;
}
