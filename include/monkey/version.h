/* SPDX-License-Identifier: Apache-2.0 */
/* The release of these headers. */
#ifndef MONKEY_VERSION_H
#define MONKEY_VERSION_H

/** The version of the release (semantic versioning). */
#define MONKEY_VERSION_MAJOR 2
#define MONKEY_VERSION_MINOR 0
#define MONKEY_VERSION_PATCH 0
#define MONKEY_VERSION       "2.0.0"

#endif
