/* SPDX-License-Identifier: Apache-2.0 */
/* An HTTP request, its response, and the coroutine of the application that turns one into the other. */
#ifndef EXCHANGE_H
#define EXCHANGE_H

#include "host.h"

#define BUFFERED_MAX (64 * 1024) /* send() waits while this many bytes of a body are queued */

/* Bytes of a response body that are not sent yet. */
struct pieces {
    PyObject **v, *first[2]; /* `v` is `first` until there are more */
    size_t head, n, cap;     /* v[head..n) are left */
    size_t offset;           /* sent bytes of v[head] */
    size_t size;             /* unsent bytes of all */
};

/*
 * The object is the coroutine of a Task, in place of the application's: its first steps are run by the handler,
 * without the event loop, and the first step of the Task only takes over what they left, if anything. A request that
 * the application answers without waiting is thereby answered in one call of its handler.
 */
struct exchange {
    PyObject_HEAD struct host *host;
    struct mk_request *request; /* NULL: it has ended */
    struct mk_response *response;
    PyObject *scope; /* until the application is called */
    PyObject *app;   /* iterator of the application's coroutine, from then on until it has returned */
    PyObject *task;  /* that runs the coroutine; NULL: there is none yet, or it is not needed any more */
    PyObject *
        context; /* before Python 3.11, which cannot tell a Task where to run: the context of the coroutine */
    PyObject *yielded;   /* what the coroutine waits for, until its Task knows */
    PyObject *receivers; /* list of futures that receive() waits for; NULL: none */
    PyObject *writer;    /* future that send() waits for; NULL: none */
    PyObject *input;     /* part of the request body, for the next receive() */
    PyObject *headers;   /* list or tuple of pairs */
    struct pieces pieces;
    int64_t left;      /* unread bytes of the request body; -1: unknown */
    int64_t unsent;    /* bytes of the response body that follow, by Content-Length; -1: unknown */
    unsigned status;   /* 0: the response has not been started */
    int read_error;    /* errno value of reading the request body; 0: none */
    bool is_read;      /* receive() has returned the end of the request body */
    bool is_complete;  /* the application has sent the whole response */
    bool has_returned; /* the application has */
    bool is_handling;  /* the handler or the body source is being called: it needs no resume */
    bool is_kept;      /* the library has a reference, until the request ends */
};

extern PyTypeObject *exchange_type;
extern PyObject *disconnected; /* class libmonkey.asgi.Disconnected */

int exchange_init(PyObject *module);

/* Handles a new request, and calls the application. */
enum mk_verdict exchange_begin(struct host *h, struct mk_request *request, struct mk_response *response);
/* Continues after mk_request_resume(), or because input has arrived. */
enum mk_verdict exchange_handle(struct exchange *x);

/* Adds the headers of an application to a response, except framing headers, which the server sets. Returns the
 * Content-Length, -1 if there is none, or -2 with an exception. */
int64_t exchange_add_headers(struct mk_response *response, PyObject *headers);

/* Sets the result of a future, unless it is NULL or done. */
void exchange_wake(PyObject *future);

/* Removes from a list the futures that are done. Returns -1 with an exception. */
int exchange_drop_done(PyObject *futures);

/* Raises Disconnected, with the text of the error. */
void exchange_raise_disconnected(int error);

#endif
