/* SPDX-License-Identifier: Apache-2.0 */
#include "service/translations.h"

#include <dirent.h>
#include <duda/i18n.h>
#include <errno.h>
#include <monkey/text.h>
#include <stdlib.h>
#include <unistd.h>

#include "service/extras.h"
#include "service/service_folder.h"

enum {
    FILE_SIZE_MAX = 1 << 20,
    LANGUAGES_MAX = 100,
    LANGUAGE_LEN = 31,
    TRANSLATION_MAX = 64 << 10,
    NUMBER_SIZE = 32
};

struct duda_catalog {
    char name[LANGUAGE_LEN + 1];
    struct mk_buf text;         /* of the file; keys and messages are slices of it, each with a NUL */
    struct duda_entry *entries; /* sorted by name; resolve_catalog() adds missing ones */
    size_t n;
};

struct duda_translations {
    struct duda_catalog languages[LANGUAGES_MAX]; /* the default language first */
    size_t n;
    const char *names[LANGUAGES_MAX + 1];
};

/* ---- Loading ---- */

static int compare_entries(const void *a, const void *b)
{
    return strcmp(((const struct duda_entry *)a)->name, ((const struct duda_entry *)b)->name);
}

static struct duda_entry *find_entry(const struct duda_catalog *l, const char *key)
{
    const struct duda_entry wanted = {.name = key};
    return l->n ? bsearch(&wanted, l->entries, l->n, sizeof wanted, compare_entries) : NULL;
}

static bool is_key(mk_str key)
{
    for (size_t i = 0; i < key.len; i++)
        if (!mk_char_is_alpha(key.p[i]) && !mk_char_is_digit(key.p[i]) && !strchr("_-.", key.p[i]))
            return false;
    return key.len > 0;
}

/* Replaces `\n` by a line break, in place. */
static mk_str unescape(mk_str text, char *p)
{
    size_t n = 0;
    for (size_t i = 0; i < text.len; i++) {
        bool is_break = text.p[i] == '\\' && i + 1 < text.len && text.p[i + 1] == 'n';
        p[n++] = is_break ? '\n' : text.p[i];
        i += is_break;
    }
    p[n] = '\0';
    return mk_str_of(p, n);
}

static bool report_line(struct mk_config *config, const struct duda_catalog *l, unsigned line,
                        const char *problem)
{
    mk_config_error(config, NULL, NULL, "translations/%s.txt, line %u: %s", l->name, line, problem);
    return false;
}

static bool add_line(struct mk_config *config, struct duda_catalog *l, mk_str raw, unsigned number)
{
    mk_str line = mk_str_trim(raw);
    if (line.len && line.p[line.len - 1] == '\r')
        line = mk_str_trim(mk_str_first(line, line.len - 1));
    if (!line.len || line.p[0] == '#')
        return true;
    mk_str text = line, key = mk_str_trim(mk_str_cut(&text, '='));
    if (!text.p || !is_key(key))
        return report_line(config, l, number, "expected `key = text`");
    struct duda_entry *entries = mk_mem_realloc(l->entries, (l->n + 1) * sizeof *entries);
    if (!entries)
        return report_line(config, l, number, "memory is exhausted");
    l->entries = entries;
    text = mk_str_trim(text);
    char *base = l->text.p;
    text = unescape(text, base + (text.p - base));
    base[key.p - base + (ptrdiff_t)key.len] = '\0'; /* in place of a space or `=` */
    l->entries[l->n++] = (struct duda_entry){key.p, duda_value_text(text)};
    return true;
}

static bool parse_language(struct mk_config *config, struct duda_catalog *l)
{
    unsigned number = 0;
    mk_buf_add_char(&l->text, '\n'); /* the last message gets its NUL here */
    for (mk_str rest = mk_buf_str(&l->text); rest.len;) {
        mk_str line = mk_str_cut(&rest, '\n');
        if (!add_line(config, l, line, ++number))
            return false;
    }
    if (l->n)
        qsort(l->entries, l->n, sizeof *l->entries, compare_entries);
    for (size_t i = 1; i < l->n; i++)
        if (strcmp(l->entries[i - 1].name, l->entries[i].name) == 0) {
            mk_config_error(config, NULL, NULL, "translations/%s.txt: the key `%s` appears twice", l->name,
                            l->entries[i].name);
            return false;
        }
    return true;
}

/* Adds the messages that a language lacks, from the default language. */
static bool resolve_catalog(struct mk_config *config, struct duda_catalog *l, const struct duda_catalog *main)
{
    struct duda_entry *all = mk_mem_alloc((main->n + 1) * sizeof *all);
    if (!all)
        return false;
    for (size_t i = 0; i < l->n; i++)
        if (!find_entry(main, l->entries[i].name)) {
            mk_config_error(config, NULL, NULL, "translations/%s.txt: the key `%s` is not in %s.txt", l->name,
                            l->entries[i].name, main->name);
            mk_mem_free(all);
            return false;
        }
    for (size_t i = 0; i < main->n; i++) {
        const struct duda_entry *own = find_entry(l, main->entries[i].name);
        all[i] = own ? *own : main->entries[i];
    }
    mk_mem_free(l->entries);
    l->entries = all;
    l->n = main->n;
    return true;
}

/* Adds the language of a file named LANGUAGE.txt; other files are ignored. */
static bool add_language(struct mk_config *config, struct duda_translations *all, int folder,
                         const char *file)
{
    mk_str name = mk_str_from_c(file);
    if (name.p[0] == '.' || !mk_str_ends(name, MK_STR(".txt")))
        return true;
    name = mk_str_first(name, name.len - 4);
    struct duda_catalog *l = &all->languages[all->n];
    if (name.len == 0 || name.len > LANGUAGE_LEN || all->n == LANGUAGES_MAX) {
        mk_config_error(config, NULL, NULL, "translations/%s: too many languages, or the name is too long",
                        file);
        return false;
    }
    memcpy(l->name, name.p, name.len);
    l->text = mk_buf_growing(FILE_SIZE_MAX + 8192);
    all->n++;
    int e = duda_service_folder_read(folder, file, FILE_SIZE_MAX, &l->text);
    if (e)
        mk_config_error(config, NULL, NULL, "translations/%s: %s", file,
                        e == -EFBIG ? "larger than 1 MB" : strerror(-e));
    return !e;
}

static int compare_languages(const void *a, const void *b)
{
    const struct duda_catalog *x = a, *y = b;
    int first = strcmp(y->name, "en") == 0, second = strcmp(x->name, "en") == 0;
    return first != second ? first - second : strcmp(x->name, y->name);
}

static void free_translations(void *data)
{
    struct duda_translations *all = data;
    for (size_t i = 0; i < all->n; i++) {
        mk_buf_free(&all->languages[i].text);
        mk_mem_free(all->languages[i].entries);
    }
    mk_mem_free(all);
}

static bool read_languages(struct mk_config *config, struct duda_translations *all, int fd)
{
    DIR *folder = fdopendir(fd);
    const struct dirent *entry;
    bool ok = folder != NULL;
    if (!folder)
        close(fd);
    while (ok && (entry = readdir(folder)))
        ok = add_language(config, all, dirfd(folder), entry->d_name);
    if (folder)
        closedir(folder);
    qsort(all->languages, all->n, sizeof all->languages[0], compare_languages);
    for (size_t i = 0; ok && i < all->n; i++) {
        all->names[i] = all->languages[i].name;
        ok = parse_language(config, &all->languages[i]) &&
             (i == 0 || resolve_catalog(config, &all->languages[i], &all->languages[0]));
    }
    return ok;
}

bool duda_translations_load(struct mk_config *config, const struct duda_service *service,
                            const struct duda_translations **out)
{
    int fd = duda_service_folder_open(service, "translations");
    *out = NULL;
    if (fd < 0)
        return true;
    struct duda_translations *all = mk_mem_zalloc(1, sizeof *all);
    if (!all || !mk_config_add_cleanup(config, free_translations, all)) {
        mk_mem_free(all);
        close(fd);
        return false;
    }
    bool ok = read_languages(config, all, fd);
    *out = all->n ? all : NULL;
    return ok;
}

/* ---- The language of a request ---- */

static const struct duda_catalog *find_language(struct duda_ctx *d)
{
    const struct duda_translations *all = d->owner ? d->owner->translations : NULL;
    if (!all || (d->extras && d->extras->language))
        return all ? d->extras->language : NULL;
    struct duda_extras *extras = d->request ? duda_extras_get(d) : NULL;
    const struct duda_catalog *found = &all->languages[extras ? duda_accepts_language(d, all->names) : 0];
    if (extras)
        extras->language = found;
    return found;
}

const char *duda_language(struct duda_ctx *d)
{
    const struct duda_catalog *l = find_language(d);
    return l ? l->name : NULL;
}

int duda_set_language(struct duda_ctx *d, mk_str language)
{
    const struct duda_translations *all = d->owner ? d->owner->translations : NULL;
    for (size_t i = 0; all && i < all->n; i++)
        if (mk_str_eq(mk_str_from_c(all->names[i]), language)) {
            struct duda_extras *extras = duda_extras_get(d);
            if (extras)
                extras->language = &all->languages[i];
            return extras ? 0 : -ENOMEM;
        }
    return -ENOENT;
}

struct duda_value duda_translations(struct duda_ctx *d)
{
    const struct duda_catalog *l = find_language(d);
    return l ? duda_value_map(l->entries, l->n) : duda_value_null();
}

/* Appends the value of a placeholder. Returns false if there is none. */
static bool append_param(struct mk_buf *out, const struct duda_value *params, mk_str name)
{
    for (size_t i = 0; params->kind == DUDA_VALUE_MAP && i < params->n; i++) {
        if (!mk_str_eq(mk_str_from_c(params->of.map[i].name), name))
            continue;
        duda_value_write(out, &params->of.map[i].value);
        return true;
    }
    return false;
}

static void append_message(struct mk_buf *out, mk_str text, const struct duda_value *params)
{
    while (text.len) {
        size_t open = mk_str_find(text, '{');
        mk_buf_add(out, mk_str_first(text, open == MK_STR_NONE ? text.len : open));
        if (open == MK_STR_NONE)
            return;
        text = mk_str_skip(text, open);
        size_t end = mk_str_find(text, '}');
        bool is_param =
            end != MK_STR_NONE && append_param(out, params, mk_str_first(mk_str_skip(text, 1), end - 1));
        if (!is_param)
            mk_buf_add_char(out, '{');
        text = mk_str_skip(text, is_param ? end + 1 : 1);
    }
}

mk_str duda_translate(struct duda_ctx *d, const char *key, struct duda_value params)
{
    const struct duda_catalog *l = find_language(d);
    const struct duda_entry *entry = l ? find_entry(l, key) : NULL;
    struct mk_buf out = mk_buf_growing(TRANSLATION_MAX);
    if (!entry)
        return duda_strdup(d, mk_str_from_c(key));
    append_message(&out, entry->value.of.text, &params);
    mk_str text = out.failed ? MK_STR_NULL : duda_strdup(d, mk_buf_str(&out));
    mk_buf_free(&out);
    return text;
}
