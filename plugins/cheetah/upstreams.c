/* SPDX-License-Identifier: Apache-2.0 */
#include "upstreams.h"

#include "sheet.h"
#include "show.h"

static const struct cheetah_column columns[] = {
    {"server", -21}, {"upstream", -12}, {"state", -10},  {"busy", 5},     {"idle", 5},   {"limit", 5},
    {"waiting", 7},  {"latency", 9},    {"requests", 8}, {"failures", 8}, {"checks", 8}, {"checks_failed", 0},
};

static mk_str state_of(const struct mk_upstream_info *info)
{
    static const mk_str names[] = {[MK_UPSTREAM_UP] = MK_STR_INIT("up"),
                                   [MK_UPSTREAM_SLOW_START] = MK_STR_INIT("slow_start"),
                                   [MK_UPSTREAM_DOWN] = MK_STR_INIT("down"),
                                   [MK_UPSTREAM_UNRESOLVED] = MK_STR_INIT("unresolved")};
    return info->state < MK_LEN(names) ? names[info->state] : MK_STR("unknown");
}

static void write_server(struct cheetah_sheet *sheet, const struct mk_upstream_info *info)
{
    cheetah_cell_text(sheet, mk_str_from_c(info->server));
    cheetah_cell_text(sheet, mk_str_from_c(info->upstream));
    cheetah_cell_text(sheet, state_of(info));
    /* Workers change both at any time. */
    cheetah_cell_num(sheet, info->open > info->idle ? info->open - info->idle : 0);
    cheetah_cell_num(sheet, info->idle);
    if (info->max)
        cheetah_cell_num(sheet, info->max);
    else
        cheetah_cell_none(sheet);
    cheetah_cell_num(sheet, info->waiting);
    if (info->latency_us)
        cheetah_cell_us(sheet, info->latency_us);
    else
        cheetah_cell_none(sheet);
    cheetah_cell_num(sheet, info->requests);
    cheetah_cell_num(sheet, info->failures);
    cheetah_cell_num(sheet, info->checks);
    cheetah_cell_num(sheet, info->checks_failed);
}

void cheetah_upstreams(struct cheetah_session *s, mk_str args, bool json)
{
    const struct mk_upstream_stats_table *table = cheetah_session_shell(s)->cheetah->upstreams;
    struct mk_buf text = mk_buf_growing(CHEETAH_TEXT_MAX);
    struct cheetah_sheet sheet = {.out = &text, .columns = columns, .n = MK_LEN(columns), .json = json};
    struct mk_upstream_info info;
    (void)args;
    cheetah_sheet_begin(&sheet);
    for (size_t i = 0; mk_upstream_info_at(table, i, &info); i++)
        if (info.server[0])
            write_server(&sheet, &info);
    cheetah_sheet_end(&sheet);
    cheetah_show_text(s, &text);
}
