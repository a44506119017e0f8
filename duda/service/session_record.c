/* SPDX-License-Identifier: Apache-2.0 */
#include "service/session_record.h"

#include <endian.h>
#include <errno.h>

enum { PAIRS_FIRST = 4, NAME_MAX_LEN = 128 };

/* ---- Pairs ---- */

/* Returns a NUL-terminated copy that lives as long as the request. */
static mk_str copy_to_request(const struct duda_session *s, mk_str text)
{
    char *p = mk_request_alloc(s->d->request, text.len + 1);
    if (!p)
        return MK_STR_NULL;
    if (text.len)
        memcpy(p, text.p, text.len);
    p[text.len] = '\0';
    return mk_str_of(p, text.len);
}

static bool add_pair(struct duda_session *s, struct duda_session_pair p)
{
    if (s->n == s->cap) {
        size_t cap = s->cap ? 2 * s->cap : PAIRS_FIRST;
        struct duda_session_pair *more = mk_request_alloc(s->d->request, cap * sizeof *more);
        if (!more)
            return false;
        if (s->n)
            memcpy(more, s->pairs, s->n * sizeof *more);
        s->pairs = more;
        s->cap = cap;
    }
    s->pairs[s->n++] = p;
    return true;
}

struct duda_session_pair *duda_session_find_pair(const struct duda_session *s, mk_str name)
{
    for (size_t i = 0; i < s->n; i++)
        if (mk_str_eq(s->pairs[i].name, name))
            return &s->pairs[i];
    return NULL;
}

static size_t encoded_size(const struct duda_session *s)
{
    size_t n = DUDA_SIPHASH_TAG + DUDA_SESSION_HEAD;
    for (size_t i = 0; i < s->n; i++)
        n += DUDA_SESSION_PAIR + s->pairs[i].name.len + s->pairs[i].value.len;
    return n;
}

int duda_session_put_pair(struct duda_session *s, mk_str name, mk_str value)
{
    struct duda_session_pair *p = duda_session_find_pair(s, name);
    if (!value.p) {
        if (p)
            *p = s->pairs[--s->n];
        return 0;
    }
    size_t old = p ? DUDA_SESSION_PAIR + p->name.len + p->value.len : 0;
    if ((!p && s->n == DUDA_SESSION_PAIRS_MAX) || name.len > NAME_MAX_LEN || value.len > DUDA_SESSION_MAX ||
        encoded_size(s) - old + DUDA_SESSION_PAIR + name.len + value.len > DUDA_SESSION_MAX)
        return -EMSGSIZE;
    struct duda_session_pair kept = {
        .name = copy_to_request(s, name), .value = copy_to_request(s, value), .is_set = true};
    if (!kept.name.p || !kept.value.p)
        return -ENOMEM;
    if (!p)
        return add_pair(s, kept) ? 0 : -ENOMEM;
    *p = kept;
    return 0;
}

/* ---- Serialization ---- */

static void append_number(struct mk_buf *out, uint64_t n, int bytes)
{
    for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8)
        mk_buf_add_char(out, (char)(n >> shift));
}

static uint64_t read_number(mk_str *from, size_t bytes)
{
    unsigned char cap[8] = {0};
    uint64_t n;
    memcpy(cap + sizeof cap - bytes, from->p, bytes);
    memcpy(&n, cap, sizeof n);
    *from = mk_str_skip(*from, bytes);
    return be64toh(n);
}

char *duda_session_record_buf(struct duda_session *s)
{
    if (!s->record)
        s->record = mk_request_alloc(s->d->request, DUDA_SESSION_MAX);
    return s->record;
}

void duda_session_encode(const struct duda_session *s, struct mk_buf *out)
{
    append_number(out, (uint64_t)s->began, 8);
    append_number(out, (uint64_t)s->used, 8);
    append_number(out, s->is_renewed, 1);
    for (size_t i = 0; i < s->n; i++) {
        append_number(out, s->pairs[i].name.len, 2);
        append_number(out, s->pairs[i].value.len, 2);
        mk_buf_add(out, s->pairs[i].name);
        mk_buf_add(out, s->pairs[i].value);
    }
}

bool duda_session_decode(struct duda_session *s, mk_str data)
{
    if (data.len < DUDA_SESSION_HEAD)
        return false;
    s->began = (int64_t)read_number(&data, 8);
    s->used = (int64_t)read_number(&data, 8);
    s->is_renewed = read_number(&data, 1) == 1;
    while (data.len >= DUDA_SESSION_PAIR && s->n < DUDA_SESSION_PAIRS_MAX) {
        size_t name = (size_t)read_number(&data, 2), value = (size_t)read_number(&data, 2);
        if (name + value > data.len)
            return false;
        struct duda_session_pair p = {.name = copy_to_request(s, mk_str_first(data, name)),
                                      .value =
                                          copy_to_request(s, mk_str_first(mk_str_skip(data, name), value))};
        if (!p.name.p || !p.value.p || !add_pair(s, p))
            return false;
        data = mk_str_skip(data, name + value);
    }
    return data.len == 0;
}
