/* SPDX-License-Identifier: Apache-2.0 */
#include "exchange.h"

#include "message.h"
#include "scope.h"

#include <errno.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#define COPIED_MAX 4096 /* bodies up to this size are copied: that is cheaper than a callback */

PyTypeObject *exchange_type;
PyObject *disconnected;

static PyObject *copy_context, *task_class, *enter_task, *leave_task, *cancelled_error, *coroutine_type,
    *first_step_function;
static struct {
    PyObject *done, *set_result, *cancel, *await, *run, *throw, *close, *loop, *context, *eager_start;
} name;

void exchange_raise_disconnected(int error)
{
    PyObject *problem = PyObject_CallFunction(
        disconnected, "is", error, error == EPIPE ? "the client has disconnected" : strerror(error));
    if (problem)
        PyErr_SetObject(disconnected, problem);
    Py_XDECREF(problem);
}

/* ---- Futures ---- */

static int is_done(PyObject *future)
{
    PyObject *done = PyObject_CallMethodObjArgs(future, name.done, NULL);
    int result = done ? PyObject_IsTrue(done) : -1;
    Py_XDECREF(done);
    return result;
}

void exchange_wake(PyObject *future)
{
    if (!future)
        return;
    PyObject *result =
        is_done(future) == 0 ? PyObject_CallMethodObjArgs(future, name.set_result, Py_None, NULL) : NULL;
    Py_XDECREF(result);
    PyErr_Clear(); /* if the loop is closed, its coroutines will not run again */
}

int exchange_drop_done(PyObject *futures)
{
    for (Py_ssize_t i = PyList_Size(futures); i-- > 0;) {
        int done = is_done(PyList_GetItem(futures, i));
        if (done < 0 || (done && PyList_SetSlice(futures, i, i + 1, NULL)))
            return -1;
    }
    return 0;
}

static void wake_receivers(struct exchange *x)
{
    PyObject *futures = x->receivers;
    x->receivers = NULL;
    for (Py_ssize_t i = 0; futures && i < PyList_Size(futures); i++)
        exchange_wake(PyList_GetItem(futures, i));
    Py_XDECREF(futures);
}

static void wake_writer(struct exchange *x)
{
    PyObject *writer = x->writer;
    x->writer = NULL;
    exchange_wake(writer);
    Py_XDECREF(writer);
}

/* Forgets the request and the response, which the library may free from now on, and wakes the coroutines that
 * wait for them. */
static void detach(struct exchange *x)
{
    x->request = NULL;
    x->response = NULL;
    wake_receivers(x);
    wake_writer(x);
}

/* ---- The response ---- */

static void drop_pieces(struct pieces *p)
{
    for (size_t i = p->head; i < p->n; i++)
        Py_DECREF(p->v[i]);
    if (p->v != p->first)
        PyMem_Free(p->v);
    *p = (struct pieces){0};
}

static size_t take_bytes(struct pieces *p, char *buf, size_t cap)
{
    size_t done = 0;
    while (p->head < p->n && done < cap) {
        PyObject *piece = p->v[p->head];
        size_t size = (size_t)PyBytes_Size(piece) - p->offset, n = size < cap - done ? size : cap - done;
        memcpy(buf + done, PyBytes_AsString(piece) + p->offset, n);
        done += n;
        p->offset += n;
        if (n == size) {
            p->offset = 0;
            p->head++;
            Py_DECREF(piece);
        }
    }
    p->size -= done;
    return done;
}

static ssize_t on_read(void *ctx, char *buf, size_t cap)
{
    struct exchange *x = ctx;
    PyGILState_STATE gil = PyGILState_Ensure();
    if (x->receivers && x->request) {
        x->is_handling = true;
        if (message_read_input(x) < 0)
            host_print_error(x->host);
        x->is_handling = false;
        if (x->input || x->read_error)
            wake_receivers(x);
    }
    ssize_t n = (ssize_t)take_bytes(&x->pieces, buf, cap);
    if (n == 0)
        n = x->is_complete ? 0 : x->has_returned ? -EIO : -EAGAIN;
    if (n > 0 && x->unsent >= 0)
        x->unsent -= n;
    if (x->pieces.size < BUFFERED_MAX)
        wake_writer(x);
    PyGILState_Release(gil);
    return n;
}

static void unref(void *object)
{
    PyGILState_STATE gil = PyGILState_Ensure();
    Py_DECREF((PyObject *)object);
    PyGILState_Release(gil);
}

static const struct mk_body_source_ops source_ops = {.read = on_read, .close = unref};

static bool is_framing(const char *text, size_t n)
{
    switch (n) {
    case 7:
        return strncasecmp(text, "upgrade", n) == 0;
    case 10:
        return strncasecmp(text, "connection", n) == 0 || strncasecmp(text, "keep-alive", n) == 0;
    case 14:
        return strncasecmp(text, "content-length", n) == 0;
    case 17:
        return strncasecmp(text, "transfer-encoding", n) == 0;
    default:
        return false;
    }
}

static int64_t parse_length(const char *text, size_t n)
{
    int64_t length = 0;
    for (size_t i = 0; i < n && i < 18; i++) {
        if (text[i] < '0' || text[i] > '9')
            n = 0;
        length = length * 10 + (text[i] - '0');
    }
    if (n == 0 || n > 18) {
        PyErr_SetString(PyExc_ValueError, "invalid Content-Length");
        return -2;
    }
    return length;
}

/* Returns a new reference to pair[i] as bytes, or NULL with an exception set. */
static PyObject *bytes_at(PyObject *pair, Py_ssize_t i)
{
    PyObject *item = PyTuple_Check(pair) && i < PyTuple_Size(pair) ? Py_NewRef(PyTuple_GetItem(pair, i))
                                                                   : PySequence_GetItem(pair, i);
    if (!item || PyBytes_Check(item))
        return item;
    PyObject *bytes = PyObject_CheckBuffer(item) ? PyBytes_FromObject(item) : NULL;
    if (!bytes && !PyErr_Occurred())
        PyErr_Format(PyExc_TypeError, "names and values of headers must be bytes, not %R",
                     (PyObject *)Py_TYPE(item));
    Py_DECREF(item);
    return bytes;
}

static mk_str str_of(PyObject *bytes)
{
    return mk_str_of(PyBytes_AsString(bytes), (size_t)PyBytes_Size(bytes));
}

/* Adds a header, unless it is a framing header. Returns the value of Content-Length, `length` for any other
 * header, or -2 with an exception set. */
static int64_t add_header(struct mk_response *response, PyObject *n, PyObject *v, int64_t length)
{
    mk_str field = str_of(n), value = str_of(v);
    if (is_framing(field.p, field.len))
        return field.len == 14 ? parse_length(value.p, value.len) : length;
    if (lib.mk_response_add_header(response, field, value) == 0)
        return length;
    PyErr_Format(PyExc_ValueError, "invalid header: %R: %R", n, v);
    return -2;
}

static int64_t add_trailer(struct mk_response *response, PyObject *n, PyObject *v, int64_t unused)
{
    (void)unused;
    int error = lib.mk_response_add_trailer(response, str_of(n), str_of(v));
    if (error == 0)
        return 0;
    PyErr_Format(PyExc_ValueError, error == -EMSGSIZE ? "too many trailers" : "invalid trailer: %R: %R", n,
                 v);
    return -2;
}

/* Calls add() with each (name, value) pair of a list and the result of the previous call, which is -1 at first.
 * Stops after -2. Returns the last result. */
static int64_t add_pairs(struct mk_response *response, PyObject *pairs,
                         int64_t (*add)(struct mk_response *response, PyObject *n, PyObject *v, int64_t last))
{
    int64_t result = -1;
    for (Py_ssize_t i = 0; pairs && i < PyList_Size(pairs) && result != -2; i++) {
        PyObject *pair = Py_NewRef(PyList_GetItem(pairs, i));
        PyObject *n = bytes_at(pair, 0), *v = n ? bytes_at(pair, 1) : NULL;
        result = v ? add(response, n, v, result) : -2;
        Py_XDECREF(n);
        Py_XDECREF(v);
        Py_DECREF(pair);
    }
    return result;
}

int64_t exchange_add_headers(struct mk_response *response, PyObject *headers)
{
    return add_pairs(response, headers, add_header);
}

int exchange_add_trailers(struct mk_response *response, PyObject *headers)
{
    return add_pairs(response, headers, add_trailer) == -2 ? -1 : 0;
}

void exchange_send_hints(struct exchange *x)
{
    PyObject *hints = x->hints;
    x->hints = NULL;
    size_t n = (size_t)PyList_Size(hints);
    struct mk_header *headers = PyMem_Calloc(n ? n : 1, sizeof *headers);
    for (size_t i = 0; headers && i < n; i++)
        headers[i] = (struct mk_header){MK_STR("Link"), str_of(PyList_GetItem(hints, (Py_ssize_t)i))};
    if (headers && n) /* hints are optional, so errors are ignored */
        (void)lib.mk_response_send_1xx(x->request, x->response, 103, headers, n);
    PyMem_Free(headers);
    Py_DECREF(hints);
}

/* Returns a new reference to a bytes object with all pieces, or NULL with an exception set. */
static PyObject *join_pieces(struct pieces *p)
{
    if (p->n - p->head == 1)
        return Py_NewRef(p->v[p->head]);
    PyObject *bytes = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)p->size);
    if (bytes)
        take_bytes(p, PyBytes_AsString(bytes), p->size);
    return bytes;
}

static int set_body(struct exchange *x)
{
    PyObject *bytes = join_pieces(&x->pieces);
    if (!bytes)
        return -1;
    mk_str text = mk_str_of(PyBytes_AsString(bytes), (size_t)PyBytes_Size(bytes));
    int result;
    if (text.len <= COPIED_MAX) {
        result = lib.mk_response_set_body(x->response, text);
        Py_DECREF(bytes);
    } else {
        result = lib.mk_response_set_body_owned(x->response, text, unref, bytes);
    }
    drop_pieces(&x->pieces);
    if (result < 0)
        PyErr_NoMemory();
    return result;
}

static void run_first_step(struct exchange *x, PyObject *context);

/* Called when the request has ended. A suspended coroutine continues here instead of in the first step of its
 * Task. It therefore usually ends before the next request begins: its memory stays in the CPU cache, and
 * Python's garbage collector has fewer live objects to visit. */
static void on_end(void *data)
{
    struct exchange *x = data;
    PyGILState_STATE gil = PyGILState_Ensure();
    detach(x);
    if (x->is_suspended && x->context && x->task && x->host->is_stepping) {
        run_first_step(x, x->context);
        if (PyErr_Occurred())
            host_print_error(x->host);
    }
    Py_DECREF((PyObject *)x);
    PyGILState_Release(gil);
}

/* Makes a suspended coroutine continue when the response has been sent. On failure, the first step of its Task
 * continues the coroutine. */
static void continue_after_response(struct exchange *x)
{
    if (x->is_kept || lib.mk_request_add_cleanup(x->request, on_end, x) < 0)
        return;
    Py_INCREF((PyObject *)x);
    x->is_kept = true;
}

/* Keeps the exchange alive until the request ends. */
static int keep(struct exchange *x)
{
    if (x->is_kept)
        return 0;
    if (lib.mk_request_add_cleanup(x->request, on_end, x) < 0) {
        PyErr_NoMemory();
        return -1;
    }
    Py_INCREF((PyObject *)x);
    x->is_kept = true;
    lib.mk_request_set_data(x->request, x);
    lib.mk_request_set_handler_timeout(x->request, MK_FOREVER);
    lib.mk_request_cancel_on_disconnect(x->request);
    return 0;
}

static bool is_head(const struct exchange *x)
{
    mk_str method = lib.mk_request_method_name(x->request);
    return method.len == 4 && memcmp(method.p, "HEAD", 4) == 0;
}

static int set_file(struct exchange *x)
{
    int file = x->file;
    x->file = -1;
    int error = lib.mk_response_set_body_file(x->response, file, 0, x->file_size);
    if (error < 0) {
        errno = -error;
        PyErr_SetFromErrno(PyExc_OSError);
        return -1;
    }
    detach(x);
    return 0;
}

/* Can the response have a body? */
static bool can_have_body(const struct exchange *x)
{
    return x->status != 204 && x->status != 304 && !is_head(x);
}

static int hand_over(struct exchange *x)
{
    lib.mk_response_set_status(x->response, x->status);
    int64_t length = exchange_add_headers(x->response, x->headers);
    if (length == -2)
        return -1;
    if (x->file >= 0)
        return set_file(x);
    if (x->has_trailers && lib.mk_request_accepts_trailers(x->request))
        length = -1; /* HTTP/1.1 sends trailers only after a body of unknown length */
    x->unsent = can_have_body(x) ? length : 0;
    if (x->is_complete && !x->has_trailers && (length < 0 || x->pieces.size > 0 || !is_head(x))) {
        if (set_body(x) < 0)
            return -1;
        if (x->is_suspended)
            continue_after_response(x);
        detach(x);
        return 0;
    }
    if (keep(x) < 0)
        return -1;
    Py_INCREF((PyObject *)x); /* owned by the body source */
    lib.mk_response_set_body_source(x->response, &source_ops, x, length < 0 ? MK_LENGTH_UNKNOWN : length);
    return 0;
}

/* Prints the current exception, responds with 500, and cancels the Task. */
static enum mk_verdict give_up(struct exchange *x)
{
    host_print_error(x->host);
    lib.mk_response_set_status(x->response, 500);
    detach(x);
    PyObject *done = x->task ? PyObject_CallMethodObjArgs(x->task, name.cancel, NULL) : NULL;
    if (!done)
        PyErr_Clear();
    Py_XDECREF(done);
    return MK_ERROR;
}

/* Returns the response status if the application failed before it responded: 413 if the request body was too
 * large, 400 if it was malformed, otherwise 500. */
static unsigned failure_status(const struct exchange *x)
{
    return x->read_error == EMSGSIZE ? 413 : x->read_error == EBADMSG ? 400 : 500;
}

/* Returns the verdict of the handler for the current state of the application. */
static enum mk_verdict decide(struct exchange *x)
{
    if (x->has_body || (x->status && !x->has_returned))
        return hand_over(x) < 0 ? give_up(x) : MK_DONE;
    if (x->has_returned) {
        lib.mk_response_set_status(x->response, failure_status(x));
        detach(x);
        return MK_ERROR;
    }
    return keep(x) < 0 ? give_up(x) : MK_WAIT;
}

/* ---- The application ---- */

static PyObject *receive(PyObject *self, PyObject *unused)
{
    (void)unused;
    return message_new((struct exchange *)self, NULL);
}

static PyObject *send(PyObject *self, PyObject *message)
{
    return message_new((struct exchange *)self, message);
}

static PyMethodDef receive_def = {"receive", receive, METH_NOARGS, NULL},
                   send_def = {"send", send, METH_O, NULL};

static int call_app(struct exchange *x)
{
    PyObject *scope = x->scope, *self = (PyObject *)x;
    x->scope = NULL;
    PyObject *r = PyCFunction_New(&receive_def, self), *s = PyCFunction_New(&send_def, self);
    PyObject *awaitable = r && s ? PyObject_CallFunctionObjArgs(x->host->app, scope, r, s, NULL) : NULL;
    Py_XDECREF(r);
    Py_XDECREF(s);
    Py_DECREF(scope);
    if (!awaitable)
        return -1;
    if ((PyObject *)Py_TYPE(awaitable) == coroutine_type) {
        x->app = awaitable;
        return 0;
    }
    x->app = PyObject_CallMethodObjArgs(awaitable, name.await, NULL);
    Py_DECREF(awaitable);
    return x->app ? 0 : -1;
}

/* Called after the application has returned or raised the current exception. Returns -1 if the Task must
 * raise the exception as well, otherwise 0 without an exception set. */
static int finish(struct exchange *x)
{
    x->has_returned = true;
    Py_CLEAR(x->app);
    if (x->task) {
        PyObject *type, *value, *traceback;
        PyErr_Fetch(&type, &value, &traceback);
        PySet_Discard(x->host->tasks, x->task);
        PyErr_Restore(type, value, traceback);
        Py_CLEAR(x->task);
    }
    bool has_problem = PyErr_Occurred();
    if (x->request && !x->is_handling && !x->is_complete)
        lib.mk_request_resume(x->request);
    if (!has_problem) {
        x->is_complete = x->is_body_complete; /* even if the application has omitted its trailers */
        return 0;
    }
    if (PyErr_ExceptionMatches(disconnected)) {
        PyErr_Clear();
        return 0;
    }
    if (!PyErr_ExceptionMatches(PyExc_Exception)) /* CancelledError, KeyboardInterrupt, ... */
        return -1;
    host_print_error(x->host);
    return 0;
}

static PySendResult step(struct exchange *x, PyObject *value, PyObject **result)
{
    *result = NULL;
    x->is_suspended = false;
    PySendResult status = x->scope && call_app(x) < 0 ? PYGEN_ERROR : PYGEN_RETURN;
    if (x->app) {
        PyObject *app = Py_NewRef(x->app);
        status = PyIter_Send(app, value, result);
        Py_DECREF(app);
    }
    x->is_suspended = status == PYGEN_NEXT && *result == Py_None && x->is_handling && x->is_complete;
    if (status == PYGEN_NEXT)
        return status;
    Py_CLEAR(*result);
    if (finish(x) < 0)
        return PYGEN_ERROR;
    *result = Py_NewRef(Py_None);
    return PYGEN_RETURN;
}

static PySendResult am_send(PyObject *self, PyObject *value, PyObject **result)
{
    struct exchange *x = (struct exchange *)self;
    if (x->yielded) { /* the Task's first step: the coroutine already waits for this future */
        *result = x->yielded;
        x->yielded = NULL;
        return PYGEN_NEXT;
    }
    if (x->has_returned) {
        *result = Py_NewRef(Py_None);
        return PYGEN_RETURN;
    }
#if PY_VERSION_HEX < 0x030b0000
    if (x->context) {
        if (PyContext_Enter(x->context))
            return PYGEN_ERROR;
        PySendResult status = step(x, value, result);
        if (x->context)
            PyContext_Exit(x->context);
        return status;
    }
#endif
    return step(x, value, result);
}

static PyObject *iternext(PyObject *self)
{
    PyObject *result;
    PySendResult status = am_send(self, Py_None, &result);
    return send_result(status, result);
}

static PyObject *method_send(PyObject *self, PyObject *value)
{
    PyObject *result;
    PySendResult status = am_send(self, value, &result);
    return send_result(status, result);
}

/* Cancels `yielded` in place of the Task, which does not know that future yet. Returns the reference to it if
 * it was cancelled, otherwise NULL without an exception set. */
static PyObject *cancel_yielded(struct exchange *x)
{
    PyObject *yielded = x->yielded;
    x->yielded = NULL;
    PyObject *done = yielded != Py_None ? PyObject_CallMethodObjArgs(yielded, name.cancel, NULL) : NULL;
    bool was_cancelled = done && PyObject_IsTrue(done) > 0;
    Py_XDECREF(done);
    PyErr_Clear();
    if (was_cancelled)
        return yielded;
    Py_DECREF(yielded);
    return NULL;
}

static PyObject *throw_into_app(struct exchange *x, PyObject *args)
{
    PyObject *app = Py_NewRef(x->app), *method = PyObject_GetAttr(app, name.throw);
    PyObject *result = NULL;
    if (method)
        result = PyObject_CallObject(method, args);
    else
        raise_thrown(args);
    Py_XDECREF(method);
    Py_DECREF(app);
    return result;
}

static PyObject *method_throw(PyObject *self, PyObject *args)
{
    struct exchange *x = (struct exchange *)self;
    x->is_suspended = false;
    if (x->yielded) {
        PyObject *yielded = cancel_yielded(x);
        if (yielded)
            return yielded;
    }
    if (!x->app) {
        Py_CLEAR(x->scope);
        raise_thrown(args);
        return x->has_returned || finish(x) < 0 ? NULL : stop_iteration(Py_NewRef(Py_None));
    }
#if PY_VERSION_HEX < 0x030b0000
    PyObject *context = x->context ? Py_NewRef(x->context) : NULL;
    if (context && PyContext_Enter(context)) {
        Py_DECREF(context);
        return NULL;
    }
#endif
    PyObject *result = throw_into_app(x, args);
#if PY_VERSION_HEX < 0x030b0000
    if (context)
        PyContext_Exit(context);
    Py_XDECREF(context);
#endif
    if (result)
        return result;
    if (PyErr_ExceptionMatches(PyExc_StopIteration))
        PyErr_Clear();
    return finish(x) < 0 ? NULL : stop_iteration(Py_NewRef(Py_None));
}

static PyObject *method_close(PyObject *self, PyObject *unused)
{
    (void)unused;
    struct exchange *x = (struct exchange *)self;
    x->is_suspended = false;
    PyObject *app = x->app ? Py_NewRef(x->app) : NULL;
    PyObject *done = app ? PyObject_CallMethodObjArgs(app, name.close, NULL) : Py_NewRef(Py_None);
    Py_XDECREF(app);
    if (!done)
        return NULL;
    Py_DECREF(done);
    Py_CLEAR(x->scope);
    Py_CLEAR(x->yielded);
    if (!x->has_returned)
        finish(x);
    Py_RETURN_NONE;
}

/* Forwards unknown attributes, such as cr_frame, which debuggers and libraries read, to the application's
 * coroutine. */
static PyObject *getattro(PyObject *self, PyObject *attribute)
{
    PyObject *value = PyObject_GenericGetAttr(self, attribute), *app = ((struct exchange *)self)->app;
    if (value || !app || !PyErr_ExceptionMatches(PyExc_AttributeError))
        return value;
    PyErr_Clear();
    return PyObject_GetAttr(app, attribute);
}

/* ---- Running the first steps ---- */

/* Runs the coroutine until it waits, as the first step of its Task would, in the current context. */
static PyObject *first_step(PyObject *unused, PyObject *self)
{
    (void)unused;
    struct exchange *x = (struct exchange *)self;
    PyObject *task = Py_NewRef(x->task), *loop = x->host->loop, *result = NULL;
    PyObject *entered = PyObject_CallFunctionObjArgs(enter_task, loop, task, NULL);
    if (!entered) { /* another Task is current: the event loop runs the first step */
        PyErr_Clear();
        Py_DECREF(task);
        Py_RETURN_NONE;
    }
    Py_DECREF(entered);
    PySendResult status = step(x, Py_None, &result);
    if (status == PYGEN_ERROR && PyErr_ExceptionMatches(cancelled_error))
        PyErr_Clear();
    if (PyErr_Occurred())
        host_stop(x->host);
    PyObject *left = PyObject_CallFunctionObjArgs(leave_task, loop, task, NULL);
    if (!left)
        host_print_error(x->host);
    Py_XDECREF(left);
    Py_DECREF(task);
    if (status == PYGEN_NEXT && result != Py_None)
        x->yielded = result;
    else /* the coroutine has yielded None: the Task's first step continues it */
        Py_XDECREF(result);
    Py_RETURN_NONE;
}

/* Creates the Task before the coroutine runs, because the coroutine may call asyncio.current_task(). */
static int create_task(struct exchange *x, PyObject *context)
{
    PyObject *args = PyTuple_Pack(1, (PyObject *)x), *options = PyDict_New();
    if (args && options && PyDict_SetItem(options, name.loop, x->host->loop) == 0 &&
        (PY_VERSION_HEX < 0x030b0000 || PyDict_SetItem(options, name.context, context) == 0) &&
        (!name.eager_start || PyDict_SetItem(options, name.eager_start, Py_True) == 0)) {
        PyObject *task = PyObject_Call(task_class, args, options);
        if (x->has_returned)
            Py_XDECREF(task);
        else
            x->task = task;
    }
    Py_XDECREF(args);
    Py_XDECREF(options);
    return PyErr_Occurred() ? -1 : 0;
}

static void run_first_step(struct exchange *x, PyObject *context)
{
    PyObject *done = PyObject_CallMethodObjArgs(context, name.run, first_step_function, (PyObject *)x, NULL);
    Py_XDECREF(done);
}

static int run_eagerly(struct exchange *x)
{
    PyObject *context = PyObject_CallFunctionObjArgs(copy_context, NULL);
    if (context && create_task(x, context) == 0 && !name.eager_start) {
#if PY_VERSION_HEX < 0x030b0000
        x->context = Py_NewRef(context);
#endif
        run_first_step(x, context);
    }
    if (x->is_suspended && !x->context)
        x->context = Py_NewRef(context);
    Py_XDECREF(context);
    return PyErr_Occurred() ? -1 : 0;
}

/* Starts a Task that calls the application. */
static int run(struct exchange *x)
{
    struct host *h = x->host;
    if (h->is_eager) {
        if (run_eagerly(x) < 0)
            return -1;
    } else {
        PyObject *task = PyObject_CallFunctionObjArgs(h->create_task, (PyObject *)x, NULL);
        if (!task)
            return -1;
        if (x->has_returned)
            Py_DECREF(task);
        else
            x->task = task;
    }
    return x->task ? PySet_Add(h->tasks, x->task) : 0;
}

enum mk_verdict exchange_begin(struct host *h, struct mk_request *request, struct mk_response *response)
{
    struct exchange *x = (struct exchange *)PyType_GenericAlloc(exchange_type, 0);
    if (!x) {
        host_print_error(h);
        lib.mk_response_set_status(response, 503);
        return MK_ERROR;
    }
    x->host = (struct host *)Py_NewRef((PyObject *)h);
    x->request = request;
    x->response = response;
    x->left = lib.mk_request_length(request);
    x->unsent = -1;
    x->file = -1;
    x->is_handling = true;
    x->scope = scope_new(h->http_scope, h->root_path, h->state, request, false);
    int result = x->scope ? run(x) : -1;
    if (result < 0 && !PyErr_ExceptionMatches(PyExc_Exception)) { /* KeyboardInterrupt, ... */
        host_stop(h);
        result = 0;
    }
    enum mk_verdict verdict = result < 0 ? give_up(x) : decide(x);
    x->is_handling = false;
    Py_DECREF((PyObject *)x);
    return verdict;
}

enum mk_verdict exchange_handle(struct exchange *x)
{
    if (!x->request)
        return MK_ERROR;
    x->is_handling = true;
    if (x->receivers) {
        if (message_read_input(x) < 0)
            host_print_error(x->host);
        if (x->input || x->read_error)
            wake_receivers(x);
    }
    if (x->hints) {
        exchange_send_hints(x);
        wake_writer(x);
    }
    enum mk_verdict verdict = decide(x);
    x->is_handling = false;
    return verdict;
}

/* ---- The type ---- */

static int traverse(PyObject *self, visitproc visit, void *arg)
{
    struct exchange *x = (struct exchange *)self;
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(x->host);
    Py_VISIT(x->scope);
    Py_VISIT(x->app);
    Py_VISIT(x->task);
    Py_VISIT(x->context);
    Py_VISIT(x->yielded);
    Py_VISIT(x->receivers);
    Py_VISIT(x->writer);
    Py_VISIT(x->headers);
    return 0;
}

static int clear(PyObject *self)
{
    struct exchange *x = (struct exchange *)self;
    x->has_returned = true;
    Py_CLEAR(x->scope);
    Py_CLEAR(x->app);
    Py_CLEAR(x->task);
    Py_CLEAR(x->context);
    Py_CLEAR(x->yielded);
    Py_CLEAR(x->receivers);
    Py_CLEAR(x->writer);
    Py_CLEAR(x->headers);
    return 0;
}

static void dealloc(PyObject *self)
{
    struct exchange *x = (struct exchange *)self;
    PyObject_GC_UnTrack(self);
    clear(self);
    Py_CLEAR(x->input);
    Py_CLEAR(x->hints);
    Py_CLEAR(x->host);
    drop_pieces(&x->pieces);
    if (x->file >= 0)
        close(x->file);
    free_object(self);
}

static PyMethodDef methods[] = {{"send", method_send, METH_O, NULL},
                                {"throw", method_throw, METH_VARARGS, NULL},
                                {"close", method_close, METH_NOARGS, NULL},
                                {0}};

static PyMethodDef first_step_def = {"first_step", first_step, METH_O, NULL};

static PyType_Slot slots[] = {{Py_tp_methods, methods},        {Py_tp_new, cannot_create},
                              {Py_tp_getattro, getattro},      {Py_am_await, PyObject_SelfIter},
#if PY_VERSION_HEX >= 0x030a0000
                              {Py_am_send, am_send},
#endif
                              {Py_tp_iter, PyObject_SelfIter}, {Py_tp_iternext, iternext},
                              {Py_tp_traverse, traverse},      {Py_tp_clear, clear},
                              {Py_tp_dealloc, dealloc},        {0}};

static PyObject *import_name(const char *module, const char *attribute)
{
    PyObject *m = PyImport_ImportModule(module), *object = m ? PyObject_GetAttrString(m, attribute) : NULL;
    Py_XDECREF(m);
    return object;
}

/* asyncio.Task has eager_start since Python 3.12; for older versions, first_step() does the same. */
static bool has_eager_start(void)
{
    PyObject *version = PySys_GetObject("hexversion");
    return version && PyLong_AsLong(version) >= 0x030c0000;
}

int exchange_init(PyObject *module)
{
    static PyType_Spec spec = {"libmonkey._asgi.Exchange", sizeof(struct exchange), 0,
                               Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, slots};
    const struct {
        PyObject **to;
        PyObject *object;
    } all[] = {
        {&name.done, PyUnicode_InternFromString("done")},
        {&name.set_result, PyUnicode_InternFromString("set_result")},
        {&name.cancel, PyUnicode_InternFromString("cancel")},
        {&name.await, PyUnicode_InternFromString("__await__")},
        {&name.run, PyUnicode_InternFromString("run")},
        {&name.throw, PyUnicode_InternFromString("throw")},
        {&name.close, PyUnicode_InternFromString("close")},
        {&name.loop, PyUnicode_InternFromString("loop")},
        {&name.context, PyUnicode_InternFromString("context")},
        {&copy_context, import_name("contextvars", "copy_context")},
        {&task_class, import_name("asyncio", "Task")},
        {&enter_task, import_name("asyncio.tasks", "_enter_task")},
        {&leave_task, import_name("asyncio.tasks", "_leave_task")},
        {&cancelled_error, import_name("asyncio", "CancelledError")},
        {&coroutine_type, import_name("types", "CoroutineType")},
        {&first_step_function, PyCFunction_New(&first_step_def, NULL)},
        {&disconnected, PyErr_NewExceptionWithDoc("libmonkey.asgi.Disconnected",
                                                  "The client has disconnected, so send() has no effect.",
                                                  PyExc_OSError, NULL)},
        {(PyObject **)&exchange_type, PyType_FromSpec(&spec)}};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        *all[i].to = all[i].object;
        if (!all[i].object)
            return -1;
    }
    if (has_eager_start() && !(name.eager_start = PyUnicode_InternFromString("eager_start")))
        return -1;
    return PyModule_AddObject(module, "Disconnected", Py_NewRef(disconnected));
}
