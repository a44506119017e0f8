/* SPDX-License-Identifier: Apache-2.0 */
/* Duda: web services in C. This header includes all others, except those of packages and tests.
 *
 * Names and formats that the source of a service contains are C strings: those of headers, parameters,
 * cookies, sections, templates and job types. Whatever may be computed or come from a client is a mk_str. A
 * buffer to which a function appends is its first parameter; other results are the last ones, or precede a
 * variable number of arguments. */
#ifndef DUDA_H
#define DUDA_H

#include <duda/body.h>
#include <duda/config.h>
#include <duda/form.h>
#include <duda/json.h>
#include <duda/lock.h>
#include <duda/memory.h>
#include <duda/render.h>
#include <duda/request.h>
#include <duda/response.h>
#include <duda/schema.h>
#include <duda/send.h>
#include <duda/service.h>
#include <duda/session.h>
#include <duda/template.h>
#include <duda/topic.h>
#include <duda/upload.h>
#include <duda/value.h>
#include <duda/wait.h>
#include <duda/websocket.h>

DUDA_PROBE(of_a_source);

#endif
