/* SPDX-License-Identifier: Apache-2.0 */
#include "server.h"

#include "dev/crash.h"
#include "test_type.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct tester_service service;
static struct mk_server *server;
static bool is_stopping;
static const char *folder = "";
static volatile bool *is_broken;

void tester_server_set_service(const struct tester_service *s)
{
    service = *s;
}

void tester_server_set_test(const char *path, volatile bool *flag)
{
    folder = path;
    is_broken = flag;
}

const char *tester_folder(void)
{
    return folder;
}

/* Packages call this function, if the program defines it, to keep the data of tests apart. */
__attribute__((visibility("default"))) const char *duda_test_folder(void)
{
    return folder;
}

int tester_print_error(const char *problem)
{
    fprintf(stderr, "monkey test: %s\n", problem);
    return TESTER_BROKEN;
}

static void on_log(void *ctx, enum mk_log_level level, mk_str text)
{
    static const char *const names[] = {"error", "warn", "info", "debug"};
    (void)ctx;
    if (is_stopping && mk_str_ends(text, MK_STR(" was cancelled: the worker stops")))
        return; /* the end of the test cancels its background tasks */
    fprintf(stderr, "%s: %.*s\n", level < MK_LEN(names) ? names[level] : "?", MK_STR_ARG(text));
}

/* Returns the folder of this program, which also contains the plugins. */
static const char *find_own_folder(char path[PATH_MAX])
{
    ssize_t len = readlink("/proc/self/exe", path, PATH_MAX - 1);
    path[len > 0 ? len : 0] = '\0';
    char *slash = strrchr(path, '/');
    if (!slash)
        return NULL;
    *slash = '\0';
    return path;
}

static bool configure_server(struct mk_server *s)
{
    return mk_server_add_plugin(s, &tester_reason_plugin) == 0 &&
           mk_server_set(s, "PLUGINS", "Load", service.load) == 0 &&
           mk_server_add_vhost(s, NULL, *service.root ? service.root : NULL) == 0 &&
           (!*service.include || mk_server_load_config(s, service.include) == 0) && mk_server_fd(s) >= 0;
}

struct mk_server *tester_server(void)
{
    char path[PATH_MAX];
    const struct mk_server_options options = {
        .size = sizeof options, .on_log = on_log, .in_memory = true, .plugin_folder = find_own_folder(path)};
    if (server)
        return server;
    server = mk_server_new(&options);
    if (server && configure_server(server))
        return server;
    *is_broken = true;
    int code = tester_print_error(server ? mk_server_error(server) : "out of memory");
    dev_crash_ignore_exit();
    exit(code);
}

bool tester_server_is_started(void)
{
    return server != NULL;
}

void tester_server_free(void)
{
    is_stopping = true;
    mk_server_free(server);
    is_stopping = false;
    server = NULL;
}
