/* SPDX-License-Identifier: Apache-2.0 */
/* Writing text: all of it is public. */
#ifndef MK_BASE_BUF_H
#define MK_BASE_BUF_H

#include <monkey/buf.h>

#include "base/str.h"

#endif
