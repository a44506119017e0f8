/* SPDX-License-Identifier: Apache-2.0 */
#include "service/imports.h"

#include <dlfcn.h>
#include <link.h>
#include <monkey/plugin.h>
#include <stdint.h>
#include <string.h>

struct symbols {
    const ElfW(Sym) * at;
    const char *texts;
    const uint32_t *hash; /* of GNU */
};

static struct symbols find_symbols(const struct link_map *map)
{
    struct symbols s = {NULL, NULL, NULL};
    for (const ElfW(Dyn) *d = map->l_ld; d->d_tag != DT_NULL; d++) {
        const void *to = (const void *)d->d_un.d_ptr;
        if (d->d_tag == DT_SYMTAB)
            s.at = to;
        else if (d->d_tag == DT_STRTAB)
            s.texts = to;
        else if (d->d_tag == DT_GNU_HASH)
            s.hash = to;
    }
    return s;
}

static bool is_among(const char *name, const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}

static const struct link_map *map_of(const void *address)
{
    Dl_info info;
    void *map = NULL;
    return dladdr1(address, &info, &map, RTLD_DL_LINKMAP) ? map : NULL;
}

/* Imported symbols come before those of the hash, whose second word is the number of the first of them. */
bool duda_imports(const void *address, const char *const *names, size_t n)
{
    static const char ours[1];
    const struct link_map *map = map_of(address);
    if (!map || map == map_of(ours)) /* linked with us */
        return true;
    struct symbols s = find_symbols(map);
    if (!s.at || !s.texts || !s.hash)
        return true;
    for (uint32_t i = 1; i < s.hash[1]; i++)
        if (is_among(s.texts + s.at[i].st_name, names, n))
            return true;
    return false;
}

/* Of which plugin is it a function? The object's own symbol says so, not one of those that it needs. */
static const struct mk_plugin *plugin_at(const void *function)
{
    const struct link_map *map = map_of(function);
    void *object = map ? dlopen(map->l_name, RTLD_LAZY | RTLD_NOLOAD) : NULL;
    const void *plugin = object ? dlsym(object, "mk_plugin") : NULL;
    if (object)
        dlclose(object);
    return plugin && map_of(plugin) == map ? plugin : NULL;
}

static size_t count(const char *const *names)
{
    size_t n = 0;
    while (names[n])
        n++;
    return n;
}

static size_t find_unnamed(const struct symbols *s, void *object, const char *const *names,
                           const char **found, size_t max)
{
    const size_t n = count(names);
    size_t n_found = 0;
    for (uint32_t i = 1; i < s->hash[1] && n_found < max; i++) {
        const char *symbol = s->texts + s->at[i].st_name;
        const void *function = strncmp(symbol, "duda_", 5) == 0 ? dlsym(object, symbol) : NULL;
        const struct mk_plugin *plugin = function ? plugin_at(function) : NULL;
        if (plugin && !is_among(plugin->name, names, n) && !is_among(plugin->name, found, n_found))
            found[n_found++] = plugin->name;
    }
    return n_found;
}

size_t duda_imports_unnamed(const void *address, const char *const *names, const char **found, size_t max)
{
    const struct link_map *map = map_of(address);
    struct symbols s = map ? find_symbols(map) : (struct symbols){NULL, NULL, NULL};
    void *object = s.at && s.texts && s.hash ? dlopen(map->l_name, RTLD_LAZY | RTLD_NOLOAD) : NULL;
    if (!object)
        return 0;
    size_t n = find_unnamed(&s, object, names, found, max);
    dlclose(object);
    return n;
}
