/* SPDX-License-Identifier: Apache-2.0 */
/* Databases in the format of MaxMind, through libmaxminddb: copied to memory once, and shared by all workers. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <maxminddb.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "setup/geo.h"

struct maxmind_database {
    struct mk_geo geo;
    MMDB_s db;
};

mk_geo_open_fn mk_geo_maxminddb_open;

static void close_database(void *data)
{
    struct maxmind_database *d = data;
    MMDB_close(&d->db);
}

static struct sockaddr_in6 sockaddr_of(const struct mk_addr *addr)
{
    struct sockaddr_in6 to = {.sin6_family = AF_INET6};
    memcpy(&to.sin6_addr, addr->ip, sizeof addr->ip);
    return to;
}

/* A database for IPv4 only does not know the prefix of mapped addresses. */
static MMDB_lookup_result_s look_up(const MMDB_s *db, const struct mk_addr *addr, int *error)
{
    static const uint8_t v4[12] = {[10] = 0xff, [11] = 0xff};
    struct sockaddr_in6 address = sockaddr_of(addr);
    struct sockaddr_in short_address = {.sin_family = AF_INET};
    if (memcmp(addr->ip, v4, sizeof v4) != 0)
        return MMDB_lookup_sockaddr(db, (const struct sockaddr *)&address, error);
    memcpy(&short_address.sin_addr, addr->ip + sizeof v4, sizeof short_address.sin_addr);
    return MMDB_lookup_sockaddr(db, (const struct sockaddr *)&short_address, error);
}

static void read_country(MMDB_entry_s *entry, struct mk_geo_record *out)
{
    MMDB_entry_data_s data;
    if (MMDB_get_value(entry, &data, "country", "iso_code", NULL) == MMDB_SUCCESS && data.has_data &&
        data.type == MMDB_DATA_TYPE_UTF8_STRING && data.data_size == sizeof out->country)
        memcpy(out->country, data.utf8_string, sizeof out->country);
}

static void read_asn(MMDB_entry_s *entry, struct mk_geo_record *out)
{
    MMDB_entry_data_s data;
    if (MMDB_get_value(entry, &data, "autonomous_system_number", NULL) == MMDB_SUCCESS && data.has_data &&
        data.type == MMDB_DATA_TYPE_UINT32)
        out->asn = data.uint32;
}

static void find_record(const struct mk_geo *geo, const struct mk_addr *addr, struct mk_geo_record *out)
{
    const struct maxmind_database *d = (const struct maxmind_database *)geo;
    int error = 0;
    MMDB_lookup_result_s found = look_up(&d->db, addr, &error);
    if (error != MMDB_SUCCESS || !found.found_entry)
        return;
    read_country(&found.entry, out);
    read_asn(&found.entry, out);
}

/* ---- Loading ---- */

enum { PIECE = 1 << 20, SEALS = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL };

/* Copies the content of a file. Returns 0 or a negated errno value. */
static int copy_file(int to, int from)
{
    struct stat st;
    ssize_t n;
    if (fstat(from, &st))
        return -errno;
    if (!S_ISREG(st.st_mode))
        return -EINVAL;
    while ((n = sendfile(to, from, NULL, PIECE)) > 0 || (n < 0 && errno == EINTR))
        ;
    return n < 0 || fcntl(to, F_ADD_SEALS, SEALS) ? -errno : 0;
}

/* Copies the file to memory: a mapping of the file itself would crash all workers (SIGBUS) when an update truncates it.
 * Returns a descriptor or a negated errno value. */
static int load_file(const char *path)
{
    int from = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (from < 0)
        return -errno;
    int to = memfd_create("monkey-geo", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    int e = to < 0 ? -errno : copy_file(to, from);
    close(from);
    if (!e)
        return to;
    if (to >= 0)
        close(to);
    return e;
}

/* Returns NULL, or a text that describes the failure. */
static const char *open_database(const char *path, MMDB_s *db)
{
    char copy[sizeof "/proc/self/fd/" + 3 * sizeof(int)];
    int fd = load_file(path);
    if (fd < 0)
        return mk_err_text(fd);
    (void)snprintf(copy, sizeof copy, "/proc/self/fd/%d", fd);
    int error = MMDB_open(copy, MMDB_MODE_MMAP, db);
    close(fd);
    return error == MMDB_SUCCESS ? NULL : MMDB_strerror(error);
}

const char *mk_geo_maxminddb_open(const char *path, struct mk_arena *arena, const struct mk_geo **list)
{
    struct maxmind_database *d = mk_arena_zalloc(arena, 1, sizeof *d);
    if (!d)
        return NULL; /* the report detects it in the arena */
    const char *error = open_database(path, &d->db);
    if (error)
        return error;
    if (!mk_arena_add_cleanup(arena, close_database, d)) {
        MMDB_close(&d->db);
        return NULL;
    }
    d->geo = (struct mk_geo){.find = find_record, .next = *list};
    *list = &d->geo;
    return NULL;
}
