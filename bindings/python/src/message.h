/* SPDX-License-Identifier: Apache-2.0 */
/* The awaitables that receive() and send() of an HTTP request return. Like coroutines, these awaitables do
 * nothing until awaited. They create a future only if they have to wait. */
#ifndef MESSAGE_H
#define MESSAGE_H

#include "exchange.h"

int message_init(void);

/* Returns the awaitable of send(message), or of receive() if `message` is NULL; a new reference. */
PyObject *message_new(struct exchange *x, PyObject *message);

/* Reads a part of the request body for receive(), unless x->input already holds one. Returns 0, or -1 with an
 * exception set. */
int message_read_input(struct exchange *x);

#endif
