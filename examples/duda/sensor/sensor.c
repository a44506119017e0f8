/* SPDX-License-Identifier: Apache-2.0 */
/* For a small board on your network, such as a Raspberry Pi: shows the readings of its sensor as a number, a
 * chart and JSON. To send a reading: `curl -d 21.5 localhost:2001/readings`. Readings are in the memory of
 * the worker, so run a single one (`Workers 1`), as `monkey run` does. */
#include <duda.h>
#include <duda/chart.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/sysinfo.h>

enum { KEPT = 120, PAGE_MAX = 64 * 1024 };

static double readings[KEPT];
static size_t n_readings;

static int add(struct duda_ctx *d)
{
    mk_str text;
    char *end;
    int e = duda_read_all(d, 64, &text);
    if (e)
        return e;
    double value = strtod(text.p, &end);
    if (end == text.p || value < -1e6 || value > 1e6)
        return duda_problem(d, 422, "send a number from -1000000 to 1000000");
    if (n_readings == KEPT)
        memmove(readings, readings + 1, (--n_readings) * sizeof readings[0]);
    readings[n_readings++] = value;
    return 204;
}

static int now(struct duda_ctx *d)
{
    struct sysinfo info;
    if (sysinfo(&info) < 0)
        return -errno;
    const struct duda_entry values[] = {
        {"value", n_readings ? duda_value_number(readings[n_readings - 1]) : duda_value_null()},
        {"readings", duda_value_unsigned(n_readings)},
        {"uptime", duda_value_integer(info.uptime)},
        {"load", duda_value_number((double)info.loads[0] / (1 << SI_LOAD_SHIFT))},
    };
    return duda_send_json(d, duda_value_map(values, MK_LEN(values)));
}

static void write_page(struct mk_buf *out)
{
    const struct duda_chart_series series = {.name = MK_STR("readings"), .values = readings, .n = n_readings};
    const struct duda_chart chart = {.title = MK_STR("Readings"), .series = &series, .n_series = 1};
    mk_buf_add(out,
               MK_STR("<!DOCTYPE html>\n<html lang=en><meta charset=utf-8><meta http-equiv=refresh content=5>"
                      "<meta name=viewport content=\"width=device-width\"><title>sensor</title>\n<h1>"));
    if (n_readings == 0)
        mk_buf_add(out, MK_STR("No readings yet"));
    else
        mk_buf_addf(out, "%.1f", readings[n_readings - 1]);
    mk_buf_add(out, MK_STR("</h1>\n"));
    if (n_readings > 1 && duda_chart_svg(out, &chart) != 0)
        mk_buf_add(out, MK_STR("<p>There is no chart.</p>"));
}

static int page(struct duda_ctx *d)
{
    struct mk_buf out = mk_buf_growing(PAGE_MAX);
    write_page(&out);
    int e = out.failed ? -ENOMEM : duda_html(d, mk_buf_str(&out));
    mk_buf_free(&out);
    return e;
}

DUDA_SERVICE(sensor, DUDA_GET("/", page, "The page."), DUDA_GET("/now", now, "The last reading, in JSON."),
             DUDA_POST("/readings", add, "Takes a number."));
