/* SPDX-License-Identifier: Apache-2.0 */
/* Internals of the package auth. */
#ifndef AUTH_AUTH_H
#define AUTH_AUTH_H

#include <duda/auth.h>
#include <monkey/worker.h>

enum { AUTH_VERIFIED_MAX = 256, AUTH_VERIFIED_S = 60, AUTH_TAG_SIZE = 32 };

/* The passwords that one worker has verified recently: tags of a keyed hash, so the cache contains no
 * passwords. */
struct auth_worker {
    char key[AUTH_TAG_SIZE];
    struct auth_verified {
        char tag[AUTH_TAG_SIZE];
        int64_t until;
    } verified[AUTH_VERIFIED_MAX];
};
/* Sets the plugin, which keeps an auth_worker for each worker. Called before workers start. */
void auth_basic_set_plugin(const struct mk_plugin *plugin);

#endif
