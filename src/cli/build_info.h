/* SPDX-License-Identifier: Apache-2.0 */
/* How this program was built, and which features the system offers. */
#ifndef MK_CLI_BUILD_INFO_H
#define MK_CLI_BUILD_INFO_H

#include "base/buf.h"

/* The features that need a library, for people: what this program has, and what it lacks; "nothing" if the
 * list is empty. The build writes these two, see cmake/features.cmake. */
extern const char mk_features_with[];
extern const char mk_features_without[];

void mk_build_info_write(struct mk_buf *out);

#endif
