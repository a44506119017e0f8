/* SPDX-License-Identifier: Apache-2.0 */
/* Flash messages. A session store keeps the messages of a session in a separate record, which the first
 * reader deletes: of two concurrent pages, only one shows them. A session in a cookie contains its
 * messages. */
#include <errno.h>

#include "service/session_request.h"
#include "service/session_store.h"
#include "service/session_user.h"

#define FLASH_NAME DUDA_SESSION_OWN "flash"

struct flash_name {
    char text[sizeof FLASH_NAME "0"];
};
_Static_assert(DUDA_FLASH_MAX <= 10, "the name of a message ends in one digit");

/* Returns the name of a message: "\1flash0", "\1flash1" and so on, from the oldest to the newest. */
static mk_str message_name(unsigned i, struct flash_name *name)
{
    *name = (struct flash_name){FLASH_NAME "0"};
    name->text[sizeof FLASH_NAME - 1] = (char)('0' + i);
    return mk_str_of(name->text, sizeof name->text - 1);
}

static struct duda_session_pair *find_message(const struct duda_session *s, unsigned i)
{
    struct flash_name name;
    return duda_session_find_pair(s, message_name(i, &name));
}

static int put_message(struct duda_session *to, mk_str value)
{
    struct flash_name name;
    unsigned i = 0;
    while (i < DUDA_FLASH_MAX && find_message(to, i))
        i++;
    return i < DUDA_FLASH_MAX ? duda_session_put_pair(to, message_name(i, &name), value) : -EMSGSIZE;
}

/* Moves each later message to the name before its own. Returns false if there is no message. */
static bool drop_oldest_message(struct duda_session *from)
{
    struct duda_session_pair *last = find_message(from, 0), *next;
    if (!last)
        return false;
    for (unsigned i = 1; i < DUDA_FLASH_MAX && (next = find_message(from, i)); i++) {
        last->value = next->value;
        last = next;
    }
    *last = from->pairs[--from->n];
    return true;
}

/* A client that never opens a page must not make forms fail, so a new message replaces old ones. If it does
 * not fit even without them, they stay: a later change of a session in a cookie would save their loss. */
static int put_or_replace_message(struct duda_session *to, mk_str value)
{
    size_t n = to->n;
    struct duda_session_pair *before = duda_alloc(to->d, n * sizeof *before);
    if (!before)
        return -ENOMEM;
    if (n)
        memcpy(before, to->pairs, n * sizeof *before);
    int e;
    while ((e = put_message(to, value)) == -EMSGSIZE && drop_oldest_message(to))
        ;
    if (e && n)
        memcpy(to->pairs, before, n * sizeof *before);
    if (e)
        to->n = n;
    return e;
}

/* The value of a message is its category, a NUL and its text. */
static int add_message(struct duda_session *to, mk_str category, mk_str text)
{
    char *p = duda_alloc(to->d, category.len + 1 + text.len);
    mk_str value = mk_str_of(p, category.len + 1 + text.len);
    if (!p)
        return -ENOMEM;
    memcpy(p, category.p, category.len + 1);
    if (text.len)
        memcpy(p + category.len + 1, text.p, text.len);
    return put_or_replace_message(to, value);
}

static int store_message(struct duda_ctx *d, mk_str kind, mk_str text)
{
    struct duda_session *s, record;
    int e = text.len > DUDA_SESSION_MAX ? -EMSGSIZE : duda_session_open(d, &s);
    if (e)
        return e;
    bool existed = s->exists;
    e = duda_session_ensure(s);
    if (!e && duda_session_is_in_cookie(d)) {
        e = add_message(s, kind, text);
        return e ? e : duda_session_store_changes(s);
    }
    if (!e && !existed)
        e = duda_session_store_changes(s);
    e = e ? e : duda_session_flash_init(&record, s, s->id);
    e = e ? e : duda_session_store_load(&record);
    e = e == -ENOENT ? 0 : e;
    e = e ? e : add_message(&record, kind, text);
    return e ? e : duda_session_flash_save(&record, s);
}

int duda_flash(struct duda_ctx *d, const char *category, mk_str text)
{
    int e = text.p ? store_message(d, mk_str_from_c(category ? category : ""), text) : -EINVAL;
    return e == -EMSGSIZE
               ? duda_reason(d, e, "a flash message of %zu bytes does not fit in the session", text.len)
               : e;
}

int duda_flash_redirect(struct duda_ctx *d, const char *category, mk_str text, mk_str url)
{
    int e = url.p ? duda_flash(d, category, text) : 0; /* no message about a page that is not shown */
    return e ? e : duda_redirect(d, 303, url);
}

static bool is_message(const struct duda_session_pair *p)
{
    return mk_str_starts(p->name, MK_STR(FLASH_NAME));
}

/* The strings of the messages live as long as the request. */
static void read_messages(struct duda_session *from, struct duda_flash_message *all, size_t *n)
{
    for (unsigned i = 0; i < DUDA_FLASH_MAX; i++) {
        const struct duda_session_pair *p = find_message(from, i);
        size_t end = p ? mk_str_find(p->value, '\0') : MK_STR_NONE;
        if (end != MK_STR_NONE)
            all[(*n)++] =
                (struct duda_flash_message){.category = p->value.p, .text = mk_str_skip(p->value, end + 1)};
    }
}

/* Deletes the messages before they are shown. Returns -ENOENT if another request has taken them. */
static int take_record(struct duda_session *s, struct duda_session *record)
{
    int e = duda_session_flash_init(record, s, s->id);
    e = e ? e : duda_session_store_load(record);
    return e ? e : duda_session_store_delete(record);
}

static void remove_messages(struct duda_session *s)
{
    size_t kept = 0;
    for (size_t i = 0; i < s->n; i++)
        if (!is_message(&s->pairs[i]))
            s->pairs[kept++] = s->pairs[i];
    s->n = kept;
}

static bool has_messages(const struct duda_session *s)
{
    for (size_t i = 0; i < s->n; i++)
        if (is_message(&s->pairs[i]))
            return true;
    return false;
}

int duda_flash_take(struct duda_ctx *d, const struct duda_flash_message **messages, size_t *n)
{
    struct duda_session *s, record;
    *messages = NULL;
    *n = 0;
    int e = duda_session_open(d, &s);
    if (e || !s->exists || (duda_session_is_in_cookie(d) && !has_messages(s)))
        return e;
    struct duda_flash_message *all = duda_alloc(d, DUDA_FLASH_MAX * sizeof *all);
    if (!all)
        return -ENOMEM;
    if (duda_session_is_in_cookie(d)) {
        read_messages(s, all, n);
        remove_messages(s);
        e = duda_session_store_changes(s);
    } else {
        e = take_record(s, &record);
        if (!e)
            read_messages(&record, all, n);
    }
    if (e)
        *n = 0;
    *messages = all;
    return e == -ENOENT ? 0 : e;
}
