/* SPDX-License-Identifier: Apache-2.0 */
#include "http/method.h"

static const mk_str names[MK_METHOD_COUNT] = {
    [MK_METHOD_UNKNOWN] = MK_STR_INIT(""),        [MK_METHOD_GET] = MK_STR_INIT("GET"),
    [MK_METHOD_HEAD] = MK_STR_INIT("HEAD"),       [MK_METHOD_POST] = MK_STR_INIT("POST"),
    [MK_METHOD_PUT] = MK_STR_INIT("PUT"),         [MK_METHOD_DELETE] = MK_STR_INIT("DELETE"),
    [MK_METHOD_CONNECT] = MK_STR_INIT("CONNECT"), [MK_METHOD_OPTIONS] = MK_STR_INIT("OPTIONS"),
    [MK_METHOD_TRACE] = MK_STR_INIT("TRACE"),     [MK_METHOD_PATCH] = MK_STR_INIT("PATCH"),
};

/* At most two methods share a length, so a name is compared at most twice. */
static const uint8_t by_len[8][2] = {
    [3] = {MK_METHOD_GET, MK_METHOD_PUT},         [4] = {MK_METHOD_HEAD, MK_METHOD_POST},
    [5] = {MK_METHOD_PATCH, MK_METHOD_TRACE},     [6] = {MK_METHOD_DELETE},
    [7] = {MK_METHOD_OPTIONS, MK_METHOD_CONNECT},
};

enum mk_method mk_method_find(mk_str name)
{
    if (name.len >= MK_LEN(by_len))
        return MK_METHOD_UNKNOWN;
    for (size_t i = 0; i < MK_LEN(by_len[0]); i++) {
        unsigned method = by_len[name.len][i];
        if (mk_str_eq(name, names[method]))
            return (enum mk_method)method;
    }
    return MK_METHOD_UNKNOWN;
}

mk_str mk_method_name(enum mk_method method)
{
    return (unsigned)method < MK_METHOD_COUNT ? names[method] : names[MK_METHOD_UNKNOWN];
}
