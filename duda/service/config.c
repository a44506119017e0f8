/* SPDX-License-Identifier: Apache-2.0 */
/* Configuration sections of services, and secrets. */
#include <duda/config.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "service/duda_ctx.h"

const void *duda_settings(struct duda_ctx *d)
{
    return d->owner ? d->owner->settings : NULL;
}

/* ---- Secrets ---- */

static bool copy_secret(const struct mk_conf_ctx *conf_ctx, mk_str value, mk_str secret, mk_str *out)
{
    while (secret.len && (secret.p[secret.len - 1] == '\n' || secret.p[secret.len - 1] == '\r'))
        secret.len--;
    if (secret.len == 0) {
        mk_conf_ctx_error(conf_ctx, value, "the secret is empty");
        return false;
    }
    char *copy = mk_conf_ctx_alloc(conf_ctx, secret.len + 1);
    if (!copy)
        return false;
    memcpy(copy, secret.p, secret.len);
    *out = mk_str_of(copy, secret.len);
    return true;
}

static bool read_secret_variable(const struct mk_conf_ctx *conf_ctx, mk_str value, mk_str name, mk_str *out)
{
    char buf[128];
    struct mk_buf text = mk_buf_fixed(buf, sizeof buf - 1);
    mk_buf_add(&text, name);
    buf[text.len] = '\0';
    const char *secret = text.failed ? NULL : getenv(buf);
    if (secret)
        return copy_secret(conf_ctx, value, mk_str_from_c(secret), out);
    mk_conf_ctx_error(conf_ctx, value, "the environment variable `%.*s` is not set", MK_STR_ARG(name));
    return false;
}

static ssize_t read_whole_fd(int fd, char *buf, size_t cap)
{
    size_t len = 0;
    ssize_t n;
    while (len < cap && (n = read(fd, buf + len, cap - len)) != 0) {
        if (n < 0)
            return -errno;
        len += (size_t)n;
    }
    return (ssize_t)len;
}

static bool read_secret_file(const struct mk_conf_ctx *conf_ctx, mk_str value, mk_str name, mk_str *out)
{
    mk_str path = mk_conf_ctx_path(conf_ctx, name);
    char *buf = path.p ? mk_mem_alloc(DUDA_SECRET_MAX + 1) : NULL;
    if (!buf)
        return false;
    int fd = open(path.p, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -errno : read_whole_fd(fd, buf, DUDA_SECRET_MAX + 1);
    if (fd >= 0)
        close(fd);
    bool ok = false;
    if (n < 0)
        mk_conf_ctx_error(conf_ctx, value, "cannot read `%s`: %s", path.p, strerror((int)-n));
    else if (n > DUDA_SECRET_MAX)
        mk_conf_ctx_error(conf_ctx, value, "`%s` is longer than %d bytes", path.p, DUDA_SECRET_MAX);
    else
        ok = copy_secret(conf_ctx, value, mk_str_of(buf, (size_t)n), out);
    mk_mem_free(buf);
    return ok;
}

bool duda_secret(const struct mk_conf_ctx *conf_ctx, mk_str value, void *field)
{
    if (mk_str_starts(value, MK_STR("env:")))
        return read_secret_variable(conf_ctx, value, mk_str_skip(value, 4), field);
    if (mk_str_starts(value, MK_STR("file:")))
        return read_secret_file(conf_ctx, value, mk_str_skip(value, 5), field);
    return false; /* the server logs the expected syntax */
}
