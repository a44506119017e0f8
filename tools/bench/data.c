/* SPDX-License-Identifier: Apache-2.0 */
/* The pages that tools/bench/data.py compares: the same text from different sources. */
#define DUDA_USE "duda-kv"
#include <duda.h>
#include <duda/kv.h>
#include <duda/session.h>

#define MESSAGE "Redis says: \"hello\" & <welcome>" /* same text as in tools/contest/contest/data.py */

static int send_page(struct duda_ctx *d, mk_str text)
{
    int e = duda_html(d, MK_STR("<!DOCTYPE html><p>"));
    e = e ? e : duda_write(d, duda_html_escape(d, text));
    return e ? e : duda_puts(d, "</p>\n");
}

static int send_page_from_code(struct duda_ctx *d)
{
    return send_page(d, MK_STR(MESSAGE));
}

static int send_page_from_kv(struct duda_ctx *d)
{
    mk_str text;
    int e = duda_kv_get(d, duda_kv_find(d, "pages"), MK_STR("message"), &text);
    return e ? e : send_page(d, text);
}

static int store_in_kv(struct duda_ctx *d)
{
    return duda_kv_set(d, duda_kv_find(d, "pages"), MK_STR("message"), MK_STR(MESSAGE), 0);
}

static int begin_session(struct duda_ctx *d)
{
    return duda_session_set(d, "text", MK_STR(MESSAGE));
}

static int send_page_from_session(struct duda_ctx *d)
{
    mk_str text;
    int e = duda_session_get(d, "text", &text);
    return e ? e : send_page(d, text);
}

DUDA_SERVICE(pages, DUDA_GET("/plain", send_page_from_code, "A page with a text from the code."),
             DUDA_GET("/kept", send_page_from_kv, "A page with a text from kv."),
             DUDA_PUT("/kept", store_in_kv, "Stores the text in kv."),
             DUDA_GET("/visit", send_page_from_session, "A page with a text from the session."),
             DUDA_PUT("/visit", begin_session, "Begins a session with the text."));
