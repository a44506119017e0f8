/* SPDX-License-Identifier: Apache-2.0 */
#include "host.h"

#include "exchange.h"
#include "scope.h"
#include "socket.h"

PyTypeObject *host_type;

bool host_check_thread(const struct host *h)
{
    if (PyThread_get_thread_ident() == h->thread)
        return true;
    PyErr_SetString(PyExc_RuntimeError, "a request can be used only in the thread that serves it");
    return false;
}

PyObject *host_wait_step(struct host *h)
{
    if (!h->step_waiters && !(h->step_waiters = PyList_New(0)))
        return NULL;
    PyObject *future = PyObject_CallFunctionObjArgs(h->create_future, NULL);
    if (future && PyList_Append(h->step_waiters, future))
        Py_CLEAR(future);
    return future;
}

static void wake_step_waiters(struct host *h)
{
    PyObject *futures = h->step_waiters;
    h->step_waiters = NULL;
    for (Py_ssize_t i = 0; futures && i < PyList_Size(futures); i++)
        exchange_wake(PyList_GetItem(futures, i));
    Py_XDECREF(futures);
}

void host_print_error(struct host *h)
{
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    if (value && traceback)
        PyException_SetTraceback(value, traceback);
    PyObject *printed =
        value && h->print_error ? PyObject_CallFunctionObjArgs(h->print_error, value, NULL) : NULL;
    if (!printed)
        PyErr_Clear();
    Py_XDECREF(printed);
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(traceback);
}

void host_stop(struct host *h)
{
    if (h->stop_type)
        PyErr_Clear();
    else
        PyErr_Fetch(&h->stop_type, &h->stop_value, &h->stop_traceback);
}

/* ---- Called by the library. The thread already holds the GIL, except in mk_server_free(). ---- */

static bool is_websocket(const struct mk_request *request)
{
    mk_str tunnel = lib.mk_request_tunnel(request);
    return tunnel.len == 9 && memcmp(tunnel.p, "websocket", 9) == 0;
}

static enum mk_verdict handle(struct host *h, struct mk_request *request, struct mk_response *response)
{
    PyObject *known = lib.mk_request_data(request);
    if (!known)
        return is_websocket(request) ? socket_begin(h, request, response)
                                     : exchange_begin(h, request, response);
    Py_INCREF(known);
    enum mk_verdict verdict = Py_TYPE(known) == exchange_type ? exchange_handle((struct exchange *)known)
                                                              : socket_handle((struct socket *)known);
    Py_DECREF(known);
    return verdict;
}

static enum mk_verdict on_request(struct mk_request *request, struct mk_response *response, void *data)
{
    PyGILState_STATE gil = PyGILState_Ensure();
    enum mk_verdict verdict = handle(data, request, response);
    PyGILState_Release(gil);
    return verdict;
}

/* ---- Python ---- */

static PyObject *serve(PyObject *self, PyObject *args)
{
    struct host *h = (struct host *)self;
    PyObject *server, *app, *loop, *root_path, *state, *print_error, *open_websocket, *tasks;
    int is_eager;
    if (!PyArg_ParseTuple(args, "OOOUO!OOO!p", &server, &app, &loop, &root_path, &PyDict_Type, &state,
                          &print_error, &open_websocket, &PySet_Type, &tasks, &is_eager))
        return NULL;
    if (h->server) {
        PyErr_SetString(PyExc_RuntimeError, "already serving");
        return NULL;
    }
    struct {
        PyObject **to, *object;
    } all[] = {{&h->app, Py_NewRef(app)},
               {&h->loop, Py_NewRef(loop)},
               {&h->root_path, Py_NewRef(root_path)},
               {&h->state, Py_NewRef(state)},
               {&h->print_error, Py_NewRef(print_error)},
               {&h->open_websocket, Py_NewRef(open_websocket)},
               {&h->tasks, Py_NewRef(tasks)},
               {&h->http_scope, scope_template(root_path, false)},
               {&h->websocket_scope, scope_template(root_path, true)},
               {&h->create_future, PyObject_GetAttrString(loop, "create_future")},
               {&h->create_task, PyObject_GetAttrString(loop, "create_task")}};
    bool is_complete = true;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        Py_XDECREF(*all[i].to);
        *all[i].to = all[i].object;
        is_complete = is_complete && all[i].object;
    }
    struct mk_server *pointer = is_complete ? PyLong_AsVoidPtr(server) : NULL;
    if (!pointer)
        return PyErr_Occurred() ? NULL : (PyErr_SetString(PyExc_ValueError, "no server"), NULL);
    h->thread = PyThread_get_thread_ident();
    h->is_eager = is_eager;
    int result = lib.mk_server_add_route(pointer, "/*path", on_request, h);
    if (result == 0)
        h->server = pointer;
    return PyLong_FromLong(result);
}

/* Keeps the GIL: the step does not block, and reacquiring the GIL for each request would cost more, above all
 * if other threads are busy. */
static PyObject *step(PyObject *self, PyObject *unused)
{
    (void)unused;
    struct host *h = (struct host *)self;
    if (!h->server || !host_check_thread(h))
        return h->server ? NULL : PyLong_FromLong(0);
    h->is_stepping = true;
    int result = lib.mk_server_step(h->server);
    h->is_stepping = false;
    if (h->step_waiters)
        wake_step_waiters(h);
    if (h->stop_type) {
        PyErr_Restore(h->stop_type, h->stop_value, h->stop_traceback);
        h->stop_type = h->stop_value = h->stop_traceback = NULL;
        return NULL;
    }
    return PyLong_FromLong(result);
}

static PyObject *end(PyObject *self, PyObject *unused)
{
    (void)unused;
    ((struct host *)self)->server = NULL;
    wake_step_waiters((struct host *)self);
    Py_RETURN_NONE;
}

static int traverse(PyObject *self, visitproc visit, void *arg)
{
    struct host *h = (struct host *)self;
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(h->app);
    Py_VISIT(h->loop);
    Py_VISIT(h->state);
    Py_VISIT(h->create_future);
    Py_VISIT(h->create_task);
    Py_VISIT(h->print_error);
    Py_VISIT(h->open_websocket);
    Py_VISIT(h->tasks);
    Py_VISIT(h->step_waiters);
    Py_VISIT(h->stop_value);
    return 0;
}

static int clear(PyObject *self)
{
    struct host *h = (struct host *)self;
    Py_CLEAR(h->app);
    Py_CLEAR(h->loop);
    Py_CLEAR(h->root_path);
    Py_CLEAR(h->state);
    Py_CLEAR(h->http_scope);
    Py_CLEAR(h->websocket_scope);
    Py_CLEAR(h->create_future);
    Py_CLEAR(h->create_task);
    Py_CLEAR(h->print_error);
    Py_CLEAR(h->open_websocket);
    Py_CLEAR(h->tasks);
    Py_CLEAR(h->step_waiters);
    Py_CLEAR(h->stop_type);
    Py_CLEAR(h->stop_value);
    Py_CLEAR(h->stop_traceback);
    return 0;
}

static void dealloc(PyObject *self)
{
    PyObject_GC_UnTrack(self);
    clear(self);
    free_object(self);
}

static PyMethodDef methods[] = {{"_serve", serve, METH_VARARGS, NULL},
                                {"_step", step, METH_NOARGS, NULL},
                                {"_end", end, METH_NOARGS, NULL},
                                {0}};

static PyType_Slot slots[] = {{Py_tp_methods, methods},
                              {Py_tp_traverse, traverse},
                              {Py_tp_clear, clear},
                              {Py_tp_dealloc, dealloc},
                              {Py_tp_doc, "Base class of libmonkey.asgi.Host."},
                              {0}};

int host_init(PyObject *module)
{
    static PyType_Spec spec = {"libmonkey._asgi.Host", sizeof(struct host), 0,
                               Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, slots};
    host_type = (PyTypeObject *)PyType_FromSpec(&spec);
    return host_type ? PyModule_AddObject(module, "Host", Py_NewRef((PyObject *)host_type)) : -1;
}
