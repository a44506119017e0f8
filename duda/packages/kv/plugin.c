/* SPDX-License-Identifier: Apache-2.0 */
/* The plugin: [KV] sections, and a store for each of them in every worker. */
#include <duda/kv.h>
#include <duda/request.h>
#include <errno.h>
#include <monkey/plugin.h>
#include <sys/stat.h>
#include <unistd.h>

#include "commit_queue.h"
#include "common/package.h"
#include "store_backend.h"

#define AT(member) MK_CONF_AT(struct duda_kv_settings, member)

static const struct mk_conf_key keys[] = {
    PACKAGE_NAME_KEY,
    {.name = "Folder",
     .type = MK_CONF_TEXT,
     .flags = MK_CONF_WRITES,
     AT(folder),
     .min = 1,
     .max = 4000,
     .help = "Folder of the database files. Its last path component is created if it is missing."},
    {.name = "MaxSize",
     .type = MK_CONF_SIZE,
     AT(size_max),
     .default_value = "1G",
     .min = 1 << 20,
     .max = (uint64_t)1 << 44,
     .help = "Maximum size of the store. A change takes effect when the server is restarted."},
    {.name = "MaxQueue",
     .type = MK_CONF_NUM,
     AT(waiting_max),
     .default_value = "10000",
     .min = 1,
     .max = 1000000,
     .help = "Maximum number of writes of a worker that wait for the disk. Further ones fail."},
    {.name = "Sync",
     .type = MK_CONF_BOOL,
     AT(sync),
     .default_value = "on",
     .help = "Acknowledge writes when they are on disk. With `off`, writes survive a crash of the server, "
             "but a crash of the system may damage the store: only for caches."},
};

static bool check_kv_section(struct mk_config *config, const struct package_sections *before, void *settings)
{
    struct duda_kv_settings *s = settings;
    s->folder = package_data_path(config, s, s->folder);
    if (!s->folder.p)
        return false;
    mk_config_allow_writing(config, s, "Folder", s->folder);
    for (size_t i = 0; i < before->n; i++) {
        const struct duda_kv_settings *other = before->v[i];
        if (mk_str_eq(other->folder, s->folder)) {
            mk_config_error(config, s, "Folder", "another [KV] already has this folder");
            return false;
        }
    }
    return true;
}

static int make_store_folder(struct mk_config *config, const struct duda_kv_settings *s)
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
        int e = -errno;
        mk_config_error(config, s, "Folder", "cannot give %s to the user of the workers: %s", s->folder.p,
                        strerror(-e));
        (void)rmdir(s->folder.p); /* else the next start would find a folder of the wrong user */
        return e;
    }
    return 0;
}

static int make_store_folders(struct mk_config *config, void *data)
{
    const struct package_sections *all = data;
    int e = 0;
    for (size_t i = 0; i < all->n && !e; i++)
        e = make_store_folder(config, all->v[i]);
    return e;
}

/* ---- In a worker ---- */

static int open_store(void *instance, struct mk_worker *w, const void *settings)
{
    struct duda_kv *kv = instance;
    int e = duda_kv_commit_queue_open(kv, w, settings);
    kv->shared = duda_kv_store_backend(kv);
    return e ? e : duda_store_register(w, &kv->shared);
}

static void close_store(void *instance)
{
    duda_kv_commit_queue_close(instance);
}

PACKAGE_TYPE(kv, "KV", struct duda_kv_settings, struct duda_kv, "A key-value store for Duda services.",
             .location = "Folder", .max = DUDA_KV_STORES_MAX, .check_section = check_kv_section,
             .declare = duda_store_declare, .open = open_store, .close = close_store);

struct duda_kv *duda_kv_find(struct duda_ctx *d, const char *name)
{
    return package_find_instance(&kind, d, name);
}

struct duda_kv *duda_kv_of(struct mk_worker *worker, const char *name)
{
    return package_instance_of(&kind, worker, name);
}

PACKAGE_PLUGIN(kv, "Key-value stores for Duda services.", PACKAGE_HAS_TYPE,
               .master_start = make_store_folders, .needs = PACKAGE_NEEDS("duda", "duda-store"));
