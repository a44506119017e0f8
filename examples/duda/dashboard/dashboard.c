/* SPDX-License-Identifier: Apache-2.0 */
/* A page that shows the state of this machine, updated twice a second by server-sent events. */
#include <duda.h>
#include <monkey/json.h>
#include <sys/sysinfo.h>

enum { PAUSE_MS = 500 };

static const char page[] =
    "<!DOCTYPE html>\n<html lang=en><meta charset=utf-8><title>dashboard</title>\n"
    "<style>body{font:16px system-ui;margin:2rem}b{font-size:2rem}</style>\n"
    "<h1>This machine</h1>\n<p>Up <b id=up>-</b> s, load <b id=load>-</b>, <b id=free>-</b> MB free, "
    "<b id=n>0</b> events</p>\n<script>\n"
    "let n = 0;\nnew EventSource('events').addEventListener('state', e => {\n"
    "  for (const [k, v] of Object.entries(JSON.parse(e.data))) document.getElementById(k).textContent = v;\n"
    "  document.getElementById('n').textContent = ++n;\n});\n</script>\n</html>\n";

static int show(struct duda_ctx *d)
{
    return duda_html(d, mk_str_from_c(page));
}

static mk_str state(struct duda_ctx *d)
{
    char buf[128];
    struct mk_buf text = mk_buf_fixed(buf, sizeof buf);
    struct mk_json_writer w = mk_json_writer_to(&text);
    struct sysinfo info;
    if (sysinfo(&info) < 0)
        return MK_STR("{}");
    mk_json_begin_object(&w);
    mk_json_int(mk_json_key(&w, "up"), info.uptime);
    mk_json_string(mk_json_key(&w, "load"),
                   duda_sprintf(d, "%.2f", (double)info.loads[0] / (1 << SI_LOAD_SHIFT)));
    mk_json_uint(mk_json_key(&w, "free"), (uint64_t)info.freeram * info.mem_unit >> 20);
    mk_json_end_object(&w);
    return duda_strdup(d, mk_buf_str(&text));
}

/* Runs until the client disconnects (-ECANCELED), or the worker drains (-ESHUTDOWN). */
static int events(struct duda_ctx *d)
{
    size_t mark = duda_arena_mark(d);
    int e;
    while (!(e = duda_sse_send(d, &(struct mk_sse_event){.name = MK_STR("state"), .data = state(d)})) &&
           !(e = duda_sleep(d, PAUSE_MS)))
        duda_arena_rewind(d, mark);
    return e;
}

DUDA_SERVICE(dashboard, DUDA_GET("/", show, "The page."), DUDA_GET("/events", events, "A stream of events."));
