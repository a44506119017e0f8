/* SPDX-License-Identifier: Apache-2.0 */
/* Paths in the configuration section of a service: keys with MK_CONF_READS or MK_CONF_WRITES. */
#include "service/setting_paths.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <monkey/buf.h>
#include <sys/stat.h>

static const char *test_folder(void)
{
    const char *(*folder)(void) = NULL;
    void *found = dlsym(RTLD_DEFAULT, "duda_test_folder"); /* the program of `monkey test` defines it */
    memcpy(&folder, &found, sizeof folder);
    return folder ? folder() : NULL;
}

/* A test writes into its own folder, not among the files of users. */
static mk_str create_test_folder(struct mk_config *config, const char *parent, const char *key)
{
    struct mk_buf path = mk_buf_growing(PATH_MAX);
    mk_buf_addf(&path, "%s/%s", parent, key);
    mk_buf_add_char(&path, '\0');
    bool exists = !path.failed && (mkdir(path.p, 0700) == 0 || errno == EEXIST);
    mk_str copy = exists ? mk_config_copy(config, mk_str_from_c(path.p)) : MK_STR_NULL;
    mk_buf_free(&path);
    return copy;
}

static bool allow_writing(struct mk_config *config, const void *settings, const struct mk_conf_key *key,
                          mk_str *path)
{
    struct stat st;
    const char *parent = test_folder();
    if (parent)
        *path = create_test_folder(config, parent, key->name);
    if (!path->p || stat(path->p, &st) || !S_ISDIR(st.st_mode)) {
        mk_config_error(config, settings, key->name, "there is no folder `%s`: create it",
                        path->p ? path->p : parent);
        return false;
    }
    mk_config_allow_writing(config, settings, key->name, *path);
    return true;
}

bool duda_setting_paths_resolve(struct mk_config *config, const struct mk_conf_table *table, void *settings)
{
    bool ok = true;
    for (size_t i = 0; i < table->n; i++) {
        const struct mk_conf_key *key = &table->keys[i];
        if (key->type != MK_CONF_TEXT || !(key->flags & (MK_CONF_READS | MK_CONF_WRITES)))
            continue;
        mk_str *path = (mk_str *)(void *)((char *)settings + key->offset);
        if (!path->len)
            continue;
        *path = mk_config_path(config, settings, *path);
        if (!path->p)
            return false;
        if (key->flags & MK_CONF_WRITES)
            ok = allow_writing(config, settings, key, path) && ok;
        else
            mk_config_allow_path(config, settings, key->name, *path);
    }
    return ok;
}
