/* SPDX-License-Identifier: Apache-2.0 */
/* The awaitables that receive() and send() of an HTTP request return. Like coroutines, they do nothing until they are
 * awaited; unlike them, they involve no future unless they have to wait. */
#ifndef MESSAGE_H
#define MESSAGE_H

#include "exchange.h"

int message_init(void);

/* `message` NULL: receive(). */
PyObject *message_new(struct exchange *x, PyObject *message);

/* Reads a part of the request body for receive(), unless there is one already. Returns -1 with an exception. */
int message_read_input(struct exchange *x);

#endif
