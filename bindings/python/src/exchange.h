/* SPDX-License-Identifier: Apache-2.0 */
/* An HTTP request, its response, and the coroutine of the application that handles the request. */
#ifndef EXCHANGE_H
#define EXCHANGE_H

#include "host.h"

#define BUFFERED_MAX (64 * 1024) /* send() waits while this many bytes of a body are queued */

/* Bytes of a response body that have not been sent yet. */
struct pieces {
    PyObject **v, *first[2]; /* `v` points to `first` until there are more than two pieces */
    size_t head, n, cap;     /* v[head..n) still have unsent bytes */
    size_t offset;           /* number of bytes of v[head] that were sent */
    size_t size;             /* number of unsent bytes in all pieces */
};

/*
 * The coroutine that a Task runs: it wraps the coroutine of the application. The handler runs the first steps
 * of the application's coroutine itself, without the event loop; the first step of the Task then continues
 * where the handler stopped. If the application responds without waiting, the request is therefore complete
 * after one call of the handler.
 */
struct exchange {
    PyObject_HEAD struct host *host;
    struct mk_request *request; /* NULL: the request has ended, or no longer needs the application */
    struct mk_response *response;
    PyObject *scope;     /* set until the application is called */
    PyObject *app;       /* iterator of the application's coroutine, until the coroutine returns */
    PyObject *task;      /* the Task that runs the coroutine; NULL: not created yet, or no longer needed */
    PyObject *context;   /* context of the coroutine, if code other than the Task needs it; otherwise NULL */
    PyObject *yielded;   /* what the coroutine yielded before the Task's first step: a future or None */
    PyObject *receivers; /* list of futures that calls of receive() wait for; NULL: none */
    PyObject *writer;    /* future that send() waits for; NULL: none */
    PyObject *hints;     /* list of the Link values of a 103 response that is to be sent; NULL: none */
    PyObject *input;     /* part of the request body, for the next receive() */
    PyObject *headers;   /* response headers: a list of (name, value) pairs */
    struct pieces pieces;
    int64_t left;   /* unread bytes of the request body; -1: unknown */
    int64_t unsent; /* bytes of the response body left to send, by Content-Length; -1: unknown */
    /* Number of body messages ignored because `unsent` was 0. A large number means that the application sends
     * an endless body in response to HEAD. */
    unsigned n_ignored;
    unsigned status; /* 0: the response has not been started */
    int file;        /* descriptor of the file that is the body; -1: none */
    uint64_t file_size;
    int read_error;    /* errno value of a failed read of the request body; 0: none */
    bool is_read;      /* receive() has returned the end of the request body */
    bool has_body;     /* the application has sent a part of the body, possibly an empty one */
    bool has_trailers; /* trailers follow the body */
    bool is_body_complete;
    bool is_complete;  /* the application has sent the whole response */
    bool has_returned; /* the application's coroutine has returned */
    /* The coroutine has sent the whole response during the call of the handler, and continues afterwards. */
    bool is_suspended;
    bool is_handling; /* the library is calling the handler or the body source: no resume is needed */
    bool is_kept;     /* the library holds a reference until the request ends */
};

extern PyTypeObject *exchange_type;
extern PyObject *disconnected; /* class libmonkey.asgi.Disconnected */

int exchange_init(PyObject *module);

/* Handles a new request, and calls the application. */
enum mk_verdict exchange_begin(struct host *h, struct mk_request *request, struct mk_response *response);
/* A later call of the handler: after mk_request_resume(), or when input has arrived. */
enum mk_verdict exchange_handle(struct exchange *x);

/* Adds the headers of an application to a response, except framing headers, which the server sets. Returns
 * the Content-Length, -1 if there is none, or -2 with an exception set. */
int64_t exchange_add_headers(struct mk_response *response, PyObject *headers);
/* Adds trailers. Returns 0, or -1 with an exception set. */
int exchange_add_trailers(struct mk_response *response, PyObject *headers);
/* Sends x->hints as an interim response, during a call of the handler. */
void exchange_send_hints(struct exchange *x);

/* Sets the result of `future` to None. Does nothing if `future` is NULL or done. */
void exchange_wake(PyObject *future);

/* Removes the futures that are done from a list. Returns 0, or -1 with an exception set. */
int exchange_drop_done(PyObject *futures);

/* Raises Disconnected with `error`, an errno value, and its text. */
void exchange_raise_disconnected(int error);

#endif
