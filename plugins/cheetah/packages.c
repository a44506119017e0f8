/* SPDX-License-Identifier: Apache-2.0 */
#include "packages.h"

#include <monkey/meter.h>

#include "sheet.h"
#include "show.h"

static const struct cheetah_column columns[] = {
    {"package", -10}, {"section", -16}, {"calls", 10}, {"failures", 8}, {"waiting", 7}, {"mean", 0},
};

void cheetah_packages(struct cheetah_session *s, mk_str args, bool json)
{
    const struct mk_meter_board *board = cheetah_session_shell(s)->cheetah->meters;
    struct mk_buf text = mk_buf_growing(CHEETAH_TEXT_MAX);
    struct cheetah_sheet sheet = {.out = &text, .columns = columns, .n = MK_LEN(columns), .json = json};
    char kind[MK_METER_KIND], name[MK_METER_NAME];
    struct mk_meter_part sum;
    (void)args;
    cheetah_sheet_begin(&sheet);
    for (size_t i = 0; mk_meter_at(board, i, kind, name, &sum); i++) {
        cheetah_cell_text(&sheet, mk_str_from_c(kind));
        cheetah_cell_text(&sheet, mk_str_from_c(name));
        cheetah_cell_num(&sheet, sum.calls);
        cheetah_cell_num(&sheet, sum.failures);
        cheetah_cell_num(&sheet, sum.waiting);
        if (sum.calls)
            cheetah_cell_us(&sheet, sum.micros / sum.calls);
        else
            cheetah_cell_none(&sheet);
    }
    cheetah_sheet_end(&sheet);
    cheetah_show_text(s, &text);
}
