/* SPDX-License-Identifier: Apache-2.0 */
/* The scope: the dict that describes a request to an ASGI application. */
#ifndef SCOPE_H
#define SCOPE_H

#include "library.h"
#include "python.h"

/* Creates constants. Returns -1 with an exception. */
int scope_init(void);

/* The keys that all scopes of an application have. `root_path` is a str. */
PyObject *scope_template(PyObject *root_path, bool is_websocket);

/* A new scope: a copy of the template, with the request. `state` is a dict, which is copied. */
PyObject *scope_new(PyObject *template, PyObject *root_path, PyObject *state, struct mk_request *request,
                    bool is_websocket);

#endif
