/* SPDX-License-Identifier: Apache-2.0 */
/* Duda: web services in C. This header includes all others, except those of packages and tests.
 *
 * Names and formats that are constants in the source of a service are C strings: names of headers,
 * parameters, cookies, sections, templates and job types. Text that may be computed or come from a client is
 * a mk_str. If a function appends to a buffer, the buffer is its first parameter. Other results are its last
 * parameters, or directly precede a variable number of arguments. */
#ifndef DUDA_H
#define DUDA_H

#include <duda/body.h>
#include <duda/config.h>
#include <duda/cors.h>
#include <duda/error.h>
#include <duda/form.h>
#include <duda/i18n.h>
#include <duda/json.h>
#include <duda/lock.h>
#include <duda/log.h>
#include <duda/memory.h>
#include <duda/metrics.h>
#include <duda/middleware.h>
#include <duda/pagination.h>
#include <duda/readiness.h>
#include <duda/render.h>
#include <duda/request.h>
#include <duda/response.h>
#include <duda/schema.h>
#include <duda/send.h>
#include <duda/service.h>
#include <duda/session.h>
#include <duda/span.h>
#include <duda/template.h>
#include <duda/topic.h>
#include <duda/upload.h>
#include <duda/url.h>
#include <duda/value.h>
#include <duda/wait.h>
#include <duda/websocket.h>

DUDA_PROBE(of_a_source);

#endif
