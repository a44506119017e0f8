/* SPDX-License-Identifier: Apache-2.0 */
#include "socket.h"

#include "exchange.h"
#include "scope.h"

#include <errno.h>

#define MESSAGE_MAX (16 * 1024 * 1024)

static PyTypeObject *socket_type;

/* ---- Called by the library ---- */

/* Calls a method of the subclass. */
static PyObject *call_method(struct socket *s, const char *name, PyObject *argument)
{
    PyObject *method = PyObject_GetAttrString((PyObject *)s, name);
    PyObject *result = method ? PyObject_CallFunctionObjArgs(method, argument, NULL) : NULL;
    Py_XDECREF(method);
    if (!result)
        host_print_error(s->host);
    return result;
}

static void on_message(void *ctx, struct mk_websocket *websocket, enum mk_websocket_kind kind, mk_str data)
{
    (void)websocket;
    PyGILState_STATE gil = PyGILState_Ensure();
    PyObject *message = kind == MK_WEBSOCKET_TEXT
                            ? PyUnicode_DecodeUTF8(data.p, (Py_ssize_t)data.len, "strict")
                            : PyBytes_FromStringAndSize(data.p, (Py_ssize_t)data.len);
    if (message)
        Py_XDECREF(call_method(ctx, "on_message", message));
    else
        host_print_error(((struct socket *)ctx)->host);
    Py_XDECREF(message);
    PyGILState_Release(gil);
}

static void on_writable(void *ctx, struct mk_websocket *websocket)
{
    (void)websocket;
    PyGILState_STATE gil = PyGILState_Ensure();
    Py_XDECREF(call_method(ctx, "wake_writer", NULL));
    PyGILState_Release(gil);
}

static void on_close(void *ctx, struct mk_websocket *websocket, unsigned code, mk_str reason)
{
    (void)websocket;
    struct socket *s = ctx;
    PyGILState_STATE gil = PyGILState_Ensure();
    s->websocket = NULL;
    PyObject *method = PyObject_GetAttrString((PyObject *)s, "finish");
    PyObject *text = PyUnicode_DecodeUTF8(reason.p ? reason.p : "", (Py_ssize_t)reason.len, "replace");
    PyObject *done = method && text ? PyObject_CallFunction(method, "IO", code, text) : NULL;
    if (!done)
        host_print_error(s->host);
    Py_XDECREF(done);
    Py_XDECREF(text);
    Py_XDECREF(method);
    Py_DECREF((PyObject *)s);
    PyGILState_Release(gil);
}

static const struct mk_websocket_ops websocket_ops = {
    .on_message = on_message, .on_writable = on_writable, .on_close = on_close};

static void on_end(void *data)
{
    struct socket *s = data;
    PyGILState_STATE gil = PyGILState_Ensure();
    s->request = NULL;
    s->response = NULL;
    Py_XDECREF(call_method(s, "end", NULL));
    Py_DECREF((PyObject *)s);
    PyGILState_Release(gil);
}

enum mk_verdict socket_handle(struct socket *s)
{
    s->is_handling = true;
    PyObject *result = s->request ? call_method(s, "handle", NULL) : NULL;
    s->is_handling = false;
    long verdict = result ? PyLong_AsLong(result) : MK_ERROR;
    Py_XDECREF(result);
    PyErr_Clear();
    if (verdict == MK_WAIT || verdict == MK_DONE)
        return verdict == MK_WAIT ? MK_WAIT : MK_DONE;
    if (!result && s->request)
        lib.mk_response_set_status(s->response, 500);
    return MK_ERROR;
}

static struct socket *open_socket(struct host *h, struct mk_request *request)
{
    PyObject *scope = scope_new(h->websocket_scope, h->root_path, h->state, request, true);
    PyObject *s = scope ? PyObject_CallFunctionObjArgs(h->open_websocket, scope, NULL) : NULL;
    Py_XDECREF(scope);
    if (s && !PyObject_TypeCheck(s, socket_type)) {
        PyErr_SetString(PyExc_TypeError, "expected a Socket");
        Py_CLEAR(s);
    }
    return (struct socket *)s;
}

enum mk_verdict socket_begin(struct host *h, struct mk_request *request, struct mk_response *response)
{
    struct socket *s = open_socket(h, request);
    if (!s || lib.mk_request_add_cleanup(request, on_end, s) < 0) {
        if (!s)
            host_print_error(h);
        Py_XDECREF((PyObject *)s);
        lib.mk_response_set_status(response, s ? 503 : 500);
        return MK_ERROR;
    }
    s->host = (struct host *)Py_NewRef((PyObject *)h);
    s->request = request;
    s->response = response;
    lib.mk_request_set_data(request, s);
    lib.mk_request_set_handler_timeout(request, MK_FOREVER);
    lib.mk_request_cancel_on_disconnect(request);
    return MK_WAIT;
}

/* ---- Python ---- */

static bool can_use(const struct socket *s)
{
    if (s->host)
        return host_check_thread(s->host);
    PyErr_SetString(PyExc_RuntimeError, "not a WebSocket of a server");
    return false;
}

/* May the response be set now, within handle()? Sets an exception if not. */
static bool can_respond(const struct socket *s)
{
    if (!can_use(s))
        return false;
    if (!s->is_handling || !s->request)
        PyErr_SetString(PyExc_RuntimeError, "the handler is not being called");
    return s->is_handling && s->request;
}

/* _open(subprotocol: bytes | None, headers: list) -> bool */
static PyObject *open_it(PyObject *self, PyObject *args)
{
    struct socket *s = (struct socket *)self;
    PyObject *subprotocol, *headers;
    if (!PyArg_ParseTuple(args, "OO!", &subprotocol, &PyList_Type, &headers) || !can_respond(s))
        return NULL;
    if (subprotocol != Py_None && !PyBytes_Check(subprotocol)) {
        PyErr_SetString(PyExc_TypeError, "the subprotocol must be bytes");
        return NULL;
    }
    if (s->websocket || s->options.ops) {
        PyErr_SetString(PyExc_RuntimeError, "already opened");
        return NULL;
    }
    if (exchange_add_headers(s->response, headers) == -2)
        return NULL;
    s->subprotocol = Py_NewRef(subprotocol);
    s->options = (struct mk_websocket_options){
        .ops = &websocket_ops,
        .subprotocols = subprotocol == Py_None ? NULL : PyBytes_AsString(subprotocol),
        .message_max = MESSAGE_MAX,
        .flags = MK_WEBSOCKET_COMPRESS};
    Py_INCREF(self); /* until on_close() */
    if (lib.mk_websocket_open(s->request, s->response, &s->options, s, &s->websocket) < 0) {
        s->websocket = NULL;
        Py_DECREF(self);
        Py_RETURN_FALSE;
    }
    Py_RETURN_TRUE;
}

/* _refuse(status: int, headers: list, body: bytes | None) */
static PyObject *refuse(PyObject *self, PyObject *args)
{
    struct socket *s = (struct socket *)self;
    unsigned status;
    PyObject *headers, *body;
    if (!PyArg_ParseTuple(args, "IO!O", &status, &PyList_Type, &headers, &body) || !can_respond(s))
        return NULL;
    lib.mk_response_set_status(s->response, status);
    if (exchange_add_headers(s->response, headers) == -2)
        return NULL;
    if (PyBytes_Check(body))
        lib.mk_response_set_body(s->response, mk_str_of(PyBytes_AsString(body), (size_t)PyBytes_Size(body)));
    Py_RETURN_NONE;
}

static PyObject *resume(PyObject *self, PyObject *unused)
{
    (void)unused;
    struct socket *s = (struct socket *)self;
    if (!can_use(s))
        return NULL;
    if (s->request)
        lib.mk_request_resume(s->request);
    Py_RETURN_NONE;
}

/* _send(data: str | bytes) -> int: 0 or a negative errno value */
static PyObject *send_it(PyObject *self, PyObject *data)
{
    struct socket *s = (struct socket *)self;
    if (!can_use(s))
        return NULL;
    bool is_text = PyUnicode_Check(data);
    PyObject *bytes = is_text                      ? PyUnicode_AsUTF8String(data)
                      : PyObject_CheckBuffer(data) ? PyBytes_FromObject(data)
                                                   : NULL;
    if (!bytes) {
        if (!PyErr_Occurred())
            PyErr_Format(PyExc_TypeError, "a message must be text or bytes, not %R",
                         (PyObject *)Py_TYPE(data));
        return NULL;
    }
    mk_str text = mk_str_of(PyBytes_AsString(bytes), (size_t)PyBytes_Size(bytes));
    int result = s->websocket ? lib.mk_websocket_send(s->websocket,
                                                      is_text ? MK_WEBSOCKET_TEXT : MK_WEBSOCKET_BINARY, text)
                              : -ESHUTDOWN;
    Py_DECREF(bytes);
    return PyLong_FromLong(result);
}

/* _wait_step() -> Future */
static PyObject *wait_step(PyObject *self, PyObject *unused)
{
    (void)unused;
    struct socket *s = (struct socket *)self;
    return can_use(s) ? host_wait_step(s->host) : NULL;
}

/* _close(code: int, reason: str) -> int */
static PyObject *close_it(PyObject *self, PyObject *args)
{
    struct socket *s = (struct socket *)self;
    unsigned code;
    const char *reason;
    Py_ssize_t n;
    if (!PyArg_ParseTuple(args, "Is#", &code, &reason, &n) || !can_use(s))
        return NULL;
    return PyLong_FromLong(
        s->websocket ? lib.mk_websocket_close(s->websocket, code, mk_str_of(reason, (size_t)n)) : -ESHUTDOWN);
}

/* _pause(is_paused: bool) */
static PyObject *pause_it(PyObject *self, PyObject *value)
{
    struct socket *s = (struct socket *)self;
    if (!can_use(s))
        return NULL;
    if (s->websocket)
        (PyObject_IsTrue(value) > 0 ? lib.mk_websocket_pause : lib.mk_websocket_resume)(s->websocket);
    Py_RETURN_NONE;
}

static PyObject *get_is_open(PyObject *self, void *unused)
{
    (void)unused;
    return PyBool_FromLong(((struct socket *)self)->websocket != NULL);
}

static PyObject *get_has_request(PyObject *self, void *unused)
{
    (void)unused;
    return PyBool_FromLong(((struct socket *)self)->request != NULL);
}

static int traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(((struct socket *)self)->host);
    return 0;
}

static int clear(PyObject *self)
{
    struct socket *s = (struct socket *)self;
    Py_CLEAR(s->host);
    return 0;
}

static void dealloc(PyObject *self)
{
    PyObject_GC_UnTrack(self);
    clear(self);
    Py_CLEAR(((struct socket *)self)->subprotocol);
    free_object(self);
}

static PyMethodDef methods[] = {
    {"_open", open_it, METH_VARARGS, NULL},       {"_refuse", refuse, METH_VARARGS, NULL},
    {"_resume", resume, METH_NOARGS, NULL},       {"_send", send_it, METH_O, NULL},
    {"_wait_step", wait_step, METH_NOARGS, NULL}, {"_close", close_it, METH_VARARGS, NULL},
    {"_pause", pause_it, METH_O, NULL},           {0}};

static PyGetSetDef attributes[] = {
    {"_is_open", get_is_open, NULL, NULL, NULL}, {"_has_request", get_has_request, NULL, NULL, NULL}, {0}};

static PyType_Slot slots[] = {{Py_tp_methods, methods},
                              {Py_tp_getset, attributes},
                              {Py_tp_traverse, traverse},
                              {Py_tp_clear, clear},
                              {Py_tp_dealloc, dealloc},
                              {Py_tp_doc, "Base class of libmonkey.asgi.WebSocket."},
                              {0}};

int socket_init(PyObject *module)
{
    static PyType_Spec spec = {"libmonkey._asgi.Socket", sizeof(struct socket), 0,
                               Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, slots};
    socket_type = (PyTypeObject *)PyType_FromSpec(&spec);
    return socket_type ? PyModule_AddObject(module, "Socket", Py_NewRef((PyObject *)socket_type)) : -1;
}
