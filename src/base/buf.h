/* SPDX-License-Identifier: Apache-2.0 */
/* Buffers for text. The whole interface is public: monkey/buf.h. */
#ifndef MK_BASE_BUF_H
#define MK_BASE_BUF_H

#include <monkey/buf.h>

#include "base/str.h"

#endif
