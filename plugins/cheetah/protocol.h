/* SPDX-License-Identifier: Apache-2.0 */
/* Constants that the server and the client share. */
#ifndef CHEETAH_PROTOCOL_H
#define CHEETAH_PROTOCOL_H

/* Follows the `+` of the first line. The number is the version of the protocol. */
#define CHEETAH_GREETING "cheetah 1"

#endif
