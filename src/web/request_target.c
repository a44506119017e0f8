/* SPDX-License-Identifier: Apache-2.0 */
#include "web/request_target.h"

#include "base/err.h"
#include "web/exchange.h"
#include "web/vhost.h"

/* The copy is NUL-terminated, like a decoded path: plugins and services pass it to libc functions. */
static int copy_plain_path(struct mk_arena *arena, struct mk_request_target *a)
{
    a->path = mk_arena_copy(arena, a->target.path);
    a->path_flags = 0;
    a->is_plain = true;
    return a->path.p ? 0 : 503;
}

/* Extracts and decodes the path of the target. */
static int decode_target_path(struct mk_arena *arena, struct mk_request_target *a)
{
    if (MK_LIKELY(mk_path_is_plain(a->target.path)))
        return copy_plain_path(arena, a);
    a->is_plain = false;
    char *buf = mk_arena_alloc(arena, a->target.path.len + 1);
    return buf ? mk_path_decode(a->target.path, buf, &a->path, &a->path_flags) : 503;
}

int mk_request_target_init(struct mk_request *r, mk_str target_text, mk_str host)
{
    if (mk_target_is_visible(target_text))
        return mk_request_target_init_checked(r, target_text, host);
    r->target_text = target_text;
    return 400;
}

int mk_request_target_init_plain(struct mk_request *r, mk_str target_text, size_t path_len)
{
    struct mk_request_target *a = &r->received;
    r->target_text = target_text;
    a->target.path = mk_str_of(target_text.p, path_len);
    if (path_len < target_text.len)
        a->target.query = mk_str_of(target_text.p + path_len + 1, target_text.len - path_len - 1);
    a->target.form = MK_TARGET_ORIGIN;
    a->target.port = MK_PORT_NONE;
    return copy_plain_path(r->arena, a);
}

int mk_request_target_init_checked(struct mk_request *r, mk_str target_text, mk_str host)
{
    struct mk_request_target *a = &r->received;
    r->target_text = target_text;
    if (mk_target_parse_checked(a->method, target_text, &a->target) != 0)
        return 400;
    r->host = a->target.authority.p ? a->target.host : host;
    if (a->target.form == MK_TARGET_ASTERISK || a->target.form == MK_TARGET_AUTHORITY) {
        a->path = a->target.form == MK_TARGET_ASTERISK ? a->target.path : MK_STR("");
        return 0;
    }
    return decode_target_path(r->arena, a);
}

/* After a rewrite by a handler, the new target is fetched with GET or HEAD, as for a local redirect (RFC
 * 3875, section 6.2.2). */
static enum mk_method method_after_rewrite(enum mk_request_target_by by, enum mk_method before)
{
    bool fetches = by == MK_TARGET_BY_HANDLER && before != MK_METHOD_HEAD;
    return fetches ? MK_METHOD_GET : before;
}

int mk_request_rewrite(struct mk_request *r, mk_str target)
{
    enum mk_request_target_by by =
        mk_exchange_of(r)->step == MK_DISPATCH_ROUTES ? MK_TARGET_BY_HANDLER : MK_TARGET_BY_HOOK;
    struct mk_request_target *a = mk_arena_alloc(r->arena, sizeof *a);
    target = mk_arena_copy(r->arena, target);
    if (!a || !target.p)
        return -ENOMEM;
    *a = (struct mk_request_target){.by = by,
                                    .method = method_after_rewrite(by, r->target->method),
                                    .no_content = by == MK_TARGET_BY_HANDLER || r->target->no_content,
                                    .before = r->target};
    if (mk_target_parse(MK_METHOD_GET, target, &a->target) || a->target.form != MK_TARGET_ORIGIN)
        return -EINVAL;
    int bad = decode_target_path(r->arena, a);
    if (bad)
        return bad == 400 ? -EINVAL : -ENOMEM;
    r->target = a;
    return 0;
}

bool mk_request_target_set_path(struct mk_request *r, mk_str path)
{
    struct mk_request_target *a = mk_arena_alloc(r->arena, sizeof *a);
    if (!a)
        return false;
    *a = *r->target;
    a->by = MK_TARGET_BY_ROUTE;
    a->before = r->target;
    a->left_at = mk_exchange_of(r)->at;
    a->path_flags &= ~(unsigned)MK_PATH_ENCODED_SLASH; /* the path of a file has no encoded slash */
    a->variants = NULL;
    a->marks = NULL;
    a->path = path;
    r->target = a;
    return true;
}

/* Determines which bytes of the path were percent-encoded. False: out of memory. */
static bool find_escape_marks(struct mk_arena *arena, struct mk_request_target *a)
{
    size_t size = a->target.path.len + 1;
    char *buf = mk_arena_alloc(arena, 2 * size);
    mk_str path;
    if (!buf || mk_path_decode_marked(a->target.path, buf, buf + size, &path))
        return false;
    a->marks = buf + size;
    return true;
}

static void encode_path_part(struct mk_arena *arena, const struct mk_request_target *current, mk_str part,
                             struct mk_buf *out)
{
    struct mk_request_target *a = (struct mk_request_target *)(uintptr_t)current; /* computed once */
    bool is_slice = part.p >= a->path.p && part.p + part.len <= a->path.p + a->path.len;
    bool has_marks =
        a->by != MK_TARGET_BY_ROUTE && is_slice && mk_str_find(a->target.path, '%') != MK_STR_NONE;
    if (has_marks && !a->marks && !find_escape_marks(arena, a))
        out->failed = true;
    else
        mk_path_encode(out, part, has_marks ? a->marks + (part.p - a->path.p) : NULL);
}

void mk_request_encode_path(const struct mk_request *r, mk_str part, struct mk_buf *out)
{
    encode_path_part(r->arena, r->target, part, out);
}

/* Encodes the decoded path, and appends the query as received. */
static mk_str encode_target(struct mk_arena *arena, const struct mk_request_target *a)
{
    mk_str query = a->target.query;
    size_t cap = 3 * a->path.len + 1 + query.len;
    char *buf = mk_arena_alloc(arena, cap);
    struct mk_buf out = mk_buf_fixed(buf, cap);
    if (!buf)
        return MK_STR_NULL;
    encode_path_part(arena, a, a->path, &out);
    if (query.p) {
        mk_buf_add(&out, MK_STR("?"));
        mk_buf_add(&out, query);
    }
    return out.failed ? MK_STR_NULL : mk_buf_str(&out);
}

/* Programs that parse the target as a URI reference would read the part after two slashes as an authority. */
static mk_str strip_leading_slashes(mk_str target)
{
    while (target.len > 1 && target.p[0] == '/' && target.p[1] == '/')
        target = mk_str_skip(target, 1);
    return target;
}

/* May the target contain dot segments or backslashes? A plain path may still contain a backslash. */
static bool may_have_dot_segments(const struct mk_request_target *a)
{
    mk_str path = a->target.path;
    return a->is_plain ? mk_str_find(path, '\\') != MK_STR_NONE : mk_path_has_dot_segments(path);
}

/* May the path passed to a script (PATH_INFO) begin with two slashes? It must not, just as the target must
 * not. */
static bool has_inner_double_slash(const struct mk_request *r, const struct mk_request_target *a)
{
    mk_str path = a->target.path;
    size_t i = 1;
    while (i + 1 < path.len && (path.p[i] != '/' || path.p[i + 1] != '/'))
        i++;
    return i + 1 < path.len && mk_path_has_script(a->path, r->site ? &r->site->scripts : NULL);
}

/* Returns the target as the client wrote it if every program interprets it as the path that was checked;
 * otherwise, encodes that path again. */
mk_str mk_request_target_uri(const struct mk_request *r, const struct mk_request_target *a)
{
    mk_str path = a->target.path, query = a->target.query;
    bool is_path = a->path.len && a->path.p[0] == '/'; /* not "*", and not the authority of CONNECT */
    bool in_one = !query.p || path.p + path.len + 1 == query.p; /* an absolute-form target may have no path */
    if (is_path && (a->by == MK_TARGET_BY_ROUTE || !in_one || may_have_dot_segments(a) ||
                    (!a->is_plain && has_inner_double_slash(r, a))))
        return encode_target(r->arena, a);
    return strip_leading_slashes(mk_str_of(path.p, path.len + (query.p ? 1 + query.len : 0)));
}

mk_str mk_request_raw_target(const struct mk_request *r)
{
    return mk_request_target_uri(r, r->target);
}

mk_str mk_request_uri(const struct mk_request *r)
{
    return mk_request_target_uri(r, &r->received);
}

mk_str mk_request_path_at(const struct mk_request *r, size_t i)
{
    const struct mk_request_target *a = r->target;
    size_t n = 0;
    for (const struct mk_request_target *b = a; b->before; b = b->before)
        n++;
    if (i > n)
        return (mk_str){NULL, 0};
    for (; i < n; i++)
        a = a->before;
    return a->path;
}
