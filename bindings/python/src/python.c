/* SPDX-License-Identifier: Apache-2.0 */
#include "python.h"

#if PY_VERSION_HEX < 0x030a0000
PySendResult PyIter_Send(PyObject *iter, PyObject *value, PyObject **result)
{
    if (value == Py_None && PyIter_Check(iter))
        *result = Py_TYPE(iter)->tp_iternext(iter);
    else
        *result = PyObject_CallMethod(iter, "send", "O", value);
    if (*result)
        return PYGEN_NEXT;
    return _PyGen_FetchStopIterationValue(result) ? PYGEN_ERROR : PYGEN_RETURN;
}
#endif

PyObject *stop_iteration(PyObject *value)
{
    if (value == Py_None) {
        PyErr_SetNone(PyExc_StopIteration);
    } else {
        PyObject *stop = PyObject_CallFunctionObjArgs(PyExc_StopIteration, value, NULL);
        if (stop)
            PyErr_SetObject(PyExc_StopIteration, stop);
        Py_XDECREF(stop);
    }
    Py_DECREF(value);
    return NULL;
}

PyObject *send_result(PySendResult status, PyObject *result)
{
    return status == PYGEN_NEXT ? result : status == PYGEN_RETURN ? stop_iteration(result) : NULL;
}

void raise_thrown(PyObject *args)
{
    PyObject *type, *value = NULL, *traceback = NULL;
    if (!PyArg_UnpackTuple(args, "throw", 1, 3, &type, &value, &traceback))
        return;
    if (value == Py_None)
        value = NULL;
    if (traceback == Py_None)
        traceback = NULL;
    if (PyExceptionInstance_Check(type)) { /* throw(exception) */
        value = type;
        type = PyExceptionInstance_Class(value);
        PyErr_SetObject(type, value);
        return;
    }
    if (!PyExceptionClass_Check(type)) {
        PyErr_SetString(PyExc_TypeError, "throw() expects an exception");
        return;
    }
    PyErr_Restore(Py_NewRef(type), value ? Py_NewRef(value) : NULL, traceback ? Py_NewRef(traceback) : NULL);
}

void free_object(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_Del(self);
    Py_DECREF(type);
}

PyObject *cannot_create(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    (void)args, (void)keywords;
    PyErr_Format(PyExc_TypeError, "cannot create %R", (PyObject *)type);
    return NULL;
}
