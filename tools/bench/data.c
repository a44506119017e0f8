/* SPDX-License-Identifier: Apache-2.0 */
/* The pages that tools/bench/data.py compares with each other: one text, from each place. */
#define DUDA_USE "duda-kv",
#include <duda.h>
#include <duda/kv.h>
#include <duda/session.h>

#define MESSAGE "Redis says: \"hello\" & <welcome>" /* as in tools/contest/contest/data.py */

static int show(struct duda_ctx *d, mk_str text)
{
    int e = duda_html(d, MK_STR("<!DOCTYPE html><p>"));
    e = e ? e : duda_write(d, duda_html_escape(d, text));
    return e ? e : duda_puts(d, "</p>\n");
}

static int plain(struct duda_ctx *d)
{
    return show(d, MK_STR(MESSAGE));
}

static int kept(struct duda_ctx *d)
{
    mk_str text;
    int e = duda_kv_get(d, duda_kv_find(d, "pages"), MK_STR("message"), &text);
    return e ? e : show(d, text);
}

static int keep(struct duda_ctx *d)
{
    return duda_kv_set(d, duda_kv_find(d, "pages"), MK_STR("message"), MK_STR(MESSAGE), 0);
}

static int begin(struct duda_ctx *d)
{
    return duda_session_set(d, "text", MK_STR(MESSAGE));
}

static int visit(struct duda_ctx *d)
{
    mk_str text = duda_session_get(d, "text");
    return text.p ? show(d, text) : 404;
}

DUDA_SERVICE(pages, DUDA_GET("/plain", plain, "The text is here."),
             DUDA_GET("/kept", kept, "It is in the store."), DUDA_PUT("/kept", keep, "Puts it there."),
             DUDA_GET("/visit", visit, "It is in the session."),
             DUDA_PUT("/visit", begin, "A session begins."));
