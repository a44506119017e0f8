/* SPDX-License-Identifier: Apache-2.0 */
/* Information for `monkey -V`: how this program was built, and which features the system offers. */
#ifndef MK_SERVER_BUILD_INFO_H
#define MK_SERVER_BUILD_INFO_H

#include "base/buf.h"

/* Features that require a library: those that this program has, and those that it lacks. Each list is
 * separated by commas, and may be empty. The build generates both lists: see cmake/features.cmake. */
extern const char mk_features_with[];
extern const char mk_features_without[];

void mk_build_info_write(struct mk_buf *out);

#endif
