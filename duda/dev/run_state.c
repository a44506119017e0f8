/* SPDX-License-Identifier: Apache-2.0 */
#include "run_state.h"

#include "inputs.h"

#include <duda/store_backend.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <monkey/text.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { KEY_SIZE = 64, PID_LEN = 16 };

/* Creates the key file unless it exists, and returns whether it exists. Another `monkey run` of the project may
 * do so at the same time, so the file gets its name when it is complete. */
static bool create_key_file(const char *path)
{
    char next[PATH_MAX];
    unsigned char key[KEY_SIZE];
    if (access(path, R_OK) == 0)
        return true;
    if (!dev_paths_format(next, "%s.%d", path, (int)getpid()))
        return false;
    mk_random(key, sizeof key);
    int fd = open(next, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    bool ok = fd >= 0 && write(fd, key, sizeof key) == (ssize_t)sizeof key;
    if (fd >= 0)
        close(fd);
    ok = ok && (link(next, path) == 0 || errno == EEXIST);
    (void)unlink(next);
    return ok;
}

void dev_run_state_export(const struct dev_paths *paths, const char *folder, const char *project)
{
    char key[PATH_MAX], value[2 * PATH_MAX + PID_LEN];
    bool has_key = dev_paths_format(key, "%s/key-%016llx", paths->cache,
                                    (unsigned long long)dev_inputs_hash_text(mk_str_from_c(project)));
    has_key = has_key && create_key_file(key);
    snprintf(value, sizeof value, "%d:%s:%s", (int)getpid(), folder, has_key ? key : "");
    (void)setenv(DUDA_RUN_STATE_VARIABLE, value, 1);
}

void dev_run_state_remove(const char *folder)
{
    char pattern[PATH_MAX];
    glob_t found;
    if (!dev_paths_format(pattern, "%s/state-*", folder) || glob(pattern, 0, NULL, &found) != 0)
        return;
    for (size_t i = 0; i < found.gl_pathc; i++)
        (void)unlink(found.gl_pathv[i]);
    globfree(&found);
}
