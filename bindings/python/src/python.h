/* SPDX-License-Identifier: Apache-2.0 */
/* The part of the Python C API that this extension uses: the stable ABI of 3.11, so that one binary serves
 * all later versions; older versions get their own binary. */
#ifndef PYTHON_H
#define PYTHON_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>

#if PY_VERSION_HEX < 0x030a0000
typedef enum { PYGEN_RETURN = 0, PYGEN_ERROR = -1, PYGEN_NEXT = 1 } PySendResult;
PySendResult PyIter_Send(PyObject *iter, PyObject *value, PyObject **result);
static inline PyObject *Py_NewRef(PyObject *object)
{
    Py_INCREF(object);
    return object;
}
#endif

/* Raises StopIteration(value), as a generator that returns `value` does. Returns NULL; steals the
 * reference. */
PyObject *stop_iteration(PyObject *value);

/* Converts the result of an am_send function for tp_iternext and for the method send(). */
PyObject *send_result(PySendResult status, PyObject *result);

/* Raises the exception that the arguments of a method throw(type, value=None, traceback=None) describe. */
void raise_thrown(PyObject *args);

/* Frees an object of a heap type with garbage collection, whose references have been cleared. */
void free_object(PyObject *self);

/* Marks a class as final for Python code: instances come from C only. */
PyObject *cannot_create(PyTypeObject *type, PyObject *args, PyObject *keywords);

#endif
