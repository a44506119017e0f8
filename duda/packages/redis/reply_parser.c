/* SPDX-License-Identifier: Apache-2.0 */
/* Strings, numbers and nil go directly to the handler. The members of a list arrive one by one, and the
 * handler may end before the last one arrives, so the parser keeps them until the list is complete. */
#include "reply_parser.h"

#include <duda/memory.h>
#include <errno.h>
#include <monkey/mem.h>

enum {
    BLOCK = 4096 - 64,
    ALIGNED = _Alignof(max_align_t),
    IN_KEPT = 64 * 1024,
    TAG = 4, /* length of the format prefix of a verbatim string, such as "txt:" */
};

/* Larger than any MaxReplySize. */
#define IN_MAX ((size_t)1200 << 20)

struct redis_block {
    struct redis_block *before;
    size_t used, cap;
    _Alignas(max_align_t) char buf[];
};

/* ---- Memory of the parser ---- */

static void *block_alloc(struct redis_reply_parser *p, size_t size)
{
    struct redis_block *b = p->blocks;
    size = (size + ALIGNED - 1) & ~(size_t)(ALIGNED - 1);
    if (!b || b->cap - b->used < size) {
        size_t cap = size > BLOCK ? size : BLOCK;
        b = mk_mem_alloc(sizeof *b + cap);
        if (!b)
            return NULL;
        *b = (struct redis_block){.before = p->blocks, .cap = cap};
        p->blocks = b;
    }
    void *buf = b->buf + b->used;
    b->used += size;
    return buf;
}

/* Keeps one block for the next list. */
static void free_blocks(struct redis_reply_parser *p)
{
    while (p->blocks && (p->blocks->before || p->blocks->cap > BLOCK)) {
        struct redis_block *b = p->blocks;
        p->blocks = b->before;
        mk_mem_free(b);
    }
    if (p->blocks)
        p->blocks->used = 0;
    p->members = 0;
}

static int set_parse_error(struct redis_reply_parser *p, int e, const char *message)
{
    p->error_text = message;
    return e;
}

/* ---- Values ---- */

/* Returns the destination of the current value. */
static struct duda_redis_reply *current_value(struct redis_reply_parser *p, enum duda_redis_type type)
{
    struct duda_redis_reply *r = &p->root;
    if (p->skips)
        r = &p->skipped;
    else if (p->depth)
        r = p->levels[p->depth - 1].next;
    else if (p->d && type != DUDA_REDIS_LIST)
        r = p->to;
    *r = (struct duda_redis_reply){.type = type};
    return r;
}

/* If the handler has no memory for the string, only this handler fails: the parser still reads the reply to
 * its end. */
static int add_text_value(struct redis_reply_parser *p, enum duda_redis_type type, mk_str text)
{
    struct duda_redis_reply *r = current_value(p, type);
    if (p->skips)
        return 0;
    if (p->d && !p->depth) {
        r->text = duda_strdup(p->d, text);
        p->is_out_of_memory = !r->text.p;
        return 0;
    }
    char *buf = block_alloc(p, text.len + 1);
    if (!buf)
        return set_parse_error(p, -ENOMEM, "out of memory for a reply");
    memcpy(buf, text.p, text.len);
    buf[text.len] = 0;
    r->text = mk_str_of(buf, text.len);
    return 0;
}

static int add_number_value(struct redis_reply_parser *p, int64_t number)
{
    current_value(p, DUDA_REDIS_NUMBER)->number = number;
    return 0;
}

static int add_nil_value(struct redis_reply_parser *p)
{
    current_value(p, DUDA_REDIS_NIL);
    return 0;
}

/* Checks the length of a list, because a few bytes can announce any length, and allocates memory for its
 * members before they arrive. */
static int begin_list(struct redis_reply_parser *p, char mark, uint64_t n)
{
    struct duda_redis_reply *items = NULL;
    size_t size;
    bool is_attribute = mark == '|';
    if (n > p->list_max - p->members)
        return set_parse_error(p, -EMSGSIZE, "invalid reply: too many elements");
    p->members += (size_t)n;
    if (p->depth == REDIS_DEPTH_MAX)
        return set_parse_error(p, -EPROTO, "invalid reply: nesting too deep");
    if (!p->skips && !is_attribute) {
        struct duda_redis_reply *r = current_value(p, DUDA_REDIS_LIST);
        if (__builtin_mul_overflow((size_t)n, sizeof *items, &size) || !(items = block_alloc(p, size)))
            return set_parse_error(p, -ENOMEM, "out of memory for a reply");
        memset(items, 0, size);
        r->items = items;
        r->n = (size_t)n;
    }
    if (!n)
        return 0;
    p->levels[p->depth++] = (struct redis_level){items, (size_t)n, is_attribute};
    if (is_attribute && !p->skips)
        p->skips = p->depth;
    return 0;
}

/* Called when a value is complete, such as an empty list: closes the lists that it completes. Returns true if
 * the reply is also complete. */
static bool finish_value(struct redis_reply_parser *p)
{
    while (p->depth) {
        struct redis_level *level = &p->levels[p->depth - 1];
        level->left--;
        if (level->next)
            level->next++;
        if (level->left)
            return false;
        if (p->skips == p->depth)
            p->skips = 0;
        p->depth--;
        if (level->is_attribute)
            return false; /* the value that the attribute describes follows */
    }
    return true;
}

/* ---- Parsing ---- */

/* Finds the line at p->at; *line excludes the type byte and the line ending. */
static bool find_line(struct redis_reply_parser *p, mk_str *line)
{
    mk_str all = mk_buf_str(&p->in);
    size_t from = p->scanned > p->at ? p->scanned : p->at;
    for (;;) {
        const char *end = from < all.len ? memchr(all.p + from, '\r', all.len - from) : NULL;
        from = end ? (size_t)(end - all.p) : all.len;
        p->scanned = from;
        if (from + 1 >= all.len)
            return false;
        if (all.p[from + 1] == '\n')
            break;
        from++;
    }
    *line = mk_str_of(all.p + p->at + 1, from - p->at - 1);
    return true;
}

static bool parse_integer(mk_str text, int64_t *out)
{
    uint64_t n, most = INT64_MAX;
    bool is_negative = mk_str_starts(text, MK_STR("-"));
    if (is_negative || mk_str_starts(text, MK_STR("+")))
        text = mk_str_skip(text, 1);
    if (!mk_num_parse(text, &n) || n > most + is_negative)
        return false;
    *out = (int64_t)(is_negative ? ~n + 1 : n);
    return true;
}

static bool contains_only(mk_str text, const char *letters)
{
    for (size_t i = 0; i < text.len; i++)
        if (!text.p[i] || !strchr(letters, text.p[i]))
            return false;
    return text.len > 0;
}

/* Parses a line that is a complete value. */
static int parse_line_value(struct redis_reply_parser *p, char mark, mk_str line)
{
    int64_t n;
    switch (mark) {
    case '+':
        return add_text_value(p, DUDA_REDIS_STATUS, line);
    case '-':
        return add_text_value(p, DUDA_REDIS_ERROR, line);
    case ':':
        return parse_integer(line, &n) ? add_number_value(p, n)
                                       : set_parse_error(p, -EPROTO, "invalid reply: invalid integer");
    case ',': /* a double: a decimal number, inf or nan */
        return contains_only(line, "0123456789+-.eEinfa")
                   ? add_text_value(p, DUDA_REDIS_TEXT, line)
                   : set_parse_error(p, -EPROTO, "invalid reply: invalid double");
    case '(':
        return contains_only(line, "0123456789+-")
                   ? add_text_value(p, DUDA_REDIS_TEXT, line)
                   : set_parse_error(p, -EPROTO, "invalid reply: invalid big number");
    case '#':
        if (!mk_str_eq(line, MK_STR("t")) && !mk_str_eq(line, MK_STR("f")))
            return set_parse_error(p, -EPROTO, "invalid reply: invalid boolean");
        return add_number_value(p, line.p[0] == 't');
    case '_':
        return line.len ? set_parse_error(p, -EPROTO, "invalid reply: null with a value") : add_nil_value(p);
    default:
        return set_parse_error(p, -EPROTO, "invalid reply: unknown type");
    }
}

/* Parses a string of known length at *end, and advances *end past it. */
static int parse_bulk_text(struct redis_reply_parser *p, char mark, size_t len, size_t *end)
{
    mk_str all = mk_buf_str(&p->in), text = mk_str_of(all.p + *end, len);
    if (all.len - *end < 2 || all.len - *end - 2 < len)
        return -EAGAIN;
    if (memcmp(text.p + len, "\r\n", 2) != 0)
        return set_parse_error(p, -EPROTO, "invalid reply: string exceeds its length");
    if (mark == '=' && (len < TAG || text.p[TAG - 1] != ':'))
        return set_parse_error(p, -EPROTO, "invalid reply: verbatim string without a format");
    *end += len + 2;
    return add_text_value(p, mark == '!' ? DUDA_REDIS_ERROR : DUDA_REDIS_TEXT,
                          mark == '=' ? mk_str_skip(text, TAG) : text);
}

/* Parses the length of a string or list: -1 is nil in RESP2. */
static int parse_length(struct redis_reply_parser *p, char mark, mk_str line, size_t *end)
{
    int64_t n;
    if (!parse_integer(line, &n) || n < -1 || (uint64_t)n + 1 > SIZE_MAX / 4)
        return set_parse_error(p, -EPROTO, "invalid reply: invalid length");
    if (n < 0)
        return mark == '$' || mark == '*' ? add_nil_value(p)
                                          : set_parse_error(p, -EPROTO, "invalid reply: negative length");
    switch (mark) {
    case '*':
    case '~':
        return begin_list(p, mark, (uint64_t)n);
    case '%':
    case '|':
        return begin_list(p, mark, (uint64_t)n * 2);
    case '>':
        if (p->depth)
            return set_parse_error(p, -EPROTO, "invalid reply: push inside a reply");
        p->is_push = true;
        return begin_list(p, mark, (uint64_t)n);
    default:
        return parse_bulk_text(p, mark, (size_t)n, end);
    }
}

/* Parses the next value, or the beginning of a list. */
static int parse_value(struct redis_reply_parser *p, bool *is_complete)
{
    mk_str line;
    if (!find_line(p, &line))
        return -EAGAIN;
    char mark = p->in.p[p->at];
    size_t end = p->at + line.len + 3;
    unsigned depth = p->depth;
    int e = memchr("$*=!%~>|", mark, 8) ? parse_length(p, mark, line, &end) : parse_line_value(p, mark, line);
    if (e)
        return e;
    p->at = end;
    *is_complete = p->depth == depth && mark != '|' && finish_value(p);
    return 0;
}

/* ---- Interface ---- */

void redis_reply_parser_init(struct redis_reply_parser *p)
{
    p->in = mk_buf_growing(IN_MAX);
}

void redis_reply_parser_fini(struct redis_reply_parser *p)
{
    redis_reply_parser_reset(p);
    mk_mem_free(p->blocks);
    p->blocks = NULL;
}

void redis_reply_parser_reset(struct redis_reply_parser *p)
{
    mk_buf_free(&p->in);
    p->at = p->scanned = 0;
    p->depth = p->skips = 0;
    p->is_push = false;
    free_blocks(p);
}

int redis_reply_parser_feed(struct redis_reply_parser *p, mk_str bytes)
{
    mk_buf_consume(&p->in, p->at);
    p->scanned -= p->scanned < p->at ? p->scanned : p->at;
    p->at = 0;
    if (!p->in.len && p->in.cap > IN_KEPT)
        mk_buf_free(&p->in);
    mk_buf_add(&p->in, bytes);
    return p->in.failed ? set_parse_error(p, -ENOMEM, "out of memory for a reply") : 0;
}

/* Copies a list into the memory of the handler. */
static bool copy_to_handler(struct duda_ctx *d, struct duda_redis_reply *r)
{
    if (r->type != DUDA_REDIS_LIST) {
        if (r->text.p)
            r->text = duda_strdup(d, r->text);
        return r->text.p || r->type == DUDA_REDIS_NIL || r->type == DUDA_REDIS_NUMBER;
    }
    struct duda_redis_reply *items = duda_alloc(d, r->n ? r->n * sizeof *items : 1);
    if (!items)
        return false;
    if (r->n)
        memcpy(items, r->items, r->n * sizeof *items);
    r->items = items;
    for (size_t i = 0; i < r->n; i++)
        if (!copy_to_handler(d, &items[i]))
            return false;
    return true;
}

/* Returns the complete reply. A push message stays in the parser's memory, because the connection handles
 * it. */
static struct duda_redis_reply *deliver_reply(struct redis_reply_parser *p)
{
    if (!p->d || p->is_push)
        return &p->root;
    if (p->root.type != DUDA_REDIS_LIST)
        return p->to;
    *p->to = p->root;
    if (!copy_to_handler(p->d, p->to)) {
        *p->to = (struct duda_redis_reply){.type = DUDA_REDIS_NIL};
        p->is_out_of_memory = true;
    }
    return p->to;
}

int redis_reply_parser_next(struct redis_reply_parser *p, struct duda_redis_reply **out)
{
    bool is_complete = false;
    if (!p->depth) {
        free_blocks(p);
        p->root = (struct duda_redis_reply){.type = DUDA_REDIS_NIL};
        p->is_push = false;
    }
    p->is_out_of_memory = false;
    while (!is_complete) {
        int e = parse_value(p, &is_complete);
        if (e)
            return e;
    }
    *out = deliver_reply(p);
    return 0;
}

int redis_reply_errno(const struct duda_redis_reply *reply)
{
    static const struct {
        mk_str word;
        int error;
    } known[] = {
        {MK_STR("OOM "), -ENOSPC},         {MK_STR("MISCONF "), -ENOSPC},    {MK_STR("LOADING "), -EAGAIN},
        {MK_STR("BUSY "), -EAGAIN},        {MK_STR("MASTERDOWN "), -EAGAIN}, {MK_STR("TRYAGAIN "), -EAGAIN},
        {MK_STR("CLUSTERDOWN "), -EAGAIN}, {MK_STR("NOREPLICAS "), -EAGAIN}, {MK_STR("NOAUTH "), -ENOKEY},
    };
    for (size_t i = 0; i < MK_LEN(known); i++)
        if (mk_str_starts(reply->text, known[i].word))
            return known[i].error;
    return -EREMOTEIO;
}
