/* SPDX-License-Identifier: Apache-2.0 */
/* The object that holds this library. */
#ifndef MK_LIB_EXPORT_SYMBOLS_H
#define MK_LIB_EXPORT_SYMBOLS_H

/* Lets objects that are loaded later find our symbols, if a program has loaded us for itself alone
 * (RTLD_LOCAL), as interpreters do. */
void mk_export_symbols(void);

#endif
