/* SPDX-License-Identifier: Apache-2.0 */
#include "upstream/server_state.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "upstream/endpoint.h"

static bool parse_keyword(mk_str word, struct mk_server_state_entry *e)
{
    static const mk_str weight = MK_STR_INIT("weight=");
    uint64_t n;
    if (mk_str_starts(word, weight)) {
        if (!mk_num_parse(mk_str_skip(word, weight.len), &n) || n < 1 || n > MK_SERVER_WEIGHT_MAX)
            return false;
        e->weight = (unsigned)n;
    } else if (mk_str_eq(word, MK_STR("added"))) {
        e->is_added = true;
    } else if (mk_str_eq(word, MK_STR("discovered"))) {
        e->is_discovered = true;
    } else if (mk_str_eq(word, MK_STR("backup"))) {
        e->is_backup = true;
    } else if (mk_str_eq(word, MK_STR("drain"))) {
        e->mode = MK_SERVER_DRAINS;
    } else if (mk_str_eq(word, MK_STR("drain=move"))) {
        e->mode = MK_SERVER_MOVES;
    } else if (mk_str_eq(word, MK_STR("removed"))) {
        e->mode = MK_SERVER_REMOVED;
    } else {
        return false;
    }
    return true;
}

const char *mk_server_state_parse_line(mk_str line, struct mk_server_state_entry *out)
{
    struct mk_endpoint ignored;
    *out = (struct mk_server_state_entry){.server = mk_str_word(&line)};
    if (out->server.len >= MK_SERVER_NAME_MAX || !mk_endpoint_parse(&ignored, out->server))
        return "HOST:PORT, [ADDRESS6]:PORT or unix:/path";
    for (;;) {
        mk_str word = mk_str_word(&line);
        if (!word.len)
            return NULL;
        if (!parse_keyword(word, out))
            return "`added`, `discovered`, `backup`, `weight=N`, `drain`, `drain=move` or `removed`";
    }
}

static const struct mk_server_state_entry *find_entry(const struct mk_server_state *s, mk_str server)
{
    for (unsigned i = 0; i < s->n; i++)
        if (mk_str_eq(s->entries[i].server, server))
            return &s->entries[i];
    return NULL;
}

/* Returns NULL, or static text: why the line is not accepted. */
static const char *add_line(struct mk_server_state *out, mk_str line)
{
    struct mk_server_state_entry e;
    line = mk_str_trim(line);
    if (!line.len || line.p[0] == '#')
        return NULL;
    const char *expected = mk_server_state_parse_line(line, &e);
    if (expected)
        return expected;
    if (find_entry(out, e.server))
        return "each server once";
    if (out->n == MK_SERVERS_MAX)
        return "at most 64 servers";
    out->entries[out->n++] = e;
    return NULL;
}

static void parse_text(struct mk_config *config, const void *section, mk_str path, mk_str text,
                       struct mk_server_state *out)
{
    for (unsigned line = 1; text.len; line++) {
        const char *expected = add_line(out, mk_str_cut(&text, '\n'));
        if (!expected)
            continue;
        mk_config_warn(config, section, "StateFile",
                       "%.*s:%u: expected %s: the file is ignored, and the servers are as configured",
                       MK_STR_ARG(path), line, expected);
        out->n = 0;
        return;
    }
}

/* The workers can write to the folder of the file, so a compromised worker may have replaced the file. */
static ssize_t read_regular_file(const char *path, char *buf, size_t cap)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return -errno;
    ssize_t n = fstat(fd, &st) < 0 ? -errno : !S_ISREG(st.st_mode) ? -EINVAL : read(fd, buf, cap);
    close(fd);
    return n;
}

void mk_server_state_read(struct mk_config *config, const void *section, mk_str path,
                          struct mk_server_state *out)
{
    char text[MK_SERVER_STATE_FILE_MAX];
    ssize_t n = read_regular_file(path.p, text, sizeof text);
    out->n = 0;
    if (n == -ENOENT)
        return;
    if (n < 0 || (size_t)n == sizeof text) {
        mk_config_warn(config, section, "StateFile", "%.*s is ignored, and the servers are as configured: %s",
                       MK_STR_ARG(path), n < 0 ? strerror((int)-n) : "it has more than 32 KB");
        return;
    }
    mk_str copy = mk_config_copy(config, mk_str_of(text, (size_t)n));
    if (copy.p)
        parse_text(config, section, path, copy, out);
}
