/* SPDX-License-Identifier: Apache-2.0 */
/* The ASGI application that a server runs: the base class of libmonkey.asgi.Host. */
#ifndef HOST_H
#define HOST_H

#include "library.h"
#include "python.h"

struct host {
    PyObject_HEAD struct mk_server *server; /* NULL: the host is not serving yet, or has stopped */
    unsigned long thread;                   /* the thread of the event loop */
    PyObject *app, *loop, *root_path, *state;
    PyObject *http_scope, *websocket_scope; /* templates for scope_new() */
    PyObject *create_future, *create_task;  /* methods of the loop */
    PyObject *print_error;                  /* print_error(exception) */
    PyObject *open_websocket;               /* open_websocket(scope), returns a Socket */
    PyObject *tasks;                        /* set of the running tasks */
    PyObject *step_waiters;                 /* list of futures to complete after the next step; NULL: none */
    PyObject *stop_type, *stop_value, *stop_traceback; /* exception that step() will raise */
    bool is_stepping;                                  /* step() is on the call stack */
    bool is_eager; /* the handler itself runs the first steps of an HTTP application */
};

extern PyTypeObject *host_type;

int host_init(PyObject *module);

/* Is this the thread of the event loop? Raises RuntimeError otherwise. */
bool host_check_thread(const struct host *h);

/* Returns a new reference to a future that is completed after the next step. All output that is queued now has
 * then been passed to the kernel, unless a client is too slow to receive it. */
PyObject *host_wait_step(struct host *h);

/* Prints and clears the current exception. */
void host_print_error(struct host *h);

/* Clears the current exception (KeyboardInterrupt or SystemExit) and saves it, so that step() raises it. */
void host_stop(struct host *h);

#endif
