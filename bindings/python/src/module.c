/* SPDX-License-Identifier: Apache-2.0 */
/* The module libmonkey._asgi: the parts of the ASGI server that run for each request. */
#include "exchange.h"
#include "host.h"
#include "message.h"
#include "scope.h"
#include "socket.h"

/* bind(handle): looks up the functions of the library that ctypes has loaded. */
static PyObject *bind_library(PyObject *unused, PyObject *handle)
{
    (void)unused;
    void *pointer = PyLong_AsVoidPtr(handle);
    if (!pointer)
        return PyErr_Occurred() ? NULL : (PyErr_SetString(PyExc_ValueError, "no library"), NULL);
    const char *missing = library_bind(pointer);
    if (missing) {
        PyErr_Format(PyExc_ImportError, "libmonkey lacks %s", missing);
        return NULL;
    }
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {{"bind", bind_library, METH_O, NULL}, {0}};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, .m_name = "libmonkey._asgi", .m_size = -1,
                                        .m_methods = functions};

PyMODINIT_FUNC PyInit__asgi(void)
{
    PyObject *module = PyModule_Create(&definition);
    if (module &&
        (scope_init() || message_init() || exchange_init(module) || host_init(module) || socket_init(module)))
        Py_CLEAR(module);
    return module;
}
