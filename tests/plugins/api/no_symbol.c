/* SPDX-License-Identifier: Apache-2.0 */
/* An object, but no plugin. */
extern int something;
int something = 1;
