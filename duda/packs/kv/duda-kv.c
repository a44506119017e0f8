/* SPDX-License-Identifier: Apache-2.0 */
/* The plugin: [KV] sections, and a store for each of them in every worker. */
#include <duda/asked.h>
#include <duda/kv.h>
#include <errno.h>
#include <monkey/plugin.h>
#include <sys/stat.h>
#include <unistd.h>

#include "queue.h"
#include "shared.h"

#define AT(member) MK_CONF_AT(struct duda_kv_settings, member)

MK_PLUGIN_DECLARE(duda_kv);

static const struct mk_conf_key keys[] = {
    {.name = "Name",
     .type = MK_CONF_TEXT,
     AT(name),
     .def = "main",
     .min = 1,
     .max = 63,
     .help = "What services call it, if there are several."},
    {.name = "Folder",
     .type = MK_CONF_TEXT,
     AT(folder),
     .min = 1,
     .max = 4000,
     .help = "Where its files are. The last part of the path is created if it is missing."},
    {.name = "MaxSize",
     .type = MK_CONF_SIZE,
     AT(size_max),
     .def = "1G",
     .min = 1 << 20,
     .max = (uint64_t)1 << 44,
     .help = "How large it may become. Takes effect when the server is restarted."},
    {.name = "MaxWaiting",
     .type = MK_CONF_NUM,
     AT(waiting_max),
     .def = "10000",
     .min = 1,
     .max = 1000000,
     .help = "How many writes of a worker may wait for the disk. More are refused."},
    {.name = "Durable",
     .type = MK_CONF_BOOL,
     AT(durable),
     .def = "on",
     .help = "Acknowledge writes when they are on disk. With `off` they survive a crash of the server, but "
             "not one of "
             "the system, after which the store may even be damaged: for caches."},
};

static const struct mk_conf_table table = {
    .section = "KV",
    .keys = keys,
    .n = MK_LEN(keys),
    .repeatable = true,
    .help = "A store of keys and values for services of Duda.",
    .size = sizeof(struct duda_kv_settings),
    .scope = MK_CONF_SERVER,
};

/* The stores of the configuration, in the order of their sections. */
struct stores {
    struct duda_kv_settings *v[DUDA_KV_STORES_MAX];
    size_t n;
};

static bool is_unique(struct mk_config *config, const struct stores *stores, const struct duda_kv_settings *s)
{
    for (size_t i = 0; i < stores->n; i++) {
        if (mk_str_eq(stores->v[i]->name, s->name))
            mk_config_error(config, s, "Name", "there are two [KV] `%.*s`", MK_STR_ARG(s->name));
        else if (mk_str_eq(stores->v[i]->folder, s->folder))
            mk_config_error(config, s, "Folder", "another [KV] has this folder, too");
        else
            continue;
        return false;
    }
    return true;
}

static int load(struct mk_config *config, void **data)
{
    struct stores *stores = mk_config_alloc(config, sizeof *stores);
    if (!stores)
        return -ENOMEM;
    for (struct duda_kv_settings *s = NULL; (s = mk_config_section(config, &table, s));) {
        if (stores->n == MK_LEN(stores->v)) {
            mk_config_error(config, s, NULL, "more than %zu [KV]", MK_LEN(stores->v));
            break;
        }
        if (!s->folder.len) {
            mk_config_error(config, s, NULL, "[KV] has no Folder");
            continue;
        }
        s->folder = mk_config_path(config, s, s->folder);
        if (!s->folder.p)
            return -ENOMEM;
        mk_config_allow_writing(config, s->folder);
        if (is_unique(config, stores, s))
            stores->v[stores->n++] = s;
    }
    if (!stores->n)
        mk_config_warn(config, NULL, NULL, "duda-kv is loaded, but there is no [KV] with a Folder");
    *data = stores;
    return 0;
}

static int make_folder(struct mk_config *config, const struct duda_kv_settings *s)
{
    uid_t uid;
    gid_t gid;
    if (mkdir(s->folder.p, 0700) < 0) {
        if (errno == EEXIST)
            return 0;
        mk_config_error(config, s, "Folder", "cannot create %s: %s", s->folder.p, strerror(errno));
        return -errno;
    }
    if (mk_config_user(config, &uid, &gid) && lchown(s->folder.p, uid, gid) < 0) {
        mk_config_error(config, s, "Folder", "cannot give %s to the user of the workers: %s", s->folder.p,
                        strerror(errno));
        return -errno;
    }
    return 0;
}

static int master_start(struct mk_config *config, void *data)
{
    const struct stores *stores = data;
    int e = 0;
    for (size_t i = 0; i < stores->n && !e; i++)
        e = make_folder(config, stores->v[i]);
    return e;
}

/* ---- In a worker ---- */

struct in_worker {
    size_t n;
    struct duda_kv v[DUDA_KV_STORES_MAX];
};

static void worker_stop(struct mk_worker *w, void *data)
{
    struct in_worker *mine = mk_worker_data(w, &MK_PLUGIN_OF(duda_kv));
    (void)data;
    for (size_t i = 0; mine && i < mine->n; i++)
        duda_kv_queue_close(&mine->v[i]);
    mk_worker_set_data(w, &MK_PLUGIN_OF(duda_kv), NULL);
    mk_mem_free(mine);
}

static int worker_start(struct mk_worker *w, void *data)
{
    const struct stores *stores = data;
    struct in_worker *mine = mk_mem_zalloc(1, sizeof *mine);
    if (!mine)
        return -ENOMEM;
    mk_worker_set_data(w, &MK_PLUGIN_OF(duda_kv), mine);
    for (; mine->n < stores->n;) {
        const struct duda_kv_settings *s = stores->v[mine->n];
        struct duda_kv *kv = &mine->v[mine->n++];
        int e = duda_kv_queue_open(kv, w, s);
        kv->shared = duda_kv_shared(kv);
        e = e ? e : duda_store_join(w, &kv->shared);
        if (e) {
            mk_worker_log(w, MK_LOG_ERROR, "[KV] %.*s: cannot open %s: %s", MK_STR_ARG(s->name), s->folder.p,
                          e == -EIO      ? "its files are damaged, or of another version of LMDB"
                          : e == -EEXIST ? "a [REDIS] has this Name, too"
                                         : strerror(-e));
            worker_stop(w, data);
            return e;
        }
    }
    return 0;
}

struct duda_kv *duda_kv_find(const struct duda *d, const char *name)
{
    struct in_worker *mine = mk_worker_data(duda_worker(d), &MK_PLUGIN_OF(duda_kv));
    for (size_t i = 0; mine && i < mine->n; i++)
        if (!name || mk_str_eq(mine->v[i].settings->name, mk_str_from_c(name)))
            return &mine->v[i];
    return NULL;
}

static const struct mk_conf_table *const sections[] = {&table, NULL};
static const char *const needs[] = {"duda", "duda-store", NULL};

MK_PLUGIN(duda_kv) = {
    MK_PLUGIN_HEAD,
    .name = "duda-kv",
    .version = MK_VERSION,
    .help = "Stores of keys and values for services of Duda.",
    .sections = sections,
    .load = load,
    .master_start = master_start,
    .worker_start = worker_start,
    .worker_stop = worker_stop,
    .needs = needs,
};
