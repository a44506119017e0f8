/* SPDX-License-Identifier: Apache-2.0 */
#include "setup/conf_disk_io.h"

#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#include "os/file.h"
#include "os/path_glob.h"

static bool to_cstr(mk_str s, char buf[PATH_MAX])
{
    if (s.len >= PATH_MAX)
        return false;
    memcpy(buf, s.p, s.len);
    buf[s.len] = '\0';
    return true;
}

static mk_err read_file(void *ctx, mk_str path, struct mk_buf *out)
{
    char name[PATH_MAX];
    (void)ctx;
    return to_cstr(path, name) ? mk_file_read_all(name, out) : -ENAMETOOLONG;
}

static mk_err glob_files(void *ctx, mk_str pattern, bool (*found)(void *data, mk_str path), void *data)
{
    (void)ctx;
    return mk_path_glob(pattern, found, data);
}

static mk_str read_env(void *ctx, mk_str name)
{
    char text[256];
    (void)ctx;
    if (name.len >= sizeof text)
        return MK_STR_NULL;
    memcpy(text, name.p, name.len);
    text[name.len] = '\0';
    return mk_str_from_c(getenv(text));
}

static bool file_exists(void *ctx, mk_str path)
{
    char name[PATH_MAX];
    (void)ctx;
    return to_cstr(path, name) && access(name, R_OK) == 0;
}

const struct mk_conf_io mk_conf_disk_io = {
    .read = read_file, .glob = glob_files, .env = read_env, .exists = file_exists};
