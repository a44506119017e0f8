/* SPDX-License-Identifier: Apache-2.0 */
/* Handles messages from other workers: responds to queries, and passes responses to sessions. */
#ifndef CHEETAH_MESSAGE_HANDLER_H
#define CHEETAH_MESSAGE_HANDLER_H

#include "message.h"

/* Implements the plugin's on_message. */
void cheetah_on_message(struct mk_worker *worker, mk_str message, void *data);

#endif
