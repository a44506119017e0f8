/* SPDX-License-Identifier: Apache-2.0 */
/* Functions for handlers: the user of a session, and all sessions of a user. */
#include <errno.h>

#include "service/session_request.h"
#include "service/session_store.h"
#include "service/session_user.h"

static bool is_valid_user(mk_str user)
{
    return user.len > 0 && user.len <= DUDA_SESSION_USER_MAX;
}

/* If another user logs in with the same browser, the session begins empty. */
static int leave_other_user(struct duda_session *s, mk_str user)
{
    mk_str other = duda_session_own_value(s, DUDA_SESSION_USER);
    return other.p && !mk_str_eq(other, user) ? duda_session_destroy(s->d) : 0;
}

static int bind_user(struct duda_session *s, mk_str user)
{
    mk_str generation = MK_STR_NULL;
    int e = duda_session_is_in_cookie(s->d) ? 0 : duda_session_user_generation(s, user, &generation);
    e = e ? e : duda_session_put_pair(s, MK_STR(DUDA_SESSION_USER), user);
    e = e ? e : duda_session_put_pair(s, MK_STR(DUDA_SESSION_GENERATION), generation);
    return e ? e : duda_session_store_changes(s);
}

int duda_session_log_in(struct duda_ctx *d, mk_str user)
{
    struct duda_session *s;
    char old_key[DUDA_SESSION_ID_LEN];
    int e = is_valid_user(user) ? duda_session_open(d, &s) : -EINVAL;
    if (!e)
        e = leave_other_user(s, user);
    if (e)
        return e;
    memcpy(old_key, s->key, sizeof old_key);
    e = duda_session_regenerate(d);
    e = e ? e : bind_user(s, user);
    if (!e)
        duda_session_user_update(s, old_key);
    return e;
}

int duda_session_user(struct duda_ctx *d, mk_str *user)
{
    struct duda_session *s;
    int e = duda_session_open(d, &s);
    *user = e ? MK_STR_NULL : duda_session_own_value(s, DUDA_SESSION_USER);
    return e;
}

/* Returns -ENOENT if no user is logged in. */
static int require_user(struct duda_ctx *d, mk_str *user)
{
    int e = duda_session_user(d, user);
    return e ? e : user->p ? 0 : -ENOENT;
}

/* Opens the session of the request, for functions that concern all sessions of a user. */
static int open_for_user(struct duda_ctx *d, mk_str user, struct duda_session **s)
{
    int e = is_valid_user(user) ? duda_session_open(d, s) : -EINVAL;
    return e ? e : duda_session_is_in_cookie(d) ? -ENOTSUP : 0;
}

int duda_session_add_alias(struct duda_ctx *d, mk_str alias)
{
    struct duda_session *s;
    mk_str user = MK_STR_NULL;
    int e = alias.len ? require_user(d, &user) : -EINVAL;
    e = e ? e : open_for_user(d, user, &s);
    return e ? e : duda_session_user_put_alias(s, user, alias);
}

int duda_session_find_user(struct duda_ctx *d, mk_str alias, mk_str *user)
{
    struct duda_session *s;
    *user = MK_STR_NULL;
    int e = alias.len ? duda_session_open(d, &s) : -EINVAL;
    if (!e && duda_session_is_in_cookie(d))
        e = -ENOTSUP;
    return e ? e : duda_session_user_find_alias(s, alias, user);
}

static bool is_current(const struct duda_session *s, mk_str user)
{
    mk_str own = duda_session_own_value(s, DUDA_SESSION_USER);
    return own.p && mk_str_eq(own, user);
}

int duda_session_revoke_all(struct duda_ctx *d, mk_str user)
{
    struct duda_session *s, list;
    mk_str generation;
    int e = open_for_user(d, user, &s);
    e = e ? e : duda_session_user_revoke(s, user, &generation);
    if (!e && is_current(s, user))
        e = duda_session_destroy(d);
    if (!e && !duda_session_record_init(&list, s, DUDA_SESSION_RECORD_LIST, user))
        (void)duda_session_user_save_list(&list);
    return e;
}

int duda_session_revoke_others(struct duda_ctx *d)
{
    struct duda_session *s, list;
    mk_str generation, user = MK_STR_NULL;
    int e = require_user(d, &user);
    e = e ? e : open_for_user(d, user, &s);
    e = e ? e : duda_session_user_revoke(s, user, &generation);
    e = e ? e : duda_session_put_pair(s, MK_STR(DUDA_SESSION_GENERATION), generation);
    e = e ? e : duda_session_store_changes(s);
    if (!e && !duda_session_record_init(&list, s, DUDA_SESSION_RECORD_LIST, user) &&
        !duda_session_user_put_entry(&list, s))
        (void)duda_session_user_save_list(&list);
    return e;
}

/* Initializes *other as the session that an entry of the list describes. */
static void init_listed_session(struct duda_session *other, const struct duda_session *s,
                                const struct duda_session_entry *head)
{
    *other = (struct duda_session){.d = s->d};
    duda_session_set_key(other, (const unsigned char *)head->key);
}

int duda_session_revoke(struct duda_ctx *d, mk_str user, mk_str id)
{
    struct duda_session *s, list, other;
    struct duda_session_entry head;
    int e = open_for_user(d, user, &s);
    e = e ? e : duda_session_user_open_list(&list, s, user);
    if (e)
        return e;
    const struct duda_session_pair *p = duda_session_find_pair(&list, id);
    if (!p || !duda_session_user_decode(p->value, &head))
        return -ENOENT;
    init_listed_session(&other, s, &head);
    if (s->exists && memcmp(s->key, other.key, sizeof s->key) == 0)
        return duda_session_destroy(d);
    e = duda_session_store_delete(&other);
    if (!e || e == -ENOENT)
        duda_session_user_remove_id(s, user, id);
    return e;
}

/* Reads an entry of the list. Returns -ENOENT if its session has ended. */
static int read_list_entry(const struct duda_session *s, const struct duda_session_pair *p,
                           struct duda_session_info *out)
{
    struct duda_session other;
    struct duda_session_entry head;
    if (!duda_session_user_decode(p->value, &head))
        return -ENOENT;
    init_listed_session(&other, s, &head);
    *out = (struct duda_session_info){
        .id = p->name, .created_at = (int64_t)head.began, .last_used_at = (int64_t)head.used};
    out->is_current = s->exists && memcmp(s->key, other.key, sizeof s->key) == 0;
    if (out->is_current)
        out->last_used_at = mk_request_time(s->d->request);
    mk_str rest = mk_str_skip(p->value, DUDA_SESSION_ENTRY_HEAD);
    out->client_ip = duda_strdup(s->d, mk_str_first(rest, head.ip_len));
    out->user_agent = duda_strdup(s->d, mk_str_skip(rest, head.ip_len));
    int e = duda_session_store_check(&other, &out->last_used_at);
    return e ? e : out->client_ip.p && out->user_agent.p ? 0 : -ENOMEM;
}

static void insert_by_last_use(struct duda_session_info *infos, size_t n,
                               const struct duda_session_info *info)
{
    size_t at = n;
    for (; at > 0 && infos[at - 1].last_used_at < info->last_used_at; at--)
        infos[at] = infos[at - 1];
    infos[at] = *info;
}

/* Reads all entries, and removes those of ended sessions from the list. */
static int read_list(const struct duda_session *s, struct duda_session *list, struct duda_session_info *infos,
                     size_t *n)
{
    size_t kept = 0;
    for (size_t i = 0; i < list->n; i++) {
        struct duda_session_info info;
        int e = read_list_entry(s, &list->pairs[i], &info);
        if (e == -ENOENT)
            continue;
        if (e)
            return e;
        list->pairs[kept++] = list->pairs[i];
        insert_by_last_use(infos, (*n)++, &info);
    }
    bool has_ended = kept < list->n;
    list->n = kept;
    return has_ended ? duda_session_user_save_list(list) : 0;
}

int duda_session_list(struct duda_ctx *d, mk_str user, const struct duda_session_info **infos, size_t *n)
{
    struct duda_session *s, list;
    *infos = NULL;
    *n = 0;
    int e = open_for_user(d, user, &s);
    e = e ? e : duda_session_user_open_list(&list, s, user);
    if (e || !list.n)
        return e;
    struct duda_session_info *all = duda_alloc(d, list.n * sizeof *all);
    if (!all)
        return -ENOMEM;
    e = read_list(s, &list, all, n);
    *infos = all;
    return e;
}
