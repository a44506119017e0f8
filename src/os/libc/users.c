/* SPDX-License-Identifier: Apache-2.0 */
/* Replaces the functions of the C library for users and groups in small static programs (MK_SMALL_LIBC):
 * reads /etc/passwd and /etc/group, without nscd and without streams. Each result is valid until the next
 * call; gr_mem of a group is always empty. */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef PASSWD_FILE
#define PASSWD_FILE "/etc/passwd"
#define GROUP_FILE  "/etc/group"
#endif

enum { PASSWD_FIELDS = 7, GROUP_FIELDS = 4, GROUPS_MAX = 256 };

/* A copy of the file, whose lines become NUL-terminated strings. */
struct lines {
    char *copy, *at;
    size_t size;
};

static void close_lines(struct lines *l)
{
    if (l->copy)
        (void)munmap(l->copy, l->size + 1);
    *l = (struct lines){0};
}

static void open_lines(struct lines *l, const char *path)
{
    struct stat st;
    size_t n = 0;
    close_lines(l);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    if (fstat(fd, &st) == 0) {
        l->size = (size_t)st.st_size;
        void *copy = mmap(NULL, l->size + 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        l->copy = l->at = copy == MAP_FAILED ? NULL : copy;
    }
    for (ssize_t got = 1; l->copy && got > 0; n += got > 0 ? (size_t)got : 0)
        got = read(fd, l->copy + n, l->size - n);
    (void)close(fd);
}

/* Splits the next line that has that number of fields. Returns 0 at the end. */
static int next_line(struct lines *l, char **fields, int n_fields)
{
    while (l->at && *l->at) {
        char *line = l->at;
        int n = 0;
        l->at += strcspn(line, "\n");
        if (*l->at)
            *l->at++ = '\0';
        for (char *rest = line; rest && n < n_fields; n++) {
            fields[n] = rest;
            rest = strchr(rest, ':');
            if (rest)
                *rest++ = '\0';
        }
        if (n == n_fields)
            return 1;
    }
    return 0;
}

/* Parses a decimal user or group ID. False: the text is not a number, or the number is too large. */
static int parse_id(const char *text, unsigned *id)
{
    unsigned long long n = 0;
    const char *p = text;
    for (; *p >= '0' && *p <= '9' && n <= 0xffffffff; p++)
        n = n * 10 + (unsigned)(*p - '0');
    *id = (unsigned)n;
    return *p == '\0' && p > text && n <= 0xffffffff;
}

/* ---- Users ---- */

static struct lines users;

void setpwent(void)
{
    open_lines(&users, PASSWD_FILE);
}

void endpwent(void)
{
    close_lines(&users);
}

struct passwd *getpwent(void)
{
    static struct passwd user;
    char *fields[PASSWD_FIELDS];
    if (!users.copy)
        setpwent();
    while (next_line(&users, fields, PASSWD_FIELDS)) {
        user = (struct passwd){.pw_name = fields[0],
                               .pw_passwd = fields[1],
                               .pw_gecos = fields[4],
                               .pw_dir = fields[5],
                               .pw_shell = fields[6]};
        if (parse_id(fields[2], &user.pw_uid) && parse_id(fields[3], &user.pw_gid))
            return &user;
    }
    return NULL;
}

struct passwd *getpwnam(const char *name)
{
    struct passwd *user;
    setpwent();
    while ((user = getpwent()) && strcmp(user->pw_name, name) != 0)
        ;
    return user;
}

struct passwd *getpwuid(uid_t uid)
{
    struct passwd *user;
    setpwent();
    while ((user = getpwent()) && user->pw_uid != uid)
        ;
    return user;
}

/* ---- Groups ---- */

struct group *getgrnam(const char *name)
{
    static char *no_members[] = {NULL};
    static struct group group;
    static struct lines groups;
    char *fields[GROUP_FIELDS];
    open_lines(&groups, GROUP_FILE);
    while (next_line(&groups, fields, GROUP_FIELDS)) {
        group = (struct group){.gr_name = fields[0], .gr_passwd = fields[1], .gr_mem = no_members};
        if (strcmp(fields[0], name) == 0 && parse_id(fields[2], &group.gr_gid))
            return &group;
    }
    return NULL;
}

static int has_member(const char *members, const char *user)
{
    size_t len = strlen(user);
    for (;;) {
        size_t n = strcspn(members, ",");
        if (n == len && memcmp(members, user, n) == 0)
            return 1;
        if (!members[n])
            return 0;
        members += n + 1;
    }
}

int getgrouplist(const char *user, gid_t gid, gid_t *list, int *size)
{
    struct lines groups = {0};
    char *fields[GROUP_FIELDS];
    int room = *size, n = 1;
    gid_t other;
    if (room > 0)
        list[0] = gid;
    open_lines(&groups, GROUP_FILE);
    while (next_line(&groups, fields, GROUP_FIELDS)) {
        if (!parse_id(fields[2], &other) || other == gid || !has_member(fields[3], user))
            continue;
        if (n < room)
            list[n] = other;
        n++;
    }
    close_lines(&groups);
    *size = n;
    return n > room ? -1 : n;
}

int initgroups(const char *user, gid_t gid)
{
    gid_t list[GROUPS_MAX];
    int n = GROUPS_MAX;
    if (getgrouplist(user, gid, list, &n) < 0) {
        errno = E2BIG;
        return -1;
    }
    return setgroups((size_t)n, list);
}
