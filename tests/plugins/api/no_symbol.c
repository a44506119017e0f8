/* SPDX-License-Identifier: Apache-2.0 */
/* A shared object that is not a plugin. */
extern int something;
int something = 1;
