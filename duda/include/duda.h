/* SPDX-License-Identifier: Apache-2.0 */
/* Duda: web services in C. This header brings all others. */
#ifndef DUDA_H
#define DUDA_H

#include <duda/allocator.h>
#include <duda/answer.h>
#include <duda/asked.h>
#include <duda/content.h>
#include <duda/cookie.h>
#include <duda/form.h>
#include <duda/json.h>
#include <duda/lock.h>
#include <duda/memory.h>
#include <duda/multipart.h>
#include <duda/page.h>
#include <duda/room.h>
#include <duda/said.h>
#include <duda/service.h>
#include <duda/settings.h>
#include <duda/shape.h>
#include <duda/socket.h>
#include <duda/template.h>
#include <duda/upload.h>
#include <duda/value.h>
#include <duda/visitor.h>
#include <duda/wait.h>

DUDA_PROBE(of_a_source);

#endif
