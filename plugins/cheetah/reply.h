/* SPDX-License-Identifier: Apache-2.0 */
/* Handles messages of other workers: answers questions, and passes answers to their sessions. */
#ifndef CHEETAH_REPLY_H
#define CHEETAH_REPLY_H

#include "note.h"

/* The plugin's on_message. */
void cheetah_reply(struct mk_worker *worker, mk_str message, void *data);

#endif
