/* SPDX-License-Identifier: Apache-2.0 */
#include "server/config_store.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/num.h"
#include "os/fd.h"
#include "os/state_dir.h"

enum { LOCK_MS = 2000, ENCODED_MAX = 16 << 20, NAME_SIZE = 32, FILES_MAX = 200, NUMBER_MAX = 99999999 };

#define MAGIC MK_STR("monkey configuration 1")

const char *const mk_config_outcome_names[MK_OUTCOMES] = {
    [MK_OUTCOME_SERVES] = "served",
    [MK_OUTCOME_UNCONFIRMED] = "not confirmed",
    [MK_OUTCOME_CONFIRMED] = "confirmed",
    [MK_OUTCOME_ROLLED_BACK] = "rolled back",
};

/* ---- The folder ---- */

/* Writes the path without repeated slashes, `.` and `..`. Links are not resolved: a deployment that switches a link
 * keeps its history. */
static void normalize_path(mk_str path, struct mk_buf *out)
{
    while (path.len) {
        mk_str part = mk_str_cut(&path, '/');
        size_t parent = mk_str_find_last(mk_buf_str(out), '/');
        if (mk_str_eq(part, MK_STR("..")))
            out->len = parent == MK_STR_NONE ? 0 : parent;
        else if (part.len && !mk_str_eq(part, MK_STR(".")))
            mk_buf_addf(out, "/%.*s", MK_STR_ARG(part));
    }
}

/* A hash of the path, under which `-c /etc/monkey`, `-c /etc/../etc/monkey/` and `-c /etc/monkey/monkey.conf` are the
 * same. Two paths with one hash would share their ten files, which is harmless: a file contains its path. */
static uint32_t path_id(const char *path)
{
    const struct mk_hash_key fixed = {0};
    char buf[PATH_MAX];
    struct mk_buf normal = mk_buf_fixed(buf, sizeof buf);
    normalize_path(mk_str_from_c(path), &normal);
    mk_str rest = mk_buf_str(&normal);
    if (mk_str_ends(rest, MK_STR("/monkey.conf")))
        rest.len -= sizeof "/monkey.conf" - 1;
    return (uint32_t)mk_hash(&fixed, rest);
}

static mk_err open_store(int *dir, const char **error)
{
    char path[PATH_MAX], state[PATH_MAX - 16];
    mk_err e = mk_state_dir_path(path);
    *error = e ? "there is no state folder (set MONKEY_STATE)" : "";
    *dir = -1;
    if (e || snprintf(state, sizeof state, "%s", path) >= (int)sizeof state)
        return e ? e : -ENAMETOOLONG;
    snprintf(path, sizeof path, "%s/configurations", state);
    e = mk_state_dir_open(path, dir, error);
    if (!e && (e = mk_state_dir_lock(*dir, LOCK_MS))) {
        *error = "another process holds the lock of the folder";
        mk_fd_close(dir);
    }
    return e;
}

static void write_name(char name[NAME_SIZE], const char *path, unsigned number)
{
    snprintf(name, NAME_SIZE, "%08x-%08u", (unsigned)path_id(path), number);
}

/* Returns the number in the name of a file; 0: the file is not of this configuration. */
static unsigned number_of_name(const char *name, const char *path)
{
    char prefix[NAME_SIZE];
    uint64_t n;
    write_name(prefix, path, 0);
    if (strncmp(name, prefix, 9) != 0 || strlen(name) != 17 || !mk_num_parse(mk_str_from_c(name + 9), &n))
        return 0;
    return (unsigned)n;
}

/* The largest numbers, in descending order. */
struct number_list {
    unsigned at[MK_CONFIG_STORE_KEPT];
    size_t n;
};

static void insert_number(struct number_list *l, unsigned number)
{
    size_t i = 0;
    while (i < l->n && l->at[i] > number)
        i++;
    if (i == MK_LEN(l->at))
        return;
    l->n = mk_min(l->n + 1, MK_LEN(l->at));
    memmove(&l->at[i + 1], &l->at[i], (l->n - 1 - i) * sizeof *l->at);
    l->at[i] = number;
}

static DIR *rewind_folder(int dir)
{
    int copy = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = copy < 0 ? NULL : fdopendir(copy);
    if (!d)
        mk_fd_close(&copy);
    return d;
}

static void list_numbers(int dir, const char *path, struct number_list *out)
{
    DIR *d = rewind_folder(dir);
    *out = (struct number_list){0};
    for (struct dirent *e = d ? readdir(d) : NULL; e; e = readdir(d)) {
        unsigned number = number_of_name(e->d_name, path);
        if (number)
            insert_number(out, number);
    }
    if (d)
        closedir(d);
}

/* ---- Files ---- */

static void encode_entry(struct mk_buf *out, const struct mk_config_entry *entry, mk_str texts)
{
    mk_buf_add(out, MAGIC);
    mk_buf_addf(out, "\n%lld %d %u %s\n", (long long)entry->time, (int)entry->outcome, entry->source,
                entry->by);
    mk_buf_add(out, texts);
}

/* `texts` receives the encoded texts. */
static bool decode_entry(mk_str encoded, struct mk_config_entry *entry, mk_str *texts)
{
    uint64_t outcome, source;
    mk_str magic = mk_str_cut(&encoded, '\n'), by = mk_str_cut(&encoded, '\n');
    mk_str time = mk_str_cut(&by, ' '), number = mk_str_cut(&by, ' '), from = mk_str_cut(&by, ' ');
    if (!mk_str_eq(magic, MAGIC) || !mk_num_parse_int(time, &entry->time) ||
        !mk_num_parse(number, &outcome) || outcome >= MK_OUTCOMES || !mk_num_parse(from, &source) ||
        source > NUMBER_MAX)
        return false;
    entry->source = (unsigned)source;
    entry->outcome = (enum mk_config_outcome)outcome;
    snprintf(entry->by, sizeof entry->by, "%.*s", MK_STR_ARG(by));
    *texts = encoded;
    return true;
}

/* Reads the file of entry->number. `buf` receives its content, to which *texts points. */
static mk_err read_entry(int dir, const char *path, struct mk_config_entry *entry, struct mk_buf *buf,
                         mk_str *texts, const char **error)
{
    char name[NAME_SIZE];
    write_name(name, path, entry->number);
    mk_err e = mk_state_dir_read(dir, name, true, buf, error);
    if (e || decode_entry(mk_buf_str(buf), entry, texts))
        return e;
    *error = "the file is damaged";
    return -EBADMSG;
}

static mk_err write_entry(int dir, const char *path, const struct mk_config_entry *entry, mk_str texts,
                          const char **error)
{
    char name[NAME_SIZE];
    struct mk_buf out = mk_buf_growing(ENCODED_MAX);
    write_name(name, path, entry->number);
    encode_entry(&out, entry, texts);
    mk_err e = out.failed ? -EFBIG : mk_state_dir_write(dir, name, S_IRUSR | S_IWUSR, mk_buf_str(&out));
    *error = mk_err_text(e);
    mk_buf_free(&out);
    return e;
}

/* Deletes the configurations older than the last ten. */
static void delete_old_entries(int dir, const char *path)
{
    struct number_list kept;
    list_numbers(dir, path, &kept);
    unsigned oldest = kept.n == MK_LEN(kept.at) ? kept.at[kept.n - 1] : 0;
    DIR *d = rewind_folder(dir);
    for (struct dirent *e = d ? readdir(d) : NULL; e; e = readdir(d)) {
        unsigned number = number_of_name(e->d_name, path);
        if (number && number < oldest)
            unlinkat(dir, e->d_name, 0);
    }
    if (d)
        closedir(d);
}

/* Limits the files of all servers together: the paths of a test or of a deployment may never come back. */
static void delete_oldest_file(int dir)
{
    char oldest[NAME_SIZE] = "";
    int64_t oldest_time = INT64_MAX;
    size_t n = 0;
    struct stat st;
    DIR *d = rewind_folder(dir);
    for (struct dirent *e = d ? readdir(d) : NULL; e; e = readdir(d)) {
        if (strlen(e->d_name) != 17 || fstatat(dir, e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
            continue;
        n++;
        if (st.st_mtime >= oldest_time)
            continue;
        oldest_time = st.st_mtime;
        memcpy(oldest, e->d_name, 18);
    }
    if (d)
        closedir(d);
    if (n > FILES_MAX)
        unlinkat(dir, oldest, 0);
}

/* ---- Public functions ---- */

mk_err mk_config_store_list(const char *path, struct mk_config_list *out, const char **error)
{
    struct number_list numbers;
    struct mk_buf buf = mk_buf_growing(ENCODED_MAX);
    mk_str texts;
    int dir;
    *out = (struct mk_config_list){0};
    mk_err e = open_store(&dir, error);
    if (e)
        return e;
    list_numbers(dir, path, &numbers);
    for (size_t i = 0; i < numbers.n; i++) {
        struct mk_config_entry entry = {.number = numbers.at[i]};
        mk_buf_clear(&buf);
        if (!read_entry(dir, path, &entry, &buf, &texts, error))
            out->at[out->n++] = entry;
    }
    mk_buf_free(&buf);
    mk_fd_close(&dir);
    return 0;
}

mk_err mk_config_store_read(const char *path, unsigned number, struct mk_config_entry *entry,
                            struct mk_config_texts *texts, const char **error)
{
    struct mk_buf buf = mk_buf_growing(ENCODED_MAX);
    mk_str encoded;
    int dir;
    mk_err e = open_store(&dir, error);
    if (e)
        return e;
    *entry = (struct mk_config_entry){.number = number};
    e = read_entry(dir, path, entry, &buf, &encoded, error);
    if (!e && !mk_config_texts_decode(texts, encoded)) {
        *error = texts->arena.failed ? "out of memory" : "the file is damaged";
        e = texts->arena.failed ? -ENOMEM : -EBADMSG;
    }
    mk_buf_free(&buf);
    mk_fd_close(&dir);
    return e;
}

/* Returns the number for the configuration: that of the newest one if it has the same texts. */
static unsigned choose_number(int dir, const char *path, mk_str texts)
{
    struct number_list numbers;
    struct mk_config_entry newest = {0};
    struct mk_buf buf = mk_buf_growing(ENCODED_MAX);
    const char *error;
    mk_str of_newest;
    list_numbers(dir, path, &numbers);
    newest.number = numbers.n ? numbers.at[0] : 0;
    bool same =
        numbers.n && !read_entry(dir, path, &newest, &buf, &of_newest, &error) && mk_str_eq(of_newest, texts);
    mk_buf_free(&buf);
    return same || newest.number >= NUMBER_MAX ? newest.number : newest.number + 1;
}

mk_err mk_config_store_add(const char *path, struct mk_config_entry *entry,
                           const struct mk_config_texts *texts, const char **error)
{
    struct mk_buf encoded = mk_buf_growing(ENCODED_MAX);
    int dir;
    mk_err e = open_store(&dir, error);
    if (e)
        return e;
    mk_config_texts_encode(texts, &encoded);
    entry->number = choose_number(dir, path, mk_buf_str(&encoded));
    e = encoded.failed ? -EFBIG : write_entry(dir, path, entry, mk_buf_str(&encoded), error);
    *error = mk_err_text(e);
    delete_old_entries(dir, path);
    delete_oldest_file(dir);
    mk_buf_free(&encoded);
    mk_fd_close(&dir);
    return e;
}

mk_err mk_config_store_update(const char *path, const struct mk_config_entry *entry, const char **error)
{
    struct mk_config_entry stored = {.number = entry->number};
    struct mk_buf buf = mk_buf_growing(ENCODED_MAX);
    mk_str texts;
    int dir;
    mk_err e = open_store(&dir, error);
    if (e)
        return e;
    e = read_entry(dir, path, &stored, &buf, &texts, error);
    if (!e)
        e = write_entry(dir, path, entry, texts, error);
    mk_buf_free(&buf);
    mk_fd_close(&dir);
    return e;
}
