/* SPDX-License-Identifier: Apache-2.0 */
#include "meters.h"

#include "exposition.h"

static void print_calls(const struct mk_meter_part *sum, struct mk_buf *out)
{
    metrics_exposition_add_value(out, sum->calls);
}

static void print_failures(const struct mk_meter_part *sum, struct mk_buf *out)
{
    metrics_exposition_add_value(out, sum->failures);
}

static void print_seconds(const struct mk_meter_part *sum, struct mk_buf *out)
{
    mk_buf_add_char(out, ' ');
    metrics_exposition_add_seconds(out, sum->micros);
    mk_buf_add_char(out, '\n');
}

static void print_waiting(const struct mk_meter_part *sum, struct mk_buf *out)
{
    metrics_exposition_add_value(out, sum->waiting);
}

static const struct family {
    const char *name, *type, *help;
    void (*print)(const struct mk_meter_part *sum, struct mk_buf *out);
} families[] = {
    {"monkey_package_calls_total", "counter", "Calls of services to stores, databases and other servers.",
     print_calls},
    {"monkey_package_failures_total", "counter", "Of these, calls that failed.", print_failures},
    {"monkey_package_seconds_total", "counter", "Time that they took, all together.", print_seconds},
    {"monkey_package_waiting", "gauge", "Calls that are under way.", print_waiting},
};

void metrics_meters_print(const struct mk_meter_board *board, struct mk_buf *out)
{
    char kind[MK_METER_KIND], name[MK_METER_NAME];
    struct mk_meter_part sum;
    if (!mk_meter_at(board, 0, kind, name, &sum))
        return;
    for (size_t f = 0; f < MK_LEN(families); f++) {
        metrics_exposition_begin(out, families[f].name, families[f].type, families[f].help);
        for (size_t i = 0; mk_meter_at(board, i, kind, name, &sum); i++) {
            mk_buf_add(out, mk_str_from_c(families[f].name));
            metrics_exposition_add_label(out, true, "package", mk_str_from_c(kind));
            metrics_exposition_add_label(out, false, "section", mk_str_from_c(name));
            mk_buf_add_char(out, '}');
            families[f].print(&sum, out);
        }
    }
}
