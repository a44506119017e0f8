/* SPDX-License-Identifier: Apache-2.0 */
#include "routes.h"

#include "sheet.h"
#include "show.h"

static const struct cheetah_column columns[] = {
    {"service", -12}, {"method", -7}, {"route", -24}, {"requests", 9}, {"failures", 8},
    {"cancelled", 9}, {"crashes", 7}, {"mean", 9},    {"p50", 9},      {"p99", 0},
};

/* The last cell ends the row, so each has all. */
static void write_times(struct cheetah_sheet *sheet, const struct mk_route_info *r, uint64_t requests)
{
    if (!requests) {
        for (unsigned i = 0; i < 3; i++)
            cheetah_cell_none(sheet);
        return;
    }
    cheetah_cell_us(sheet, r->micros / requests);
    cheetah_cell_us(sheet, mk_route_quantile(r, 500));
    cheetah_cell_us(sheet, mk_route_quantile(r, 990));
}

static void write_route(struct cheetah_sheet *sheet, const struct mk_route_info *r)
{
    uint64_t requests = mk_route_requests(r);
    cheetah_cell_text(sheet, mk_str_from_c(r->service));
    cheetah_cell_text(sheet, mk_str_from_c(r->method));
    cheetah_cell_text(sheet, mk_str_from_c(r->pattern));
    cheetah_cell_num(sheet, requests);
    cheetah_cell_num(sheet, r->failures);
    cheetah_cell_num(sheet, r->cancelled);
    cheetah_cell_num(sheet, r->crashes);
    write_times(sheet, r, requests);
}

void cheetah_routes(struct cheetah_session *s, mk_str args, bool json)
{
    const struct mk_routes_board *board = cheetah_session_shell(s)->cheetah->routes;
    struct mk_buf text = mk_buf_growing(CHEETAH_TEXT_MAX);
    struct cheetah_sheet sheet = {.out = &text, .columns = columns, .n = MK_LEN(columns), .json = json};
    struct mk_route_info info;
    (void)args;
    cheetah_sheet_begin(&sheet);
    for (size_t i = 0; mk_route_info_at(board, i, &info); i++)
        write_route(&sheet, &info);
    cheetah_sheet_end(&sheet);
    cheetah_show_text(s, &text);
}
