/* SPDX-License-Identifier: Apache-2.0 */
/* Parses a request target with each method: a decoded path can safely be joined to a folder. */
#include <stdlib.h>

#include "base/assert.h"
#include "http/method.h"
#include "http/scan.h"
#include "http/target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_host(mk_str host, uint32_t port)
{
    MK_ASSERT(host.len > 0 && port <= MK_PORT_NONE && host.p[0] != '.');
    if (host.p[0] != '[')
        for (size_t i = 0; i < host.len; i++)
            MK_ASSERT(host.p[i] == '.' || mk_scan_is(host.p[i], MK_SCAN_LABEL));
    mk_str again;
    uint32_t none;
    MK_ASSERT(mk_authority_parse(host, &again, &none) == 0 && mk_str_eq(again, host) && none == MK_PORT_NONE);
}

/* Segments must not be empty or dots. */
static void check_path(mk_str path, mk_str raw)
{
    MK_ASSERT(path.len > 0 && path.len <= raw.len && path.p[0] == '/' && path.p[path.len] == '\0');
    MK_ASSERT(mk_str_find(path, '\0') == MK_STR_NONE);
    mk_str rest = mk_str_skip(path, 1);
    while (rest.p) {
        mk_str segment = mk_str_cut(&rest, '/');
        MK_ASSERT(segment.len > 0 || !rest.p);
        MK_ASSERT(!mk_str_eq(segment, MK_STR(".")) && !mk_str_eq(segment, MK_STR("..")));
    }
}

/* The path must have no segment ".." even if each "%2F" in it is decoded. */
static void check_pieces(mk_str path)
{
    size_t from = 0;
    for (size_t i = 0; i <= path.len; i++) {
        bool escaped = mk_str_starts(mk_str_skip(path, i), MK_STR("%2F"));
        if (i < path.len && path.p[i] != '/' && !escaped)
            continue;
        mk_str piece = mk_str_skip(mk_str_first(path, i), from);
        MK_ASSERT(!mk_str_eq(piece, MK_STR("..")));
        from = escaped ? i + 3 : i + 1;
    }
}

static void decode(mk_str raw)
{
    char *out = malloc(raw.len + 1);
    mk_str path;
    unsigned flags;
    int status = out ? mk_path_decode(raw, out, &path, &flags) : 503;
    if (out && mk_path_is_plain(raw))
        MK_ASSERT(status == 0 && flags == 0 && mk_str_eq(path, raw));
    if (status == 0) {
        check_path(path, raw);
        if (flags & MK_PATH_ENCODED_SLASH)
            check_pieces(path);
    }
    free(out);
}

static void check_target(enum mk_method method, mk_str text)
{
    struct mk_target t;
    if (mk_target_parse(method, text, &t))
        return;
    MK_ASSERT((t.form == MK_TARGET_AUTHORITY) == (method == MK_METHOD_CONNECT));
    MK_ASSERT((t.form == MK_TARGET_AUTHORITY) == (t.path.p == NULL));
    MK_ASSERT((t.host.p != NULL) == (t.form == MK_TARGET_AUTHORITY || t.form == MK_TARGET_ABSOLUTE));
    if (t.host.p)
        check_host(t.host, t.port);
    if (t.form == MK_TARGET_ASTERISK)
        MK_ASSERT(method == MK_METHOD_OPTIONS && mk_str_eq(t.path, MK_STR("*")));
    else if (t.path.p)
        decode(t.path);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    mk_str text = mk_str_of((const char *)data, size), host;
    uint32_t port;
    for (unsigned method = 0; method < MK_METHOD_COUNT; method++)
        check_target((enum mk_method)method, text);
    decode(text);
    if (mk_authority_parse(text, &host, &port) == 0)
        check_host(host, port);
    return 0;
}
