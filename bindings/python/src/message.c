/* SPDX-License-Identifier: Apache-2.0 */
#include "message.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define READ_MAX    (64 * 1024)
#define IGNORED_MAX 10000 /* see exchange.h: n_ignored */

struct message {
    PyObject_HEAD struct exchange *x;
    PyObject *message; /* message to send; NULL: the awaitable receives one */
    PyObject *waiting; /* iterator of the future that the awaitable waits for */
    bool was_started, has_ended;
    bool has_yielded; /* the awaitable waits for the next iteration of the event loop, without a future */
};

static PyTypeObject *message_type;
static struct {
    PyObject *type, *status, *headers, *body, *more_body, *trailers, *more_trailers, *path, *links,
        *http_request, *disconnect, *await;
} word;
static PyObject *empty_bytes, *disconnect_message;

/* ---- receive() ---- */

static PyObject *make_request_message(struct exchange *x, PyObject *body, bool has_more)
{
    PyObject *m = PyDict_New();
    x->is_read = !has_more;
    if (m && (PyDict_SetItem(m, word.type, word.http_request) || PyDict_SetItem(m, word.body, body) ||
              PyDict_SetItem(m, word.more_body, has_more ? Py_True : Py_False)))
        Py_CLEAR(m);
    return m;
}

/* Reads a part of the request body into x->input; empty bytes mark the end of the body. Call it only while
 * the library calls the handler or the body source. */
static int read_input(struct exchange *x)
{
    static char buffer[READ_MAX]; /* protected by the GIL */
    ssize_t n = lib.mk_request_read(x->request, buffer, sizeof buffer);
    if (n == -EAGAIN)
        return 0;
    if (n < 0) {
        x->read_error = (int)-n;
        return 0;
    }
    x->input = n ? PyBytes_FromStringAndSize(buffer, n) : Py_NewRef(empty_bytes);
    if (!x->input)
        return -1;
    x->left = n == 0 ? 0 : x->left > 0 ? x->left - n : -1;
    return 0;
}

static bool has_input(const struct exchange *x)
{
    return x->input || x->read_error;
}

int message_read_input(struct exchange *x)
{
    return has_input(x) || x->is_read || x->left == 0 ? 0 : read_input(x);
}

static int raise_read_error(const struct exchange *x)
{
    if (x->read_error == ECONNRESET) {
        exchange_raise_disconnected(x->read_error);
    } else {
        errno = x->read_error;
        PyErr_SetFromErrno(PyExc_OSError);
    }
    return -1;
}

/* Returns 1 with a new reference to a message in *out, 0 if there is no message yet, or -1 with an exception
 * set. */
static int try_receive(struct exchange *x, PyObject **out)
{
    if (x->is_complete || (!x->request && !x->input)) {
        *out = PyDict_Copy(disconnect_message);
        return *out ? 1 : -1;
    }
    if (!x->is_read && x->left == 0 && !x->input) { /* there is no body */
        *out = make_request_message(x, empty_bytes, false);
        return *out ? 1 : -1;
    }
    if (!x->is_read && !has_input(x) && x->is_handling && read_input(x))
        return -1;
    if (x->input) {
        PyObject *input = x->input;
        x->input = NULL;
        *out = make_request_message(x, input, x->left != 0);
        Py_DECREF(input);
        return *out ? 1 : -1;
    }
    return x->read_error ? raise_read_error(x) : 0;
}

/* Returns a new reference to a future that is done when try_receive() should be called again. */
static PyObject *wait_for_input(struct exchange *x)
{
    if (!x->receivers && !(x->receivers = PyList_New(0)))
        return NULL;
    PyObject *future = PyObject_CallFunctionObjArgs(x->host->create_future, NULL);
    if (future && (exchange_drop_done(x->receivers) || PyList_Append(x->receivers, future)))
        Py_CLEAR(future);
    if (future && !x->is_read && !x->is_handling)
        lib.mk_request_resume(x->request); /* the body can be read only during a call of the handler */
    return future;
}

/* ---- send() ---- */

/* Returns a new reference to the bytes of message["body"]. Returns NULL if the body is missing or empty, and
 * NULL with an exception set on errors. */
static PyObject *body_of(PyObject *message)
{
    PyObject *body = PyDict_GetItemWithError(message, word.body);
    if (!body)
        return NULL;
    if (PyUnicode_Check(body) || PyLong_Check(body)) {
        PyErr_Format(PyExc_TypeError, "the body of a message must be bytes, not %R",
                     (PyObject *)Py_TYPE(body));
        return NULL;
    }
    body = PyBytes_CheckExact(body) ? Py_NewRef(body) : PyBytes_FromObject(body);
    if (body && PyBytes_Size(body) == 0)
        Py_CLEAR(body);
    return body;
}

/* Appends a bytes object and steals the reference to it, even on errors. Returns 0, or -1 with an exception
 * set. */
static int add_piece(struct pieces *p, PyObject *bytes)
{
    if (!p->v) {
        p->v = p->first;
        p->cap = sizeof p->first / sizeof p->first[0];
    }
    if (p->n == p->cap && p->head > 0) {
        memmove(p->v, p->v + p->head, (p->n - p->head) * sizeof *p->v);
        p->n -= p->head;
        p->head = 0;
    }
    if (p->n == p->cap) {
        PyObject **v = PyMem_Realloc(p->v == p->first ? NULL : p->v, 4 * p->cap * sizeof *v);
        if (!v) {
            Py_DECREF(bytes);
            PyErr_NoMemory();
            return -1;
        }
        if (p->v == p->first)
            memcpy(v, p->first, sizeof p->first);
        p->v = v;
        p->cap *= 4;
    }
    p->v[p->n++] = bytes;
    p->size += (size_t)PyBytes_Size(bytes);
    return 0;
}

static int send_start(struct exchange *x, PyObject *message)
{
    PyObject *status = PyDict_GetItemWithError(message, word.status);
    PyObject *headers = status ? PyDict_GetItemWithError(message, word.headers) : NULL;
    PyObject *trailers = PyErr_Occurred() ? NULL : PyDict_GetItemWithError(message, word.trailers);
    long number = status ? PyLong_AsLong(status) : -1;
    if (!status && !PyErr_Occurred())
        PyErr_SetString(PyExc_KeyError, "status");
    int has_trailers = trailers && !PyErr_Occurred() ? PyObject_IsTrue(trailers) : 0;
    if (PyErr_Occurred())
        return -1;
    if (number < 200 || number > 599) {
        PyErr_Format(PyExc_ValueError, "invalid status %ld: expected 200 to 599", number);
        return -1;
    }
    if (headers) {
        x->headers = PySequence_List(headers); /* a copy: the application may change its own */
        if (!x->headers)
            return -1;
    }
    x->status = (unsigned)number;
    x->has_trailers = has_trailers;
    if (!x->is_handling)
        lib.mk_request_resume(x->request); /* sends the head, even if the body comes later */
    return 0;
}

/* Returns 1 if message[key] is true, 0 if it is false or missing, or -1 with an exception set. */
static int has_flag(PyObject *message, PyObject *key)
{
    PyObject *value = PyDict_GetItemWithError(message, key);
    return value ? PyObject_IsTrue(value) : PyErr_Occurred() ? -1 : 0;
}

/* Makes the library call the handler or the body source, which send the queued output. Returns 1, because
 * send() waits until they have done so. */
static int flush(struct exchange *x)
{
    if (!x->is_handling)
        lib.mk_request_resume(x->request);
    return 1;
}

/* The send_...() functions below return 1 if send() has to wait, 0 if not, or -1 with an exception set. */

static int send_body(struct exchange *x, PyObject *message)
{
    int has_more = has_flag(message, word.more_body);
    PyObject *body = has_more < 0 ? NULL : body_of(message);
    if (PyErr_Occurred() || (body && add_piece(&x->pieces, body)))
        return -1;
    x->has_body = true;
    x->is_body_complete = !has_more;
    x->is_complete = !has_more && !x->has_trailers;
    return x->request ? flush(x) : 0;
}

static int send_trailers(struct exchange *x, PyObject *message)
{
    int has_more = has_flag(message, word.more_trailers);
    PyObject *headers = has_more < 0 ? NULL : PyDict_GetItemWithError(message, word.headers);
    PyObject *list = headers ? PySequence_List(headers) : NULL;
    int result = PyErr_Occurred() ? -1 : exchange_add_trailers(x->response, list);
    Py_XDECREF(list);
    if (result < 0)
        return -1;
    x->is_complete = !has_more;
    return x->is_complete ? flush(x) : 0;
}

/* Sends the regular file message["path"] as the body. */
static int send_path(struct exchange *x, PyObject *message)
{
    PyObject *path = PyDict_GetItemWithError(message, word.path), *encoded = NULL;
    if (!path && !PyErr_Occurred())
        PyErr_SetString(PyExc_KeyError, "path");
    if (!path || !PyUnicode_FSConverter(path, &encoded))
        return -1;
    struct stat status;
    int file = open(PyBytes_AsString(encoded), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    int error = file < 0 || fstat(file, &status) < 0 ? errno
                : S_ISREG(status.st_mode)            ? 0
                : S_ISDIR(status.st_mode)            ? EISDIR
                                                     : EINVAL;
    Py_DECREF(encoded);
    if (error) {
        if (file >= 0)
            close(file);
        errno = error;
        PyErr_SetFromErrnoWithFilenameObject(PyExc_OSError, path);
        return -1;
    }
    x->file = file;
    x->file_size = (uint64_t)status.st_size;
    x->has_body = x->is_body_complete = x->is_complete = true;
    return flush(x);
}

/* Queues the Link values in message["links"], which are bytes objects. */
static int send_hint(struct exchange *x, PyObject *message)
{
    PyObject *links = PyDict_GetItemWithError(message, word.links);
    PyObject *list = links ? PySequence_List(links) : NULL;
    if (!links && !PyErr_Occurred())
        PyErr_SetString(PyExc_KeyError, "links");
    for (Py_ssize_t i = 0; list && i < PyList_Size(list); i++) {
        PyObject *link = PyList_GetItem(list, i);
        if (!PyBytes_Check(link)) {
            PyErr_Format(PyExc_TypeError, "links must be bytes, not %R", (PyObject *)Py_TYPE(link));
            Py_CLEAR(list);
        }
    }
    if (!list)
        return -1;
    Py_XDECREF(x->hints);
    x->hints = list;
    if (x->is_handling)
        exchange_send_hints(x);
    return flush(x);
}

static int raise_unexpected(PyObject *type)
{
    PyErr_Format(PyExc_RuntimeError, "unexpected message %R", type);
    return -1;
}

static bool is_type(PyObject *type, const char *text)
{
    return PyUnicode_CompareWithASCIIString(type, text) == 0;
}

/* Returns 1 if send() has to wait, 0 if not, or -1 with an exception set. */
static int try_send(struct exchange *x, PyObject *message)
{
    PyObject *type = PyDict_Check(message) ? PyDict_GetItemWithError(message, word.type) : NULL;
    if (!type || !PyUnicode_Check(type)) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_TypeError, "a message must be a dict with a type");
        return -1;
    }
    if (!x->request && !x->is_complete) {
        if (x->unsent == 0 && x->n_ignored++ < IGNORED_MAX)
            return 1;
        exchange_raise_disconnected(EPIPE);
        return -1;
    }
    if (is_type(type, "http.response.body") && x->status && !x->is_body_complete)
        return send_body(x, message);
    if (is_type(type, "http.response.start") && !x->status)
        return send_start(x, message);
    if (is_type(type, "http.response.trailers") && x->has_trailers && x->is_body_complete && !x->is_complete)
        return send_trailers(x, message);
    if (is_type(type, "http.response.pathsend") && x->status && !x->has_body)
        return send_path(x, message);
    if (is_type(type, "http.response.early_hint") && !x->status)
        return send_hint(x, message);
    return raise_unexpected(type);
}

/* Returns a new reference to a future that is done when the client can receive more. */
static PyObject *wait_for_client(struct exchange *x)
{
    PyObject *future = PyObject_CallFunctionObjArgs(x->host->create_future, NULL);
    exchange_wake(x->writer);
    Py_XDECREF(x->writer);
    x->writer = future ? Py_NewRef(future) : NULL;
    return future;
}

/* ---- The awaitable ---- */

static PySendResult fail(struct message *m)
{
    m->has_ended = true;
    return PYGEN_ERROR;
}

/* Sends or receives the message if that needs no waiting. PYGEN_NEXT: the caller has to await m->waiting
 * first. */
static PySendResult attempt(struct message *m, PyObject **result)
{
    struct exchange *x = m->x;
    if (!host_check_thread(x->host))
        return fail(m);
    PyObject *out = NULL;
    int done;
    if (m->message) {
        done = m->was_started ? 0 : try_send(x, m->message);
        done = done < 0 ? -1 : !done;
        out = done > 0 ? Py_NewRef(Py_None) : NULL;
    } else {
        done = try_receive(x, &out);
    }
    m->was_started = true;
    if (done < 0)
        return fail(m);
    if (done) {
        m->has_ended = true;
        *result = out;
        return PYGEN_RETURN;
    }
    if (m->message && (x->is_handling || !x->request) && x->pieces.size < BUFFERED_MAX) {
        /* The library sends the data when the handler returns; the event loop then continues this awaitable. */
        m->has_yielded = true;
        *result = Py_NewRef(Py_None);
        return PYGEN_NEXT;
    }
    PyObject *future = m->message ? wait_for_client(x) : wait_for_input(x);
    m->waiting = future ? PyObject_CallMethodObjArgs(future, word.await, NULL) : NULL;
    Py_XDECREF(future);
    return m->waiting ? PYGEN_NEXT : fail(m);
}

static PySendResult am_send(PyObject *self, PyObject *value, PyObject **result)
{
    struct message *m = (struct message *)self;
    *result = NULL;
    if (m->has_ended) {
        PyErr_SetString(PyExc_RuntimeError, "cannot reuse already awaited coroutine");
        return PYGEN_ERROR;
    }
    if (m->has_yielded) {
        m->has_ended = true;
        *result = Py_NewRef(Py_None);
        return PYGEN_RETURN;
    }
    for (;;) {
        if (!m->waiting) {
            PySendResult status = attempt(m, result);
            if (status != PYGEN_NEXT || m->has_yielded)
                return status;
            value = Py_None;
        }
        /* Own reference, because the future of another event loop might call our close(), which releases
         * m->waiting. */
        PyObject *waiting = Py_NewRef(m->waiting);
        PySendResult status = PyIter_Send(waiting, value, result);
        Py_DECREF(waiting);
        if (status == PYGEN_NEXT)
            return PYGEN_NEXT;
        Py_CLEAR(m->waiting);
        if (status == PYGEN_ERROR)
            return fail(m);
        if (m->message) { /* the client can receive more, or has disconnected: then the next send() fails */
            m->has_ended = true;
            return PYGEN_RETURN;
        }
        Py_CLEAR(*result);
    }
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

static PyObject *method_throw(PyObject *self, PyObject *args)
{
    struct message *m = (struct message *)self;
    m->has_ended = true;
    Py_CLEAR(m->waiting);
    raise_thrown(args);
    return NULL;
}

static PyObject *method_close(PyObject *self, PyObject *unused)
{
    (void)unused;
    struct message *m = (struct message *)self;
    m->has_ended = true;
    Py_CLEAR(m->waiting);
    Py_RETURN_NONE;
}

static int traverse(PyObject *self, visitproc visit, void *arg)
{
    struct message *m = (struct message *)self;
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(m->x);
    Py_VISIT(m->message);
    Py_VISIT(m->waiting);
    return 0;
}

static int clear(PyObject *self)
{
    struct message *m = (struct message *)self;
    m->has_ended = true;
    Py_CLEAR(m->x);
    Py_CLEAR(m->message);
    Py_CLEAR(m->waiting);
    return 0;
}

static void dealloc(PyObject *self)
{
    PyObject_GC_UnTrack(self);
    clear(self);
    free_object(self);
}

PyObject *message_new(struct exchange *x, PyObject *message)
{
    struct message *m = (struct message *)PyType_GenericAlloc(message_type, 0);
    if (m) {
        m->x = (struct exchange *)Py_NewRef((PyObject *)x);
        m->message = message ? Py_NewRef(message) : NULL;
    }
    return (PyObject *)m;
}

static PyMethodDef methods[] = {{"send", method_send, METH_O, NULL},
                                {"throw", method_throw, METH_VARARGS, NULL},
                                {"close", method_close, METH_NOARGS, NULL},
                                {0}};

static PyType_Slot slots[] = {{Py_tp_methods, methods},
                              {Py_tp_new, cannot_create},
                              {Py_am_await, PyObject_SelfIter},
#if PY_VERSION_HEX >= 0x030a0000
                              {Py_am_send, am_send},
#endif
                              {Py_tp_iter, PyObject_SelfIter},
                              {Py_tp_iternext, iternext},
                              {Py_tp_traverse, traverse},
                              {Py_tp_clear, clear},
                              {Py_tp_dealloc, dealloc},
                              {0}};

int message_init(void)
{
    static PyType_Spec spec = {"libmonkey._asgi.Message", sizeof(struct message), 0,
                               Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, slots};
    const struct {
        PyObject **word;
        const char *text;
    } all[] = {{&word.type, "type"},
               {&word.status, "status"},
               {&word.headers, "headers"},
               {&word.body, "body"},
               {&word.more_body, "more_body"},
               {&word.trailers, "trailers"},
               {&word.more_trailers, "more_trailers"},
               {&word.path, "path"},
               {&word.links, "links"},
               {&word.http_request, "http.request"},
               {&word.disconnect, "http.disconnect"},
               {&word.await, "__await__"}};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        *all[i].word = PyUnicode_InternFromString(all[i].text);
        if (!*all[i].word)
            return -1;
    }
    empty_bytes = PyBytes_FromStringAndSize(NULL, 0);
    disconnect_message = Py_BuildValue("{O:O}", word.type, word.disconnect);
    message_type = (PyTypeObject *)PyType_FromSpec(&spec);
    return empty_bytes && disconnect_message && message_type ? 0 : -1;
}
