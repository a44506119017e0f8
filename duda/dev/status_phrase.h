/* SPDX-License-Identifier: Apache-2.0 */
/* Reason phrases of statuses (RFC 9110, section 15). */
#ifndef DUDA_DEV_STATUS_PHRASE_H
#define DUDA_DEV_STATUS_PHRASE_H

/* Returns a phrase such as "Not Found"; empty for rare statuses. */
const char *dev_status_phrase(unsigned status);

#endif
