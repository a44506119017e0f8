/* SPDX-License-Identifier: Apache-2.0 */
/* The scope: the dict that describes a request to an ASGI application. */
#ifndef SCOPE_H
#define SCOPE_H

#include "library.h"
#include "python.h"

/* Creates the constant objects. Returns 0, or -1 with an exception set. */
int scope_init(void);

/* Returns a new dict with the keys that all scopes of an application have. `root_path` is a str. */
PyObject *scope_template(PyObject *root_path, bool is_websocket);

/* Returns a new scope: a copy of `template`, with the values of this request and a copy of the dict
 * `state`. */
PyObject *scope_new(PyObject *template, PyObject *root_path, PyObject *state, struct mk_request *request,
                    bool is_websocket);

#endif
