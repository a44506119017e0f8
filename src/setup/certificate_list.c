/* SPDX-License-Identifier: Apache-2.0 */
#include "setup/certificate_list.h"

#include "base/platform.h"
#include "setup/config.h"
#include "setup/config_generation_type.h"

/* The writer fills the text that is not published, so that its death leaves the published text whole. */
struct mk_certificate_list {
    uint32_t published; /* 0: nothing yet; texts[published % 2] is the current one */
    struct {
        uint32_t len;
        char bytes[MK_CERTIFICATE_LIST_MAX];
    } texts[2];
};

struct mk_buf mk_certificate_list_begin(struct mk_certificate_list *list)
{
    return mk_buf_fixed(list->texts[(list->published + 1) % 2].bytes, MK_CERTIFICATE_LIST_MAX);
}

void mk_certificate_list_publish(struct mk_certificate_list *list, size_t len)
{
    uint32_t next = list->published + 1;
    list->texts[next % 2].len = (uint32_t)len;
    __atomic_store_n(&list->published, next, __ATOMIC_RELEASE);
}

struct mk_certificate_list *mk_config_certificate_list(struct mk_config *c)
{
    struct mk_config_generation *g = c->generation;
    if (!g->certificate_list && mk_platform.owns_process)
        g->certificate_list = mk_config_shared(c, "server: certificates", sizeof *g->certificate_list);
    return g->certificate_list;
}

/* The text changes while it is read only if the list is published twice in that time. */
bool mk_certificate_list_read(const struct mk_certificate_list *list, struct mk_buf *json)
{
    size_t begin = json->len;
    uint32_t published = list ? __atomic_load_n(&list->published, __ATOMIC_ACQUIRE) : 0;
    if (!published)
        return false;
    size_t len = list->texts[published % 2].len;
    mk_buf_add(json, mk_str_of(list->texts[published % 2].bytes, mk_min(len, MK_CERTIFICATE_LIST_MAX)));
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    if (__atomic_load_n(&list->published, __ATOMIC_RELAXED) - published <= 1)
        return true;
    json->len = begin;
    return false;
}
