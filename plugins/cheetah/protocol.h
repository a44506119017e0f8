/* SPDX-License-Identifier: Apache-2.0 */
/* Constants that the server and the client share. */
#ifndef CHEETAH_PROTOCOL_H
#define CHEETAH_PROTOCOL_H

/* The first command of a client, and what follows the `+` of its response. The number is the version of the
 * protocol. */
#define CHEETAH_HELLO    "hello"
#define CHEETAH_GREETING "cheetah 2"

#endif
