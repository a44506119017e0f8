/* SPDX-License-Identifier: Apache-2.0 */
#include "service/dynsym.h"

#include <dlfcn.h>
#include <link.h>
#include <monkey/plugin.h>
#include <stdint.h>
#include <string.h>

struct symbols {
    const ElfW(Sym) * at;
    const char *texts;
    const uint32_t *hash; /* GNU hash table */
};

/* A shared object in memory. */
struct object {
    ElfW(Addr) base;
    const char *path;
    const ElfW(Dyn) * dynamic;
};

/* Returns the absolute address of an entry in the dynamic section. On most processors, glibc has added the
 * load base to these addresses; musl never does. */
static const void *resolve_dynamic_address(const struct object *o, ElfW(Addr) at)
{
    return (const void *)(at < o->base ? at + o->base : at);
}

static struct symbols read_dynamic_symbols(const struct object *o)
{
    struct symbols s = {NULL, NULL, NULL};
    for (const ElfW(Dyn) *d = o->dynamic; d && d->d_tag != DT_NULL; d++) {
        const void *to = resolve_dynamic_address(o, d->d_un.d_ptr);
        if (d->d_tag == DT_SYMTAB)
            s.at = to;
        else if (d->d_tag == DT_STRTAB)
            s.texts = to;
        else if (d->d_tag == DT_GNU_HASH)
            s.hash = to;
    }
    return s;
}

static bool name_list_contains(const char *name, const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}

struct object_search {
    const void *address;
    struct object found;
};

static int match_object_by_address(struct dl_phdr_info *info, size_t size, void *ctx)
{
    struct object_search *s = ctx;
    bool holds = false;
    struct object o = {.base = info->dlpi_addr, .path = info->dlpi_name};
    (void)size;
    for (size_t i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *h = &info->dlpi_phdr[i];
        if (h->p_type == PT_DYNAMIC)
            o.dynamic = (const void *)(info->dlpi_addr + h->p_vaddr);
        else if (h->p_type == PT_LOAD)
            holds |= (uintptr_t)s->address - info->dlpi_addr - h->p_vaddr < h->p_memsz;
    }
    if (holds)
        s->found = o;
    return holds;
}

/* Finds only objects that have a path. */
static struct object find_object_of_address(const void *address)
{
    struct object_search s = {.address = address};
    (void)dl_iterate_phdr(match_object_by_address, &s);
    return s.found;
}

static bool is_same_object(const struct object *a, const struct object *b)
{
    return a->dynamic == b->dynamic;
}

/* Imported symbols precede those of the hash table, whose second word is the index of the first hashed
 * symbol. */
bool duda_dynsym_calls_any(const void *address, const char *const *names, size_t n)
{
    static const char ours[1];
    const struct object object = find_object_of_address(address), own = find_object_of_address(ours);
    if (!object.path || is_same_object(&object, &own)) /* linked into the same object as Duda */
        return true;
    struct symbols s = read_dynamic_symbols(&object);
    if (!s.at || !s.texts || !s.hash)
        return true;
    for (uint32_t i = 1; i < s.hash[1]; i++)
        if (name_list_contains(s.texts + s.at[i].st_name, names, n))
            return true;
    return false;
}

/* Returns the plugin whose object defines the function. An object that only imports the function does not
 * count. */
static const struct mk_plugin *plugin_of_function(const void *function)
{
    const struct object object = find_object_of_address(function);
    void *handle = object.path ? dlopen(object.path, RTLD_LAZY | RTLD_NOLOAD) : NULL;
    const void *plugin = handle ? dlsym(handle, "mk_plugin") : NULL;
    const struct object of_plugin = find_object_of_address(plugin);
    if (handle)
        dlclose(handle);
    return plugin && is_same_object(&of_plugin, &object) ? plugin : NULL;
}

static size_t count_names(const char *const *names)
{
    size_t n = 0;
    while (names[n])
        n++;
    return n;
}

static size_t find_undeclared_plugins(const struct symbols *s, void *object, const char *const *names,
                                      const char **found, size_t max)
{
    const size_t n = count_names(names);
    size_t n_found = 0;
    for (uint32_t i = 1; i < s->hash[1] && n_found < max; i++) {
        const char *symbol = s->texts + s->at[i].st_name;
        const void *function = strncmp(symbol, "duda_", 5) == 0 ? dlsym(object, symbol) : NULL;
        const struct mk_plugin *plugin = function ? plugin_of_function(function) : NULL;
        if (plugin && !name_list_contains(plugin->name, names, n) &&
            !name_list_contains(plugin->name, found, n_found))
            found[n_found++] = plugin->name;
    }
    return n_found;
}

size_t duda_dynsym_undeclared_plugins(const void *address, const char *const *names, const char **found,
                                      size_t max)
{
    const struct object object = find_object_of_address(address);
    struct symbols s = read_dynamic_symbols(&object);
    void *handle =
        object.path && s.at && s.texts && s.hash ? dlopen(object.path, RTLD_LAZY | RTLD_NOLOAD) : NULL;
    if (!handle)
        return 0;
    size_t n = find_undeclared_plugins(&s, handle, names, found, max);
    dlclose(handle);
    return n;
}
