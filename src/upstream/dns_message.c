/* SPDX-License-Identifier: Apache-2.0 */
#include "upstream/dns_message.h"

#include <errno.h>
#include <monkey/text.h>
#include <string.h>

enum { HEADER = 12, LABEL_MAX = 63, POINTERS_MAX = 32, ALIASES_MAX = 16, CLASS_IN = 1 };

struct reader {
    const unsigned char *p;
    size_t len, at;
    bool failed;
};

struct record_head {
    char owner[MK_DNS_NAME_MAX];
    unsigned type, class;
    uint32_t ttl;
    size_t data, data_len;
};

/* ---- Writing ---- */

static size_t put_u16(unsigned char *out, unsigned n)
{
    out[0] = (unsigned char)(n >> 8);
    out[1] = (unsigned char)n;
    return 2;
}

/* Returns the length of the encoded name; 0: it is not valid. */
static size_t put_name(unsigned char *out, mk_str name)
{
    size_t n = 0;
    if (mk_str_ends(name, MK_STR(".")))
        name.len--;
    if (!name.len || name.len > MK_DNS_NAME_MAX - 3)
        return 0;
    while (name.p) {
        mk_str rest = name, label = mk_str_cut(&rest, '.');
        if (!label.len || label.len > LABEL_MAX)
            return 0;
        out[n++] = (unsigned char)label.len;
        memcpy(out + n, label.p, label.len);
        n += label.len;
        name = rest;
    }
    out[n++] = 0;
    return n;
}

size_t mk_dns_write_query(const struct mk_dns_query *query, unsigned char out[MK_DNS_QUERY_MAX])
{
    size_t n = put_u16(out, query->id);
    n += put_u16(out + n, 0x0100); /* recursion desired */
    n += put_u16(out + n, 1);
    memset(out + n, 0, 6);
    n += 6;
    size_t name = put_name(out + n, query->name);
    n += name;
    n += put_u16(out + n, query->type);
    n += put_u16(out + n, CLASS_IN);
    return name ? n : 0;
}

/* ---- Reading ---- */

static unsigned get_u16(struct reader *r)
{
    if (r->len - r->at < 2) {
        r->failed = true;
        return 0;
    }
    unsigned n = (unsigned)r->p[r->at] << 8 | r->p[r->at + 1];
    r->at += 2;
    return n;
}

static bool is_host_byte(unsigned char c)
{
    return mk_char_is_alpha((char)c) || mk_char_is_digit((char)c) || c == '-' || c == '_';
}

static bool append_label(char *out, size_t *n, const unsigned char *label, size_t len)
{
    if (*n + len + 2 > MK_DNS_NAME_MAX)
        return false;
    if (*n)
        out[(*n)++] = '.';
    for (size_t i = 0; i < len; i++) {
        if (!is_host_byte(label[i]))
            return false;
        out[(*n)++] = mk_char_lower((char)label[i]);
    }
    out[*n] = '\0';
    return true;
}

/* A pointer must lead backwards, and their number is limited, so that a name cannot refer to itself. */
static bool follow_pointer(const struct reader *r, size_t *at, unsigned *n_pointers)
{
    if (*at + 1 >= r->len || ++*n_pointers > POINTERS_MAX)
        return false;
    size_t to = (size_t)(r->p[*at] & 0x3f) << 8 | r->p[*at + 1];
    if (to >= *at)
        return false;
    *at = to;
    return true;
}

/* Reads a name and skips it. Names with other bytes than those of host names become empty. */
static void get_name(struct reader *r, char out[MK_DNS_NAME_MAX])
{
    size_t at = r->at, end = 0, n = 0;
    unsigned n_pointers = 0;
    bool is_host = true;
    out[0] = '\0';
    while (!r->failed && at < r->len && r->p[at]) {
        if ((r->p[at] & 0xc0) == 0xc0) {
            end = end ? end : at + 2;
            r->failed = !follow_pointer(r, &at, &n_pointers);
            continue;
        }
        size_t len = r->p[at++];
        if (len > LABEL_MAX || len > r->len - at) {
            r->failed = true;
            continue;
        }
        is_host = is_host && append_label(out, &n, r->p + at, len);
        at += len;
    }
    if (at >= r->len)
        r->failed = true;
    if (!r->failed)
        r->at = end ? end : at + 1;
    if (!is_host || r->failed)
        out[0] = '\0';
}

bool mk_dns_read_name(const unsigned char *message, size_t len, size_t at, char out[MK_DNS_NAME_MAX])
{
    struct reader r = {.p = message, .len = len, .at = at};
    get_name(&r, out);
    return !r.failed && out[0];
}

static void get_record(struct reader *r, struct record_head *out)
{
    get_name(r, out->owner);
    out->type = get_u16(r);
    out->class = get_u16(r);
    out->ttl = get_u16(r) << 16;
    out->ttl |= get_u16(r);
    out->data_len = get_u16(r);
    out->data = r->at;
    if (r->failed || out->data_len > r->len - r->at)
        r->failed = true;
    else
        r->at += out->data_len;
}

static bool is_question(struct reader *r, const struct mk_dns_query *query)
{
    char name[MK_DNS_NAME_MAX];
    mk_str asked = query->name;
    if (mk_str_ends(asked, MK_STR(".")))
        asked.len--;
    get_name(r, name);
    unsigned type = get_u16(r), class = get_u16(r);
    return !r->failed && type == query->type && class == CLASS_IN &&
           mk_str_eq_nocase(mk_str_from_c(name), asked);
}

/* Follows a CNAME record: stores its target as the name. Returns 1, 0 if the name has no such record,
 * or -EBADMSG. */
static int follow_alias(struct reader answers, unsigned n, char name[MK_DNS_NAME_MAX], uint32_t *ttl)
{
    struct record_head head;
    while (n-- && !answers.failed) {
        get_record(&answers, &head);
        if (answers.failed || head.type != MK_DNS_CNAME || head.class != CLASS_IN ||
            strcmp(head.owner, name) != 0)
            continue;
        struct reader target = {.p = answers.p, .len = answers.len, .at = head.data};
        get_name(&target, name);
        if (head.ttl < *ttl)
            *ttl = head.ttl;
        return target.failed || !name[0] ? -EBADMSG : 1;
    }
    return answers.failed ? -EBADMSG : 0;
}

static bool get_data(const struct reader *r, const struct record_head *head, struct mk_dns_record *out)
{
    struct reader data = {.p = r->p, .len = head->data + head->data_len, .at = head->data};
    *out = (struct mk_dns_record){0};
    if (head->type == MK_DNS_SRV) {
        out->priority = (uint16_t)get_u16(&data);
        out->weight = (uint16_t)get_u16(&data);
        out->port = (uint16_t)get_u16(&data);
    }
    out->at = (uint16_t)data.at;
    return !data.failed && (head->type != MK_DNS_A || head->data_len == 4) &&
           (head->type != MK_DNS_AAAA || head->data_len == 16);
}

static int collect_records(struct reader *r, unsigned n, const char *name, unsigned type,
                           struct mk_dns_answer *out)
{
    struct record_head head;
    while (n-- && out->n < MK_DNS_RECORDS_MAX) {
        get_record(r, &head);
        if (r->failed)
            return -EBADMSG;
        if (head.type != type || head.class != CLASS_IN || strcmp(head.owner, name) != 0)
            continue;
        if (!get_data(r, &head, &out->records[out->n]))
            return -EBADMSG;
        out->n++;
        if (head.ttl < out->ttl)
            out->ttl = head.ttl;
    }
    return 0;
}

int mk_dns_read_answer(const struct mk_dns_query *query, const unsigned char *message, size_t len,
                       struct mk_dns_answer *out)
{
    struct reader r = {.p = message, .len = len};
    char name[MK_DNS_NAME_MAX];
    unsigned id = get_u16(&r), flags = get_u16(&r), n_questions = get_u16(&r), n = get_u16(&r);
    if (len < HEADER || len > MK_DNS_MESSAGE_MAX || id != query->id || !(flags & 0x8000) || n_questions != 1)
        return -EAGAIN;
    r.at = HEADER;
    if (!is_question(&r, query))
        return -EAGAIN;
    *out = (struct mk_dns_answer){
        .rcode = flags & 0xf, .is_truncated = flags & 0x0200, .ttl = UINT32_MAX, .n = 0};
    if (out->rcode || out->is_truncated)
        return 0;
    struct reader question = {.p = message, .len = len, .at = HEADER};
    get_name(&question, name);
    for (unsigned i = 0;; i++) {
        int e = follow_alias(r, n, name, &out->ttl);
        if (e == 0)
            break;
        if (e < 0 || i == ALIASES_MAX)
            return e < 0 ? e : -ELOOP;
    }
    return collect_records(&r, n, name, query->type, out);
}
