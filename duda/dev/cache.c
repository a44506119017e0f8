/* SPDX-License-Identifier: Apache-2.0 */
#include "cache.h"

#include "inputs.h"

#include <dirent.h>
#include <fcntl.h>
#include <monkey/text.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { FILES_MAX = 1024 * 1024, WARNINGS_MAX = 4 * 1024 * 1024, WEEK_S = 7 * 24 * 3600, HEX = 32 };

bool dev_cache_locate(const struct dev_paths *paths, mk_str key, const char *ending,
                      struct dev_cache_entry *entry)
{
    static const struct mk_hash_key other = {3, 4}; /* for a hash of 128 bits */
    char hex[HEX + 1];
    snprintf(hex, sizeof hex, "%016llx%016llx", (unsigned long long)dev_inputs_hash_text(key),
             (unsigned long long)mk_hash(&other, key));
    return dev_paths_format(entry->object, "%s/%s%s", paths->cache, hex, ending) &&
           dev_paths_format(entry->list, "%s/%s.list", paths->cache, hex) &&
           dev_paths_format(entry->warnings, "%s/%s.warnings", paths->cache, hex);
}

/* The first line of a list is the hash of the files. */
static bool read_list(const char *path, struct mk_buf *files, uint64_t *stamp)
{
    struct mk_buf text = mk_buf_growing(FILES_MAX);
    unsigned long long read_stamp = 0;
    bool ok = dev_source_read_file(path, &text);
    mk_str rest = mk_buf_str(&text), first = mk_str_cut(&rest, '\n');
    char number[32];
    snprintf(number, sizeof number, "%.*s", MK_STR_ARG(first));
    ok = ok && rest.p && sscanf(number, "%llx", &read_stamp) == 1;
    if (ok) {
        mk_buf_clear(files);
        mk_buf_add(files, rest);
        *stamp = read_stamp;
    }
    mk_buf_free(&text);
    return ok;
}

static void append_warnings(const struct dev_cache_entry *entry, struct mk_buf *messages)
{
    struct mk_buf text = mk_buf_growing(WARNINGS_MAX);
    if (access(entry->warnings, R_OK) == 0 && dev_source_read_file(entry->warnings, &text))
        mk_buf_add(messages, mk_buf_str(&text));
    mk_buf_free(&text);
}

bool dev_cache_lookup(const struct dev_cache_entry *entry, struct mk_buf *files, uint64_t *stamp,
                      struct mk_buf *messages)
{
    if (access(entry->object, R_OK) != 0 || !read_list(entry->list, files, stamp) ||
        dev_inputs_hash(mk_buf_str(files)) != *stamp)
        return false;
    (void)utimensat(AT_FDCWD, entry->object, NULL, 0); /* protects the object from dev_cache_clean() */
    (void)utimensat(AT_FDCWD, entry->list, NULL, 0);
    (void)utimensat(AT_FDCWD, entry->warnings, NULL, 0);
    append_warnings(entry, messages);
    return true;
}

void dev_cache_write_list(const struct dev_cache_entry *entry, mk_str files, uint64_t stamp, mk_str warnings)
{
    if (warnings.len)
        (void)dev_cache_write_file(entry->warnings, warnings);
    else
        (void)unlink(entry->warnings);
    struct mk_buf text = mk_buf_growing(FILES_MAX);
    mk_buf_addf(&text, "%016llx\n", (unsigned long long)stamp);
    mk_buf_add(&text, files);
    (void)dev_cache_write_file(entry->list, mk_buf_str(&text));
    mk_buf_free(&text);
}

bool dev_cache_write_file(const char *path, mk_str text)
{
    char next[PATH_MAX];
    if (!dev_paths_format(next, "%s.%d", path, (int)getpid()))
        return false;
    FILE *f = fopen(next, "we");
    if (!f)
        return false;
    bool ok = fwrite(text.p, 1, text.len, f) == text.len;
    ok = fclose(f) == 0 && ok;
    ok = ok && rename(next, path) == 0;
    if (!ok)
        unlink(next);
    return ok;
}

static bool is_cache_file_name(const char *name)
{
    size_t n = strspn(name, "0123456789abcdef");
    return n == HEX && name[n] == '.';
}

void dev_cache_clean(const struct dev_paths *paths)
{
    DIR *folder = opendir(paths->cache);
    struct dirent *entry;
    struct stat st;
    while (folder && (entry = readdir(folder)))
        if (is_cache_file_name(entry->d_name) &&
            fstatat(dirfd(folder), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode) &&
            st.st_mtime < time(NULL) - WEEK_S)
            (void)unlinkat(dirfd(folder), entry->d_name, 0);
    if (folder)
        closedir(folder);
}
