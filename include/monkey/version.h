/* SPDX-License-Identifier: Apache-2.0 */
/* The release of these headers, and of the server or library that runs. */
#ifndef MONKEY_VERSION_H
#define MONKEY_VERSION_H

#include <monkey/api.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The version of the release (semantic versioning). */
#define MONKEY_VERSION_MAJOR 2
#define MONKEY_VERSION_MINOR 0
#define MONKEY_VERSION_PATCH 0
#define MONKEY_VERSION       "2.0.0"

/**
 * Returns the version of the running server or library, such as "2.0.0". It may be later than the
 * MONKEY_VERSION that the caller was compiled with.
 *
 *     printf("built for %s, running %s\n", MONKEY_VERSION, mk_version());
 */
MK_API const char *mk_version(void);

#ifdef __cplusplus
}
#endif

#endif
