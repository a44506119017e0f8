/* SPDX-License-Identifier: Apache-2.0 */
/* Settings of services, and secrets. */
#include <duda/settings.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "service/duda_type.h"

const void *duda_settings(const struct duda *d)
{
    return d->owner ? d->owner->settings : NULL;
}

/* ---- Secrets ---- */

static bool keep(const struct mk_conf_spot *spot, mk_str value, mk_str secret, mk_str *out)
{
    while (secret.len && (secret.p[secret.len - 1] == '\n' || secret.p[secret.len - 1] == '\r'))
        secret.len--;
    if (secret.len == 0) {
        mk_conf_spot_error(spot, value, "the secret is empty");
        return false;
    }
    char *copy = mk_conf_spot_alloc(spot, secret.len + 1);
    if (!copy)
        return false;
    memcpy(copy, secret.p, secret.len);
    *out = mk_str_of(copy, secret.len);
    return true;
}

static bool read_variable(const struct mk_conf_spot *spot, mk_str value, mk_str name, mk_str *out)
{
    char room[128];
    struct mk_buf text = mk_buf_fixed(room, sizeof room - 1);
    mk_buf_add(&text, name);
    room[text.len] = '\0';
    const char *secret = text.failed ? NULL : getenv(room);
    if (secret)
        return keep(spot, value, mk_str_from_c(secret), out);
    mk_conf_spot_error(spot, value, "the environment has no variable `%.*s`", MK_STR_ARG(name));
    return false;
}

static ssize_t read_all(int fd, char *room, size_t cap)
{
    size_t len = 0;
    ssize_t n;
    while (len < cap && (n = read(fd, room + len, cap - len)) != 0) {
        if (n < 0)
            return -errno;
        len += (size_t)n;
    }
    return (ssize_t)len;
}

static bool read_file(const struct mk_conf_spot *spot, mk_str value, mk_str name, mk_str *out)
{
    mk_str path = mk_conf_spot_path(spot, name);
    char *room = path.p ? mk_mem_alloc(DUDA_SECRET_MAX + 1) : NULL;
    if (!room)
        return false;
    int fd = open(path.p, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -errno : read_all(fd, room, DUDA_SECRET_MAX + 1);
    if (fd >= 0)
        close(fd);
    bool ok = false;
    if (n < 0)
        mk_conf_spot_error(spot, value, "cannot read `%s`: %s", path.p, strerror((int)-n));
    else if (n > DUDA_SECRET_MAX)
        mk_conf_spot_error(spot, value, "`%s` has more than %d bytes", path.p, DUDA_SECRET_MAX);
    else
        ok = keep(spot, value, mk_str_of(room, (size_t)n), out);
    mk_mem_free(room);
    return ok;
}

bool duda_secret(const struct mk_conf_spot *spot, mk_str value, void *field)
{
    if (mk_str_starts(value, MK_STR("env:")))
        return read_variable(spot, value, mk_str_skip(value, 4), field);
    if (mk_str_starts(value, MK_STR("file:")))
        return read_file(spot, value, mk_str_skip(value, 5), field);
    return false; /* the server says what was expected */
}
