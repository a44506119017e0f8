/* SPDX-License-Identifier: Apache-2.0 */
/* Stack switching: one interface with one file per implementation. Independent of what the stacks are used
 * for. */
#ifndef DUDA_FIBER_SWITCH_H
#define DUDA_FIBER_SWITCH_H

#include <stddef.h>

/* A stack, and the resume points of both sides. */
struct duda_switch;

/* Prepares fn(arg) to run on the stack that starts at `low`; fn must never return. The result is stored at
 * the top of the stack; *size becomes the space left below it. */
struct duda_switch *duda_switch_new(char *low, size_t *size, void (*fn)(void *arg), void *arg);
/* Switches to the stack until code on it calls duda_switch_out(). Can be nested: may be called on another
 * such stack. */
void duda_switch_in(struct duda_switch *s);
void duda_switch_out(struct duda_switch *s);

/* "boost" or "ucontext". */
extern const char duda_switch_name[];

#endif
