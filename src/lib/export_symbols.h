/* SPDX-License-Identifier: Apache-2.0 */
/* Exports the symbols of this library. */
#ifndef MK_LIB_EXPORT_SYMBOLS_H
#define MK_LIB_EXPORT_SYMBOLS_H

/* Makes our symbols visible to objects loaded later, if a program has loaded us with RTLD_LOCAL, as
 * interpreters do. */
void mk_export_symbols(void);

#endif
