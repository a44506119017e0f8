/* SPDX-License-Identifier: Apache-2.0 */
/* Constants that both ends share. */
#ifndef CHEETAH_PROTOCOL_H
#define CHEETAH_PROTOCOL_H

/* After the `+` of the first line. The number changes with the meaning of lines. */
#define CHEETAH_GREETING "cheetah 1"

#endif
