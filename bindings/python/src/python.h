/* SPDX-License-Identifier: Apache-2.0 */
/* The Python C API for this extension, which uses only the stable ABI of Python 3.11: one binary works with
 * 3.11 and all later versions. Each older version needs its own binary. */
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

/* Raises StopIteration(value), as a generator that returns `value` does, and returns NULL. Steals the
 * reference to `value`. */
PyObject *stop_iteration(PyObject *value);

/* Converts the result of an am_send function to that of tp_iternext and of the method send(): a return value
 * becomes StopIteration. */
PyObject *send_result(PySendResult status, PyObject *result);

/* Raises the exception that the arguments of throw(type, value=None, traceback=None) describe. */
void raise_thrown(PyObject *args);

/* Frees an object of a garbage-collected heap type, after its references have been cleared. */
void free_object(PyObject *self);

/* The tp_new of types whose instances only C code creates: raises TypeError. */
PyObject *cannot_create(PyTypeObject *type, PyObject *args, PyObject *keywords);

#endif
