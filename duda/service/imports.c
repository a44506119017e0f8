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

/* A shared object in memory. */
struct object {
    ElfW(Addr) base;
    const char *path;
    const ElfW(Dyn) * dynamic;
};

/* glibc has added the base to the addresses in the dynamic section of most processors; musl adds it to none. */
static const void *address_in(const struct object *o, ElfW(Addr) at)
{
    return (const void *)(at < o->base ? at + o->base : at);
}

static struct symbols find_symbols(const struct object *o)
{
    struct symbols s = {NULL, NULL, NULL};
    for (const ElfW(Dyn) *d = o->dynamic; d && d->d_tag != DT_NULL; d++) {
        const void *to = address_in(o, d->d_un.d_ptr);
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

struct search {
    const void *address;
    struct object found;
};

static int look_into(struct dl_phdr_info *info, size_t size, void *ctx)
{
    struct search *s = ctx;
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

/* Without a path: there is none. */
static struct object object_of(const void *address)
{
    struct search s = {.address = address};
    (void)dl_iterate_phdr(look_into, &s);
    return s.found;
}

static bool is_same(const struct object *a, const struct object *b)
{
    return a->dynamic == b->dynamic;
}

/* Imported symbols come before those of the hash, whose second word is the number of the first of them. */
bool duda_imports(const void *address, const char *const *names, size_t n)
{
    static const char ours[1];
    const struct object object = object_of(address), own = object_of(ours);
    if (!object.path || is_same(&object, &own)) /* linked with us */
        return true;
    struct symbols s = find_symbols(&object);
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
    const struct object object = object_of(function);
    void *handle = object.path ? dlopen(object.path, RTLD_LAZY | RTLD_NOLOAD) : NULL;
    const void *plugin = handle ? dlsym(handle, "mk_plugin") : NULL;
    const struct object of_plugin = object_of(plugin);
    if (handle)
        dlclose(handle);
    return plugin && is_same(&of_plugin, &object) ? plugin : NULL;
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
    const struct object object = object_of(address);
    struct symbols s = find_symbols(&object);
    void *handle =
        object.path && s.at && s.texts && s.hash ? dlopen(object.path, RTLD_LAZY | RTLD_NOLOAD) : NULL;
    if (!handle)
        return 0;
    size_t n = find_unnamed(&s, handle, names, found, max);
    dlclose(handle);
    return n;
}
