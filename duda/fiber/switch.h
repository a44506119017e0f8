/* SPDX-License-Identifier: Apache-2.0 */
/* Changing stacks: one interface, and a file for each way to do it. It must not know whose stacks they are.
 */
#ifndef DUDA_FIBER_SWITCH_H
#define DUDA_FIBER_SWITCH_H

#include <stddef.h>

/* A stack, and where both sides of it go on. */
struct duda_switch;

/* fn() will run on the stack from `low` on, and must never return. The result lies on top of that stack, and
 * *size becomes what is left below it. */
struct duda_switch *duda_switch_new(char *low, size_t *size, void (*fn)(void));
/* Goes on there, until that stack calls duda_switch_out(). May be called on another such stack. */
void duda_switch_in(struct duda_switch *s);
void duda_switch_out(struct duda_switch *s);

/* "boost" or "ucontext". */
extern const char duda_switch_name[];

#endif
