/* SPDX-License-Identifier: Apache-2.0 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>

#include "net/tls.h"
#include "os/place.h"

#define SYMBOL "mk_tls_module"

/* In a program that has it built in. */
extern const struct mk_tls_module mk_tls_module __attribute__((weak));

static const struct mk_tls_module *module;
static char why_not[512];

static void fail(const char *path, const char *text)
{
    (void)snprintf(why_not, sizeof why_not, "%.400s: %s", path, text);
}

static const struct mk_tls_module *check(const struct mk_tls_module *m, const char *path)
{
    if (m && m->abi == MK_TLS_ABI)
        return m;
    fail(path, m ? "it is of another version of Monkey" : "it is no TLS of Monkey: it has no " SYMBOL);
    return NULL;
}

/* Stays open: what OpenSSL leaves to be done at the end of the process points into it. */
static void load(void)
{
    char path[PATH_MAX];
    if (&mk_tls_module) {
        module = check(&mk_tls_module, "the one built in");
        return;
    }
    if (!mk_place_find(MK_STR("tls"), path)) {
        (void)snprintf(why_not, sizeof why_not,
                       "there is no monkey-tls.so, neither beside the program nor in " MK_PLUGIN_DIR
                       ": Monkey was built without OpenSSL, or its part for TLS is not installed");
        return;
    }
    void *object = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (object)
        module = check(dlsym(object, SYMBOL), path);
    else {
        const char *text = dlerror(); /* names the file */
        (void)snprintf(why_not, sizeof why_not, "%.500s", text ? text : path);
    }
}

const struct mk_tls_module *mk_tls_load(const char **why)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load);
    if (why)
        *why = module ? NULL : why_not;
    return module;
}
