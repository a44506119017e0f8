/* SPDX-License-Identifier: Apache-2.0 */
/* Platform functions that differ between the server program, which owns its process, and libmonkey, which
 * runs in the process of another program. */
#ifndef MK_BASE_PLATFORM_H
#define MK_BASE_PLATFORM_H

#include "base/compiler.h"

struct mk_platform {
    /* The server may change process-wide state (users, the umask, signals), fork and print. */
    bool owns_process;
    /* The heap. */
    void *(*resize)(void *old, size_t size); /* like realloc(3); `size` is never 0 */
    void *(*zalloc)(size_t n, size_t size);  /* like calloc(3); neither `n` nor `size` is ever 0 */
    void (*free)(void *p);                   /* p is not NULL */
    /* Reports a failed assertion; the process aborts afterwards. */
    void (*on_bug)(const char *cond, const char *file, int line);
};

/* The server's platform is a weak symbol in platform.c; src/lib/platform.c overrides it in libmonkey. */
extern const struct mk_platform mk_platform;

#endif
