/* SPDX-License-Identifier: Apache-2.0 */
/* Duda: web services in C. This header brings all others. */
#ifndef DUDA_H
#define DUDA_H

#include <duda/answer.h>
#include <duda/asked.h>
#include <duda/memory.h>
#include <duda/said.h>
#include <duda/service.h>
#include <duda/wait.h>

#endif
