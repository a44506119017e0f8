/* SPDX-License-Identifier: Apache-2.0 */
/* Included once by a test that acts between two steps of the code under test, as another process might: at
 * the next clock read, or at the next hash. CMake wraps these functions. */
#ifndef MK_UNIT_MEANWHILE_H
#define MK_UNIT_MEANWHILE_H

#include <time.h>

#include "base/hash.h"

int __real_clock_gettime(clockid_t clock, struct timespec *out);
int __wrap_clock_gettime(clockid_t clock, struct timespec *out);
uint64_t __real_mk_hash(const struct mk_hash_key *key, mk_str s);
uint64_t __wrap_mk_hash(const struct mk_hash_key *key, mk_str s);

/* Each hook is called once. */
static void (*meanwhile_clock)(void), (*meanwhile_hash)(void);

static void call_once(void (**fn)(void))
{
    void (*now)(void) = *fn;
    *fn = NULL;
    if (now)
        now();
}

int __wrap_clock_gettime(clockid_t clock, struct timespec *out)
{
    call_once(&meanwhile_clock);
    return __real_clock_gettime(clock, out);
}

uint64_t __wrap_mk_hash(const struct mk_hash_key *key, mk_str s)
{
    call_once(&meanwhile_hash);
    return __real_mk_hash(key, s);
}

#endif
