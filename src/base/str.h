/* SPDX-License-Identifier: Apache-2.0 */
/* Text as pointer and length. The whole interface is public: monkey/str.h. */
#ifndef MK_BASE_STR_H
#define MK_BASE_STR_H

#include <monkey/str.h>

#include "base/compiler.h"

#endif
