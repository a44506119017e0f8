/* SPDX-License-Identifier: Apache-2.0 */
/* How this program was built, and what the system it runs on offers. */
#ifndef MK_CLI_ABOUT_H
#define MK_CLI_ABOUT_H

#include "base/buf.h"

void mk_about_write(struct mk_buf *out);

#endif
