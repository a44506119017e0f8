/* SPDX-License-Identifier: Apache-2.0 */
/* What both ends must agree on. */
#ifndef SHELL_PROTOCOL_H
#define SHELL_PROTOCOL_H

/* Behind the `+` of the first line. The number changes when the lines mean something else. */
#define SHELL_GREETING "cheetah 1"

#endif
