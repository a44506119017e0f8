/* SPDX-License-Identifier: Apache-2.0 */
#include "service/extras.h"

#include <duda/middleware.h>
#include <errno.h>

struct duda_attachment {
    struct duda_attachment *next;
    const void *key;
    void *data;
    void (*destroy)(void *data); /* may be NULL */
};

struct duda_extras *duda_extras_get(struct duda_ctx *d)
{
    if (!d->extras)
        d->extras = mk_mem_zalloc(1, sizeof *d->extras);
    return d->extras;
}

static void destroy_attachment(struct duda_attachment *v)
{
    if (v->destroy)
        v->destroy(v->data);
    mk_mem_free(v);
}

/* A destructor may attach or remove other data. */
static void free_attachments(struct duda_extras *extras)
{
    struct duda_attachment *v;
    while ((v = extras->attachments)) {
        extras->attachments = v->next;
        destroy_attachment(v);
    }
}

void duda_extras_free(struct duda_ctx *d)
{
    free_attachments(d->extras);
    mk_mem_free(d->extras->reason);
    mk_mem_free(d->extras->form_errors);
    mk_mem_free(d->extras->client_error);
    mk_mem_free(d->extras);
    d->extras = NULL;
}

/* ---- Attachments ---- */

/* Returns the link that points to the entry with this key, or the last link of the list. */
static struct duda_attachment **find_attachment(struct duda_extras *extras, const void *key)
{
    struct duda_attachment **at = &extras->attachments;
    while (*at && (*at)->key != key)
        at = &(*at)->next;
    return at;
}

static void remove_attachment(struct duda_ctx *d, const void *key)
{
    struct duda_attachment **at = d->extras ? find_attachment(d->extras, key) : NULL, *v = at ? *at : NULL;
    if (!v)
        return;
    *at = v->next;
    destroy_attachment(v);
}

/* Does nothing if no data is attached under the key. */
static void change_destructor(struct duda_ctx *d, const void *key, void (*destroy)(void *data))
{
    struct duda_attachment *v = d->extras ? *find_attachment(d->extras, key) : NULL;
    if (v)
        v->destroy = destroy;
}

int duda_attach(struct duda_ctx *d, const void *key, void *data, void (*destroy)(void *data))
{
    if (duda_attached(d, key) == data) {
        change_destructor(d, key, destroy);
        return 0;
    }
    remove_attachment(d, key);
    if (!data)
        return 0;
    struct duda_extras *extras = duda_extras_get(d);
    struct duda_attachment *v = extras ? mk_mem_alloc(sizeof *v) : NULL;
    if (!v) {
        if (destroy)
            destroy(data);
        return -ENOMEM;
    }
    *v = (struct duda_attachment){.next = extras->attachments, .key = key, .data = data, .destroy = destroy};
    extras->attachments = v;
    return 0;
}

void *duda_attached(struct duda_ctx *d, const void *key)
{
    struct duda_attachment *v = d->extras ? *find_attachment(d->extras, key) : NULL;
    return v ? v->data : NULL;
}
