/* SPDX-License-Identifier: Apache-2.0 */
#include "reply.h"

#include <errno.h>

enum { LINE_MAX_LEN = 2048 };

static const struct {
    const char *text;
    enum memcached_status word;
} words[] = {
    {"HD", MEMCACHED_DONE},
    {"VA", MEMCACHED_VALUE},
    {"EN", MEMCACHED_MISS},
    {"NF", MEMCACHED_MISS},
    {"NS", MEMCACHED_NOT_STORED},
    {"EX", MEMCACHED_CHANGED},
    {"MN", MEMCACHED_NOOP},
    {"ERROR", MEMCACHED_CLIENT_ERROR},
    {"CLIENT_ERROR", MEMCACHED_CLIENT_ERROR},
    {"SERVER_ERROR", MEMCACHED_SERVER_ERROR},
};

static mk_str next_reply_word(mk_str *rest)
{
    size_t end = 0;
    while (end < rest->len && rest->p[end] != ' ')
        end++;
    mk_str word = mk_str_first(*rest, end);
    *rest = mk_str_skip(*rest, end < rest->len ? end + 1 : end);
    return word;
}

static bool find_status(mk_str text, enum memcached_status *out)
{
    for (size_t i = 0; i < MK_LEN(words); i++)
        if (mk_str_eq(text, mk_str_from_c(words[i].text))) {
            *out = words[i].word;
            return true;
        }
    return false;
}

/* Parses the CAS unique, and ignores all other flags. */
static bool parse_flags(mk_str rest, struct memcached_reply *out)
{
    while (rest.len) {
        mk_str flag = next_reply_word(&rest);
        if (flag.len && flag.p[0] == 'c' && !mk_num_parse(mk_str_skip(flag, 1), &out->cas))
            return false;
    }
    return true;
}

/* Parses the value, which follows on the next line. */
static ssize_t parse_value(mk_str in, size_t begin, mk_str size, size_t max, struct memcached_reply *out)
{
    uint64_t len;
    if (!mk_num_parse(size, &len))
        return -EPROTO;
    if (len > max)
        return -EMSGSIZE;
    mk_str rest = mk_str_skip(in, begin);
    if (rest.len < len + 2)
        return 0;
    out->value = mk_str_first(rest, (size_t)len);
    if (rest.p[len] != '\r' || rest.p[len + 1] != '\n')
        return -EPROTO;
    return (ssize_t)(begin + len + 2);
}

ssize_t memcached_reply_parse(mk_str in, size_t max, struct memcached_reply *out)
{
    size_t end = mk_str_find(in, '\n');
    *out = (struct memcached_reply){0};
    if (end == MK_STR_NONE)
        return in.len > LINE_MAX_LEN ? -EPROTO : 0;
    if (end == 0 || end > LINE_MAX_LEN || in.p[end - 1] != '\r')
        return -EPROTO;
    mk_str rest = mk_str_first(in, end - 1);
    if (!find_status(next_reply_word(&rest), &out->word))
        return -EPROTO;
    mk_str size = out->word == MEMCACHED_VALUE ? next_reply_word(&rest) : MK_STR_NULL;
    if (out->word >= MEMCACHED_CLIENT_ERROR)
        out->value = rest;
    else if (!parse_flags(rest, out))
        return -EPROTO;
    return size.p ? parse_value(in, end + 1, size, max, out) : (ssize_t)(end + 1);
}
